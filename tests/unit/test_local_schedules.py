"""Schedules are read as EventBridge reads them, and run on time."""

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from chalice.app import Cron, Rate

from infra.local.functions import Function
from infra.local.schedules import Schedules, event_of, period_of


@pytest.mark.parametrize(
    "expression, period",
    [
        ("rate(1 minute)", timedelta(minutes=1)),
        ("rate(5 minutes)", timedelta(minutes=5)),
        ("rate(1 hour)", timedelta(hours=1)),
        (Rate(2, unit=Rate.DAYS), timedelta(days=2)),
    ],
)
def test_a_rate_is_a_period(expression: object, period: timedelta) -> None:
    assert period_of(expression) == period


@pytest.mark.parametrize(
    "expression", ["rate(0 minutes)", "rate(1 second)", "rate(x)", Cron(0, 1, "*", "*", "?", "*")]
)
def test_other_expressions_are_refused_in_words(expression: object) -> None:
    with pytest.raises(ValueError, match="is not played on one machine"):
        period_of(expression)


def test_the_event_is_a_scheduled_event() -> None:
    event = event_of("reconcile", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    assert (event["detail-type"], event["source"]) == ("Scheduled Event", "aws.events")
    assert event["time"] == "2026-01-02T03:04:05Z"
    assert event["resources"] == ["arn:aws:events:us-east-1:000000000000:rule/reconcile"]


def test_a_function_runs_at_once_and_then_on_time() -> None:
    times: list[float] = []
    enough = threading.Event()

    def note(_: Function, __: dict[str, Any]) -> None:
        times.append(time.monotonic())
        if len(times) == 5:
            enough.set()

    function = Function("reconcile", lambda *_: None)
    began = time.monotonic()
    schedules = Schedules([(function, timedelta(minutes=1))], note, speed=1200)
    schedules.start()
    assert enough.wait(5)
    schedules.stop()
    assert times[0] - began < 0.05
    assert times[4] - times[0] == pytest.approx(0.2, abs=0.05)
