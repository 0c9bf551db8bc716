"""Reporting: what was counted is told once, however often a run is interrupted or two run at once."""

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from chalicelib.adapters.dynamodb.counting import DynamoCounters
from chalicelib.adapters.dynamodb.reporting import DynamoReporting
from chalicelib.adapters.embedded_metrics import EmbeddedMetrics
from chalicelib.application.ports import Unavailable
from chalicelib.application.ports.reporting import Telling
from chalicelib.application.report import PATIENCE_MS, Report
from chalicelib.domain import counts, metrics
from chalicelib.domain.reporting import Sample, series_of
from tests.fakes.faults import Killed
from tests.fakes.fixed_clock import FixedClock
from tests.fakes.memory_tables import MemoryTables, Records

MINUTE_MS = 60_000
Told = tuple[int, str, str]


@dataclass(slots=True)
class Listening:
    """Hears what is told; a number that was told before for the same moment is the same number."""

    heard: dict[Told, float] = field(default_factory=dict)
    times: Counter[Told] = field(default_factory=Counter)

    def tell(self, samples: Sequence[Sample], at_ms: int) -> None:
        """Keep what is told."""
        for each in samples:
            told = (at_ms, each.metric.name, each.value)
            assert self.heard.setdefault(told, each.number) == each.number
            self.times[told] += 1

    def total(self, metric: metrics.Metric, value: str = "") -> float:
        """Add up what was told of a counter."""
        return sum(number for (_, *of), number in self.heard.items() if of == [metric.name, value])


@dataclass(slots=True)
class Reports:
    """Processes of the function that tells, over one store."""

    records: Records = field(default_factory=Records)
    clock: FixedClock = field(default_factory=FixedClock)
    listening: Listening = field(default_factory=Listening)
    telling: Telling | None = None
    processes: Iterator[int] = field(default_factory=itertools.count)

    def count(self, by: int = 1) -> None:
        """Count lanes that were rescued."""
        DynamoCounters(MemoryTables(self.records), next(self.processes)).add(
            counts.counted(metrics.RESCUED, by=by)
        )

    def process(self, tables: MemoryTables | None = None) -> Report:
        """Give a new process, a millisecond after the one before."""
        self.clock.advance(ms=1)
        tables = tables or MemoryTables(self.records)
        return Report(
            DynamoCounters(tables, 0), DynamoReporting(tables), self.telling or self.listening, self.clock
        )

    @property
    def rescued(self) -> float:
        """Give how many rescued lanes were told of in all."""
        return self.listening.total(metrics.RESCUED)


@pytest.fixture
def reports() -> Reports:
    return Reports()


def test_each_run_tells_what_was_counted_since_the_last(reports: Reports) -> None:
    for number in (3, 0, 4):
        reports.count(number)
        reports.process().run({})
        reports.clock.advance(ms=MINUTE_MS)
    heard = reports.listening.heard
    assert [number for (_, name, _), number in heard.items() if name == metrics.RESCUED.name] == [3, 0, 4]


def test_a_minute_in_which_nothing_was_counted_costs_no_write(reports: Reports) -> None:
    reports.count()
    reports.process().run({})
    tables = MemoryTables(reports.records)
    reports.process(tables).run({})
    assert [step for step in tables.faults.steps if step.writes] == []


@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after it"])
@pytest.mark.parametrize("write", [1, 2])
def test_a_run_that_is_killed_at_any_write_loses_nothing_and_nothing_is_told_for_two_moments(
    reports: Reports,
    write: int,
    after: bool,  # noqa: FBT001 - a parameter
) -> None:
    reports.count(2)
    reports.process().run({})
    reports.count(5)
    reports.clock.advance(ms=MINUTE_MS)
    tables = MemoryTables(reports.records)
    tables.faults.kill_at(write, after=after)
    with pytest.raises(Killed):
        reports.process(tables).run({})
    for _ in range(4):
        reports.clock.advance(ms=MINUTE_MS)
        reports.count()
        reports.process().run({})
    assert reports.rescued == 2 + 5 + 4


@pytest.mark.parametrize("call", range(1, 7))
def test_a_store_that_fails_loses_nothing(reports: Reports, call: int) -> None:
    reports.count(2)
    reports.process().run({})
    reports.count(5)
    tables = MemoryTables(reports.records)
    seen: list[object] = []

    def fail(step: object) -> None:
        seen.append(step)
        if len(seen) == call:
            raise Unavailable("the store failed")

    tables.faults.before = fail
    try:
        reports.process(tables).run({})
    except Unavailable:
        assert len(seen) == call
    reports.clock.advance(ms=PATIENCE_MS)
    for _ in range(2):
        reports.process().run({})
        reports.clock.advance(ms=MINUTE_MS)
    assert reports.rescued == 7


def test_of_two_at_once_one_tells(reports: Reports) -> None:
    reports.count(5)
    tables = MemoryTables(reports.records)
    other: list[int] = []

    def meanwhile(step: object) -> None:
        if not other:
            other.append(0)
            other[0] = reports.process().run({})

    tables.faults.after = meanwhile
    reports.process(tables).run({})
    assert reports.rescued == 5
    assert set(reports.listening.times.values()) == {1}


def test_while_another_run_tells_nothing_is_told(reports: Reports) -> None:
    """It has written down what it tells and not yet marked it as told."""
    reports.count(5)
    inner: list[int] = []

    class Nested(Listening):
        def tell(self, samples: Sequence[Sample], at_ms: int) -> None:
            if not inner:
                inner.append(0)
                reports.count()
                inner[0] = reports.process().run({})
            Listening.tell(self, samples, at_ms)

    reports.listening = Nested()
    reports.process().run({})
    assert inner == [0]
    reports.clock.advance(ms=MINUTE_MS)
    reports.process().run({})
    assert reports.rescued == 6


def test_gauges_are_told_beside(reports: Reports) -> None:
    reports.process().run({(metrics.DEPTH.name, ""): 7.0})
    assert reports.listening.total(metrics.DEPTH) == 7


def test_counters_of_a_table_that_was_lost_are_told_from_nothing(reports: Reports) -> None:
    reports.count(50)
    reports.process().run({})
    for at in [key for key in reports.records.by_key if key.pk.startswith("counters#")]:
        del reports.records.by_key[at]
    reports.count(2)
    reports.clock.advance(ms=MINUTE_MS)
    reports.process().run({})
    assert reports.rescued == 52


class TestEmbeddedFormat:
    @pytest.fixture
    def lines(self, reports: Reports) -> list[dict[str, Any]]:
        written: list[str] = []
        counters = DynamoCounters(MemoryTables(reports.records), 1)
        for duration_ms in (3, 70_000):
            for each in (metrics.PLATFORM, metrics.CONSUMER, metrics.FIRST_ATTEMPT, metrics.INGEST_TIME):
                counters.add(counts.lasted(each, duration_ms))
        reports.telling = EmbeddedMetrics("relay-", written.append)
        every = [
            (each.name, value)
            for each in metrics.CATALOGUE
            if each.kind is metrics.Kind.GAUGE
            for value in each.values
        ]
        reports.process().run(dict.fromkeys(every, 1.5))
        (text,) = written
        return [json.loads(line) for line in text.splitlines()]

    def test_one_write_says_all_so_that_a_killed_process_tells_all_or_nothing(
        self, lines: list[dict[str, Any]]
    ) -> None:
        assert len(lines) > 10

    def test_a_line_has_one_set_of_dimensions_and_keeps_to_the_format_s_limits(
        self, reports: Reports, lines: list[dict[str, Any]]
    ) -> None:
        for line in lines:
            embedded = line["_aws"]
            assert embedded["Timestamp"] == reports.clock.now_ms()
            (about,) = embedded["CloudWatchMetrics"]
            assert about["Namespace"] == "Relay"
            (dimensions,) = about["Dimensions"]
            assert dimensions[0] == "prefix"
            assert len(dimensions) <= 2
            assert line["prefix"] == "relay-"
            assert len(about["Metrics"]) <= 100
            for each in about["Metrics"]:
                (number,) = line[each["Name"]]
                assert isinstance(number, float)
            assert len(json.dumps(line)) < 256_000

    def test_every_series_of_the_catalogue_is_told_once(self, lines: list[dict[str, Any]]) -> None:
        told = Counter(series for line in lines for series in series_told(line))
        expected = {(of.name, label, value) for of in metrics.CATALOGUE for label, value in series_of(of)}
        assert told == Counter(expected)


def series_told(line: dict[str, Any]) -> list[tuple[str, str, str]]:
    embedded = line["_aws"]
    (about,) = embedded["CloudWatchMetrics"]
    label = next((each for each in about["Dimensions"][0] if each != "prefix"), "")
    return [(each["Name"], label, str(line[label]) if label else "") for each in about["Metrics"]]
