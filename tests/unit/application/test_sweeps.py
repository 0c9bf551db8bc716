"""Sweeps that break off, fail in places or meet: whatever becomes of one, nobody is left out for long."""

import itertools
from contextlib import suppress

import pytest

from chalicelib.application.ports import Unavailable
from chalicelib.application.reconcile import LATE_MS, SOON_MS
from chalicelib.domain.delivery import Lane
from tests.fakes.faults import Killed, Step
from tests.fakes.scripted_sender import status
from tests.unit.application.interruptions import at_call, fail
from tests.unit.application.invariants import check
from tests.unit.application.process import Process
from tests.unit.application.world import HOUR_MS, MINUTE_MS, OK, World

MANY = 250


def forgotten(world: World, endpoints: int) -> None:
    """Owe each of so many endpoints one delivery that nothing rings for."""
    for number in range(endpoints):
        world.endpoint(f"n{number}.paid")
    world.losing = 10_000
    for number in range(endpoints):
        world.post(f"n{number}.paid")
    world.losing = 0
    world.clock.advance(ms=LATE_MS)


def at_peek(process: Process, number: int, error: type[BaseException]) -> None:
    """Let a process's look at a lane fail, or be its last, when it is the one with this number, from 1."""
    peeks = itertools.count(1)

    def before(step: Step) -> None:
        if step.method == "query" and next(peeks) == number:
            raise error("ordered")

    process.faults.before = before


def rung(world: World) -> list[Lane]:
    """Name the lanes whose bells wait."""
    return [each.bell.lane for each in world.waiting]


def retried_in(world: World, *waits_ms: int) -> None:
    """Leave one endpoint a retry for each of these waits, and no bell."""
    waits = iter(waits_ms)
    world.endpoint("order.paid")
    world.deliveries(len(waits_ms))
    world.sender.script = lambda _: status(503, headers=(("Retry-After", str(next(waits) // 1000)),))
    world.deliver()
    world.purge()
    world.sender.script = lambda _: OK


def test_every_endpoint_is_looked_at_however_many_there_are(world: World) -> None:
    forgotten(world, MANY)
    swept = world.sweep()
    assert (swept.watched, swept.rung) == (MANY, MANY)
    world.work_off(for_ms=1_000)
    assert world.owed() == []
    check(world)


def test_sweeps_that_never_come_to_their_end_reach_everybody_in_time(world: World) -> None:
    """As of a function that is out of time after a third of those who have work, every time."""
    forgotten(world, 30)
    reached: set[Lane] = set()
    for _ in range(8):
        process = Process(world)
        at_peek(process, 11, Killed)
        world.sweep(process)
        reached.update(rung(world))
        world.purge()
        world.clock.advance(ms=MINUTE_MS)
    assert len(reached) == 30


def test_an_endpoint_that_cannot_be_looked_at_keeps_nobody_else_from_it(world: World) -> None:
    forgotten(world, 5)
    process = Process(world)
    at_peek(process, 2, Unavailable)
    swept = world.sweep(process)
    assert (swept.watched, swept.rung, swept.failed) == (5, 4, 1)
    assert len(set(rung(world))) == 4


def test_a_fan_out_that_fails_keeps_no_endpoint_from_being_looked_at(world: World) -> None:
    forgotten(world, 2)
    world.endpoint("late.paid")
    for _ in range(2):
        world.usual.faults.fail_next(method="get")
        world.post("late.paid")
    world.purge()
    world.clock.advance(ms=2 * MINUTE_MS)
    process = Process(world)
    process.faults.fail_next(method="together")
    swept = world.sweep(process)
    assert (swept.fanned_out, swept.failed) == (1, 1)
    assert len(set(rung(world))) == 3


def test_retries_within_a_minute_of_each_other_each_come_to_their_second(world: World) -> None:
    retried_in(world, 40 * MINUTE_MS, 40 * MINUTE_MS + 20_000, 40 * MINUTE_MS + 50_000)
    ready = sorted(each.ready_ms for each in world.owed())
    sent = len(world.sender.sent)
    for _ in range(45):
        world.work_off(for_ms=MINUTE_MS)
        world.sweep()
    late_ms = [each.at_ms - due for each, due in zip(world.sender.sent[sent:], ready, strict=True)]
    assert all(0 <= each < 1_000 for each in late_ms)


def everything(world: World) -> None:
    """Leave all that a sweep sees to: a late row, a coming retry, a dead lease, a fan-out, nothing owed."""
    world.endpoint("done.paid")
    world.post("done.paid")
    world.work_off()
    world.clock.advance(ms=2 * HOUR_MS)
    retried_in(world, SOON_MS + 2 * MINUTE_MS)
    leased = Process(world)
    leased.faults.kill_at(2, after=True)
    world.endpoint("dies.paid")
    world.post("dies.paid")
    world.deliver(leased)
    world.endpoint("late.paid")
    world.usual.faults.fail_next(method="get")
    world.post("late.paid")
    world.endpoint("lost.paid")
    world.losing = 1
    world.post("lost.paid")
    world.purge()
    world.clock.advance(ms=2 * MINUTE_MS)


def test_two_sweeps_that_meet_anywhere_do_no_harm_to_any_of_it() -> None:
    for call in itertools.count(1):
        world = World()
        everything(world)
        first = Process(world)
        came = at_call(first, call, world.sweep)
        world.sweep(first)
        world.work_off(for_ms=HOUR_MS)
        check(world)
        assert world.owed() == []
        if not came():
            break
    assert call > 12


@pytest.mark.parametrize("after", [False, True], ids=["before its effect", "after it"])
def test_a_sweep_whose_call_fails_anywhere_is_made_up_for_by_the_next(*, after: bool) -> None:
    for call in itertools.count(1):
        world = World()
        everything(world)
        failing = Process(world)
        came = at_call(failing, call, fail, after=after)
        with suppress(Unavailable):
            world.sweep(failing)
        world.sweep()
        world.work_off(for_ms=HOUR_MS)
        check(world)
        assert world.owed() == []
        if not came():
            break
    assert call > 12
