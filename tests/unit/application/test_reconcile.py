"""Reconcile: it rings what nobody looks at, once, and leaves alone what waits for a reason."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from threading import Barrier

import pytest

from chalicelib.adapters.dynamodb.capturing import ARM_AHEAD_MS
from chalicelib.application.reconcile import DISARM_AFTER_MS, OVERLOOKED_MS, SOON_MS, Swept
from chalicelib.domain.endpoint import Endpoint, EndpointState, Limits
from tests.fakes.faults import Step
from tests.fakes.scripted_sender import DIES, Answer, in_turn, status
from tests.unit.application.interruptions import at_call, deaths
from tests.unit.application.invariants import check
from tests.unit.application.process import Process
from tests.unit.application.world import (
    AMPLE,
    FAILS,
    MINUTE_MS,
    OK,
    TAKE_OVER_MS,
    World,
    posted,
)

TWO_LANES = Limits(100_000, 100_000, max_concurrency=20)


def forgotten(world: World, limits: Limits = AMPLE) -> tuple[Endpoint, str]:
    """Post an event and lose its bell."""
    endpoint = world.endpoint(limits=limits)
    world.losing = 99
    (delivery,) = world.deliveries(1)
    world.losing = 0
    return endpoint, delivery


def retried_in(world: World, wait_ms: int) -> Endpoint:
    """Leave one retry that is due after a while, and no bell."""
    endpoint = world.endpoint()
    world.deliveries(1)
    world.sender.script = lambda _: status(503, headers=(("Retry-After", str(wait_ms // 1000)),))
    world.deliver()
    world.purge()
    world.sender.script = lambda _: OK
    return endpoint


@pytest.mark.parametrize("late_ms, rung", [(0, 0), (59_999, 0), (60_000, 1), (600_000, 1)])
def test_a_row_that_nobody_looked_at_for_a_minute_is_rung(world: World, late_ms: int, rung: int) -> None:
    _, delivery = forgotten(world)
    world.clock.advance(ms=late_ms)
    assert world.sweep().rung == rung
    world.work_off(for_ms=1_000)
    assert world.outcomes(delivery) == ["success"] * rung


def test_every_lane_is_looked_at(world: World) -> None:
    world.endpoint(limits=TWO_LANES)
    world.losing = 99
    world.accept([posted()] * 20, world.usual)
    world.losing = 0
    world.clock.advance(ms=MINUTE_MS)
    assert world.sweep().rung == 2
    world.work_off(for_ms=1_000)
    assert world.owed() == []


def test_a_lane_that_others_look_at_is_left_alone(world: World) -> None:
    endpoint, _ = forgotten(world)
    world.clock.advance(ms=MINUTE_MS)
    (named,) = world.deliveries(1)
    world.deliver()
    assert world.outcomes(named) == ["success"]
    assert world.sweep().rung == 0
    assert world.gate(endpoint).leases == {}


def test_a_row_that_every_visit_overlooks_is_rung_at_the_second_sweep(world: World) -> None:
    _, overlooked = forgotten(world)
    ready_ms = world.owed()[0].ready_ms
    for minute in (1, 2):
        assert world.outcomes(overlooked) == []
        world.clock.advance_to(ready_ms + minute * MINUTE_MS)
        world.deliveries(1)
        world.deliver()
        world.sweep()
        world.work_off()
    assert world.outcomes(overlooked) == ["success"]


def test_a_row_that_is_being_sent_is_left_alone(world: World) -> None:
    forgotten(world)
    world.clock.advance(ms=OVERLOOKED_MS)
    world.sweep()
    world.ring_due()
    swept: list[Swept] = []
    process = Process(world)
    at_call(process, 5, lambda: swept.append(world.sweep()))
    world.deliver(process)
    assert [each.rung for each in swept] == [0]


@pytest.mark.parametrize("late_ms", [MINUTE_MS, 10 * MINUTE_MS])
def test_a_held_endpoint_is_left_alone_until_its_hold_ends(world: World, late_ms: int) -> None:
    endpoint, _ = forgotten(world)
    world.hold(endpoint, late_ms + 1)
    world.clock.advance(ms=late_ms)
    assert world.sweep().rung == 0
    world.clock.advance(ms=1)
    assert world.sweep().rung == 1


def test_a_disabled_endpoint_is_left_alone(world: World) -> None:
    endpoint, _ = forgotten(world)
    world.change(endpoint, state=EndpointState.DISABLED)
    world.clock.advance(ms=10 * MINUTE_MS)
    assert world.sweep().rung == 0


def test_an_open_breaker_is_left_alone_until_it_may_be_probed(world: World) -> None:
    endpoint = world.endpoint()
    world.accept([posted()] * 20, world.usual)
    world.sender.script = lambda _: FAILS
    world.work_off()
    world.purge()
    world.clock.advance_to(world.gate(endpoint).open_until // 1000 - 1)
    assert world.sweep().rung == 0
    world.clock.advance(ms=MINUTE_MS)
    world.sender.script = lambda _: OK
    assert world.sweep().rung == 1
    world.work_off(for_ms=5 * MINUTE_MS)
    assert world.owed() == []


@pytest.mark.parametrize("wait_ms, delayed", [(SOON_MS + 1_000, 0), (SOON_MS, 1), (SOON_MS - 60_000, 1)])
def test_a_retry_gets_its_bell_as_it_comes_within_reach(world: World, wait_ms: int, delayed: int) -> None:
    retried_in(world, wait_ms)
    assert world.sweep().delayed == delayed
    assert len(world.delayed) == delayed


def test_a_retry_far_off_is_rung_about_once_and_sent_to_the_second(world: World) -> None:
    retried_in(world, 40 * MINUTE_MS)
    (owed,) = world.owed()
    delayed = 0
    for _ in range(42):
        world.work_off(for_ms=MINUTE_MS)
        delayed += world.sweep().delayed
    assert world.owed() == []
    assert delayed in {1, 2}
    assert 0 <= world.sender.sent[-1].at_ms - owed.ready_ms < 1_000


def test_a_retry_behind_rows_that_are_ready_gets_its_bell_too(world: World) -> None:
    retried_in(world, SOON_MS)
    world.losing = 1
    world.deliveries(1)
    assert world.sweep().delayed == 1


def test_a_dead_holder_s_lease_of_an_idle_lane_is_given_back(world: World) -> None:
    for death in deaths(at_least=3):
        world = World()
        endpoint = world.endpoint()
        world.deliveries(1)
        world.deliver(death.process(world))
        world.purge()
        idle = not world.owed()
        world.clock.advance(ms=TAKE_OVER_MS)
        leased = bool(world.gate(endpoint).leases)
        assert world.sweep().released == (idle and leased)
        assert not (idle and world.gate(endpoint).leases)
        check(world)


def test_a_dead_holder_s_lease_is_given_back_where_nothing_is_ready(world: World) -> None:
    endpoint = world.endpoint()
    world.deliveries(1)
    world.sender.script = lambda _: status(503, headers=(("Retry-After", "3000"),))
    process = Process(world)
    process.faults.kill_at(2, after=True)
    world.deliver(process)
    assert list(world.gate(endpoint).leases) == ["0"]
    assert world.sweep().released == 0
    world.clock.advance(ms=TAKE_OVER_MS - 1_000)
    assert world.sweep().released == 0
    world.clock.advance(ms=1_000)
    assert world.sweep().released == 1
    check(world)


def test_a_dead_holder_s_work_is_taken_up(world: World) -> None:
    _, delivery = forgotten(world)
    world.ring(world.owed()[0].lane)
    world.sender.script = in_turn([DIES, OK])
    world.deliver(Process(world))
    world.purge()
    for _ in range(2):
        world.clock.advance(ms=MINUTE_MS)
        world.sweep()
        world.work_off()
    assert world.outcomes(delivery) == ["unknown", "success"]


def test_an_endpoint_with_nothing_owed_is_watched_no_longer(world: World) -> None:
    endpoint = world.endpoint()
    armed_ms = world.clock.now_ms()
    world.deliveries(1)
    world.work_off()
    world.clock.advance_to(armed_ms + ARM_AHEAD_MS + DISARM_AFTER_MS)
    assert world.sweep() == Swept(watched=1)
    world.clock.advance(ms=1)
    assert world.sweep() == Swept(watched=1, disarmed=1)
    assert world.sweep() == Swept()
    (delivery,) = world.deliveries(1)
    assert world.sweep().watched == 1
    world.work_off()
    assert world.outcomes(delivery) == ["success"]
    assert world.gate(endpoint).leases == {}


def test_an_endpoint_with_something_owed_is_watched_for_ever(world: World) -> None:
    endpoint, _ = forgotten(world)
    world.change(endpoint, state=EndpointState.DISABLED)
    world.clock.advance(ms=100 * ARM_AHEAD_MS)
    assert world.sweep() == Swept(watched=1)
    assert world.sweep().watched == 1


def test_an_endpoint_that_gets_work_while_it_is_let_go_stays_watched() -> None:
    for call in itertools.count(1):
        world = World()
        world.endpoint()
        world.deliveries(1)
        world.work_off()
        world.clock.advance(ms=ARM_AHEAD_MS + DISARM_AFTER_MS + 1)
        world.losing = 1
        process = Process(world)
        came = at_call(process, call, partial(world.post))
        world.sweep(process)
        if not came():
            break
        world.clock.advance(ms=MINUTE_MS)
        assert world.sweep().watched == 1
        world.work_off(for_ms=1_000)
        assert world.owed() == []
    assert call > 4


def test_a_fan_out_that_waits_for_a_minute_is_done(world: World) -> None:
    world.endpoint()
    world.usual.faults.fail_next(method="get")
    world.post()
    world.purge()
    world.clock.advance(ms=MINUTE_MS)
    assert world.sweep().fanned_out == 0
    world.clock.advance(ms=1)
    assert world.sweep().fanned_out == 1
    world.work_off()
    assert world.owed() == []


def test_a_sweep_that_dies_anywhere_is_made_up_for_by_the_next() -> None:
    for death in deaths(at_least=4):
        world = World()
        for _ in range(2):
            world.endpoint()
        world.losing = 99
        world.usual.faults.fail_next(method="get")
        world.post()
        world.post()
        world.losing = 0
        world.clock.advance(ms=2 * MINUTE_MS)
        world.sweep(death.process(world))
        world.purge()
        world.sweep()
        world.work_off(for_ms=1_000)
        check(world)
        assert world.owed() == []
        assert len(world.sender.sent) == 4


def test_two_sweeps_at_once_do_no_harm() -> None:
    for call in itertools.count(1):
        world = World()
        endpoint, delivery = forgotten(world)
        world.clock.advance(ms=2 * MINUTE_MS)
        one = Process(world)
        came = at_call(one, call, world.sweep)
        world.sweep(one)
        world.work_off(for_ms=1_000)
        assert world.outcomes(delivery) == ["success"]
        assert len(world.sender.sent) == 1
        assert world.gate(endpoint).leases == {}
        check(world)
        if not came():
            break
    assert call > 3


def test_a_bell_that_could_not_be_rung_is_not_counted(world: World) -> None:
    forgotten(world)
    world.clock.advance(ms=MINUTE_MS)
    world.losing = 1
    assert world.sweep().rung == 0
    assert world.sweep().rung == 1


def test_a_backlog_that_is_worked_off_is_not_rung_for(world: World) -> None:
    world.endpoint(limits=Limits(1_000, 1_000, max_concurrency=5))
    world.sender.script = lambda _: Answer(took_ms=9_000)
    world.accept([posted()] * 120, world.usual)
    rung = 0
    for _ in range(5):
        world.work_off(for_ms=MINUTE_MS)
        rung += world.sweep().rung
    assert len(world.sender.sent) == 120
    assert world.bells_rung <= 2 + 120 // 10
    assert rung <= 5


def test_lanes_are_looked_at_side_by_side_and_each_is_rung_once() -> None:
    world = World()
    world.losing = 99
    for number in range(8):
        world.endpoint(f"order.n{number}")
        world.post(f"order.n{number}")
    world.losing = 0
    world.clock.advance(ms=2 * MINUTE_MS)
    process, meeting = Process(world), Barrier(4)

    def meet(step: Step) -> None:
        if step.method == "query":
            meeting.wait(timeout=30)

    process.faults.before = meet
    with ThreadPoolExecutor(4) as threads:
        swept = replace(process.reconcile, together=threads.map).run()
    assert (swept.watched, swept.rung, swept.failed) == (8, 8, 0)
    assert len({bell.lane for bell in process.bells.rung}) == 8
