"""Counters in the store: exact over processes, threads, layouts and lost answers, on every table service."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.counting import ATTRIBUTES, DynamoCounters
from chalicelib.adapters.dynamodb.records import Delete, Made, Put, Statement, Tables
from chalicelib.application.counting import Counting
from chalicelib.domain import counts, metrics
from chalicelib.domain.metrics import Part
from tests.contract.given import without_moto
from tests.fakes.faults import Step
from tests.fakes.fixed_clock import FixedClock
from tests.fakes.memory_tables import MemoryTables

ARRIVED = counts.counted(metrics.ATTEMPTS, "success", 3)
REJECTED = counts.counted(metrics.INGESTED, "rejected")
RECORD = keys.counters(Part.DELIVERY, 1)
Calls = Callable[[], int]


def counted(tables: Tables) -> counts.Counts:
    found = DynamoCounters(tables, 0).read()
    return {cell: count for cell, count in found.items() if count}


def test_nothing_was_counted_before_anything_is(tables: Tables) -> None:
    assert DynamoCounters(tables, 0).read() == {}


def test_what_processes_count_adds_up_over_shards(tables: Tables) -> None:
    took = counts.lasted(metrics.CONSUMER, 70)
    for identity in (0, 1, 32, 33):
        assert DynamoCounters(tables, identity).add(counts.added(ARRIVED, took)) == {}
    assert counted(tables) == {
        (metrics.ATTEMPTS.name, "success"): 12,
        (metrics.CONSUMER.name, "100"): 4,
        (metrics.CONSUMER.name, "sum"): 280,
    }


def test_a_process_makes_its_record_once_and_then_adds_in_one_call(tables: Tables, calls: Calls) -> None:
    process = DynamoCounters(tables, 1)
    calls()
    process.add(ARRIVED)
    assert calls() == 2
    process.add(counts.added(ARRIVED, counts.lasted(metrics.PLATFORM, 1)))
    assert calls() == 1
    DynamoCounters(tables, 33).add(ARRIVED)
    assert calls() == 2


def test_a_record_that_is_taken_away_is_made_again(tables: Tables) -> None:
    process = DynamoCounters(tables, 1)
    process.add(ARRIVED)
    tables.each([Delete(RECORD)])
    assert process.add(ARRIVED) == ARRIVED
    assert process.add(ARRIVED) == {}
    assert counted(tables) == ARRIVED


def test_several_parts_are_added_to_in_one_call(tables: Tables, calls: Calls) -> None:
    process = DynamoCounters(tables, 1)
    both = counts.added(ARRIVED, REJECTED)
    process.add(both)
    calls()
    assert process.add(both) == {}
    assert calls() == 1
    assert counted(tables) == {cell: 2 * count for cell, count in both.items()}


def test_a_record_of_an_older_layout_gets_what_it_lacks_and_keeps_what_it_has(tables: Tables) -> None:
    tables.together([Put(RECORD, {"v": 0, "w": "older", "asuc": 40})])
    assert DynamoCounters(tables, 1).add(counts.added(ARRIVED, counts.counted(metrics.BREAKER_TRIPS))) == {}
    assert counted(tables)[metrics.ATTEMPTS.name, "success"] == 43
    record = tables.get([RECORD])[RECORD]
    assert set(ATTRIBUTES[Part.DELIVERY].values()) < set(record)


def test_a_record_of_a_newer_layout_is_added_to_as_it_is(tables: Tables) -> None:
    DynamoCounters(tables, 1).add(ARRIVED)
    record = tables.get([RECORD])[RECORD]
    tables.together([Put(RECORD, {**record, "v": 99, "new": 5})])
    assert DynamoCounters(tables, 33).add(ARRIVED) == {}
    assert counted(tables) == {(metrics.ATTEMPTS.name, "success"): 6}
    assert tables.get([RECORD])[RECORD]["new"] == 5


@without_moto
def test_threads_that_count_at_once_lose_nothing(tables: Tables) -> None:
    """What one finds the record missing for while another makes it waits for the next time."""
    processes = [Counting(DynamoCounters(tables, each), FixedClock()) for each in (1, 33, 5, 37)]

    def count(process: Counting) -> None:
        for _ in range(20):
            process.add(counts.added(ARRIVED, REJECTED))
            process.flush()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(count, processes * 2))
    assert all(each.flush() for each in processes)
    assert counted(tables) == {
        (metrics.ATTEMPTS.name, "success"): 8 * 20 * 3,
        (metrics.INGESTED.name, "rejected"): 8 * 20,
    }


class Twice:
    """Makes every call of statements twice, as a client does that lost the first answer."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.together = tables.together

    def each(self, writes: Sequence[Statement]) -> list[Made]:
        self._tables.each(writes)
        return self._tables.each(writes)


def test_what_was_added_though_the_answer_was_lost_is_not_added_again(tables: Tables) -> None:
    DynamoCounters(tables, 1).add(ARRIVED)
    assert DynamoCounters(Twice(tables), 33).add(ARRIVED) == {}  # type: ignore[arg-type]  # all it asks of
    assert counted(tables) == {(metrics.ATTEMPTS.name, "success"): 6}


def test_a_store_that_is_busy_gives_the_counts_back_at_once() -> None:
    tables = MemoryTables()
    process = DynamoCounters(tables, 1)
    process.add(ARRIVED)
    busy = [Made(done=False)]
    assert process.left(process.adding(ARRIVED), busy) == ARRIVED
    assert counted(tables) == ARRIVED


def test_a_record_that_cannot_be_made_gives_the_counts_back() -> None:
    tables = MemoryTables()
    tables.faults.fail_next(method="each")
    process = DynamoCounters(tables, 1)
    assert process.add(ARRIVED) == ARRIVED
    assert counted(tables) == {}
    assert process.add(ARRIVED) == {}
    assert counted(tables) == ARRIVED


def test_what_stands_beside_counters_is_not_counted(tables: Tables) -> None:
    counters = DynamoCounters(tables, 0)
    before = counters.read()
    others = (keys.gauges(), keys.canary("shard-0.fifo"), keys.run("notify"), keys.reported())
    tables.together([Put(key, {"a": 7}) for key in others])
    assert counters.read() == before


def test_all_that_is_counted_is_read_in_one_call() -> None:
    tables = MemoryTables()
    DynamoCounters(tables, 0).read()
    assert tables.faults.steps == [Step("walk")]
