"""The store tells the time along with its answers, about once a second."""

import time
from email.utils import parsedate_to_datetime

import pytest

from chalicelib.adapters import aws_json
from chalicelib.adapters.aws_json import JsonService
from tests.contract.emulated import strict_client


def test_the_store_tells_the_time_with_its_answers(emulator: str) -> None:
    heard: list[str] = []
    service = JsonService(strict_client("dynamodb", emulator), heard.append)
    for _ in range(3):
        service.call("ListTables")
    service.close()
    (told,) = heard
    assert abs(parsedate_to_datetime(told).timestamp() - time.time()) < 60


def test_an_answer_that_was_long_in_coming_tells_no_time(
    emulator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aws_json, "HEARD_WITHIN_S", 0.0)
    heard: list[str] = []
    service = JsonService(strict_client("dynamodb", emulator), heard.append)
    service.call("ListTables")
    service.close()
    assert heard == []
