"""Bells: a lane that waits keeps one where its wait asks for it, and a retry comes to the second."""

import pytest

from chalicelib.application.batch import HIDE_MS
from chalicelib.application.deliver import calls_of
from chalicelib.application.ports import Bell, Hint
from chalicelib.application.visit import FRESH_MS
from chalicelib.domain.delivery import Lane
from chalicelib.domain.endpoint import EndpointState, Limits
from tests.fakes.faults import Step
from tests.fakes.scripted_sender import HANGS, Answer, in_turn, status
from tests.unit.application.world import (
    FAILS,
    HOUR_MS,
    MINUTE_MS,
    OK,
    TENANT,
    World,
    lane_of,
)

LANE = Lane(TENANT, "ep", "0")


def asks_for(seconds: int, code: int = 429) -> Answer:
    return status(code, headers=(("Retry-After", str(seconds)),))


# Holds.


def test_a_short_hold_is_waited_out_in_place(world: World) -> None:
    world.endpoint(limits=Limits(rate_per_second=2, burst=1, max_concurrency=10))
    world.deliveries(3)
    began_ms = world.clock.now_ms()
    world.deliver()
    assert [each.at_ms - began_ms for each in world.sender.sent] == [0, 500, 1_000]
    assert (world.waiting, world.delayed) == ([], [])


@pytest.mark.parametrize("for_ms", [2_001, 30_000, 59_999, HIDE_MS])
def test_a_hold_of_up_to_a_minute_hides_one_bell_until_it_is_over(world: World, for_ms: int) -> None:
    endpoint = world.endpoint()
    world.deliveries(3)
    until_ms = world.hold(endpoint, for_ms)
    report = world.deliver()
    (kept,) = world.waiting
    assert report is not None
    assert report.kept == {kept.receipt}
    assert 0 <= kept.visible_ms - until_ms < 1_000
    assert world.delayed == []
    world.work_off(for_ms=for_ms + 1_000)
    assert [until_ms <= each.at_ms < until_ms + 1_000 for each in world.sender.sent] == [True] * 3
    assert (world.waiting, world.owed()) == ([], [])


@pytest.mark.parametrize("for_ms, delay_s", [(HIDE_MS + 1, 61), (900_000, 900), (2 * HOUR_MS, 900)])
def test_a_longer_hold_keeps_one_bell_in_the_delay_queue(world: World, for_ms: int, delay_s: int) -> None:
    endpoint = world.endpoint()
    world.deliveries(3)
    until_ms = world.hold(endpoint, for_ms)
    world.deliver()
    assert world.waiting == []
    assert [each.delay_s for each in world.delayed] == [delay_s]
    world.work_off(for_ms=for_ms + 1_000)
    assert [until_ms <= each.at_ms < until_ms + 1_000 for each in world.sender.sent] == [True] * 3


def test_a_disabled_endpoint_keeps_no_bell(world: World) -> None:
    endpoint = world.endpoint()
    world.deliveries(3)
    world.change(endpoint, state=EndpointState.DISABLED)
    world.deliver()
    assert (world.waiting, world.delayed) == ([], [])


def test_a_hidden_bell_is_for_the_whole_lane_when_it_comes_back(world: World) -> None:
    endpoints = [world.endpoint(f"t{number}") for number in range(5)]
    for number in range(5):
        for _ in range(2):
            world.post(f"t{number}")
    for endpoint in endpoints:
        world.hold(endpoint, 30_000)
    world.deliver()
    assert len(world.waiting) == 5, "one bell for each lane"
    world.work_off(for_ms=MINUTE_MS)
    assert len(world.sender.sent) == 10


def test_a_hold_spends_no_attempt(world: World) -> None:
    endpoint = world.endpoint()
    (delivery,) = world.deliveries(1)
    world.hold(endpoint, 10 * MINUTE_MS)
    world.work_off(for_ms=11 * MINUTE_MS)
    assert world.outcomes(delivery) == ["success"]
    assert [each.number for each in world.attempts(delivery)] == [1]


def test_a_held_backlog_keeps_one_bell_however_much_it_is(world: World) -> None:
    endpoint = world.endpoint()
    until_ms = world.hold(endpoint, 50_000)
    for _ in range(30):
        world.deliveries(1)
        world.work_off()
    assert len(world.waiting) <= 30, "nothing is received of a group with a hidden bell"
    world.clock.advance_to(until_ms - 1)
    world.work_off(for_ms=3_000)
    assert len(world.sender.sent) == 30
    assert world.waiting == []


def test_a_fresh_bell_that_cannot_be_rung_keeps_the_old_one(world: World) -> None:
    world.endpoint(limits=Limits(1_000, 1_000, max_concurrency=1))
    world.deliveries(6)
    world.losing = 1
    world.deliver()
    assert len(world.sender.sent) == 5
    assert [each.visible_ms - world.clock.now_ms() for each in world.waiting] == [1_000]
    world.work_off(for_ms=1_000)
    assert len(world.sender.sent) == 6


# Retries.


def test_a_retry_is_rung_at_its_second_and_not_before(world: World) -> None:
    world.endpoint()
    (delivery,) = world.deliveries(1)
    world.sender.script = in_turn([FAILS, OK])
    world.deliver()
    (owed,) = world.owed()
    (bell,) = world.delayed
    assert 0 <= bell.due_ms - owed.ready_ms < 1_000
    world.work_off(for_ms=MINUTE_MS)
    first, second = world.sends(delivery)
    assert 0 <= second.at_ms - owed.ready_ms < 1_000
    assert owed.ready_ms - first.at_ms == 5 + 2_500, "half of the first wait"


def test_a_wave_of_failures_leaves_one_bell_for_the_first_to_come() -> None:
    world = World(jitters=[0.9, 0.2, 0.6, 0.4])
    world.endpoint()
    world.deliveries(4)
    world.sender.script = lambda _: FAILS
    world.deliver()
    (bell,) = world.delayed
    ready_ms = sorted(each.ready_ms for each in world.owed())
    assert 0 <= bell.due_ms - ready_ms[0] < 1_000
    world.sender.script = lambda _: OK
    rung = world.bells_rung
    world.work_off(for_ms=MINUTE_MS)
    late_ms = [each.at_ms - ready for each, ready in zip(world.sender.sent[4:], ready_ms, strict=True)]
    assert all(0 <= each < 1_000 for each in late_ms)
    assert world.bells_rung - rung <= 2 * 3, "a delayed bell and its ring for each that was left"


def test_no_second_delayed_bell_is_sent_while_an_earlier_one_is_on_its_way() -> None:
    world = World(jitters=[0.99])
    world.endpoint()
    world.sender.script = in_turn([FAILS, FAILS, FAILS, OK])
    for _ in range(10):
        world.deliveries(1)
        world.clock.advance(ms=100 + FRESH_MS)
        world.deliver()
    assert len(world.delayed) == 1
    world.work_off(for_ms=MINUTE_MS)
    assert world.owed() == []
    assert world.delayed == []


def test_a_retry_beyond_the_delay_queue_s_reach_is_left_to_the_watchdog(world: World) -> None:
    world.endpoint()
    world.deliveries(1)
    world.sender.script = lambda _: asks_for(901, 503)
    world.deliver()
    assert (world.waiting, world.delayed) == ([], [])


@pytest.mark.parametrize("code", [429, 503])
@pytest.mark.parametrize("seconds", [1, 7, 61, 899])
def test_retry_after_is_obeyed_and_never_earlier(code: int, seconds: int) -> None:
    world = World(jitters=[0.0])
    world.endpoint()
    (delivery,) = world.deliveries(1)
    world.sender.script = in_turn([asks_for(seconds, code), OK])
    world.deliver()
    asked_ms = world.clock.now_ms() + seconds * 1000
    world.work_off(for_ms=20 * MINUTE_MS)
    _, again = world.sends(delivery)
    assert 0 <= again.at_ms - asked_ms < 1_000
    assert world.outcomes(delivery) == ["deferred", "success"]


def test_retry_after_has_a_ceiling(world: World) -> None:
    world.endpoint()
    world.deliveries(1)
    world.sender.script = lambda _: asks_for(7 * 24 * 3600, 503)
    world.deliver()
    (owed,) = world.owed()
    assert owed.ready_ms == world.clock.now_ms() + HOUR_MS


@pytest.mark.parametrize("code, held", [(429, True), (503, False)])
def test_429_holds_its_endpoint_and_503_one_delivery(world: World, code: int, *, held: bool) -> None:
    world.endpoint()
    world.deliveries(1)
    world.sender.script = in_turn([asks_for(30, code), OK])
    world.deliver()
    asked_ms = world.clock.now_ms() + 30_000
    (other,) = world.deliveries(1)
    world.work_off(for_ms=MINUTE_MS)
    (sent,) = world.sends(other)
    assert (sent.at_ms >= asked_ms) is held
    assert world.owed() == []


def test_429_holds_one_endpoint_and_no_other(world: World) -> None:
    world.endpoint("a")
    world.endpoint("b")
    world.post("a")
    world.sender.script = in_turn([asks_for(30), OK])
    world.deliver()
    (other,) = world.post("b")["delivery_ids"]
    world.work_off()
    assert world.outcomes(other) == ["success"]


# What a bell says.


def hint(number: int) -> Hint:
    return Hint(f"d{number}", f"e{number}", number)


def test_the_bells_of_a_lane_are_one_call(world: World) -> None:
    other = Lane(TENANT, "ep", "1")
    bells = [
        (Bell(LANE, 5, (hint(1),)), "a"),
        (Bell(other, 6), "b"),
        (Bell(LANE, 3, (hint(2), hint(1))), "c"),
    ]
    first, second = calls_of(bells)
    assert (first.lane, first.rung_ms, first.hints, first.receipts) == (
        LANE,
        3,
        (hint(1), hint(2)),
        ("a", "c"),
    )
    assert (second.lane, second.receipts) == (other, ("b",))


def test_a_bell_that_names_nothing_makes_the_store_be_asked() -> None:
    (call,) = calls_of([(Bell(LANE, 5, (hint(1),)), "a"), (Bell(LANE, 5), "b")])
    assert call.rows(5) == []


def test_only_a_fresh_bell_s_names_are_believed() -> None:
    (call,) = calls_of([(Bell(LANE, 1_000, (hint(1),)), "a")])
    assert [each.delivery_id for each in call.rows(1_000 + FRESH_MS)] == ["d1"]
    assert call.rows(1_000 + FRESH_MS + 1) == []


def test_a_bell_that_comes_twice_or_late_sends_nothing_twice(world: World) -> None:
    endpoint = world.endpoint()
    world.deliveries(2)
    bells = [each.bell for each in world.waiting]
    world.work_off()
    calls = calls_of([(bell, "again") for bell in bells])
    world.run(lambda it: it.deliver.run(calls, it.receipts, lambda: MINUTE_MS))
    world.visit(lane_of(endpoint))
    assert len(world.sender.sent) == 2
    assert world.gate(endpoint).leases == {}


def test_a_row_that_is_ready_within_a_second_is_waited_for(world: World) -> None:
    endpoint = world.endpoint()
    (delivery,) = world.deliveries(1)
    world.sender.script = in_turn([FAILS, OK])
    world.deliver()
    world.purge()
    (owed,) = world.owed()
    world.clock.advance_to(owed.ready_ms - 1_000)
    world.visit(lane_of(endpoint))
    assert [each.at_ms for each in world.sends(delivery)][1:] == [owed.ready_ms]


def test_a_bell_that_finds_nothing_is_let_go_before_a_hanging_send_of_its_batch_ends(world: World) -> None:
    hanging, healthy = world.endpoint("hanging"), world.endpoint("healthy")
    world.sender.script = lambda request: HANGS if request.url == hanging.url else OK
    world.post("healthy")
    world.visit(lane_of(healthy))
    world.post("hanging")
    began_ms = world.clock.now_ms()
    deleted_ms: list[int] = []

    def watch(step: Step) -> None:
        if step.method == "delete":
            deleted_ms.append(world.clock.now_ms())

    world.usual.faults.before = watch
    world.deliver()
    assert deleted_ms
    assert deleted_ms[0] - began_ms < 1_000
