"""Schedules on time: which functions are due, and the event EventBridge would send them."""

import re
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from infra.local.functions import Function
from infra.local.invocation import ACCOUNT, REGION

_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
_UNITS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}


def period_of(expression: object) -> timedelta:
    """Read `rate(n units)`, as text or Chalice's own object; ValueError for any other expression."""
    text = expression.to_string() if hasattr(expression, "to_string") else str(expression)
    rate = _RATE.fullmatch(text)
    if rate is None or int(rate[1]) < 1:
        message = (
            f"{text} is not played on one machine: only rate(n minutes), rate(n hours) and rate(n days) are"
        )
        raise ValueError(message)
    return int(rate[1]) * _UNITS[rate[2]]


def event_of(function: str, at: datetime) -> dict[str, Any]:
    """Build the event of a scheduled rule."""
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": ACCOUNT,
        "time": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": REGION,
        "resources": [f"arn:aws:events:{REGION}:{ACCOUNT}:rule/{function}"],
        "detail": {},
    }


@dataclass(slots=True)
class _Due:
    function: Function
    period_s: float
    at: float = field(default_factory=time.monotonic)


class Schedules:
    """Starts each function at once and then every period, whether or not the previous run has ended.

    `speed` divides the periods, for tests. `start` must not block: it runs the function somewhere else.
    """

    def __init__(
        self,
        functions: Sequence[tuple[Function, timedelta]],
        start: Callable[[Function, dict[str, Any]], None],
        speed: float = 1.0,
    ) -> None:
        """Take each function with its period."""
        self._due = [_Due(function, period.total_seconds() / speed) for function, period in functions]
        self._start = start
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="schedules", daemon=True)

    def start(self) -> None:
        """Begin; the first runs start now."""
        if self._due:
            self._thread.start()

    def stop(self) -> None:
        """Start nothing any more."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.wait(self._wait_s()):
            for due in self._due:
                if due.at <= time.monotonic():
                    self._start(due.function, event_of(due.function.name, datetime.now(tz=UTC)))
                    due.at = max(due.at, time.monotonic() - due.period_s) + due.period_s

    def _wait_s(self) -> float:
        return max(0.0, min(due.at for due in self._due) - time.monotonic())
