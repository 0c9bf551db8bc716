"""Ordered lanes at work: order of first receipt holds whatever endpoints answer and owners change."""

from functools import partial

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Merge
from chalicelib.application.ports import Finished
from chalicelib.domain.delivery import Attempt, Ended
from chalicelib.domain.endpoint import Endpoint, EndpointState, Limits
from chalicelib.domain.gate import Queue
from chalicelib.domain.outcome import Reply
from chalicelib.domain.request import Request
from tests.fakes.fixed_clock import FixedClock
from tests.fakes.scripted_sender import (
    HANGS,
    Answer,
    ScriptedOutbox,
    ScriptedSender,
    in_turn,
)
from tests.unit.application.interruptions import at_call, meanwhile, tells_of_attempts
from tests.unit.application.invariants import check, check_first_receipts
from tests.unit.application.lines import (
    ASKS_FOR_TIME,
    REFUSES,
    answering,
    firsts,
    go_on,
    lane,
    ordered,
)
from tests.unit.application.process import Process
from tests.unit.application.world import (
    BY,
    FAILS,
    HOUR_MS,
    MINUTE_MS,
    OK,
    World,
    number_of,
)


def test_f132_a_failing_head_holds_back_all_that_is_behind_it(world: World) -> None:
    """E1 fails once, E2 would succeed at once."""
    endpoint = ordered(world)
    first, second = world.deliveries(2)
    answering(world, endpoint, in_turn([FAILS, OK]))
    world.work_off(for_ms=MINUTE_MS)
    assert [each.delivery_id for each in world.sender.sent] == [first, first, second]
    assert world.outcomes(first) == ["retryable", "success"]


def test_each_is_settled_before_the_next_leaves(world: World) -> None:
    endpoint = ordered(world)
    deliveries = world.deliveries(25)
    seen: list[int] = []

    def arrived(_: Request) -> Answer:
        told = [each for each in world.all_history() if isinstance(each, Attempt)]
        seen.append(len(told))
        return OK

    answering(world, endpoint, arrived)
    world.work_off()
    assert firsts(world) == deliveries
    assert seen == list(range(25)), "each attempt was in history before the next request left"


@pytest.mark.parametrize("answer", [FAILS, HANGS, ASKS_FOR_TIME[429], ASKS_FOR_TIME[503]])
@pytest.mark.parametrize("place", [0, 1, 4])
def test_whatever_fails_in_the_line_is_tried_again_before_the_next(
    world: World, answer: Answer, place: int
) -> None:
    endpoint = ordered(world)
    deliveries = world.deliveries(6)
    answering(world, endpoint, in_turn([OK] * place + [answer, answer, OK]))
    world.work_off(for_ms=5 * MINUTE_MS)
    told = [each.delivery_id for each in world.sender.sent]
    expected = [each for at, each in enumerate(deliveries) for _ in range(3 if at == place else 1)]
    assert told == expected
    assert [number_of(each) for each in world.sends(deliveries[place])] == [1, 2, 3]


@pytest.mark.parametrize("seconds", [30])
@pytest.mark.parametrize("code", [429, 503])
def test_a_line_waits_as_long_as_its_head_was_asked_to(world: World, code: int, seconds: int) -> None:
    endpoint = ordered(world)
    world.deliveries(3)
    answering(world, endpoint, in_turn([ASKS_FOR_TIME[code], OK]))
    world.work_off(for_ms=2 * MINUTE_MS)
    asked, *later = (each.at_ms for each in world.sender.sent)
    assert len(later) == 3
    assert min(later) >= asked + seconds * 1000


def test_when_the_head_is_dead_the_next_goes(world: World) -> None:
    endpoint = ordered(world)
    dead, second, third = world.deliveries(3)
    answering(world, endpoint, in_turn([REFUSES, OK]))
    world.work_off()
    assert firsts(world) == [dead, second, third]
    assert world.outcomes(dead) == ["permanent", "permanent_failure"]
    assert world.owed() == []


def test_a_head_that_is_given_up_after_its_last_attempt_lets_the_next_go(world: World) -> None:
    endpoint = ordered(world)
    head, behind = world.deliveries(2)
    tag = {head: FAILS, behind: OK}
    answering(world, endpoint, lambda request: tag[dict(request.headers)["Relay-Delivery-Id"]])
    for _ in range(400):
        world.work_off(for_ms=15 * MINUTE_MS)
        world.sweep()
        if not world.owed():
            break
    assert world.outcomes(head)[-1] == "attempts_exhausted"
    assert len(world.sends(head)) == 12
    assert world.outcomes(behind) == ["success"]
    check_first_receipts(world, endpoint)
    last = max(each.at_ms for each in world.sends(head))
    assert world.sends(behind)[0].at_ms >= last


def test_an_endpoint_that_is_disabled_and_enabled_goes_on_where_it_was(world: World) -> None:
    endpoint = ordered(world)
    deliveries = world.deliveries(3)
    answering(world, endpoint, in_turn([OK, FAILS, OK]))
    world.deliver()
    world.change(endpoint, state=EndpointState.DISABLED)
    deliveries += world.deliveries(3)
    world.work_off(for_ms=HOUR_MS)
    assert firsts(world) == deliveries[:2]
    world.change(endpoint, state=EndpointState.ENABLED)
    go_on(world, endpoint)
    assert firsts(world) == deliveries


@pytest.mark.parametrize("at", range(1, 14))
def test_an_owner_who_disables_in_the_middle_of_a_visit_stops_the_line_there(at: int) -> None:
    world = World()
    endpoint = ordered(world)
    deliveries = world.deliveries(4)
    answering(world, endpoint, lambda _: OK)
    process = Process(world)
    at_call(process, at, partial(world.change, endpoint, state=EndpointState.DISABLED))
    world.deliver(process)
    assert firsts(world) == deliveries[: len(firsts(world))]
    if world.now(endpoint).state is EndpointState.DISABLED:
        world.change(endpoint, state=EndpointState.ENABLED)
    go_on(world, endpoint)
    assert firsts(world) == deliveries


def test_a_deleted_endpoint_s_line_ends_and_nothing_more_leaves(world: World) -> None:
    endpoint = ordered(world)
    other = ordered(world)
    world.deliveries(3)
    world.sender.script = lambda _: OK
    now = world.now(endpoint)
    world.usual.manage.delete(now, BY)
    world.work_off(for_ms=MINUTE_MS)
    assert {each.request.url for each in world.sender.sent} == {other.url}
    assert len(world.sender.sent) == 3
    ended = [each for each in world.all_history() if isinstance(each, Ended)]
    assert [each.reason.value for each in ended] == ["endpoint_deleted"] * 3
    assert world.owed() == []
    check(world)


@pytest.mark.parametrize("queue", [Queue.SLOW, Queue.HOT])
def test_moving_between_queues_keeps_the_order(queue: Queue) -> None:
    """A bell of the new queue rings while one of the old is at work, at each of its calls."""
    for number in range(1, 60):
        world = World()
        endpoint = ordered(world)
        deliveries = world.deliveries(4)
        answering(world, endpoint, in_turn([OK, OK, FAILS, OK]))
        process = Process(world)

        def move(world: World = world, endpoint: Endpoint = endpoint) -> None:
            at = keys.gate(endpoint.tenant, endpoint.id)
            world.usual.tables.together([Merge(at, {"queue": queue.value})])
            world.visit(lane(endpoint), Process(world))

        reached = at_call(process, number, move)
        world.deliver(process)
        deliveries += world.deliveries(2)
        go_on(world, endpoint)
        assert firsts(world) == deliveries
        if not reached():
            assert number > 8, "there are fewer calls than thought"
            return


def test_a_line_that_times_out_moves_to_the_slow_queue_and_keeps_its_order(world: World) -> None:
    endpoint = ordered(world)
    deliveries = world.deliveries(5)
    answering(world, endpoint, in_turn([HANGS] * 4 + [OK]))
    while world.gate(endpoint).queue is Queue.SHARD:
        world.work_off(for_ms=MINUTE_MS)
    assert world.gate(endpoint).queue is Queue.SLOW
    deliveries += world.deliveries(12)
    go_on(world, endpoint, for_ms=HOUR_MS)
    assert firsts(world) == deliveries
    assert world.gate(endpoint).queue is Queue.SHARD, "ten quick answers lead back"


def test_a_breaker_that_opens_and_closes_keeps_the_order(world: World) -> None:
    endpoint = ordered(world)
    deliveries = world.deliveries(4)
    at = keys.gate(endpoint.tenant, endpoint.id)
    world.usual.tables.together([Merge(at, {"fails": world.rules.threshold - 1})])
    answering(world, endpoint, in_turn([OK, FAILS, FAILS, OK]))
    world.usual.tables.together([Merge(at, {"fails": world.rules.threshold - 1})])
    world.work_off(for_ms=15 * MINUTE_MS)
    check_first_receipts(world, endpoint)
    assert firsts(world) == deliveries


def test_events_posted_while_a_line_is_at_work_come_after_what_was_acknowledged(world: World) -> None:
    endpoint = ordered(world)
    deliveries = world.deliveries(2)
    answering(world, endpoint, in_turn([OK, FAILS, OK]))
    process = Process(world)
    meanwhile(process, lambda: deliveries.extend(world.deliveries(2)), tells_of_attempts)
    world.deliver(process)
    go_on(world, endpoint)
    assert firsts(world) == deliveries


class GivesUpOnce(ScriptedSender):
    """Has no room for the first send of all, and room again at once."""

    def __init__(self, clock: FixedClock) -> None:
        super().__init__(clock)
        self.given_up: list[str] = []

    def outbox(self) -> ScriptedOutbox:
        return _GivesUpOnce(self)


class _GivesUpOnce(ScriptedOutbox):
    def __init__(self, sender: GivesUpOnce) -> None:
        super().__init__(sender)
        self._who = sender

    def start(self, key: str, request: Request, after_s: float = 0.0, within_s: float = 1e9) -> None:
        if self._who.given_up:
            super().start(key, request, after_s, within_s)
        else:
            self._who.given_up.append(key)

    def finished(self, timeout_s: float) -> list[Finished]:
        if self._who.given_up[1:]:
            return super().finished(timeout_s)
        self._who.given_up.append("told")
        now_ms = self._who.clock.now_ms()
        return [Finished(self._who.given_up[0], Reply(), now_ms, now_ms, begun=False)]


def test_a_head_that_found_no_room_is_not_passed_by_the_next(world: World) -> None:
    endpoint = ordered(world)
    world.sender = GivesUpOnce(world.clock)
    deliveries = world.deliveries(3)
    go_on(world, endpoint)
    assert firsts(world) == deliveries
    assert all(world.outcomes(each) == ["success"] for each in deliveries)


def test_a_lease_of_an_ordered_lane_takes_one_slot_however_many_it_names(world: World) -> None:
    endpoint = ordered(world, Limits(100_000, 100_000, max_concurrency=1))
    world.deliveries(10)
    seen: list[int] = []

    def look(_: Request) -> Answer:
        seen.append(world.gate(endpoint).slots)
        return OK

    answering(world, endpoint, look)
    world.work_off()
    assert seen == [0] * 10
    assert len({each.at_ms for each in world.sender.sent}) == 10


@pytest.mark.parametrize("number", range(1, 16))
def test_an_endpoint_deleted_at_any_call_of_a_visit_gets_no_more_than_what_was_re_read_before(
    number: int,
) -> None:
    world = World()
    endpoint = ordered(world)
    world.deliveries(5)
    answering(world, endpoint, lambda _: OK)
    process, sent_before = Process(world), []

    def delete() -> None:
        sent_before.append(len(world.sender.sent))
        world.usual.manage.delete(world.now(endpoint), BY)

    reached = at_call(process, number, delete)
    world.deliver(process)
    go_on(world, endpoint)
    if reached():
        assert len(world.sender.sent) <= sent_before[0] + 1
        ended = [each.reason.value for each in world.all_history() if isinstance(each, Ended)]
        assert ended == ["endpoint_deleted"] * (5 - len(world.sender.sent))
