"""Holds: waiting spends nothing, is told with the next attempt, and is one row of history."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Merge
from chalicelib.domain.backoff import RetryProfile
from chalicelib.domain.delivery import Attempt
from chalicelib.domain.endpoint import Endpoint, EndpointState, Limits, Ordering
from chalicelib.domain.gate import SECOND, HoldReason, Spell
from chalicelib.domain.request import Request
from tests.fakes.scripted_sender import Answer, in_turn, status
from tests.unit.application.interruptions import at_call, deaths
from tests.unit.application.invariants import check
from tests.unit.application.process import Process
from tests.unit.application.world import (
    AMPLE,
    BY,
    FAILS,
    HOUR_MS,
    MINUTE_MS,
    OK,
    RULES,
    TENANT,
    World,
    lane_of,
    posted,
)

NARROW = Limits(100_000, 100_000, max_concurrency=1)
FEW = replace(RULES, threshold=3)
SLOW_MS = 9_000
WINDOW_MS = 72 * HOUR_MS
Scene = Callable[[World], tuple[Endpoint, str]]


def asked_to_wait(world: World) -> tuple[Endpoint, str]:
    """Let a 429 hold an endpoint for thirty seconds, and post one that comes in the meantime."""
    endpoint = world.endpoint(limits=AMPLE)
    world.sender.script = in_turn([status(429, headers=(("Retry-After", "30"),)), OK])
    world.post()
    world.work_off()
    return endpoint, waits(world)


def out_of_tokens(world: World) -> tuple[Endpoint, str]:
    """Owe an endpoint of one a second fourteen deliveries; the last waits for its turn."""
    endpoint = world.endpoint(limits=Limits(1, 1, 8))
    world.sender.script = lambda _: OK
    world.deliveries(14)
    last = world.owed()[-1].delivery_id
    world.deliver()
    return endpoint, last


def broken(world: World) -> tuple[Endpoint, str]:
    """Open a breaker, and post one more."""
    endpoint = world.endpoint(limits=AMPLE)
    world.sender.script = lambda _: FAILS
    world.accept([posted()] * world.rules.threshold, world.usual)
    world.work_off()
    world.sender.script = lambda _: OK
    return endpoint, waits(world)


def switched_off(world: World) -> tuple[Endpoint, str]:
    """Disable an endpoint, and post one more."""
    endpoint = world.endpoint(limits=AMPLE)
    world.sender.script = lambda _: OK
    world.change(endpoint, state=EndpointState.DISABLED)
    return endpoint, waits(world)


def full(world: World) -> tuple[Endpoint, str]:
    """Let the one slot be in use for long while another function comes for the second delivery."""
    endpoint = world.endpoint(limits=NARROW)
    held: list[str] = []

    def come(_: Request) -> Answer:
        if not held:
            held.append(waits(world))
        return status(200, took_ms=SLOW_MS)

    world.sender.script = come
    world.post()
    world.deliver()
    return endpoint, held[0]


def recovering(world: World) -> tuple[Endpoint, str]:
    """Let an endpoint of ten a second recover, owing it more than a tenth of that."""
    endpoint = world.endpoint(limits=Limits(10, 2, 8))
    at = keys.gate(endpoint.tenant, endpoint.id)
    world.usual.tables.together([Merge(at, {"ramp_from": world.clock.now_us()})])
    world.sender.script = lambda _: OK
    world.deliveries(12)
    last = world.owed()[-1].delivery_id
    world.deliver(Process(world))
    return endpoint, last


def waits(world: World) -> str:
    """Post one more, and let somebody come for it."""
    (delivery,) = world.post()["delivery_ids"]
    world.work_off(for_ms=1_000)
    for lane in {each.lane for each in world.owed()}:
        world.visit(lane, Process(world))
    return str(delivery)


SCENES: dict[HoldReason, Scene] = {
    HoldReason.RATE_LIMIT: out_of_tokens,
    HoldReason.BREAKER_OPEN: broken,
    HoldReason.DISABLED: switched_off,
    HoldReason.RAMP: recovering,
}
ALL: dict[str, tuple[HoldReason, Scene]] = {
    **{reason.value: (reason, scene) for reason, scene in SCENES.items()},
    "asked to wait": (HoldReason.RATE_LIMIT, asked_to_wait),
}
all_scenes = pytest.mark.parametrize("reason, scene", list(ALL.values()), ids=list(ALL))


def let_go(world: World, endpoint: Endpoint) -> None:
    """Let a hold end and all be delivered."""
    if world.now(endpoint).state is EndpointState.DISABLED:
        world.clock.advance(ms=MINUTE_MS)
        world.change(endpoint, state=EndpointState.ENABLED)
    world.work_off(for_ms=20 * MINUTE_MS)


def told_of(world: World, delivery: str) -> Attempt:
    """Give the only attempt of a delivery."""
    (attempt,) = world.attempts(delivery)
    return attempt


def shown(world: World, delivery: str) -> Spell | None:
    """Give the hold that a delivery's view shows."""
    return world.usual.questions.delivery(TENANT, delivery).hold


@all_scenes
def test_a_held_delivery_spends_no_attempt_and_its_next_says_how_long_and_why(
    world: World, reason: HoldReason, scene: Scene
) -> None:
    endpoint, delivery = scene(world)
    assert world.attempts(delivery) == []
    from_ms = next(each.ready_ms for each in world.owed() if each.delivery_id == delivery)
    let_go(world, endpoint)
    attempt = told_of(world, delivery)
    assert attempt.number == 1
    assert attempt.outcome.value == "success"
    assert attempt.held_for is reason
    waited_ms = attempt.at_ms - from_ms
    assert 0 < attempt.held_ms <= waited_ms
    assert attempt.held_ms >= waited_ms - 2_500, "all of the wait but what was waited in place"
    check(world)


@all_scenes
def test_a_delivery_shows_the_hold_of_now_and_stops_showing_it(
    world: World, reason: HoldReason, scene: Scene
) -> None:
    endpoint, delivery = scene(world)
    hold = shown(world, delivery)
    assert hold is not None
    assert hold.reason is reason
    assert hold.since <= world.clock.now_us()
    let_go(world, endpoint)
    assert shown(world, delivery) is None
    (after,) = world.post()["delivery_ids"]
    assert shown(world, after) is None


@all_scenes
def test_a_hold_is_one_row_of_history(world: World, reason: HoldReason, scene: Scene) -> None:
    endpoint, delivery = scene(world)
    let_go(world, endpoint)
    world.post()
    world.work_off(for_ms=MINUTE_MS)
    (row,) = [each for each in world.holds() if each.reason is reason]
    assert row.since < row.until
    assert row.until // 1000 <= told_of(world, delivery).at_ms + 3_000


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@all_scenes
def test_a_death_at_any_write_of_those_who_come_for_a_held_lane_leaves_one_row(
    reason: HoldReason, scene: Scene, *, after: bool
) -> None:
    for death in deaths(at_least=1, after=after):
        world = World(FEW)
        endpoint, delivery = scene(world)
        before = world.clock.now_ms()
        if reason is HoldReason.DISABLED:
            world.clock.advance(ms=MINUTE_MS)
            world.change(endpoint, state=EndpointState.ENABLED)
        mortal = death.process(world)
        while not death.happened and world.owed():
            world.ring_due()
            if world.deliver(mortal) is None and not death.happened:
                world.clock.advance_to(world._next_ms() or world.clock.now_ms() + MINUTE_MS)  # noqa: SLF001 - the harness is the test's
        let_go(world, endpoint)
        world.post()
        world.work_off(for_ms=10 * MINUTE_MS)
        check(world)
        assert world.owed() == []
        rows = [each for each in world.holds() if each.reason is reason]
        assert [each.since for each in rows if each.since <= before * 1000 + 999_999]
        assert len({each.since for each in rows}) == len(rows)
        spells = sorted(world.holds(), key=lambda each: each.since)
        others = [each for each in spells if each.reason is not HoldReason.DISABLED]
        for one, next_one in itertools.pairwise(others):
            assert one.until <= next_one.since, "two rows tell of one time"
        assert world.outcomes(delivery)[-1] == "success"


def test_a_wait_for_a_slot_is_a_hold_too(world: World) -> None:
    endpoint, delivery = full(world)
    world.work_off(for_ms=MINUTE_MS)
    attempt = told_of(world, delivery)
    assert attempt.held_for is HoldReason.ENDPOINT_CAP
    assert attempt.held_ms >= SLOW_MS - 3_000
    assert [each.reason for each in world.holds()] == [HoldReason.ENDPOINT_CAP]
    assert shown(world, delivery) is None
    assert world.gate(endpoint).slots == 1


@pytest.mark.parametrize("how", ["disabled", "asked to wait", "breaker open"])
def test_the_72_hours_leave_held_time_out(world: World, how: str) -> None:
    endpoint = world.endpoint(limits=AMPLE)
    world.sender.script = lambda _: FAILS
    (delivery,) = world.deliveries(1)
    world.work_off()
    at = keys.gate(endpoint.tenant, endpoint.id)
    match how:
        case "disabled":
            world.change(endpoint, state=EndpointState.DISABLED)
        case "asked to wait":
            world.hold(endpoint, WINDOW_MS)
        case _:
            until = world.clock.now_us() + WINDOW_MS * 1000
            breaker = {"st": "open", "open_until": until, "epoch": 1}
            world.usual.tables.together([Merge(at, breaker)])
    world.clock.advance(ms=MINUTE_MS)
    world.visit(lane_of(endpoint), Process(world))
    world.clock.advance(ms=WINDOW_MS + HOUR_MS)
    if how == "disabled":
        world.change(endpoint, state=EndpointState.ENABLED)
    world.visit(lane_of(endpoint), Process(world))
    assert world.outcomes(delivery) == ["retryable", "retryable"], "held time was counted"
    check(world)


def test_the_72_hours_count_what_was_not_held(world: World) -> None:
    endpoint = world.endpoint(limits=AMPLE)
    world.sender.script = lambda _: FAILS
    (delivery,) = world.deliveries(1)
    world.work_off()
    world.purge()
    world.clock.advance(ms=WINDOW_MS + HOUR_MS)
    world.visit(lane_of(endpoint))
    assert world.outcomes(delivery) == ["retryable", "retryable", "expired"]


def test_what_was_held_before_the_first_attempt_lengthens_no_window(world: World) -> None:
    endpoint = world.endpoint(limits=AMPLE)
    world.change(endpoint, state=EndpointState.DISABLED)
    (delivery,) = world.deliveries(1)
    world.clock.advance(ms=WINDOW_MS)
    world.change(endpoint, state=EndpointState.ENABLED)
    world.sender.script = lambda _: FAILS
    world.work_off()
    world.purge()
    world.clock.advance(ms=WINDOW_MS + HOUR_MS)
    world.visit(lane_of(endpoint))
    assert world.outcomes(delivery) == ["retryable", "retryable", "expired"]


@pytest.mark.parametrize("when", ["deleted", "gone"])
def test_a_hold_that_is_over_when_nothing_is_left_to_send_is_a_row_all_the_same(
    world: World, when: str
) -> None:
    endpoint, _ = broken(world)
    world.clock.advance(ms=MINUTE_MS)
    process = Process(world)
    world.change(endpoint, url="https://receiver.example/moved")
    if when == "deleted":
        world.usual.manage.delete(world.now(endpoint), BY)
    else:
        world.change(endpoint, event_types=("other",))
    world.clock.advance(ms=MINUTE_MS)
    for _ in range(4):
        world.visit(lane_of(endpoint), process)
        world.clock.advance(ms=2 * HOUR_MS)
    assert world.owed() == []
    assert [each.reason for each in world.holds()] == [HoldReason.BREAKER_OPEN]


def test_a_hold_that_another_lane_ended_is_noted_by_whoever_settles_next() -> None:
    """The one who ended it dies before writing it down."""
    for number in range(1, 40):
        world = World()
        endpoint = world.endpoint(limits=Limits(100_000, 100_000, 20))
        world.sender.script = lambda _: OK
        world.accept([posted()] * 30, world.usual)
        world.purge()
        until_ms = world.hold(endpoint, MINUTE_MS)
        world.visit(lane_of(endpoint), Process(world))
        assert world.gate(endpoint).held_for is HoldReason.RATE_LIMIT
        world.purge()
        world.clock.advance_to(until_ms)
        dying, other = Process(world), Process(world)
        dying.faults.kill_at(2, after=False)
        reached = at_call(other, number, partial(world.visit, lane_of(endpoint), dying))
        world.visit(lane_of(endpoint, "1"), other)
        world.visit(lane_of(endpoint, "1"), other)
        world.clock.advance(ms=MINUTE_MS)
        for _ in range(3):
            for lane in ("0", "1"):
                world.visit(lane_of(endpoint, lane), Process(world))
        assert world.owed() == []
        reasons = [each.reason for each in world.holds()]
        assert reasons.count(HoldReason.RATE_LIMIT) == 1
        if not reached():
            return


def test_what_stands_behind_a_first_that_failed_is_not_held_by_its_endpoints_pace(world: World) -> None:
    endpoint = world.endpoint(
        ordering=Ordering.ENDPOINT, limits=Limits(5, 5, 8), retry_profile=RetryProfile.PATIENT
    )
    deliveries = world.deliveries(12)
    world.sender.script = in_turn([status(500), *[OK] * 20])
    world.deliver()
    assert shown(world, deliveries[-1]) is None
    (hold,) = world.holds()
    assert hold.reason is HoldReason.RATE_LIMIT
    world.work_off(for_ms=HOUR_MS)
    last = told_of(world, deliveries[-1])
    waited_ms = last.at_ms - world.history(deliveries[-1])[0].at_ms
    assert last.held_ms < waited_ms / 2
    assert world.gate(endpoint).held_sum < 10 * SECOND
