"""The log: every line and every key of it is in docs/operations.md, and names the call it was written for."""

import ast
import logging
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

import app as lambdas
from chalicelib import telemetry
from chalicelib.application.visit import Attempted
from infra.local import logs
from infra.local.emulator import Emulator, EmulatorName
from infra.local.plan import Plan
from infra.local.sqs_event import event_of
from infra.package import ROOT
from tests.handlers.conftest import Lines
from tests.handlers.log_pages import LINES
from tests.handlers.relay import Relay, message
from tests.receiver import Receiver

LEVELS = frozenset({"info", "warning", "error", "exception"})
NOT_TOLD = "fan_out.worked_off"
"""What came of a fan-out is in the store alone: there is nothing to say of it."""


def calls(name: str) -> Iterator[ast.Call]:
    """Find the calls of functions and methods of a name in what handles calls and puts the parts together."""
    folders = ("handlers", "bootstrap")
    among = (path for each in folders for path in (ROOT / "chalicelib" / each).glob("*.py"))
    for path in (ROOT / "chalicelib/telemetry.py", *among):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == name:
                yield node


def written() -> set[str]:
    """Name the messages of all lines that the functions can write."""
    found: set[str] = set()
    whats = {ast.literal_eval(node.args[1]) for node in calls("work_off")}
    for node in (node for level in LEVELS for node in calls(level)):
        said = ast.unparse(node.args[0])
        if said.startswith("f"):
            found |= {repr(said[2:-1].replace("{what}", what)) for what in whats}
        elif said != "message":
            found.add(said)
    return {ast.literal_eval(each) for each in found} - {NOT_TOLD}


def test_every_line_there_is_is_documented_and_no_other() -> None:
    assert written() == set(LINES)


def test_every_key_of_an_attempt_s_line_is_documented() -> None:
    named = {field.name for field in fields(Attempted)} - {"steps", "rung_in"}
    assert named | {"trace_id"} == LINES["delivery.attempted"]


def test_every_line_of_a_call_names_it(relay: Relay, receiver: Receiver, lines: Lines) -> None:
    relay.endpoint(url=receiver.url("/sink"))
    relay.event()
    relay.deliver_all()
    (attempted,) = lines.named("delivery.attempted")
    relay.run(lambdas.delayed_bells, event_of([message("nothing")], relay.arn("delayed")))
    (refused,) = lines.named("bell.refused")
    for line in (attempted, refused):
        assert line["function_name"] == "relay-worker"
        assert line["function_request_id"]
    assert attempted["function_request_id"] != refused["function_request_id"]


def test_a_request_that_failed_names_its_call(relay: Relay, lines: Lines) -> None:
    relay.drop_table("events")
    assert relay.get("/v1/events").status == 503
    (line,) = lines.named("request.unavailable")
    assert line["function_name"] == "relay-api"
    assert line["function_request_id"] == line["request_id"]


def test_an_attempt_as_text_is_one_line(relay: Relay, receiver: Receiver) -> None:
    heard: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(handler.format(record))  # type: ignore[method-assign] # what a handler is
    handler.setFormatter(telemetry.TextFormatter(use_rfc3339=True, utc=True))
    logging.getLogger("relay").addHandler(handler)
    try:
        made = relay.endpoint(url=receiver.url("/status/404"))
        relay.event()
        relay.deliver_all()
    finally:
        logging.getLogger("relay").removeHandler(handler)
    (text,) = (each for each in heard if "delivery.attempted" in each)
    assert text.splitlines() == [text]
    assert f" endpoint_id={made['id']} " in text
    assert ' fault="" ' in text
    assert " status=404 " in text


@pytest.mark.parametrize("terminal, form", [(True, "text"), (False, None)])
def test_a_person_who_watches_gets_text(
    tmp_path: Path, *, terminal: bool, form: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator = Emulator(EmulatorName.MINISTACK, 1, tmp_path, tmp_path)
    plan = Plan(emulator, 2, 3, 1, "relay-", "app:app", 1.0)
    monkeypatch.delenv("RELAY_LOG_FORMAT", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    assert plan.environment().get("RELAY_LOG_FORMAT") == form
    monkeypatch.setenv("RELAY_LOG_FORMAT", "json")
    assert plan.environment()["RELAY_LOG_FORMAT"] == "json"


def test_the_runtime_s_own_lines_have_the_same_form(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RELAY_LOG_FORMAT", "text")
    logs.log_line(logging.ERROR, "function.failed", function="deliver", detail="two\nlines")
    line = capsys.readouterr().err
    assert line.endswith(' ERROR   function.failed function=deliver detail="two\\nlines"\n')
    assert line.count("\n") == 1
