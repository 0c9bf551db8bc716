"""Measuring: what the whole installation is owed, holds and has in flight, and since when that is due."""

import pytest

from chalicelib.application.measure import STOP_BEFORE_MS
from chalicelib.application.ports import Unavailable
from chalicelib.domain import metrics
from chalicelib.domain.endpoint import EndpointState, Limits
from chalicelib.domain.gate import Breaker, HoldReason
from tests.fakes.faults import Faults
from tests.fakes.scripted_sender import DIES
from tests.unit.application.measuring import QUEUES, Reporter, gauge
from tests.unit.application.world import AMPLE, FAILS, HOUR_MS, MINUTE_MS, OK, World, posted


@pytest.fixture
def reporter(world: World) -> Reporter:
    return Reporter(world)


def forgotten(world: World, count: int = 1, limits: Limits = AMPLE) -> None:
    """Owe deliveries whose bells are lost."""
    world.endpoint(limits=limits)
    world.losing = 99
    world.deliveries(count)
    world.losing = 0


def test_of_nothing_owed_there_is_no_oldest_and_the_rest_is_nought(reporter: Reporter) -> None:
    told = reporter.measure()
    assert gauge(told, metrics.OLDEST_PENDING) is None
    assert (gauge(told, metrics.DEPTH), gauge(told, metrics.IN_FLIGHT)) == (0, 0)
    assert [gauge(told, metrics.BREAKERS, each) for each in Breaker] == [0, 0, 0]
    assert [gauge(told, metrics.HELD, each) for each in HoldReason] == [0] * len(HoldReason)


def test_a_gauge_is_told_for_every_value_of_the_catalogue(reporter: Reporter) -> None:
    forgotten(reporter.world)
    told = reporter.measure()
    every = {
        (each.name, value)
        for each in metrics.CATALOGUE
        if each.kind is metrics.Kind.GAUGE
        for value in each.values
    }
    assert told.gauges.keys() == every


@pytest.mark.parametrize("late_ms", [0, 61_000, 2 * HOUR_MS])
def test_f077_the_oldest_due_delivery_is_as_old_as_it_has_been_due(reporter: Reporter, late_ms: int) -> None:
    world = reporter.world
    forgotten(world, 3)
    began_ms = world.owed()[0].ready_ms
    world.clock.advance_to(began_ms + late_ms)
    told = reporter.measure()
    assert gauge(told, metrics.OLDEST_PENDING) == late_ms / 1000
    assert gauge(told, metrics.DEPTH) == 3


def test_a_retry_that_is_not_due_is_owed_and_has_no_age(reporter: Reporter) -> None:
    world = reporter.world
    world.endpoint()
    world.sender.script = lambda _: FAILS
    world.deliveries(1)
    world.deliver()
    told = reporter.measure()
    assert (gauge(told, metrics.DEPTH), gauge(told, metrics.OLDEST_PENDING)) == (1, None)


@pytest.mark.parametrize("after_ms, age_s", [(-1, None), (5_000, 5)])
def test_what_is_held_is_not_late_and_ages_from_the_end_of_the_hold(
    reporter: Reporter, after_ms: int, age_s: int | None
) -> None:
    world = reporter.world
    forgotten(world)
    (of,) = world.usual.endpoints.page("acme", "", 10).items
    world.clock.advance_to(world.hold(of, HOUR_MS) + after_ms)
    told = reporter.measure()
    assert gauge(told, metrics.OLDEST_PENDING) == age_s
    assert gauge(told, metrics.HELD, HoldReason.RATE_LIMIT) == (1 if age_s is None else 0)


def test_what_waits_for_a_disabled_endpoint_is_held_and_not_late(reporter: Reporter) -> None:
    world = reporter.world
    forgotten(world)
    (of,) = world.usual.endpoints.page("acme", "", 10).items
    world.change(of, state=EndpointState.DISABLED)
    world.clock.advance(ms=HOUR_MS)
    told = reporter.measure()
    assert gauge(told, metrics.OLDEST_PENDING) is None
    assert gauge(told, metrics.HELD, HoldReason.DISABLED) == 1


def test_a_backlog_that_goes_out_at_its_endpoint_s_pace_is_held_for_as_long_as_somebody_looks_after_it(
    reporter: Reporter,
) -> None:
    world = reporter.world
    world.endpoint(limits=Limits(rate_per_second=1, burst=1, max_concurrency=10))
    world.accept([posted()] * 100, world.usual)
    for _ in range(3):
        world.pass_time(20_000)
        told = reporter.measure()
        assert gauge(told, metrics.OLDEST_PENDING) is None
        assert gauge(told, metrics.HELD, HoldReason.RATE_LIMIT) == 1
    world.purge()
    world.clock.advance(ms=10 * MINUTE_MS)
    late_s = gauge(reporter.measure(), metrics.OLDEST_PENDING)
    assert late_s is not None
    assert 7 * 60 <= late_s <= 8 * 60


def test_an_open_breaker_is_counted_and_what_waits_for_it_is_held(reporter: Reporter) -> None:
    world = reporter.world
    endpoint = world.endpoint()
    world.sender.script = lambda _: FAILS
    world.accept([posted()] * 20, world.usual)
    world.work_off()
    assert world.gate(endpoint).state is Breaker.OPEN
    told = reporter.measure()
    assert [gauge(told, metrics.BREAKERS, each) for each in Breaker] == [0, 1, 0]
    assert gauge(told, metrics.HELD, HoldReason.BREAKER_OPEN) == 1
    assert gauge(told, metrics.OLDEST_PENDING) is None


def test_a_breaker_whose_time_to_be_probed_has_just_come_makes_nothing_late(reporter: Reporter) -> None:
    world = reporter.world
    endpoint = world.endpoint()
    world.sender.script = lambda _: FAILS
    world.accept([posted()] * 20, world.usual)
    world.work_off()
    world.clock.advance_to(world.gate(endpoint).open_until // 1000 + 2_000)
    assert (gauge(reporter.measure(), metrics.OLDEST_PENDING) or 0) <= 2
    world.sender.script = lambda _: OK
    world.pass_time(10_000)
    assert (gauge(reporter.measure(), metrics.OLDEST_PENDING) or 0) <= 10


def test_what_live_leases_name_is_in_flight_and_a_dead_holder_s_is_not(reporter: Reporter) -> None:
    world = reporter.world
    world.endpoint()
    world.deliveries(2)
    world.sender.script = lambda _: DIES
    assert world.deliver() is None
    assert gauge(reporter.measure(), metrics.IN_FLIGHT) == 2
    world.clock.advance(ms=46_000)
    assert gauge(reporter.measure(), metrics.IN_FLIGHT) == 0


def test_a_walk_that_finds_no_time_keeps_the_last_whole_reading_and_says_so(reporter: Reporter) -> None:
    world = reporter.world
    forgotten(world)
    reporter.measure()
    before = reporter.signs().seen
    world.clock.advance(ms=MINUTE_MS)
    told = reporter.measure(lambda: STOP_BEFORE_MS - 1)
    assert (told.whole, told.watched) == (False, 0)
    assert reporter.signs().seen == before
    assert gauge(told, metrics.READING_AGE) == 60


def test_a_store_that_fails_changes_no_reading(reporter: Reporter) -> None:
    forgotten(reporter.world)
    reporter.measure()
    before = reporter.signs()
    reporter.canaries.faults = _failing()
    with pytest.raises(Unavailable):
        reporter.measure()
    assert reporter.signs() == before


def _failing() -> Faults:
    faults = Faults()
    faults.fail_next(1)
    return faults


def test_two_at_once_leave_one_reading(reporter: Reporter) -> None:
    forgotten(reporter.world, 2)
    inner: list[float | None] = []

    def time_left_ms() -> int:
        if not inner:
            inner.append(None)
            inner[0] = gauge(reporter.measure(), metrics.DEPTH)
        return STOP_BEFORE_MS

    assert gauge(reporter.measure(time_left_ms), metrics.DEPTH) == inner[0] == 2


def test_a_canary_goes_through_each_shard_each_time_and_its_age_is_that_of_the_worst(
    reporter: Reporter,
) -> None:
    reporter.measure()
    reporter.hear_canaries()
    reporter.world.clock.advance(ms=MINUTE_MS)
    reporter.canaries.losing = 1
    told = reporter.measure()
    reporter.hear_canaries()
    assert (told.lost, gauge(told, metrics.CANARY_AGE)) == (1, 60)
    reporter.world.clock.advance(ms=MINUTE_MS)
    assert gauge(reporter.measure(), metrics.CANARY_AGE) == 120
    assert reporter.signs().canaries.keys() == set(QUEUES)
