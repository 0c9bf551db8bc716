"""The gate at work: what opens the breaker, what probes, what is paced, and that waiting spends nothing."""

from functools import partial

import pytest

from chalicelib.adapters.dynamodb.records import Update
from chalicelib.domain.endpoint import Endpoint, Limits
from chalicelib.domain.gate import Breaker, Rules
from chalicelib.domain.outcome import Fault, Reply
from chalicelib.domain.request import Request
from tests.fakes.faults import Step
from tests.fakes.scripted_sender import DIES, HANGS, Answer, in_turn, status
from tests.unit.application.interruptions import meanwhile, tells_of_attempts
from tests.unit.application.invariants import check, check_pace
from tests.unit.application.process import Process
from tests.unit.application.world import (
    AMPLE,
    FAILS,
    MINUTE_MS,
    OK,
    RULES,
    World,
    lane_of,
    posted,
)

COOLDOWN_MS = RULES.cooldown // 1000
TIMEOUT_MS = RULES.request_timeout // 1000
FAULTS = (Fault.TIMEOUT, Fault.CONNECT_FAILED, Fault.TLS_FAILED)
TWO_LANES = Limits(100_000, 100_000, max_concurrency=20)


def failing(world: World, count: int, answer: Answer = FAILS, limits: Limits = AMPLE) -> Endpoint:
    """Register an endpoint and let that many first attempts fail."""
    endpoint = world.endpoint(limits=limits)
    world.sender.script = lambda _: answer
    world.accept([posted()] * count, world.usual)
    world.work_off()
    return endpoint


def opened(world: World, limits: Limits = TWO_LANES) -> Endpoint:
    """Open an endpoint's breaker, leaving twenty retries owed and nothing in the queues."""
    endpoint = failing(world, RULES.threshold, limits=limits)
    assert world.gate(endpoint).state is Breaker.OPEN
    world.sender.sent.clear()
    world.purge()
    return endpoint


def open_until_ms(world: World, endpoint: Endpoint) -> int:
    return world.gate(endpoint).open_until // 1000


@pytest.mark.parametrize("answer", [FAILS, status(503), *(Answer(Reply(fault=each)) for each in FAULTS)])
def test_twenty_failures_in_a_row_open_it_and_nineteen_do_not(answer: Answer) -> None:
    closed = World()
    assert closed.gate(failing(closed, RULES.threshold - 1, answer)).state is Breaker.CLOSED
    world = World()
    assert world.gate(failing(world, RULES.threshold, answer)).state is Breaker.OPEN


@pytest.mark.parametrize("answer", [status(404), status(429), OK, Answer(Reply(fault=Fault.REFUSED))])
def test_an_endpoint_that_answers_is_alive(world: World, answer: Answer) -> None:
    assert world.gate(failing(world, 2 * RULES.threshold, answer)).fails == 0


def test_one_answer_starts_the_count_again(world: World) -> None:
    endpoint = failing(world, RULES.threshold - 1)
    world.sender.script = in_turn([OK, FAILS])
    world.deliveries(RULES.threshold)
    world.work_off()
    assert (world.gate(endpoint).state, world.gate(endpoint).fails) == (Breaker.CLOSED, RULES.threshold - 1)


def test_a_breaker_that_is_switched_off_never_opens() -> None:
    world = World(Rules(breaker=False))
    assert world.gate(failing(world, 2 * RULES.threshold)).state is Breaker.CLOSED
    assert len(world.sender.sent) == 2 * RULES.threshold


def test_opening_sends_one_bell_for_its_end(world: World) -> None:
    endpoint = failing(world, RULES.threshold)
    due_ms = [each.due_ms - open_until_ms(world, endpoint) for each in world.delayed if each.delay_s == 30]
    assert len(due_ms) == 1
    assert 0 <= due_ms[0] < 1_000


def opens(step: Step) -> bool:
    """Mean the call that opens a breaker."""
    return any(isinstance(each, Update) and each.change.sets.get("st") == "open" for each in step.writes)


def test_two_that_would_open_it_at_once_send_one_bell(world: World) -> None:
    endpoint = world.endpoint(limits=TWO_LANES)
    world.sender.script = lambda _: FAILS
    world.accept([posted()] * 60, world.usual)
    world.purge()
    one, other = Process(world), Process(world)

    def another_comes() -> None:
        world.clock.advance(ms=1)
        world.visit(lane_of(endpoint, "1"), other)

    meanwhile(one, another_comes, opens)
    world.visit(lane_of(endpoint, "0"), one)
    assert world.gate(endpoint).epoch == 1
    assert [each.delay_s for each in world.delayed].count(COOLDOWN_MS // 1000) == 1


def test_a_send_that_ends_after_the_breaker_has_turned_gives_its_slots_back_and_says_nothing(
    world: World,
) -> None:
    endpoint = world.endpoint(limits=TWO_LANES)
    world.accept([posted()] * 60, world.usual)
    world.purge()
    one, other = Process(world), Process(world)

    def breaker_opens() -> None:
        world.sender.script = lambda _: FAILS
        world.visit(lane_of(endpoint, "1"), other)

    world.sender.script = lambda _: OK
    meanwhile(one, breaker_opens, tells_of_attempts)
    world.visit(lane_of(endpoint, "0"), one)
    gate = world.gate(endpoint)
    assert (gate.state, gate.leases) == (Breaker.OPEN, {})
    assert gate.fails >= RULES.threshold
    check(world)


def test_an_open_breaker_spends_no_attempt(world: World) -> None:
    endpoint = opened(world)
    fresh = world.deliveries(5)
    world.work_off(for_ms=COOLDOWN_MS - 10)
    assert world.sender.sent == []
    world.sender.script = lambda _: OK
    world.work_off(for_ms=10 * MINUTE_MS)
    assert world.gate(endpoint).state is Breaker.CLOSED
    assert [world.outcomes(each) for each in fresh] == [["success"]] * 5
    check(world)


def test_exactly_one_probes_however_many_come(world: World) -> None:
    endpoint = opened(world)
    world.clock.advance_to(open_until_ms(world, endpoint))
    one, other, third = Process(world), Process(world), Process(world)
    world.sender.script = lambda _: HANGS

    def others_come() -> None:
        world.visit(lane_of(endpoint, "0"), other)
        world.visit(lane_of(endpoint, "1"), third)

    meanwhile(one, others_come, lambda step: step.method == "unseal")
    world.visit(lane_of(endpoint, "0"), one)
    world.visit(lane_of(endpoint, "1"), other)
    assert len(world.sender.sent) == 1
    assert world.gate(endpoint).state is Breaker.OPEN


def test_a_probe_that_fails_doubles_the_wait_up_to_its_limit(world: World) -> None:
    endpoint = opened(world)
    waits_s = []
    for _ in range(6):
        world.clock.advance_to(open_until_ms(world, endpoint))
        world.visit(lane_of(endpoint))
        waits_s.append(round((open_until_ms(world, endpoint) - world.clock.now_ms()) / 1000))
    assert waits_s == [60, 120, 240, 300, 300, 300]
    assert len(world.sender.sent) == 6


def test_a_prober_that_dies_is_followed_by_another(world: World) -> None:
    endpoint = opened(world)
    began_ms = open_until_ms(world, endpoint)
    world.clock.advance_to(began_ms)
    world.sender.script = in_turn([DIES, OK])
    world.visit(lane_of(endpoint, "0"), Process(world))
    deadline_ms = began_ms + TIMEOUT_MS + 2_000
    world.clock.advance_to(deadline_ms - 2_500)
    world.visit(lane_of(endpoint, "1"), Process(world))
    assert len(world.sender.sent) == 1
    world.clock.advance_to(deadline_ms)
    world.visit(lane_of(endpoint, "1"), Process(world))
    assert world.sender.sent[1].at_ms == deadline_ms
    assert world.gate(endpoint).state is Breaker.CLOSED
    check(world)


def test_a_recovered_endpoint_is_ramped_up() -> None:
    world = World()
    limits = Limits(rate_per_second=100, burst=10, max_concurrency=20)
    endpoint = opened(world, limits)
    world.sender.script = lambda _: OK
    world.clock.advance_to(open_until_ms(world, endpoint))
    world.visit(lane_of(endpoint))
    closed_ms = world.clock.now_ms()
    world.sender.script = partial(at_most, world, 2)
    world.accept([posted()] * 100, world.usual)
    world.work_off(for_ms=3_000)
    sent = [each.at_ms - closed_ms for each in world.sender.sent[1:]]
    assert 20 <= len([each for each in sent if each < 3_000]) <= limits.burst + 3 * 12
    world.clock.advance(ms=RULES.ramp // 1000)
    world.sender.script = lambda _: OK
    world.work_off(for_ms=2_000)
    assert world.owed() == []


def at_most(world: World, count: int, _: Request) -> Answer:
    """Hold what is in flight to a number."""
    assert len(world.sender.in_flight) <= count, "more in flight than its cap"
    return status(200, took_ms=20)


@pytest.mark.parametrize("limits", [Limits(10, 20, 8), Limits(3, 1, 1), Limits(50, 7, 25)])
def test_no_endpoint_gets_more_than_its_rate_and_its_cap(world: World, limits: Limits) -> None:
    endpoint = world.endpoint(limits=limits)
    world.sender.script = partial(at_most, world, limits.max_concurrency)
    world.accept([posted()] * 40, world.usual)
    world.work_off(for_ms=MINUTE_MS)
    assert len(world.sender.sent) == 40
    check_pace(world, endpoint)
    check(world)


def test_a_lowered_cap_binds_the_next_admission(world: World) -> None:
    endpoint = world.endpoint(limits=AMPLE)
    world.accept([posted()] * 20, world.usual)
    one = Process(world)
    meanwhile(
        one,
        partial(world.change, endpoint, limits=Limits(100_000, 100_000, max_concurrency=2)),
        lambda step: step.method == "unseal",
    )
    world.sender.script = partial(at_most, world, 10)
    world.deliver(one)
    world.sender.script = partial(at_most, world, 2)
    world.work_off(for_ms=MINUTE_MS)
    assert len(world.sender.sent) == 20
    gate = world.gate(endpoint)
    assert (gate.slots, gate.cap) == (2, 2)
