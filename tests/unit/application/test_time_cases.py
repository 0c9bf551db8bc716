"""The field cases of time, over the whole delivery plane: zones that shift, clocks that are off."""

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from chalicelib.adapters.clock import SECOND_NS, SystemClock
from chalicelib.domain.request import Request
from tests.fakes.faults import Step
from tests.fakes.scripted_sender import DIES, HANGS, Answer, Sent, in_turn, status
from tests.unit.application.interruptions import meanwhile
from tests.unit.application.invariants import check
from tests.unit.application.process import Process
from tests.unit.application.world import FAILS, MINUTE_MS, OK, World, lane_of

MINUTES = {5: "300", 30: "1800", 60: "3600"}
STAMP_MS = 300_000


@pytest.fixture
def elsewhere(request: pytest.FixtureRequest) -> Iterator[None]:
    """Put this process into another time zone for a while."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()
    assert os.environ.get("TZ") != request.param


@pytest.mark.parametrize(
    "elsewhere, moment",
    [("America/New_York", "2026-11-01T05:55:00+00:00"), ("Europe/Berlin", "2026-03-29T00:55:00+00:00")],
    indirect=["elsewhere"],
)
def test_f133_an_hour_that_is_there_twice_or_not_at_all_sends_once_and_on_time(
    elsewhere: None, world: World, moment: str
) -> None:
    world.clock.advance_to(int(datetime.fromisoformat(moment).timestamp()) * 1000)
    world.endpoint()
    waits = [status(503, headers=(("Retry-After", each),)) for each in MINUTES.values()]
    world.sender.script = in_turn([*waits, OK])
    (delivery,) = world.deliveries(1)
    for _ in range(150):
        world.work_off(for_ms=MINUTE_MS)
        world.sweep()
    sent = [each.at_ms for each in world.sends(delivery)]
    attempts = world.attempts(delivery)
    assert len(sent) == 1 + len(MINUTES)
    for minutes, attempt, began in zip(MINUTES, attempts, sent[1:], strict=False):
        due_ms = attempt.at_ms + attempt.total_ms + minutes * MINUTE_MS
        assert abs(attempt.next_ms - due_ms) < 1_000
        assert 0 <= began - attempt.next_ms < 1_000
    check(world)


def off_by(world: World, seconds: int) -> Process:
    """Start a process on a machine whose clock is off; it hears the store's time with every answer."""
    clock = SystemClock(
        lambda: (world.clock.now_us() + seconds * 1_000_000) * 1_000, lambda: world.clock.now_us() * 1_000
    )
    process = Process(world, clock=clock)

    def hear(_: Step | None = None) -> None:
        now = datetime.fromtimestamp(world.clock.now_us() * 1_000 // SECOND_NS, UTC)
        clock.hear(format_datetime(now, usegmt=True))

    hear()
    process.faults.after = hear
    return process


def stamp_ms(sent: Sent) -> int:
    return int(dict(sent.request.headers)["Relay-Timestamp"]) * 1_000


@pytest.mark.parametrize("skew_s", [-120, 120])
def test_f134_a_worker_and_a_sweeper_whose_clocks_are_off_send_nothing_early_or_twice(skew_s: int) -> None:
    world = World()
    endpoint = world.endpoint()
    wrong, sweeper = off_by(world, skew_s), off_by(world, -skew_s)
    world.sender.script = in_turn([FAILS, HANGS, OK, FAILS, DIES, OK, OK, FAILS, OK])
    deliveries = world.deliveries(12)
    for turn in range(120):
        worker = (wrong, world.usual, Process(world))[turn % 3]
        while world.deliver(worker) is not None:
            pass
        world.visit(lane_of(endpoint), wrong)
        world.sweep(sweeper)
        world.clock.advance(ms=20_000)
        world.ring_due()
    assert [world.outcomes(each)[-1] for each in deliveries] == ["success"] * 12
    for delivery in deliveries:
        begun = {each.number: each for each in world.attempts(delivery)}
        for number, sent in enumerate(world.sends(delivery), 1):
            assert abs(stamp_ms(sent) - sent.at_ms) < STAMP_MS
            before = begun.get(number - 1)
            assert before is None or sent.at_ms >= before.next_ms - 1_000
    assert all(each.total_ms >= 0 <= each.queue_ms for one in deliveries for each in world.attempts(one))
    check(world)


@pytest.mark.parametrize("skew_s", [-120, 120])
def test_f134_what_is_in_flight_is_not_taken_over_by_one_whose_clock_is_off(skew_s: int) -> None:
    world = World()
    endpoint = world.endpoint()
    (delivery,) = world.deliveries(1)
    other = off_by(world, skew_s)
    looked: list[object] = []

    def look(_: Request) -> Answer:
        if not looked:
            looked.append(world.visit(lane_of(endpoint), other))
        return OK

    world.sender.script = look
    world.work_off(for_ms=MINUTE_MS)
    assert looked
    assert (world.outcomes(delivery), len(world.sends(delivery))) == (["success"], 1)
    check(world)


class _SetBack:
    """A clock that is set back once; it does not take being read for ever while it stands still."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._reads = 0
        self.back_us = 0

    def now_us(self) -> int:
        self._reads += 1
        assert self._reads < 10_000, "somebody waits for the time by asking for it"
        return self._world.clock.now_us() - self.back_us

    def now_ms(self) -> int:
        return self.now_us() // 1_000


@pytest.mark.parametrize("seconds", [1, 3])
def test_a_clock_set_back_between_admission_and_sending_is_waited_for_not_asked_again_and_again(
    world: World, seconds: int
) -> None:
    world.endpoint()
    deliveries = world.deliveries(3)
    clock = _SetBack(world)
    process = Process(world, clock=clock)

    def set_back() -> None:
        clock.back_us = seconds * SECOND_NS // 1_000

    meanwhile(process, set_back, at=lambda step: step.method == "get" and bool(world.admitted))
    while world.deliver(process) is not None:
        pass
    assert clock.back_us
    assert [world.outcomes(each) for each in deliveries] == [["success"]] * 3
    check(world)
