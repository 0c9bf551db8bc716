"""Pace as the receiver sees it: what was really sent keeps to the rate, and a backlog is fed at it."""

from collections.abc import Sequence

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Merge
from chalicelib.domain.delivery import Attempt
from chalicelib.domain.endpoint import Endpoint, Limits, Ordering
from chalicelib.domain.request import Request
from tests.fakes.scripted_sender import HANGS, Answer, in_turn, status
from tests.unit.application.invariants import check, check_pace
from tests.unit.application.process import Process
from tests.unit.application.world import BY, MINUTE_MS, RULES, World, posted

QUICK = status(200, took_ms=20)
SLOWER = status(200, took_ms=700)
STEP_MS = 1
FED = [(rate, Ordering.NONE) for rate in (10, 25, 50, 100)] + [(rate, Ordering.ENDPOINT) for rate in (10, 25)]


def began(world: World, endpoint: Endpoint) -> list[int]:
    """Give the moments at which what was sent to an endpoint began, as history and the receiver have it."""
    sent = sorted(each.at_ms for each in world.sender.sent if each.request.url == endpoint.url)
    told = sorted(row.at_ms for row in world.all_history() if isinstance(row, Attempt))
    assert sent == told
    return sent


def check_window(moments: Sequence[int], limits: Limits, extra: int = 0) -> None:
    """Hold what began to the burst and the rate in every window; moments are whole milliseconds."""
    for first, begin in enumerate(moments):
        for count, end in enumerate(moments[first:], 1):
            most = limits.burst + limits.rate_per_second * (end - begin + STEP_MS) / 1000 + extra
            assert count <= most, f"{count} within {end - begin} ms"


def owe(world: World, count: int) -> None:
    for _ in range(0, count, 50):
        world.accept([posted()] * 50, world.usual)


@pytest.mark.parametrize("rate, ordering", FED)
def test_a_backlog_is_fed_at_its_rate_without_a_schedule(world: World, rate: int, ordering: Ordering) -> None:
    """With the default cap and burst and 20 ms receivers; reconcile never runs. A line sends one by one."""
    seconds = 12
    limits = Limits(rate_per_second=rate)
    endpoint = world.endpoint(limits=limits, ordering=ordering)
    world.sender.script = lambda _: QUICK
    owe(world, rate * (seconds + 15) + limits.burst)
    since_ms = world.clock.now_ms() + 1_000
    world.pass_time((seconds + 2) * 1_000)
    moments = began(world, endpoint)
    fed = len([each for each in moments if since_ms <= each < since_ms + seconds * 1_000])
    assert fed >= 0.95 * rate * seconds
    assert world.owed(), "the backlog stands"
    check_window(moments[:400], limits)


class Taking:
    """Several functions' processes that take the bells in turn, the others in the middle of its sends."""

    def __init__(self, world: World, count: int, answers: Sequence[Answer]) -> None:
        self.world = world
        self.processes = [Process(world) for _ in range(count)]
        self.answers = in_turn(answers)
        self.deep = 0

    def script(self, _: Request) -> Answer:
        """Answer; every other request finds another function at work beside its own."""
        self.deep += 1
        if self.deep < len(self.processes):
            self.world.deliver(self.processes[self.deep])
        self.deep -= 1
        return self.answers(_)

    def go(self, for_ms: int) -> None:
        """Let time pass with all of them at work."""
        world, until_ms = self.world, self.world.clock.now_ms() + for_ms
        while world.clock.now_ms() < until_ms:
            world.ring_due()
            if world.deliver(self.processes[0]) is None:
                world.clock.advance_to(min(world._next_ms() or until_ms, until_ms))  # noqa: SLF001 - the harness is the test's


@pytest.mark.parametrize(
    "limits", [Limits(25, 50, 30), Limits(10, 1, 25), Limits(50, 7, 40), Limits(3, 5, 12)]
)
def test_the_pace_holds_over_several_lanes_and_processes(world: World, limits: Limits) -> None:
    """In the store exactly; what a process that others kept waiting sends late is within the cap."""
    endpoint = world.endpoint(limits=limits)
    assert len(endpoint.lanes) > 1
    owe(world, 300)
    taking = Taking(world, 3, [QUICK])
    world.sender.script = taking.script
    taking.go(20_000)
    check_pace(world, endpoint)
    moments = began(world, endpoint)
    assert len(moments) >= min(300, limits.rate_per_second * 12)
    check_window(moments, limits, extra=limits.max_concurrency)
    check(world)


@pytest.mark.parametrize("answers", [[SLOWER], [QUICK, QUICK, HANGS, QUICK], [status(500), QUICK]])
def test_the_pace_holds_whatever_is_answered(world: World, answers: Sequence[Answer]) -> None:
    limits = Limits(20, 10, 8)
    endpoint = world.endpoint(limits=limits)
    owe(world, 200)
    turns = [each for _ in range(40) for each in answers]
    world.sender.script = in_turn(turns)
    world.pass_time(MINUTE_MS)
    check_pace(world, endpoint)
    check_window(began(world, endpoint), limits)
    check(world)


@pytest.mark.parametrize("cap", [1, 8])
def test_an_ordered_line_that_a_slow_head_kept_makes_up_for_no_more_than_its_cap(
    world: World, cap: int
) -> None:
    """What was granted before the head hung would go at once with what is granted after it."""
    limits = Limits(10, 10, cap)
    endpoint = world.endpoint(limits=limits, ordering=Ordering.ENDPOINT)
    owe(world, 100)
    turns = [each for _ in range(5) for each in [status(200, took_ms=9_000), *[status(200, took_ms=1)] * 25]]
    world.sender.script = in_turn(turns)
    world.pass_time(MINUTE_MS)
    moments = began(world, endpoint)
    assert len(moments) > 60
    check_window(moments, limits, extra=cap)


def test_the_pace_of_a_recovering_endpoint_is_a_tenth_and_grows(world: World) -> None:
    limits = Limits(100, 10, 20)
    endpoint = world.endpoint(limits=limits)
    at = keys.gate(endpoint.tenant, endpoint.id)
    world.usual.tables.together([Merge(at, {"ramp_from": world.clock.now_us()})])
    world.sender.script = lambda _: QUICK
    owe(world, 1_000)
    since_ms = world.clock.now_ms()
    world.pass_time(30_000)
    moments = began(world, endpoint)
    ramp_s = RULES.ramp / 1_000_000
    for second in range(1, 29):
        most = limits.rate_per_second * (0.1 + 0.9 * (second + 1) / ramp_s)
        within = [each for each in moments if second * 1_000 <= each - since_ms < (second + 1) * 1_000]
        assert len(within) <= most + limits.burst
    slow = len([each for each in moments if each - since_ms < 10_000])
    later = len([each for each in moments if 20_000 <= each - since_ms < 30_000])
    assert later > slow - limits.burst


@pytest.mark.parametrize("ordering", list(Ordering))
def test_no_send_begins_after_its_lease_lets_it(world: World, ordering: Ordering) -> None:
    """Whatever a function was kept by: hanging requests, few places to send from, other lanes."""
    world.sender.max_in_flight = 3
    endpoints = [
        world.endpoint(limits=Limits(5, 20, 8), ordering=ordering),
        world.endpoint(limits=Limits(100, 100, 20)),
    ]
    by_url = {each.url: each for each in endpoints}
    checked: list[int] = []
    turns = in_turn([each for _ in range(60) for each in [HANGS, QUICK, SLOWER]] + [QUICK])

    def answer(request: Request) -> Answer:
        endpoint = by_url[request.url]
        sent = world.sender.sent[-1]
        leases = world.gate(endpoint).leases.values()
        mine = next(each for each in leases if sent.key in each.keys)
        left_ms = mine.until // 1000 - sent.at_ms
        assert left_ms >= world.sender.timeout_ms + 2_000, "it may outlast its lease"
        checked.append(left_ms)
        return turns(request)

    world.sender.script = answer
    owe(world, 50)
    world.pass_time(10 * MINUTE_MS)
    assert len(checked) > 100
    assert min(checked) < RULES.lease // 1000 - 15_000, "some were kept waiting for long"
    check(world)


def test_a_send_that_waits_for_its_moment_leaves_with_a_fresh_signature(world: World) -> None:
    endpoint = world.endpoint(limits=Limits(1, 1, 8))
    world.sender.script = lambda _: QUICK
    owe(world, 50)
    world.pass_time(30_000)
    assert len(began(world, endpoint)) >= 28
    for each in world.sender.sent:
        stamped_s = int(dict(each.request.headers)["Relay-Timestamp"])
        assert 0 <= each.at_ms // 1000 - stamped_s <= 3, "stamped when granted, two seconds ahead at most"


def test_what_was_let_in_ahead_of_its_moment_is_not_sent_once_its_endpoint_is_gone(world: World) -> None:
    endpoint = world.endpoint(limits=Limits(5, 1, 8))
    world.sender.script = lambda _: QUICK
    owe(world, 8)
    third_ms = world.clock.now_ms() + 500

    def delete(_: Request) -> Answer:
        if world.clock.now_ms() >= third_ms - 200:
            world.usual.manage.delete(world.now(endpoint), BY)
            world.sender.script = lambda _: QUICK
        return QUICK

    world.sender.script = delete
    world.deliver()
    gone = [each for each in world.sender.sent if each.at_ms > third_ms]
    assert not gone
    assert 1 <= len(world.sender.sent) <= 4
