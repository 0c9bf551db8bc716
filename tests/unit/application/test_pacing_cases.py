"""Field cases of limiters, backoff and Retry-After, over the whole delivery plane."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from chalicelib.domain.backoff import SCHEDULES, RetryProfile
from chalicelib.domain.endpoint import Limits, Ordering
from chalicelib.domain.request import Request
from tests.fakes.scripted_sender import DIES, Answer, in_turn, status
from tests.unit.application.interruptions import deaths
from tests.unit.application.invariants import check, check_first_receipts, check_pace
from tests.unit.application.process import Process
from tests.unit.application.world import (
    AMPLE,
    FAILS,
    HOUR_MS,
    MINUTE_MS,
    OK,
    TAKE_OVER_MS,
    World,
    lane_of,
    posted,
)

ASKED_MS = 5_000
DEFERS = status(429, headers=(("Retry-After", "5"),))
USUAL_MS = 2_500
"""The first wait of the default profile at the world's jitter of a half."""


@pytest.mark.parametrize("ordering", list(Ordering))
def test_f126_a_hundred_that_were_asked_to_wait_come_back_spread_out(
    world: World, ordering: Ordering
) -> None:
    """All that leave within a second get a 429 with Retry-After 5."""
    endpoint = world.endpoint(limits=Limits(10, 20, 8), ordering=ordering)
    deferred: list[int] = []
    since_ms = world.clock.now_ms()

    def answer(_: Request) -> Answer:
        at_ms = world.sender.sent[-1].at_ms
        assert not deferred or at_ms < since_ms + 1_000 or at_ms >= max(deferred) + ASKED_MS, "too early"
        if at_ms < since_ms + 1_000:
            deferred.append(at_ms)
            return DEFERS
        return OK

    world.sender.script = answer
    world.accept([posted()] * 100, world.usual)
    world.work_off(for_ms=MINUTE_MS)
    assert deferred
    assert world.owed() == []
    check_pace(world, endpoint)
    back = [each.at_ms for each in world.sender.sent if each.at_ms >= max(deferred) + ASKED_MS]
    assert len(back) == 100
    busiest = max(sum(begin <= each < begin + 1_000 for each in back) for begin in back)
    assert busiest <= 20 + 10, "a burst and a second's worth at most"
    if endpoint.ordered:
        check_first_receipts(world, endpoint)
    check(world)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_f076_an_endpoint_that_always_answers_403_gets_one_request_and_one_more_for_a_crash(
    *, after: bool
) -> None:
    """Permanent answers are not tried again here; the limit of attempts is the next test's."""
    for death in deaths(at_least=1, after=after):
        world = World()
        world.endpoint(limits=AMPLE)
        world.sender.script = lambda _: status(403)
        (delivery,) = world.deliveries(1)
        world.deliver(death.process(world))
        world.work_off(for_ms=HOUR_MS)
        assert world.outcomes(delivery)[-1] == "permanent_failure"
        assert 1 <= len(world.sends(delivery)) <= 2
        check(world)


@pytest.mark.parametrize("crashes_at", [None, 1, 3, 6])
def test_f076_attempts_end_at_the_limit_and_a_crash_costs_one_request_at_most(
    world: World, crashes_at: int | None
) -> None:
    world.endpoint(limits=AMPLE, retry_profile=RetryProfile.QUICK)
    limit = SCHEDULES[RetryProfile.QUICK].attempts
    turns = [DIES if number == crashes_at else FAILS for number in range(1, limit + 3)]
    world.sender.script = in_turn(turns)
    (delivery,) = world.deliveries(1)
    world.work_off(for_ms=2 * HOUR_MS)
    crashed = crashes_at is not None
    assert len(world.sends(delivery)) == limit + crashed
    assert world.outcomes(delivery)[-1] == "attempts_exhausted"
    assert world.outcomes(delivery).count("unknown") == crashed
    check(world)


@pytest.mark.parametrize("ordering", list(Ordering))
def test_f077_a_due_retry_whose_bell_is_lost_is_swept_and_sent(world: World, ordering: Ordering) -> None:
    world.endpoint(limits=AMPLE, ordering=ordering)
    world.sender.script = in_turn([FAILS, OK])
    (delivery,) = world.deliveries(1)
    world.work_off()
    (retry,) = world.owed()
    world.purge()
    world.clock.advance_to(retry.ready_ms + MINUTE_MS)
    assert world.sweep().rung == 1
    world.work_off()
    assert world.outcomes(delivery) == ["retryable", "success"]


@pytest.mark.parametrize("value", ["1m0s", "-1", "1.5", "+5", "1_0", "\u00b2", "\u0663", "", "soon"])
@pytest.mark.parametrize("code", [429, 503])
def test_f072_what_is_no_retry_after_leaves_the_usual_wait_and_holds_nobody(
    world: World, code: int, value: str
) -> None:
    endpoint = world.endpoint(limits=AMPLE)
    world.sender.script = in_turn([status(code, headers=(("Retry-After", value),)), OK])
    world.post()
    world.work_off()
    (owed,) = world.owed()
    assert owed.ready_ms == world.sender.sent[0].at_ms + 5 + USUAL_MS
    assert world.gate(endpoint).hold_until == 0
    world.work_off(for_ms=MINUTE_MS)
    assert world.owed() == []


def test_f072_a_date_is_obeyed_to_its_second_and_a_past_one_is_no_wait(world: World) -> None:
    now = datetime.fromtimestamp(world.clock.now_ms() / 1000, UTC)
    for ahead, least_ms in ((120, 119_000), (-120, 0)):
        world.endpoint(f"date.{'past' if ahead < 0 else 'ahead'}", limits=AMPLE)
        header = ("Retry-After", format_datetime(now + timedelta(seconds=ahead), usegmt=True))
        world.sender.script = in_turn([status(503, headers=(header,)), OK])
        world.post(f"date.{'past' if ahead < 0 else 'ahead'}")
        world.work_off()
        (owed,) = world.owed()
        asked_ms = owed.ready_ms - world.sender.sent[-1].at_ms
        assert asked_ms >= max(least_ms, USUAL_MS)
        assert asked_ms <= max(120_000, USUAL_MS) + 1_000
        world.work_off(for_ms=5 * MINUTE_MS)
        assert world.owed() == []


def test_f144_a_worker_killed_between_its_claim_and_its_send_is_followed(world: World) -> None:
    endpoint = world.endpoint(limits=AMPLE)
    (delivery,) = world.deliveries(1)
    dying = Process(world)
    dying.faults.kill_at(1, after=True)
    world.sender.script = lambda _: OK
    world.visit(lane_of(endpoint), dying)
    assert world.sender.sent == []
    world.clock.advance(ms=TAKE_OVER_MS)
    world.work_off()
    assert world.outcomes(delivery) == ["unknown", "success"], "the attempt's number has moved on"
