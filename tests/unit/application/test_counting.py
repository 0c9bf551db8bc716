"""Counting: what the delivery plane counts is what history has, whoever died and whatever failed."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.counting import DynamoCounters
from chalicelib.adapters.dynamodb.records import Count, Delete, Insert
from chalicelib.application.counting import SOON_MS, Counting
from chalicelib.application.ports import Unavailable
from chalicelib.domain import counts, metrics
from chalicelib.domain.counts import Counts
from chalicelib.domain.delivery import Attempt, Ended
from chalicelib.domain.endpoint import Endpoint, EndpointState, Limits
from chalicelib.domain.metrics import Metric
from chalicelib.domain.outcome import Fault, Outcome, Reply
from tests.fakes.faults import Step
from tests.fakes.fixed_clock import FixedClock
from tests.fakes.memory_tables import MemoryTables
from tests.fakes.scripted_sender import DIES, Answer, in_turn, status
from tests.unit.application.interruptions import at_call, fail, tells_of_attempts
from tests.unit.application.process import Process
from tests.unit.application.world import (
    AMPLE,
    BY,
    FAILS,
    MINUTE_MS,
    OK,
    RULES,
    TAKE_OVER_MS,
    TENANT,
    World,
    lane_of,
    posted,
)

REFUSES, DEFERS = status(404), status(429, headers=(("Retry-After", "2"),))
MIXED = [OK, FAILS, REFUSES, OK, DEFERS]
BETWEEN = 4
"""Deaths between a failure's transaction and the call that counts it: around making the record lie two."""
BY_TWOS = Limits(rate_per_second=1_000, burst=2, max_concurrency=10)
SUCCESS = (metrics.ATTEMPTS.name, "success")


def stored(world: World) -> Counts:
    """Read what is counted, once the usual process has stored what it had."""
    assert world.usual.counting.flush()
    found = DynamoCounters(world.usual.tables, 0).read()
    return {cell: count for cell, count in found.items() if count}


def of(metric: Metric, found: Counts) -> dict[str, int]:
    return {value: count for (name, value), count in found.items() if name == metric.name}


def attempts_in_history(world: World) -> dict[str, int]:
    rows = world.all_history()
    return dict(Counter(each.outcome.value for each in rows if isinstance(each, Attempt)))


def letters_in_history(world: World) -> dict[str, int]:
    rows = world.all_history()
    return dict(Counter(each.reason.value for each in rows if isinstance(each, Ended)))


class TestWaiting:
    """What waits in a process."""

    @pytest.fixture
    def tables(self) -> MemoryTables:
        return MemoryTables()

    @pytest.fixture
    def clock(self) -> FixedClock:
        return FixedClock()

    @pytest.fixture
    def counting(self, tables: MemoryTables, clock: FixedClock) -> Counting:
        return Counting(DynamoCounters(tables, 1), clock)

    def test_nothing_counted_is_no_call(self, counting: Counting, tables: MemoryTables) -> None:
        counting.count(metrics.RESCUED, by=0)
        assert counting.flush()
        assert tables.faults.steps == []

    def test_what_cannot_be_stored_waits_for_the_next_time(
        self, counting: Counting, tables: MemoryTables
    ) -> None:
        counting.count(metrics.RESCUED, by=2)
        tables.faults.fail_next()
        assert not counting.flush()
        counting.count(metrics.RESCUED)
        assert counting.flush()
        assert DynamoCounters(tables, 2).read()[metrics.RESCUED.name, ""] == 3

    def test_what_goes_along_with_a_call_that_fails_waits_on(self, counting: Counting) -> None:
        counting.count(metrics.RESCUED)

        def fails(_: Counts) -> tuple[None, Counts]:
            raise Unavailable("ordered")

        with pytest.raises(Unavailable):
            counting.along(fails)
        assert counting.along(lambda taken: (taken, taken)) == counts.counted(metrics.RESCUED)
        assert counting.take() == counts.counted(metrics.RESCUED)

    def test_soon_is_at_once_and_then_not_again_for_a_moment(
        self, counting: Counting, tables: MemoryTables, clock: FixedClock
    ) -> None:
        for _ in range(3):
            counting.count(metrics.INGESTED, "accepted")
            assert counting.flush_soon()
        assert DynamoCounters(tables, 2).read()[metrics.INGESTED.name, "accepted"] == 1
        clock.advance(ms=SOON_MS)
        assert counting.flush_soon()
        assert DynamoCounters(tables, 2).read()[metrics.INGESTED.name, "accepted"] == 3


def test_every_attempt_and_every_end_is_counted_as_history_has_it(world: World) -> None:
    world.endpoint()
    for answers in ([*MIXED, OK], [Answer(Reply(fault=Fault.REFUSED))], [DIES, OK]):
        world.sender.script = in_turn(answers)
        world.deliveries(min(5, len(answers)))
        world.deliver(Process(world))
        world.work_off(for_ms=10 * MINUTE_MS)
    found = stored(world)
    history = attempts_in_history(world)
    assert set(history) == {each.value for each in Outcome}
    assert of(metrics.ATTEMPTS, found) == history
    assert of(metrics.DEAD_LETTERS, found) == letters_in_history(world)
    assert of(metrics.REFUSED, found) == {"": 1}


def test_durations_are_counted_of_every_request(world: World) -> None:
    world.endpoint()
    world.sender.script = lambda _: status(200, took_ms=30)
    world.deliveries(3)
    world.work_off()
    stands = counts.reading(stored(world))
    for each in (metrics.FIRST_ATTEMPT, metrics.PLATFORM, metrics.CONSUMER):
        spread = stands[each.name, ""]
        assert isinstance(spread, metrics.Spread)
        assert sum(spread.counts) == 3
    consumer = stands[metrics.CONSUMER.name, ""]
    assert isinstance(consumer, metrics.Spread)
    assert (consumer.counts[metrics.BUCKETS_MS.index(50)], consumer.sum_ms) == (3, 90)


def test_a_wave_costs_no_call_to_be_counted(world: World) -> None:
    world.endpoint()
    world.deliveries(1)
    world.work_off()
    world.deliveries(5)
    world.usual.tables.faults.steps.clear()
    world.work_off()
    counted = [each for each in world.usual.tables.faults.steps if any(map(counts_something, each.writes))]
    assert len(counted) == 1
    assert any(isinstance(each, Delete) for each in counted[0].writes)
    assert world.usual.counting.take() == {}


def counts_something(write: object) -> bool:
    return isinstance(write, Count)


def each_death(prepare: Callable[[], World]) -> Iterator[World]:
    """Give worlds in which a process died at its first call, before it and right after, its second …."""
    for number in itertools.count(1):
        for after in (False, True):
            world = prepare()
            process = Process(world)
            came = at_call(process, number, process.faults.die, after=after)
            world.deliver(process)
            yield world
            if not came():
                return


@pytest.mark.parametrize("limits", [AMPLE, BY_TWOS], ids=["at once", "in rounds"])
@pytest.mark.parametrize("answers", [[OK] * 5, MIXED], ids=["all arrive", "each in its own way"])
def test_a_process_that_dies_at_any_call_leaves_successes_exactly_counted(
    answers: list[Answer], limits: Limits
) -> None:
    """Failures too, but for those between whose transaction and the next statements it died."""

    def prepare() -> World:
        world = World()
        world.endpoint(limits=limits)
        world.deliveries(len(answers))
        world.sender.script = in_turn(answers)
        return world

    lost: Counter[str] = Counter()
    worlds = 0
    for world in each_death(prepare):
        worlds += 1
        world.sender.script = lambda _: OK
        world.work_off(for_ms=10 * MINUTE_MS)
        assert world.owed() == []
        found, history = of(metrics.ATTEMPTS, stored(world)), attempts_in_history(world)
        assert found["success"] == history["success"] == len(answers) - len(letters_in_history(world))
        assert found.get("unknown", 0) == history.get("unknown", 0)
        lost.update({outcome: count - found.get(outcome, 0) for outcome, count in history.items()})
    assert worlds > 10
    assert min(lost.values()) >= 0
    assert sum(lost.values()) <= BETWEEN * len([each for each in answers if each is not OK])


@pytest.mark.parametrize("after", [False, True], ids=["before its effect", "after it"])
def test_a_store_that_fails_at_any_call_leaves_successes_exactly_counted(*, after: bool) -> None:
    for number in itertools.count(1):
        world = World()
        world.endpoint()
        world.deliveries(3)
        process = Process(world)
        came = at_call(process, number, fail, after=after)
        world.deliver(process)
        process.faults.clear()
        assert process.counting.flush()
        world.work_off(for_ms=10 * MINUTE_MS)
        assert of(metrics.ATTEMPTS, stored(world)) == attempts_in_history(world), f"call {number}"
        if not came():
            break
    assert number > 4


def test_a_holder_that_stood_still_counts_nothing_that_its_taker_counted(world: World) -> None:
    endpoint = world.endpoint()
    world.deliveries(1)
    late = Process(world)

    def stand_still() -> None:
        world.clock.advance(ms=TAKE_OVER_MS)
        world.visit(lane_of(endpoint), Process(world))

    late.faults.after = lambda step: once(late, stand_still) if tells_of_attempts(step) else None
    world.deliver(late)
    late.counting.flush()
    world.work_off(for_ms=MINUTE_MS)
    found = stored(world)
    assert of(metrics.ATTEMPTS, found) == attempts_in_history(world) == {"success": 1}
    assert of(metrics.LEASES_LOST, found) == {"": 1}


def once(process: Process, act: Callable[[], object]) -> None:
    process.faults.after = lambda _: None
    act()


def test_a_busy_counter_holds_up_no_delivery(world: World) -> None:
    world.endpoint()
    (delivery,) = world.deliveries(1)

    def busy(step: Step) -> None:
        if any(isinstance(each, Insert) and each.key.table == keys.METRICS for each in step.writes):
            raise Unavailable("ordered")

    world.usual.tables.faults.before = busy
    world.work_off()
    world.usual.tables.faults.clear()
    assert world.outcomes(delivery) == ["success"]
    assert world.owed() == []
    assert of(metrics.ATTEMPTS, stored(world)) == {"success": 1}


def test_what_waits_at_a_gate_is_counted_by_why(world: World) -> None:
    endpoint = world.endpoint()
    world.hold(endpoint, 5 * MINUTE_MS)
    world.deliveries(3)
    world.deliver()
    assert of(metrics.DEFERRED, stored(world)) == {"rate_limit": 3}


def test_a_disabled_endpoint_s_deliveries_are_put_off_by_that(world: World) -> None:
    endpoint = world.endpoint()
    world.deliveries(2)
    world.change(endpoint, state=EndpointState.DISABLED)
    world.deliver()
    assert of(metrics.DEFERRED, stored(world)) == {"disabled": 2}


def tripped(world: World) -> Endpoint:
    endpoint = world.endpoint()
    world.sender.script = lambda _: FAILS
    world.accept([posted()] * RULES.threshold, world.usual)
    world.work_off()
    return endpoint


def test_a_breaker_s_trip_is_counted_once_and_its_probes_by_what_they_came_to(world: World) -> None:
    tripped(world)
    assert of(metrics.BREAKER_TRIPS, stored(world)) == {"": 1}
    world.sender.script = in_turn([FAILS, OK])
    world.work_off(for_ms=10 * MINUTE_MS)
    found = stored(world)
    assert of(metrics.PROBES, found) == {"failed": 1, "succeeded": 1}
    assert of(metrics.BREAKER_TRIPS, found) == {"": 1}


def test_what_is_ended_in_pages_is_counted_as_dead(world: World) -> None:
    endpoint = world.endpoint()
    world.deliveries(7)
    world.usual.manage.delete(world.now(endpoint), BY)
    world.end_owed(TENANT, endpoint.id, world.usual)
    assert of(metrics.DEAD_LETTERS, stored(world)) == letters_in_history(world) == {"endpoint_deleted": 7}


def test_a_test_of_an_endpoint_is_an_attempt_and_no_dead_letter(world: World) -> None:
    endpoint = world.endpoint()
    world.sender.script = lambda _: FAILS
    world.run(lambda it: it.try_endpoint.run(TENANT, endpoint.id), world.usual)
    world.work_off()
    found = stored(world)
    assert of(metrics.ATTEMPTS, found) == attempts_in_history(world) == {"retryable": 1}
    assert of(metrics.DEAD_LETTERS, found) == {}
