"""The store tells the time along with its answers, about once a second."""

import time
from email.utils import parsedate_to_datetime

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
