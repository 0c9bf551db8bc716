"""Bulk replays: each delivery that matched is sent again once, whoever dies, doubles or comes between."""

import itertools
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.adapters.dynamodb import keys
from chalicelib.application import bulk_replay
from chalicelib.domain.bulk_replay import AHEAD_MOST, BulkReplay, BulkState, Wanted, room
from chalicelib.domain.delivery import Created, Status
from chalicelib.domain.endpoint import REPLAY_LANE, Endpoint, EndpointState, Limits
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.retention import DAY_MS, PAYLOAD_DAYS
from tests.fakes.scripted_sender import status
from tests.unit.application.interruptions import at_call, deaths
from tests.unit.application.invariants import check
from tests.unit.application.process import Process
from tests.unit.application.world import (
    AMPLE,
    BY,
    FAILS,
    MINUTE_MS,
    OK,
    TENANT,
    World,
    generation_of,
    posted,
)

REFUSED = status(404)
FEW = 5
SLOW = Limits(rate_per_second=5, burst=10, max_concurrency=8)


def outage(
    world: World, count: int, answer: object = REFUSED, limits: Limits = AMPLE, event_type: str = "order.paid"
) -> tuple[Endpoint, list[str]]:
    """Have an endpoint that gave that many deliveries the same answer, and is well from now on."""
    endpoint = world.endpoint(limits=limits)
    world.sender.script = lambda _: answer  # type: ignore[return-value, assignment]  # an Answer
    found = more(world, count, event_type)
    world.work_off(for_ms=MINUTE_MS * 10)
    world.sender.script = lambda _: OK
    return endpoint, found


def more(world: World, count: int, event_type: str = "order.paid") -> list[str]:
    """Post that many events in batches, and give the ids of their deliveries."""
    before = {each.delivery_id for each in world.all_history()}
    for start in range(0, count, 100):
        world.clock.advance(ms=1)
        world.accept([posted(event_type)] * min(100, count - start), world.usual)
    created = [each.delivery_id for each in world.all_history() if isinstance(each, Created)]
    return [each for each in created if each not in before]


def everything(world: World, status: Status = Status.DEAD, event_types: tuple[str, ...] = ("*",)) -> Wanted:
    return Wanted(0, world.clock.now_ms() + 1, status, event_types)


def order(
    world: World, endpoint: Endpoint, wanted: Wanted | None = None, confirmed: int | None = None
) -> BulkReplay:
    """Ask for a bulk replay of all dead ones, or of what is wanted."""
    begun = world.run(
        lambda it: it.order_replays.begin((TENANT, endpoint.id), wanted or everything(world), confirmed, BY),
        world.usual,
    )
    assert begun is not None
    return begun


def now(world: World, of: BulkReplay) -> BulkReplay:
    return world.usual.order_replays.get(TENANT, of.id)


def replayed(world: World) -> Counter[str]:
    """Count the requests of each delivery's replays."""
    return Counter(each.delivery_id for each in world.sender.sent if generation_of(each))


def finish(world: World, of: BulkReplay, minutes: int = 30) -> None:
    """Let schedules and queues run until a bulk replay has ended and nothing is owed."""
    for _ in range(minutes):
        world.call_replays()
        world.sweep()
        world.work_off(for_ms=MINUTE_MS)
        if now(world, of).state is BulkState.DONE and not world.owed():
            return
    raise AssertionError(f"it does not end: {now(world, of)}")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a chunk be two deliveries and a page a few rows, so that a few make several of both."""
    monkeypatch.setattr(bulk_replay, "CHUNK", 2)
    monkeypatch.setattr(bulk_replay, "ROWS", 7)
    monkeypatch.setattr(bulk_replay, "COUNTED_AT_ONCE", 5)


def test_all_that_match_are_sent_again_and_told(world: World) -> None:
    endpoint, dead = outage(world, 80)
    begun = order(world, endpoint)
    assert (begun.matched, begun.exact, begun.state) == (80, True, BulkState.RUNNING)
    world.work_off(for_ms=1_000)
    done = now(world, begun)
    assert (done.state, done.replayed, done.skipped) == (BulkState.DONE, 80, 0)
    assert replayed(world) == Counter(dead)
    assert done.ended_ms
    check(world)


def test_only_what_was_asked_for_is_sent_again(world: World) -> None:
    endpoint, _ = outage(world, 3)
    wanted = more(world, 2, "invoice.sent")
    world.sender.script = lambda _: REFUSED
    world.work_off(for_ms=1_000)
    world.sender.script = lambda _: OK
    since_ms = world.clock.now_ms()
    late = more(world, 2, "order.paid")
    world.work_off(for_ms=1_000)
    order(world, endpoint, everything(world, event_types=("invoice.*",)))
    world.work_off(for_ms=1_000)
    assert replayed(world) == Counter(wanted)
    order(world, endpoint, Wanted(since_ms, world.clock.now_ms(), Status.SUCCEEDED))
    world.work_off(for_ms=1_000)
    assert replayed(world) == Counter(wanted + late)


def test_the_time_range_is_that_of_the_events_its_end_left_out(world: World) -> None:
    endpoint = world.endpoint()
    ids_by_ms = {}
    world.sender.script = lambda _: REFUSED
    for _ in range(4):
        (delivery,) = world.deliveries(1)
        ids_by_ms[world.clock.now_ms()] = delivery
        world.work_off(for_ms=10)
    world.sender.script = lambda _: OK
    first, second, third, last = sorted(ids_by_ms)
    order(world, endpoint, Wanted(second, last))
    world.work_off(for_ms=1_000)
    assert replayed(world) == Counter([ids_by_ms[second], ids_by_ms[third]])
    assert first < second


def test_what_ends_after_it_was_asked_for_is_not_among_it(world: World) -> None:
    endpoint, dead = outage(world, 2)
    begun = order(world, endpoint)
    world.replays.clear()
    world.clock.advance(ms=10)
    world.sender.script = lambda _: REFUSED
    more(world, 2)
    world.work_off(for_ms=1_000)
    world.sender.script = lambda _: OK
    finish(world, begun)
    assert replayed(world) == Counter(dead)


def test_f127_pressed_twice_it_is_sent_once(world: World) -> None:
    """Also what has succeeded: the second finds it on its way, or ended since it was asked for."""
    endpoint, done = outage(world, 20, OK)
    wanted = everything(world, Status.SUCCEEDED)
    first, second = (order(world, endpoint, wanted) for _ in range(2))
    finish(world, first)
    finish(world, second)
    assert replayed(world) == Counter(done)
    assert now(world, first).replayed + now(world, second).replayed == 20


def test_more_than_a_thousand_need_their_count() -> None:
    world = World()
    endpoint, dead = outage(world, 1_001)
    for confirmed in (None, 1_000):
        with pytest.raises(RelayError) as told:
            order(world, endpoint, confirmed=confirmed)
        assert told.value.code is ErrorCode.CONFIRMATION_REQUIRED
        assert "1001" in told.value.expected
    assert world.records_of(keys.REPLAYS) == []
    begun = order(world, endpoint, confirmed=1_001)
    finish(world, begun)
    assert replayed(world) == Counter(dead)


def test_a_range_too_large_to_be_counted_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_replay, "COUNTED_MOST", 3)
    monkeypatch.setattr(bulk_replay, "COUNTED_AT_ONCE", 7)
    endpoint, dead = outage(world, 12)
    with pytest.raises(RelayError) as told:
        order(world, endpoint)
    assert "at least" in told.value.detail
    begun = order(world, endpoint, confirmed=12)
    assert not begun.exact
    finish(world, begun)
    assert replayed(world) == Counter(dead)


@pytest.mark.usefixtures("small")
def test_killed_at_any_write_it_goes_on_and_sends_each_once() -> None:
    for after in (False, True):
        for death in deaths(at_least=7, after=after):
            world = World()
            endpoint, dead = outage(world, FEW)
            begun = order(world, endpoint)
            world.replay_many(begun.id, death.process(world))
            check(world)
            finish(world, begun)
            assert replayed(world) == Counter(dead)
            told = now(world, begun)
            assert (told.replayed, told.skipped) == (FEW, 0)
            check(world)


@pytest.mark.usefixtures("small")
def test_two_at_once_at_any_call_send_each_once() -> None:
    for call in itertools.count(1):
        world = World()
        endpoint, dead = outage(world, FEW)
        begun = order(world, endpoint)
        one, other = Process(world), Process(world)

        def intrude(world: World = world, begun: BulkReplay = begun, other: Process = other) -> None:
            world.clock.advance(ms=MINUTE_MS)
            world.replay_many(begun.id, other)

        came = at_call(one, call, intrude)
        world.replay_many(begun.id, one)
        finish(world, begun)
        assert replayed(world) == Counter(dead)
        assert now(world, begun).replayed == FEW
        check(world)
        if not came():
            break
    assert call > 8


@pytest.mark.usefixtures("small")
def test_a_failing_store_at_any_call_only_delays_it() -> None:
    for call in range(1, 25):
        world = World()
        endpoint, dead = outage(world, FEW)
        begun = order(world, endpoint)
        process = Process(world)
        process.faults.fail_next(method="together" if call % 2 else "query", after=call % 3 == 0)
        with pytest.raises(Exception, match="ordered"):
            world.replay_many(begun.id, process)
        finish(world, begun)
        assert replayed(world) == Counter(dead)


@pytest.mark.usefixtures("small")
def test_what_somebody_replays_meanwhile_is_skipped_and_sent_once() -> None:
    for call in itertools.count(1):
        world = World()
        endpoint, dead = outage(world, FEW)
        begun = order(world, endpoint)
        process, other = Process(world), Process(world)

        def press(world: World = world, dead: list[str] = dead, other: Process = other) -> None:
            for each in dead:
                try:
                    world.run(lambda it, each=each: it.replay.run(TENANT, each, BY), other)  # type: ignore[misc]
                except RelayError:
                    continue

        came = at_call(process, call, press)
        world.replay_many(begun.id, process)
        finish(world, begun)
        assert replayed(world) == Counter(dead)
        check(world)
        if not came():
            break
    assert call > 8


def test_paused_it_begins_no_more_and_resumed_it_goes_on(world: World) -> None:
    endpoint, dead = outage(world, 200, limits=SLOW)
    world.pass_time(for_ms=10 * MINUTE_MS)
    begun = order(world, endpoint)
    world.replays_called()
    assert len(world.owed()) == 50
    paused = world.usual.order_replays.pause(TENANT, begun.id, BY)
    assert paused.state is BulkState.PAUSED
    for _ in range(5):
        world.call_replays()
        world.pass_time(for_ms=MINUTE_MS)
    assert now(world, begun).replayed == 50
    assert sum(replayed(world).values()) == 50
    world.run(lambda it: it.order_replays.resume(TENANT, begun.id, BY), world.usual)
    finish(world, begun)
    assert replayed(world) == Counter(dead)


def test_cancelled_it_is_over_and_cannot_be_turned(world: World) -> None:
    endpoint, _ = outage(world, 200, limits=SLOW)
    begun = order(world, endpoint)
    world.replays_called()
    orders = world.usual.order_replays
    cancelled = orders.cancel(TENANT, begun.id, BY)
    assert (cancelled.state, cancelled.replayed) == (BulkState.CANCELLED, 50)
    assert orders.cancel(TENANT, begun.id, BY) == cancelled
    for turn in (orders.pause, orders.resume):
        with pytest.raises(RelayError) as told:
            turn(TENANT, begun.id, BY)
        assert told.value.code is ErrorCode.REPLAY_ENDED
    world.call_replays()
    world.pass_time(for_ms=5 * MINUTE_MS)
    assert sum(replayed(world).values()) == 50


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("turn", ["pause", "cancel"])
def test_a_pause_or_a_cancel_at_any_call_is_kept(turn: str) -> None:
    for call in itertools.count(1):
        world = World()
        endpoint, _ = outage(world, FEW)
        begun = order(world, endpoint)
        process = Process(world)

        def act(world: World = world, begun: BulkReplay = begun) -> None:
            try:
                getattr(Process(world).order_replays, turn)(TENANT, begun.id, BY)
            except RelayError as error:
                assert error.code is ErrorCode.REPLAY_ENDED  # noqa: PT017 - it was done by then

        came = at_call(process, call, act)
        world.replay_many(begun.id, process)
        told = now(world, begun)
        world.call_replays()
        world.work_off(for_ms=5 * MINUTE_MS)
        assert now(world, begun).replayed == told.replayed
        assert sum(replayed(world).values()) == told.replayed
        assert told.state.value in {f"{turn}d".replace("canceld", "cancelled"), "done"}
        check(world)
        if not came():
            break
    assert call > 5


def test_a_lost_call_is_made_good_by_the_schedule(world: World) -> None:
    endpoint, dead = outage(world, FEW)
    world.losing = 99
    begun = order(world, endpoint)
    world.losing = 0
    assert world.replays == []
    world.call_replays()
    assert len(world.replays) == 1
    finish(world, begun)
    assert replayed(world) == Counter(dead)
    world.call_replays()
    assert world.replays == []


def test_calls_that_come_twice_do_not_multiply(world: World) -> None:
    endpoint, dead = outage(world, 600, limits=replace(SLOW, rate_per_second=20, burst=20))
    world.pass_time(for_ms=5 * MINUTE_MS)
    begun = order(world, endpoint)
    for _ in range(5):
        world.replays.append((TENANT, begun.id, 0))
    most = 0
    for _ in range(10):
        world.call_replays()
        world.pass_time(for_ms=10_000)
        most = max(most, len(world.replays))
    assert most <= 2
    finish(world, begun)
    assert replayed(world) == Counter(dead)


def test_while_an_endpoint_takes_nothing_it_waits_and_costs_a_run_a_minute(world: World) -> None:
    endpoint, dead = outage(world, 700)
    world.change(endpoint, state=EndpointState.DISABLED)
    begun = order(world, endpoint)
    world.work_off(for_ms=2 * MINUTE_MS)
    assert len(world.owed()) == AHEAD_MOST
    runs = len(world.usual.faults.steps)
    for _ in range(10):
        world.call_replays()
        world.work_off(for_ms=MINUTE_MS)
    assert len(world.usual.faults.steps) - runs < 10 * 10
    assert len(world.owed()) == AHEAD_MOST
    world.change(endpoint, state=EndpointState.ENABLED)
    finish(world, begun)
    assert replayed(world) == Counter(dead)


def test_retries_that_wait_do_not_stop_it(world: World) -> None:
    """A replay that failed waits in the same line; only what could go now counts as waiting."""
    endpoint, dead = outage(world, 700)
    world.sender.script = lambda _: FAILS
    begun = order(world, endpoint)
    world.work_off(for_ms=3_000)
    world.sender.script = lambda _: OK
    finish(world, begun, minutes=60)
    assert set(replayed(world)) == set(dead)
    assert now(world, begun).replayed == 700


def test_a_deleted_endpoint_ends_it(world: World) -> None:
    endpoint, _ = outage(world, 20)
    begun = order(world, endpoint)
    world.usual.manage.delete(world.now(endpoint), BY)
    world.work_off(for_ms=1_000)
    told = now(world, begun)
    assert (told.state, told.reason, told.replayed) == (BulkState.CANCELLED, "endpoint_deleted", 0)
    with pytest.raises(RelayError) as refused:
        order(world, endpoint)
    assert refused.value.code is ErrorCode.ENDPOINT_DELETED


def test_a_few_among_very_many_are_found_without_a_write_a_page(world: World) -> None:
    endpoint, _ = outage(world, 400, OK)
    world.sender.script = lambda _: REFUSED
    dead = more(world, 2)
    world.work_off(for_ms=1_000)
    world.sender.script = lambda _: OK
    begun = order(world, endpoint)
    process = Process(world)
    world.replay_many(begun.id, process)
    world.work_off(for_ms=1_000)
    assert replayed(world) == Counter(dead)
    assert [each.method for each in process.faults.steps].count("together") == 2


def test_what_cannot_be_sent_when_it_comes_up_is_skipped(world: World) -> None:
    endpoint, _ = outage(world, 3)
    kept = more(world, 3, "kept.one")
    world.sender.script = lambda _: REFUSED
    world.work_off(for_ms=1_000)
    world.sender.script = lambda _: OK
    begun = order(world, endpoint)
    world.change(endpoint, event_types=("kept.*",))
    finish(world, begun)
    told = now(world, begun)
    assert (told.replayed, told.skipped) == (3, 3)
    assert replayed(world) == Counter(kept)


def test_events_that_are_gone_are_skipped(world: World) -> None:
    endpoint, _ = outage(world, 4, OK)
    world.clock.advance(ms=PAYLOAD_DAYS * DAY_MS + 1)
    begun = order(world, endpoint, everything(world, Status.SUCCEEDED))
    finish(world, begun)
    told = now(world, begun)
    assert (told.matched, told.replayed, told.skipped) == (4, 0, 4)


def test_a_replay_that_nobody_has_is_not_found(world: World) -> None:
    endpoint, _ = outage(world, 1)
    begun = order(world, endpoint)
    orders = world.usual.order_replays
    for tenant, name in [("other", begun.id), (TENANT, "rp_1"), (TENANT, endpoint.id)]:
        with pytest.raises(RelayError) as told:
            orders.get(tenant, name)
        assert told.value.code is ErrorCode.NOT_FOUND
    with pytest.raises(RelayError) as told:
        orders.begin(("other", endpoint.id), everything(world), None, BY)
    assert told.value.code is ErrorCode.NOT_FOUND


def test_first_attempts_do_not_wait_for_five_thousand_replays() -> None:
    """In simulated time: beside the replays each is sent within its own bell's visit, as it is alone."""
    world = World()
    limits = Limits(rate_per_second=100, burst=100, max_concurrency=20)
    endpoint, _ = outage(world, 5_000, limits=limits)
    world.pass_time(for_ms=2 * MINUTE_MS)
    world.clock.advance(ms=MINUTE_MS)
    begun = order(world, endpoint, confirmed=5_000)
    waits = []
    for _ in range(60):
        (fresh,) = world.deliveries(1)
        came_ms = world.clock.now_ms()
        world.pass_time(for_ms=200)
        sent = world.sends(fresh)
        assert sent, "a first attempt waits"
        waits.append(sent[0].at_ms - came_ms)
    assert now(world, begun).replayed > 500
    assert max(waits) <= 1_000


@given(rate=st.integers(1, 100_000), waiting=st.integers(0, 10_000))
@settings(max_examples=200, deadline=None)
def test_no_more_is_ahead_than_ten_seconds_of_the_rate_within_bounds(rate: int, waiting: int) -> None:
    most = room(rate, 0)
    assert 50 <= most <= AHEAD_MOST
    assert most == 50 or most <= rate * 10
    assert room(rate, waiting) == max(0, most - waiting)


def test_its_lane_is_that_of_replays(world: World) -> None:
    endpoint, _ = outage(world, 2)
    order(world, endpoint)
    world.replays_called()
    assert {each.lane.number for each in world.owed()} == {REPLAY_LANE}
