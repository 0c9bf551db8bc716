"""A lane with a backlog lives by one bell: nobody else rings it, and it is not left without one for long."""

from collections import Counter
from dataclasses import replace
from functools import partial

import pytest

from chalicelib.application.ports import Bell
from chalicelib.domain.delivery import Lane
from chalicelib.domain.endpoint import Endpoint, EndpointState, Limits, Ordering
from chalicelib.domain.gate.holds import QUIET_FOR
from chalicelib.domain.request import Request
from tests.fakes.scripted_sender import Answer, in_turn, status
from tests.unit.application.interruptions import at_call, deaths, meanwhile
from tests.unit.application.invariants import check, check_pace
from tests.unit.application.process import Process
from tests.unit.application.world import AMPLE, MINUTE_MS, OK, TAKE_OVER_MS, World, lane_of, posted

QUICK = status(200, took_ms=20)
LATE_MS = 6_000
QUIET_MS = QUIET_FOR // 1000
SEEN_MS = 2_000
FED = Limits(rate_per_second=25, burst=25, max_concurrency=8)


def bells(world: World) -> Counter[Lane]:
    """Count each lane's bells: those that wait, are in hand, or come later."""
    return Counter([*(each.bell.lane for each in world.waiting), *(each.lane for each in world.delayed)])


def owe(world: World, count: int) -> None:
    for _ in range(0, count, 100):
        world.accept([posted()] * 100, world.usual)


def late_bell(world: World, lane: Lane) -> None:
    """Ring a lane by a bell that has waited for so long that the lane falls quiet."""
    world._enqueue([Bell(lane, world.clock.now_ms() - LATE_MS)])  # noqa: SLF001 - the queue is the world's


def producer(world: World) -> Process:
    """Start a process that knows who takes the events."""
    process = Process(world)
    world.accept([posted()], process)
    world.purge()
    return process


@pytest.mark.parametrize("limits, ordering", [(FED, Ordering.NONE), (FED, Ordering.ENDPOINT)])
def test_a_lane_with_thousands_owed_keeps_one_bell_while_posting_goes_on(
    world: World, limits: Limits, ordering: Ordering
) -> None:
    endpoint = world.endpoint(limits=limits, ordering=ordering)
    owe(world, 2_000)
    producers = [Process(world) for _ in range(3)]
    most: list[int] = []

    def post_on(_: Request) -> Answer:
        world.accept([posted()] * 2, producers[len(most) % 3])
        most.append(max(bells(world).values()))
        return QUICK

    world.sender.script = post_on
    world.pass_time(MINUTE_MS)
    sent = len(world.sender.sent)
    assert sent > 60 * limits.rate_per_second * 9 // 10
    assert len(world.owed()) >= 2_000 + sent
    assert max(most[len(most) // 2 :]) == 1, "a lane keeps one bell"
    assert world.bells_rung <= 1.05 * sent + 200
    check_pace(world, endpoint)


@pytest.mark.parametrize("lanes", [1, 3])
def test_every_lane_with_a_bell_drains_though_reconcile_never_runs(world: World, lanes: int) -> None:
    world.endpoint(limits=Limits(100, 50, 10 * lanes))
    world.endpoint(limits=Limits(50, 5, 8), ordering=Ordering.ENDPOINT)
    owe(world, 400)
    world.sender.script = in_turn([QUICK] * 300 + [status(500, took_ms=20)] * 5 + [QUICK])
    world.work_off(for_ms=10 * MINUTE_MS)
    assert world.owed() == []
    check(world)


def test_a_backlog_drained_leaves_its_lane_to_be_rung_again(world: World) -> None:
    endpoint = world.endpoint(limits=FED)
    owe(world, 300)
    world.sender.script = lambda _: QUICK
    world.work_off(for_ms=MINUTE_MS)
    assert world.owed() == []
    assert world.gate(endpoint).quiet == {}
    world.work_off(for_ms=2 * MINUTE_MS)
    assert not bells(world), "an idle lane keeps no bell"
    world.post()
    world.work_off()
    assert world.owed() == []


def stranded(world: World, endpoint: Endpoint) -> None:
    """Take every bell of a quiet lane that still has rows."""
    world.purge()
    world.clock.advance(ms=TAKE_OVER_MS)
    assert world.owed()
    assert world.gate(endpoint).quiet, "its lane is quiet"


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("rescue", ["reconcile", "ingest"])
@pytest.mark.parametrize("ordering", list(Ordering))
def test_a_quiet_lane_whose_holder_died_and_whose_bell_is_lost_is_rung_within_three_minutes(
    ordering: Ordering, rescue: str, *, after: bool
) -> None:
    """The holder dies at any of its writes, and every queue is emptied."""
    for death in deaths(at_least=10, after=after):
        world = World()
        endpoint = world.endpoint(limits=AMPLE, ordering=ordering)
        world.sender.script = lambda _: OK
        world.deliveries(5)
        world.purge()
        late_bell(world, lane_of(endpoint, endpoint.lanes[0]))
        world.deliver(death.process(world))
        if rescue == "ingest" and not world.gate(endpoint).quiet:
            continue
        world.purge()
        deadline_ms = world.clock.now_ms() + QUIET_MS + MINUTE_MS
        world.clock.advance(ms=TAKE_OVER_MS)
        while world.owed() and world.clock.now_ms() < deadline_ms:
            world.clock.advance(ms=MINUTE_MS)
            if rescue == "reconcile":
                world.sweep(Process(world))
            else:
                world.accept([posted()], Process(world))
            world.work_off()
        check(world)
        assert world.owed() == [], "a quiet lane was left alone"


@pytest.mark.parametrize("ordering", list(Ordering))
def test_a_purge_while_a_lane_is_quiet_is_mended_by_the_next_event_after_a_while(
    world: World, ordering: Ordering
) -> None:
    endpoint = world.endpoint(limits=FED, ordering=ordering)
    owe(world, 200)
    world.sender.script = lambda _: QUICK
    world.pass_time(3_000)
    stranded(world, endpoint)
    asking = producer(world)
    world.accept([posted()], asking)
    assert not bells(world), "until then its own bell is expected"
    world.clock.advance(ms=QUIET_MS)
    world.accept([posted()], asking)
    assert bells(world).total() == 1, "the next event after that rings"
    world.work_off(for_ms=MINUTE_MS)
    assert world.owed() == []


def test_reconcile_leaves_a_lane_alone_whose_own_bell_is_on_its_way(world: World) -> None:
    endpoint = world.endpoint(limits=FED)
    owe(world, 200)
    world.sender.script = lambda _: QUICK
    world.pass_time(3_000)
    assert world.gate(endpoint).quiet
    sweeper = Process(world)
    world.clock.advance(ms=QUIET_MS // 2)
    assert world.sweep(sweeper).rung == 0
    assert "query" not in {step.method for step in sweeper.faults.steps}, "it was not even looked at"


def test_a_purge_while_a_lane_is_quiet_is_mended_by_reconcile_within_three_minutes(world: World) -> None:
    endpoint = world.endpoint(limits=FED)
    owe(world, 200)
    world.sender.script = lambda _: QUICK
    world.pass_time(3_000)
    stranded(world, endpoint)
    for _ in range(3):
        world.clock.advance(ms=MINUTE_MS)
        world.sweep()
    world.work_off(for_ms=MINUTE_MS)
    assert world.owed() == []


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_events_posted_at_any_call_of_the_visit_that_empties_a_quiet_lane_need_no_reconcile(
    *, after: bool
) -> None:
    """Their producer saw the lane quiet a moment before, and rings nobody, at that call nor right after."""
    for number in range(1, 80):
        world = World()
        endpoint = world.endpoint(limits=AMPLE)
        world.sender.script = lambda _: OK
        poster = producer(world)
        world.clock.advance(ms=SEEN_MS)
        world.deliveries(12)
        world.purge()
        late_bell(world, lane_of(endpoint))
        process = Process(world)
        reached = at_call(process, number, partial(world.accept, [posted()], poster), after=after)
        world.deliver(process)
        world.accept([posted()], poster)
        world.work_off(for_ms=70_000)
        assert world.owed() == [], "an event was left to reconcile"
        check(world)
        if not reached():
            assert number > 8, "there are fewer calls than thought"
            return
    raise AssertionError("there is no end of calls")


@pytest.mark.parametrize("late_ms", [0, 500, 900, 950, 1_500])
def test_an_event_whose_producer_saw_the_lane_quiet_up_to_two_seconds_ago_needs_no_reconcile(
    world: World, late_ms: int
) -> None:
    endpoint = world.endpoint(limits=AMPLE)
    poster = producer(world)
    world.clock.advance(ms=SEEN_MS)
    world.sender.script = lambda _: (world.accept([posted()], poster), OK)[1] if not seen(poster) else OK
    world.deliveries(1)
    world.purge()
    late_bell(world, lane_of(endpoint))
    world.deliver(Process(world))
    assert world.owed() == []
    assert world.gate(endpoint).quiet == {}
    meanwhile(poster, lambda: world.clock.advance(ms=late_ms), lambda step: step.method == "together")
    world.accept([posted()], poster)
    world.work_off(for_ms=70_000)
    assert world.owed() == []


def seen(poster: Process) -> bool:
    """Say whether a producer has looked at gates again since it began."""
    return sum(step.method == "get" for step in poster.faults.steps) > 1


def test_an_emptied_quiet_lane_leaves_a_bell_though_an_earlier_one_is_on_its_way(world: World) -> None:
    """That one comes before the producers who saw the lane quiet have written."""
    endpoint = world.endpoint(limits=AMPLE)
    poster = producer(world)
    world.work_off(for_ms=100)
    world.sender.script = in_turn([status(503, headers=(("Retry-After", "20"),))])
    world.sweep()
    world.post()
    world.work_off()
    retry_ms = max(each.ready_ms for each in world.owed())
    assert bells(world)[lane_of(endpoint)] >= 1, "the retry has its bell"
    world.clock.advance_to(retry_ms - 800)
    kept = list(world.delayed)
    world.delayed.clear()
    world.post()
    world.waiting.clear()
    late_bell(world, lane_of(endpoint))
    world.sender.script = lambda _: (world.accept([posted()], poster), OK)[1] if not seen(poster) else OK
    world.deliver(world.usual)
    world.delayed += kept
    assert world.gate(endpoint).quiet == {}

    def meantime() -> None:
        world.clock.advance_to(retry_ms + 100)
        world.work_off()

    meanwhile(poster, meantime, lambda step: step.method == "together")
    world.accept([posted()], poster)
    assert len(world.owed()) == 1
    world.work_off(for_ms=70_000)
    assert world.owed() == [], "an event was left to reconcile"


@pytest.mark.parametrize("burst, answer", [(40, QUICK), (12, status(200, took_ms=900))])
def test_a_lane_that_is_quiet_for_moments_again_and_again_keeps_few_bells(
    world: World, burst: int, answer: Answer
) -> None:
    """Events come in bursts, a second apart; each is a backlog for a moment."""
    world.endpoint(limits=Limits(100, 100, 8))
    world.sender.script = lambda _: answer
    producers = [Process(world) for _ in range(2)]
    for _ in range(30):
        began_ms = world.clock.now_ms()
        for number in range(burst):
            world.accept([posted()], producers[number % 2])
        world.pass_time(max(1, 1_000 - (world.clock.now_ms() - began_ms)))
        assert len(world.delayed) <= 3, "bells pile up"
    world.work_off(for_ms=3 * MINUTE_MS)
    assert world.owed() == []
    assert world.bells_rung <= 1.05 * len(world.sender.sent) + 3


def test_the_names_of_a_bell_are_no_reason_to_leave_a_lane_quiet(world: World) -> None:
    """A bell of ingest that comes late, its row sent by then, when the lane's own bell is lost."""
    endpoint = world.endpoint(limits=AMPLE)
    world.sender.script = lambda _: OK
    world.post()
    (bell,) = [replace(each) for each in world.waiting]
    world.waiting.clear()
    late_bell(world, lane_of(endpoint))
    world.deliver(Process(world))
    world.waiting.append(bell)
    world.work_off(for_ms=70_000)
    assert world.gate(endpoint).quiet == {}
    assert world.owed() == []


def test_lanes_of_a_cap_that_was_higher_are_rung_too_when_an_endpoint_is_enabled(world: World) -> None:
    endpoint = world.endpoint(limits=replace(AMPLE, max_concurrency=40))
    world.sender.script = lambda _: OK
    world.change(endpoint, state=EndpointState.DISABLED)
    deliveries = world.deliveries(40)
    assert len({owed.lane for owed in world.owed()}) > 1
    world.change(endpoint, limits=AMPLE)
    world.purge()
    world.change(endpoint, state=EndpointState.ENABLED)
    world.work_off()
    assert [each for each in deliveries if not world.attempts(each)] == []
