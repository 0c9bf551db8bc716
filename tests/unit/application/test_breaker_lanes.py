"""The breaker over several lanes and processes: one probe per cooldown, and recovery wakes every lane."""

from dataclasses import replace
from functools import partial

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Key, Merge
from chalicelib.application.batch import IN_PLACE_MS
from chalicelib.domain.delivery import Lane
from chalicelib.domain.endpoint import Endpoint, Limits, Ordering
from chalicelib.domain.gate import Breaker
from chalicelib.domain.outcome import Fault, Reply
from chalicelib.domain.request import Request
from tests.fakes.scripted_sender import HANGS, Answer, in_turn, status
from tests.unit.application.interruptions import at_call, deaths
from tests.unit.application.invariants import check
from tests.unit.application.process import Process
from tests.unit.application.world import (
    FAILS,
    HOUR_MS,
    MINUTE_MS,
    OK,
    RULES,
    TAKE_OVER_MS,
    World,
    posted,
)

THREE_LANES = Limits(100_000, 100_000, max_concurrency=30)
BACKLOG = 60
REFUSED = Answer(Reply(fault=Fault.REFUSED))


def opened(world: World, limits: Limits = THREE_LANES, backlog: int = BACKLOG) -> Endpoint:
    """Open an endpoint's breaker by twenty failures, and owe it more in every lane."""
    endpoint = world.endpoint(limits=limits)
    world.sender.script = lambda _: FAILS
    world.accept([posted()] * world.rules.threshold, world.usual)
    world.work_off()
    assert world.gate(endpoint).state is Breaker.OPEN
    for _ in range(backlog // 20):
        world.accept([posted()] * 20, world.usual)
    world.sender.sent.clear()
    return endpoint


def open_until_ms(world: World, endpoint: Endpoint) -> int:
    return world.gate(endpoint).open_until // 1000


def lanes(world: World, endpoint: Endpoint) -> list[Lane]:
    return [Lane(endpoint.tenant, endpoint.id, number) for number in endpoint.lanes]


def rush(world: World, endpoint: Endpoint, processes: int) -> None:
    """Let every process come for every lane."""
    for _ in range(processes):
        process = Process(world)
        for lane in lanes(world, endpoint):
            world.visit(lane, process)


@pytest.mark.parametrize("answer", [FAILS, HANGS, Answer(Reply(fault=Fault.CONNECT_FAILED))])
def test_f124_one_probe_goes_per_cooldown_however_many_lanes_and_processes_come(
    world: World, answer: Answer
) -> None:
    """A thousand wait, ten workers come; the cooldown doubles to five minutes."""
    endpoint = opened(world, backlog=1_000)
    world.purge()
    world.sender.script = lambda _: answer
    for number in range(1, 7):
        assert len(world.sender.sent) == number - 1
        until_ms = open_until_ms(world, endpoint)
        world.clock.advance_to(until_ms - IN_PLACE_MS - 1)
        rush(world, endpoint, 2)
        assert len(world.sender.sent) == number - 1, "nobody probes before the cooldown ends"
        world.clock.advance_to(until_ms)
        rush(world, endpoint, 10)
        assert len(world.sender.sent) == number, "exactly one probe per cooldown"
        assert world.gate(endpoint).state is Breaker.OPEN
        cooldown_ms = min(RULES.cooldown // 1000 * 2**number, RULES.max_cooldown // 1000)
        assert world.gate(endpoint).cooldown == cooldown_ms * 1000
    check(world)


def test_f124_while_a_probe_is_out_nobody_else_goes(world: World) -> None:
    endpoint = opened(world)
    world.purge()
    world.clock.advance_to(open_until_ms(world, endpoint))
    most: list[int] = []

    def come(_: Request) -> Answer:
        if not most:
            most.append(0)
            rush(world, endpoint, 3)
        most.append(len(world.sender.in_flight))
        return FAILS

    world.sender.script = come
    world.visit(lanes(world, endpoint)[0], Process(world))
    assert len(world.sender.sent) == 1
    assert max(most) == 1
    check(world)


def test_f124_it_closes_after_a_success_and_stays_closed(world: World) -> None:
    endpoint = opened(world)
    world.purge()
    world.clock.advance_to(open_until_ms(world, endpoint))
    world.sender.script = lambda _: OK
    world.visit(lanes(world, endpoint)[0], Process(world))
    for _ in range(3):
        assert world.gate(endpoint).state is Breaker.CLOSED
        rush(world, endpoint, 1)
    assert len(world.sender.sent) > 1


@pytest.mark.parametrize("answer", [REFUSED, status(404), FAILS, OK, HANGS])
def test_f123_every_outcome_of_a_probe_moves_the_state(world: World, answer: Answer) -> None:
    endpoint = opened(world)
    world.purge()
    until_ms = open_until_ms(world, endpoint)
    world.clock.advance_to(until_ms)
    world.sender.script = in_turn([answer])
    world.visit(lanes(world, endpoint)[0], Process(world))
    gate = world.gate(endpoint)
    assert gate.state is not Breaker.HALF_OPEN
    assert gate.state is Breaker.CLOSED or open_until_ms(world, endpoint) > until_ms


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_f123_a_prober_killed_at_any_write_is_followed_by_another(*, after: bool) -> None:
    for death in deaths(at_least=3, after=after):
        world = World(replace(RULES, threshold=3))
        endpoint = opened(world, backlog=20)
        world.purge()
        world.clock.advance_to(open_until_ms(world, endpoint))
        world.sender.script = lambda _: OK
        world.visit(lanes(world, endpoint)[0], death.process(world))
        world.clock.advance(ms=TAKE_OVER_MS)
        for _ in range(3):
            rush(world, endpoint, 1)
            world.clock.advance(ms=RULES.max_cooldown // 1000)
        assert world.gate(endpoint).state is Breaker.CLOSED
        world.work_off(for_ms=HOUR_MS)
        for _ in range(3):
            world.sweep()
            world.work_off(for_ms=MINUTE_MS)
        assert world.owed() == []
        check(world)


def test_closing_rings_every_lane_that_has_rows_and_all_goes_without_reconcile(world: World) -> None:
    """The lanes' own bells are gone: the closing alone must wake them."""
    endpoint = opened(world)
    world.purge()
    world.clock.advance_to(open_until_ms(world, endpoint))
    assert len({each.lane for each in world.owed()}) == len(endpoint.lanes) == 3
    world.sender.script = lambda _: OK
    world.ring(lanes(world, endpoint)[1])
    world.deliver()
    assert world.gate(endpoint).state is Breaker.CLOSED
    rung = {each.bell.lane for each in world.waiting} | {each.lane for each in world.delayed}
    assert rung >= {each.lane for each in world.owed()}
    world.work_off(for_ms=10 * MINUTE_MS)
    assert world.owed() == []


def test_closing_rings_the_line_of_an_ordered_endpoint(world: World) -> None:
    endpoint = world.endpoint(ordering=Ordering.ENDPOINT)
    at = keys.gate(endpoint.tenant, endpoint.id)
    world.usual.tables.together([Merge(at, {"fails": RULES.threshold - 1})])
    world.sender.script = in_turn([FAILS, FAILS, OK])
    world.deliveries(5)
    world.work_off()
    assert world.gate(endpoint).state is Breaker.OPEN
    world.work_off(for_ms=10 * MINUTE_MS)
    assert world.owed() == []
    assert world.gate(endpoint).state is Breaker.CLOSED


@pytest.mark.parametrize("answer", [OK, FAILS, HANGS])
def test_what_was_sent_before_it_opened_changes_nothing(world: World, answer: Answer) -> None:
    """One of another lane ends while the breaker is open, half open, or closed again."""
    for turn in (Breaker.OPEN, Breaker.HALF_OPEN, Breaker.CLOSED):
        world = World()
        endpoint = world.endpoint(limits=THREE_LANES)
        world.accept([posted()] * 30, world.usual)
        world.purge()
        first, second, _ = lanes(world, endpoint)
        turned: list[object] = []
        at = keys.gate(endpoint.tenant, endpoint.id)

        def turning(
            _: Request,
            world: World = world,
            turn: Breaker = turn,
            turned: list[object] = turned,
            at: Key = at,
        ) -> Answer:
            if not turned:
                now = world.clock.now_us()
                moved = {"st": turn.value, "epoch": 7, "fails": 3, "open_until": now + 90_000_000}
                world.usual.tables.together([Merge(at, {**moved, "probe_until": now + 90_000_000})])
                turned.append(world.usual.tables.get([at])[at])
            return answer

        world.sender.script = turning
        world.visit(first, Process(world))
        gate = world.gate(endpoint)
        assert (gate.state, gate.epoch, gate.fails) == (turn, 7, 3)
        assert gate.slots == gate.cap, "its slots are back"
        assert second != first


def test_a_burst_of_failures_over_lanes_and_processes_opens_it_once(world: World) -> None:
    endpoint = world.endpoint(limits=THREE_LANES)
    world.accept([posted()] * 60, world.usual)
    world.purge()
    coming = [Process(world) for _ in range(3)]
    started: list[Lane] = []

    def come(_: Request) -> Answer:
        if len(started) < 3:
            lane = lanes(world, endpoint)[len(started)]
            started.append(lane)
            world.visit(lane, coming[len(started) - 1])
        return FAILS

    world.sender.script = come
    world.visit(lanes(world, endpoint)[0], Process(world))
    rush(world, endpoint, 2)
    gate = world.gate(endpoint)
    assert gate.state is Breaker.OPEN
    assert gate.epoch == 1
    assert gate.cooldown == RULES.cooldown
    assert len(world.delayed) <= len(endpoint.lanes) * 2


@pytest.mark.parametrize("number", range(1, 12))
def test_a_second_prober_at_any_call_of_the_first_is_refused(number: int) -> None:
    world = World()
    endpoint = opened(world)
    world.purge()
    world.clock.advance_to(open_until_ms(world, endpoint))
    world.sender.script = lambda _: FAILS
    prober = Process(world)
    at_call(prober, number, partial(rush, world, endpoint, 1))
    world.visit(lanes(world, endpoint)[0], prober)
    probes = len(world.sender.sent)
    assert probes == 1
    check(world)
