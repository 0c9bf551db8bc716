"""Fan-out: whatever dies, doubles or changes on the way, each endpoint gets its delivery exactly once."""

import itertools

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.application import fan_out
from chalicelib.application.fan_out import CHUNK, HINTS_MAX, WorkedOff, bells_for, plan
from chalicelib.application.ports import Subscriber
from chalicelib.domain import ids
from chalicelib.domain.delivery import Created
from chalicelib.domain.endpoint import Limits
from tests.unit.application.interruptions import at_call, deaths
from tests.unit.application.invariants import check
from tests.unit.application.process import Process
from tests.unit.application.world import MINUTE_MS, TENANT, World, posted

EVENT = ids.new_id("evt", 1_700_000_000_000, 7)
MANY = CHUNK + 3


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a chunk be one endpoint, so that a few make several chunks."""
    monkeypatch.setattr(fan_out, "CHUNK", 1)


def captured(endpoints: int) -> tuple[World, str]:
    """Capture an event whose subscriptions could not be read."""
    world = World()
    for _ in range(endpoints):
        world.endpoint()
    world.usual.faults.fail_next(method="get")
    event = world.post()["event_id"]
    world.fan_outs.clear()
    return world, event


def all_once(world: World, event: str, endpoints: int) -> None:
    """Hold a fan-out that is done to its promise: every endpoint once, sent, and nothing left to do."""
    check(world)
    created = [each for each in world.all_history() if isinstance(each, Created)]
    assert len(created) == len({each.delivery_id for each in created}) == endpoints
    assert world.records_of(keys.FANOUTS) == []
    world.clock.advance(ms=2 * MINUTE_MS)
    world.sweep()
    world.work_off(for_ms=MINUTE_MS)
    assert sorted(each.delivery_id for each in world.sender.sent) == sorted(
        each.delivery_id for each in created
    )


def test_a_large_fan_out_is_done_in_chunks() -> None:
    world, event = captured(MANY)
    assert world.fan_out(event) == MANY
    all_once(world, event, MANY)


@pytest.mark.usefixtures("small_chunks")
def test_a_death_at_any_write_and_another_run_fan_out_once() -> None:
    for death in deaths(at_least=5):
        world, event = captured(3)
        world.fan_out(event, death.process(world))
        check(world)
        world.fan_out(event)
        all_once(world, event, 3)


@pytest.mark.usefixtures("small_chunks")
def test_two_at_once_fan_out_once() -> None:
    for call in itertools.count(1):
        world, event = captured(3)
        one, other = Process(world), Process(world)
        written: list[int | None] = []
        came = at_call(one, call, lambda: written.append(world.fan_out(event, other)))  # noqa: B023 - called in this turn
        written.append(world.fan_out(event, one))
        assert sum(each or 0 for each in written) == 3
        all_once(world, event, 3)
        if not came():
            break
    assert call > 8


@pytest.mark.usefixtures("small_chunks")
def test_two_at_once_that_both_die_fan_out_once_in_the_end() -> None:
    for first, second in itertools.product(range(1, 9, 2), repeat=2):
        world, event = captured(3)
        one, other = Process(world), Process(world)
        one.faults.kill_at(first, after=True)
        other.faults.kill_at(second, after=False)
        for process in (one, other, Process(world)):
            world.fan_out(event, process)
            check(world)
        all_once(world, event, 3)


def test_a_fan_out_that_is_done_or_never_was_is_nothing_to_do() -> None:
    world, event = captured(1)
    assert world.usual.fan_out.run(TENANT, event) == 1
    assert world.usual.fan_out.run(TENANT, event) == 0
    assert world.usual.fan_out.run(TENANT, EVENT) == 0
    assert world.usual.fan_out.run("other", event) == 0


def test_an_event_that_nobody_takes_any_more_is_done() -> None:
    world, event = captured(0)
    assert world.usual.fan_out.run(TENANT, event) == 0
    assert world.records_of(keys.FANOUTS) == []


def test_every_fan_out_that_has_waited_is_done() -> None:
    world, _ = captured(2)
    world.clock.advance(ms=1)
    before_ms = world.clock.now_ms()
    world.usual.faults.fail_next(method="get")
    world.accept([posted()], world.usual)
    assert world.usual.fan_out.run_waiting(before_ms) == WorkedOff(2)
    assert world.usual.fan_out.run_waiting(before_ms + 1) == WorkedOff(2)
    assert world.usual.fan_out.run_waiting(before_ms + 1) == WorkedOff(0)


def subscriber(number: int, *, lanes: int = 1, age_ms: int = 1) -> Subscriber:
    created_ms = ids.created_ms(EVENT) - age_ms
    return Subscriber(ids.new_id("ep", created_ms, number), lanes, created_ms)


def test_planning_twice_plans_the_same() -> None:
    subscribers = [subscriber(number, lanes=3) for number in range(5)]
    assert plan(TENANT, EVENT, "order.paid", subscribers) == plan(TENANT, EVENT, "order.paid", subscribers)


def test_an_endpoint_of_the_same_millisecond_takes_part_and_a_younger_one_does_not() -> None:
    same, younger = subscriber(1, age_ms=0), subscriber(2, age_ms=-1)
    assert [each.owed.lane.endpoint_id for each in plan(TENANT, EVENT, "t", [same, younger])] == [
        same.endpoint_id
    ]


def test_deliveries_spread_over_an_endpoint_s_lanes_and_stay_in_them() -> None:
    one = subscriber(1, lanes=4)
    events = [ids.new_id("evt", 1_700_000_000_000, number) for number in range(200)]
    owing = [each for event in events for each in plan(TENANT, event, "t", [one])]
    assert {each.owed.lane.number for each in owing} == {"0", "1", "2", "3"}
    assert all(each.created.lane == each.owed.lane.number for each in owing)


def test_one_bell_names_the_new_rows_of_a_lane_unless_they_are_too_many() -> None:
    one = subscriber(1)
    events = [ids.new_id("evt", 1_700_000_000_000, number) for number in range(HINTS_MAX + 1)]
    owing = [each for event in events for each in plan(TENANT, event, "t", [one])]
    (bell,) = bells_for(owing[:HINTS_MAX], 5)
    assert [hint.delivery_id for hint in bell.hints] == [each.owed.delivery_id for each in owing[:HINTS_MAX]]
    (bell,) = bells_for(owing, 5)
    assert (bell.rung_ms, bell.hints) == (5, ())


def test_a_large_endpoint_s_lanes_are_all_rung(world: World) -> None:
    world.endpoint(limits=Limits(100_000, 100_000, max_concurrency=40))
    world.accept([posted()] * 60, world.usual)
    assert {each.bell.lane.number for each in world.waiting} == {"0", "1", "2", "3"}
    world.work_off(for_ms=1_000)
    assert len(world.sender.sent) == 60
    assert world.owed() == []
