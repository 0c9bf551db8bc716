"""A Relay through some minutes of a night: its functions run, something fails, CloudWatch reads the log."""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

import app as lambdas
from chalicelib.application.ports import Bell
from chalicelib.domain.delivery import Lane
from chalicelib.domain.metrics import Schedule
from chalicelib.wire import bell as bells
from infra.local.invocation import LambdaContext
from infra.watching.alarms import ALARMS, Alarm, Missing
from tests.fakes.faults import Killed
from tests.fakes.fixed_clock import FixedClock
from tests.fakes.scripted_sender import ScriptedSender
from tests.handlers.relay import SHARDS, Relay, message, typed

MINUTE_MS = 60_000
QUEUES = (*(f"shard-{number}" for number in range(SHARDS)), "replay")
HOURLY = (Schedule.RETENTION, Schedule.EXPORT_AUDIT)
Series = frozenset[tuple[str, str]]


@dataclass(slots=True)
class CloudWatch:
    """What is made of the log's lines: for each series and minute the maximum."""

    minutes: dict[tuple[str, Series], dict[int, float]] = field(default_factory=lambda: defaultdict(dict))

    def read(self, written: str) -> None:
        """Take every line in the embedded metric format."""
        for text in written.splitlines():
            if text.startswith('{"_aws"'):
                self._line(json.loads(text))

    def _line(self, line: Mapping[str, Any]) -> None:
        (about,) = line["_aws"]["CloudWatchMetrics"]
        (named,) = about["Dimensions"]
        minute = line["_aws"]["Timestamp"] // MINUTE_MS
        for each in about["Metrics"]:
            series = self.minutes[each["Name"], frozenset((name, line[name]) for name in named)]
            series[minute] = max(series.get(minute, 0), *line[each["Name"]])

    def rings(self, alarm: Alarm, prefix: str, minute: int) -> bool:
        """Say whether an alarm of the template rings in a minute, by what the minutes up to it brought."""
        named = {name: str(value) for name, value in alarm.dimensions.items()} | {"prefix": prefix}
        series = frozenset(named.items())
        numbers = [
            self.minutes[alarm.metric.name, series].get(minute - back) for back in range(alarm.minutes)
        ]
        silent = alarm.missing is Missing.BAD
        bad = [silent if each is None else each >= alarm.threshold for each in numbers]
        return sum(bad) >= alarm.of


@dataclass(slots=True)
class Night:
    """One Relay, its clock and its endpoints, and what has been written to its log."""

    relay: Relay
    clock: FixedClock
    sender: ScriptedSender
    patch: pytest.MonkeyPatch
    written: Callable[[], str]
    cloudwatch: CloudWatch = field(default_factory=CloudWatch)

    def run(self, name: str) -> None:
        """Run a scheduled function."""
        getattr(lambdas, name)(self.relay.sample("schedule"), LambdaContext(f"relay-{name}"))

    def hourly(self, *, without: Collection[str] = ()) -> None:
        """Run what runs each hour."""
        for name in HOURLY:
            if name not in without:
                self.run(name)

    def minutes(self, count: int = 1, *, without: Collection[str] = ()) -> None:
        """Let minutes pass, in which every function runs but those named, or those of queues that are."""
        for _ in range(count):
            self.clock.advance(ms=MINUTE_MS)
            for name in ("reconcile", "notify", "measure"):
                if name not in without:
                    self.run(name)
            self.deliver(without=without)
            self.cloudwatch.read(self.written())

    def deliver(self, *, without: Collection[str] = ()) -> None:
        """Hand what waits in the queues to their functions; what waits for one that is not there is lost."""
        for queue in QUEUES:
            rung = self.relay.messages(queue)
            if rung and queue not in without:
                self._work_off(queue, rung)

    def ring(self, endpoint_id: str, number: int = 1) -> None:
        """Hand a bell of an endpoint's first lane to a deliver function that knows nothing of it."""
        body = bells.dump(Bell(Lane("default", endpoint_id, "0"), self.clock.now_ms()))
        self._work_off("shard-0", [message(body, number)])

    def _work_off(self, queue: str, rung: list[dict[str, Any]]) -> None:
        try:
            self.relay.deliver(queue, rung)
        except Killed:
            self.sender.in_flight.clear()

    def ringing(self) -> set[str]:
        """Name the alarms that ring."""
        minute = self.clock.now_ms() // MINUTE_MS
        return {each.name for each in ALARMS if self.cloudwatch.rings(each, self.relay.made.prefix, minute)}

    def events(self, count: int, body: bytes = b"{}", headers: Mapping[str, str] | None = None) -> list[str]:
        """Post events, and name their deliveries; nobody has looked at their bells yet."""
        said = [self.relay.event(body, headers or typed("order.paid")) for _ in range(count)]
        return [delivery for each in said for delivery in each["delivery_ids"]]


def names(alarms: Iterable[Alarm] = ALARMS) -> list[str]:
    """Name alarms."""
    return [each.name for each in alarms]
