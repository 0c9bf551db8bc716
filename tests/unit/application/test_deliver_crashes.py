"""Deliver, killed: what was in flight is told as unknown, nothing is lost, and no number is used twice."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Delete
from chalicelib.domain.backoff import SCHEDULES, RetryProfile
from chalicelib.domain.delivery import UNKNOWN_MAX, Lane
from chalicelib.domain.endpoint import EndpointState, Limits
from chalicelib.domain.request import Request
from tests.fakes.faults import Step
from tests.fakes.scripted_sender import DIES, Answer, in_turn, status
from tests.unit.application.interruptions import at_call, deaths, fail, meanwhile, tells_of_attempts
from tests.unit.application.invariants import check
from tests.unit.application.process import Process
from tests.unit.application.world import (
    AMPLE,
    FAILS,
    MINUTE_MS,
    OK,
    TAKE_OVER_MS,
    VISIBILITY_MS,
    Waiting,
    World,
    lane_of,
)

REFUSES = status(404)
DEFERS = status(429, headers=(("Retry-After", "2"),))
BY_TWOS = Limits(rate_per_second=1_000, burst=2, max_concurrency=10)
MIXED = [OK, FAILS, REFUSES, OK, DEFERS]
SCENES = {
    "all arrive": ([OK] * 2, AMPLE),
    "all fail": ([FAILS] * 2, AMPLE),
    "all are refused": ([REFUSES] * 2, AMPLE),
    "each has its own way": (MIXED, AMPLE),
    "each has its own way, in rounds": (MIXED, BY_TWOS),
}


def go_on(world: World) -> None:
    """Let others go on with all that is owed, and hold them to what holds always."""
    check(world)
    world.sender.script = lambda _: OK
    world.work_off(for_ms=10 * MINUTE_MS)
    check(world)
    assert world.owed() == []


def sent_and_told(world: World, delivery: str) -> tuple[int, int, int]:
    """Count a delivery's requests, its attempts, and those of them that are unknown."""
    told = [each.outcome.value for each in world.attempts(delivery)]
    return len(world.sends(delivery)), len(told), told.count("unknown")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("answers, limits", list(SCENES.values()), ids=list(SCENES))
def test_a_death_at_any_write_loses_nothing_and_is_told(
    answers: list[Answer], limits: Limits, *, after: bool
) -> None:
    for death in deaths(at_least=2 * len(answers) - 1, after=after):
        world = World()
        world.endpoint(limits=limits)
        deliveries = world.deliveries(len(answers))
        world.sender.script = in_turn(answers)
        world.deliver(death.process(world))
        go_on(world)
        for delivery in deliveries:
            sent, told, unknown = sent_and_told(world, delivery)
            assert unknown <= 1, "one death leaves one unknown attempt"
            assert told - unknown <= sent <= told, "what was sent twice is told"


def test_what_was_settled_before_a_death_is_not_sent_again(world: World) -> None:
    world.endpoint(limits=Limits(1_000, 1_000, max_concurrency=5))
    deliveries = world.deliveries(10)
    world.sender.script = in_turn([OK, OK, OK, OK, Answer(took_ms=500, dies=True)])
    world.deliver(Process(world))
    go_on(world)
    told = sorted(world.outcomes(each) for each in deliveries)
    assert told == sorted([["success"]] * 9 + [["unknown", "success"]])
    assert len(world.sender.sent) == 11


def test_a_death_while_sending_leaves_an_attempt_that_is_unknown(world: World) -> None:
    world.endpoint()
    (delivery,) = world.deliveries(1)
    world.sender.script = lambda _: DIES
    world.deliver(Process(world))
    go_on(world)
    assert world.outcomes(delivery) == ["unknown", "success"]
    assert [dict(each.request.headers)["Relay-Attempt"] for each in world.sends(delivery)] == ["1", "2"]


def test_the_dead_one_s_successor_may_die_as_well() -> None:
    for death in deaths(at_least=4):
        world = World()
        endpoint = world.endpoint(limits=Limits(1, 3, 10))
        deliveries = world.deliveries(3)
        world.sender.script = lambda _: DIES
        world.deliver(Process(world))
        world.clock.advance(ms=TAKE_OVER_MS)
        world.change(endpoint, limits=Limits(1, burst=1, max_concurrency=10))
        world.sender.script = lambda _: OK
        world.visit(lane_of(endpoint), death.process(world))
        go_on(world)
        assert [world.outcomes(each)[0] for each in deliveries] == ["unknown"] * 3


def die(world: World, times: int) -> None:
    """Let one process after another die while it sends."""
    world.sender.script = lambda _: DIES
    for _ in range(times):
        world.deliver(Process(world))
        world.clock.advance(ms=VISIBILITY_MS)


def test_five_unknown_attempts_in_a_row_end_a_delivery_as_poisoned(world: World) -> None:
    world.endpoint()
    (delivery,) = world.deliveries(1)
    die(world, UNKNOWN_MAX)
    go_on(world)
    assert world.outcomes(delivery) == ["unknown"] * UNKNOWN_MAX + ["poisoned"]
    assert len(world.sends(delivery)) == UNKNOWN_MAX
    assert [record["reason"] for record in world.records_of(keys.DEAD_LETTERS)] == ["poisoned"]


@pytest.mark.parametrize("place", [0, 4, 9])
def test_a_delivery_that_kills_its_senders_takes_no_other_with_it(world: World, place: int) -> None:
    world.endpoint()
    deliveries = world.deliveries(10)
    poison = deliveries[place]

    def script(request: Request) -> Answer:
        return Answer(took_ms=500, dies=dict(request.headers)["Relay-Delivery-Id"] == poison)

    world.sender.script = script
    for _ in range(3 * UNKNOWN_MAX):
        world.deliver(Process(world))
        world.clock.advance(ms=VISIBILITY_MS)
    ends = [world.outcomes(each)[-1] for each in deliveries]
    assert ends == ["success"] * place + ["poisoned"] + ["success"] * (9 - place)
    assert len(world.sends(poison)) == UNKNOWN_MAX
    check(world)


def test_an_attempt_that_is_known_ends_the_row_of_unknown_ones(world: World) -> None:
    world.endpoint()
    (delivery,) = world.deliveries(1)
    die(world, UNKNOWN_MAX - 1)
    world.sender.script = lambda _: FAILS
    world.deliver()
    world.clock.advance(ms=MINUTE_MS)
    world.ring_due()
    die(world, UNKNOWN_MAX - 1)
    go_on(world)
    unknown = ["unknown"] * (UNKNOWN_MAX - 1)
    assert world.outcomes(delivery) == [*unknown, "retryable", *unknown, "success"]


def test_unknown_attempts_do_not_count_towards_the_profile_s(world: World) -> None:
    world.endpoint(retry_profile=RetryProfile.QUICK)
    (delivery,) = world.deliveries(1)
    die(world, 3)
    world.sender.script = lambda _: FAILS
    world.work_off(for_ms=60 * MINUTE_MS)
    counted = ["retryable"] * SCHEDULES[RetryProfile.QUICK].attempts
    assert world.outcomes(delivery) == ["unknown"] * 3 + counted + ["attempts_exhausted"]


@pytest.mark.parametrize("early_ms", [TAKE_OVER_MS, 20_000, 2_001, 2_000, 1, 0])
def test_a_lease_is_taken_over_two_seconds_after_its_end_and_not_before(world: World, early_ms: int) -> None:
    lane = lane_of(world.endpoint())
    (delivery,) = world.deliveries(1)
    began_ms = world.clock.now_ms()
    world.sender.script = in_turn([DIES, OK])
    world.deliver(Process(world))
    world.clock.advance_to(began_ms + TAKE_OVER_MS - early_ms)
    world.visit(lane)
    taken_ms = [each.at_ms for each in world.sends(delivery)][1:]
    assert taken_ms == ([] if early_ms > 2_000 else [began_ms + TAKE_OVER_MS])


def take_over(world: World, answer: Answer) -> Callable[[], object]:
    """Make what others do while a holder stands still for longer than its lease."""

    def act() -> None:
        world.sender.script = lambda _: answer
        stand_still(world, world.owed()[0].lane, Process(world))

    return act


@pytest.mark.parametrize("mine", [OK, FAILS, REFUSES, DEFERS])
@pytest.mark.parametrize("theirs", [OK, FAILS, REFUSES])
def test_a_holder_whose_lease_was_taken_over_changes_nothing(
    world: World, mine: Answer, theirs: Answer
) -> None:
    world.endpoint()
    (delivery,) = world.deliveries(1)
    world.sender.script = lambda _: mine
    late, seen = Process(world), []

    def act() -> None:
        take_over(world, theirs)()
        seen.append((world.outcomes(delivery), world.owed()))

    meanwhile(late, act, tells_of_attempts)
    world.deliver(late)
    assert seen == [(world.outcomes(delivery), world.owed())]
    check(world)
    go_on(world)


@pytest.mark.parametrize("mine", [OK, FAILS, REFUSES])
def test_a_late_holder_takes_nothing_from_a_taker_who_died(mine: Answer) -> None:
    for death in deaths(at_least=4):
        world = World()
        lane = lane_of(world.endpoint())
        deliveries = world.deliveries(2)
        late, taker = Process(world), death.process(world)
        meanwhile(late, partial(stand_still, world, lane, taker), tells_of_attempts)
        world.sender.script = lambda _: mine
        world.deliver(late)
        check(world)
        go_on(world)
        for delivery in deliveries:
            sent, told, unknown = sent_and_told(world, delivery)
            assert told - unknown <= sent <= told


def stand_still(world: World, lane: Lane, taker: Process) -> None:
    """Let another process come to a lane whose holder stands still for longer than its lease."""
    world.clock.advance(ms=TAKE_OVER_MS)
    world.sender.in_flight.clear()
    world.visit(lane, taker)


def test_a_late_holder_gives_up_nothing_that_has_moved_on(world: World) -> None:
    endpoint = world.endpoint()
    (delivery,) = world.deliveries(1)
    world.change(endpoint, event_types=("invoice.*",))
    late = Process(world)

    def act() -> None:
        world.change(endpoint, event_types=("*",))
        stand_still(world, lane_of(endpoint), Process(world))

    meanwhile(late, act, lambda step: step.method == "together")
    world.deliver(late)
    assert world.outcomes(delivery) == ["unknown", "success"]
    check(world)


def test_a_bell_that_names_a_row_as_it_was_makes_its_lane_be_looked_at(world: World) -> None:
    endpoint = world.endpoint()
    (delivery,) = world.deliveries(1)
    (bell,) = [each.bell for each in world.waiting]
    process = Process(world)
    process.faults.kill_at(1, after=True)
    world.deliver(process)
    world.purge()
    world.clock.advance(ms=TAKE_OVER_MS)
    world.losing = 1
    dies_after_burying = Process(world)
    dies_after_burying.faults.kill_at(2, after=False)
    world.visit(lane_of(endpoint), dies_after_burying)
    assert [each.made for each in world.owed()] == [1]
    world.clock.advance(ms=TAKE_OVER_MS)
    world.waiting.append(Waiting(replace(bell, rung_ms=world.clock.now_ms()), "a late one", 0))
    world.deliver()
    assert world.outcomes(delivery) == ["unknown", "success"]
    check(world)


def test_a_holder_who_wakes_after_its_lease_sends_nothing(world: World) -> None:
    world.endpoint()
    (delivery,) = world.deliveries(1)
    late = Process(world)
    meanwhile(late, take_over(world, OK), lambda step: step.method == "get" and bool(late.faults.steps[1:]))
    world.deliver(late)
    assert len(world.sends(delivery)) == 1
    go_on(world)


def test_a_holder_who_wakes_with_its_work_half_done_finds_it_finished(world: World) -> None:
    world.endpoint()
    (delivery,) = world.deliveries(1)
    late = Process(world)

    def closes(step: Step) -> bool:
        return any(isinstance(each, Delete) for each in step.writes)

    meanwhile(late, take_over(world, FAILS), closes)
    world.deliver(late)
    go_on(world)
    assert world.outcomes(delivery) == ["success"]
    assert len(world.sends(delivery)) == 1


@pytest.mark.parametrize("after", [False, True], ids=["before its effect", "after it"])
def test_a_store_that_fails_at_any_call_loses_nothing(*, after: bool) -> None:
    for number in itertools.count(1):
        world = World()
        world.endpoint()
        deliveries = world.deliveries(5)
        world.sender.script = in_turn(MIXED)
        process = Process(world)
        came = at_call(process, number, fail, after=after)
        world.deliver(process)
        world.clock.advance(ms=TAKE_OVER_MS)
        go_on(world)
        for delivery in deliveries:
            sent, told, unknown = sent_and_told(world, delivery)
            assert told - unknown <= sent <= told
        if not came():
            break
    assert number > 8


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_what_history_tells_of_a_410_its_endpoint_knows_whenever_its_sender_died(*, after: bool) -> None:
    for death in deaths(at_least=3, after=after):
        world = World()
        endpoint = world.endpoint(limits=AMPLE)
        (delivery,) = world.deliveries(1)
        world.sender.script = lambda _: status(410)
        world.deliver(death.process(world))
        if world.attempts(delivery):
            assert world.now(endpoint).state is EndpointState.DISABLED
        check(world)
