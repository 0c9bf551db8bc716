"""Replay: what has ended is sent once more under its own id, once however often it is pressed or who dies."""

import itertools
import json
from collections import Counter

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.domain.delivery import Created, Status
from chalicelib.domain.endpoint import REPLAY_LANE, Endpoint, EndpointState, Limits, Ordering
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.retention import DAY_MS, DAY_S, PAYLOAD_DAYS
from tests.fakes.scripted_sender import DIES, Sent, in_turn, status
from tests.unit.application.interruptions import at_call, deaths
from tests.unit.application.invariants import check
from tests.unit.application.process import Process
from tests.unit.application.world import (
    BY,
    FAILS,
    LARGE,
    MINUTE_MS,
    OK,
    TAKE_OVER_MS,
    TENANT,
    World,
    generation_of,
    lane_of,
)

REFUSED = status(404)
ALONE = Limits(rate_per_second=100_000, burst=100_000, max_concurrency=1)


def replay(world: World, delivery: str, process: Process | None = None) -> Created | None:
    """Press replay once."""
    return world.run(lambda it: it.replay.run(TENANT, delivery, BY), process or world.usual)


def refused(world: World, delivery: str, process: Process | None = None) -> ErrorCode:
    """Press replay where that cannot be, and give the code of the answer."""
    with pytest.raises(RelayError) as told:
        replay(world, delivery, process)
    return told.value.code


def ended(world: World, answer: object = OK, endpoint: Endpoint | None = None) -> str:
    """Have one delivery that has ended, of an endpoint that answers so and well from then on."""
    if endpoint is None:
        world.endpoint()
    world.sender.script = lambda _: answer  # type: ignore[return-value, assignment]  # an Answer
    (delivery,) = world.deliveries(1)
    world.work_off(for_ms=1_000)
    world.sender.script = lambda _: OK
    return delivery


def requests(world: World, delivery: str) -> list[dict[str, str]]:
    return [dict(each.request.headers) for each in world.sends(delivery)]


@pytest.mark.parametrize("answer, reason", [(OK, None), (REFUSED, "permanent_failure")])
def test_what_has_ended_is_sent_again_under_its_own_id(world: World, answer: object, reason: str) -> None:
    delivery = ended(world, answer)
    begun = replay(world, delivery)
    assert begun is not None
    assert (begun.delivery_id, begun.generation, begun.event_type) == (delivery, 1, "order.paid")
    world.work_off(for_ms=1_000)
    first, second = requests(world, delivery)
    assert first["Relay-Delivery-Id"] == second["Relay-Delivery-Id"] == delivery
    assert (first["Relay-Generation"], second["Relay-Generation"]) == ("0", "1")
    assert second["Relay-Attempt"] == "1"
    assert world.owed() == []
    check(world)


def test_the_old_generation_says_what_it_was_replayed_as_and_stays_as_it_was(world: World) -> None:
    delivery = ended(world, REFUSED)
    before = world.history(delivery)
    world.clock.advance(ms=5)
    replay(world, delivery)
    said = world.usual.questions.delivery(TENANT, delivery)
    assert (said.generation, said.generations, said.status) == (1, (0, 1), Status.PENDING)
    (old,) = said.earlier
    assert (old.generation, old.status, old.replayed_ms) == (0, Status.DEAD, world.clock.now_ms())
    assert old.ended is not None
    assert len(old.attempts) == 1
    assert said.replayed_ms == 0
    assert world.history(delivery)[: len(before)] == before


def test_today_s_url_and_secrets_the_old_bytes(world: World) -> None:
    endpoint = world.endpoint()
    world.sender.script = lambda _: REFUSED
    answer = world.post(body=LARGE)
    world.work_off(for_ms=1_000)
    world.sender.script = lambda _: OK
    world.change(endpoint, url="https://receiver.example/moved")
    (delivery,) = answer["delivery_ids"]
    replay(world, delivery)
    world.work_off(for_ms=1_000)
    old, new = (each.request for each in world.sends(delivery))
    assert (new.url, new.body) == ("https://receiver.example/moved", LARGE)
    assert old.url != new.url
    assert json.loads(new.body) == json.loads(LARGE)


@pytest.mark.parametrize("label", ["f127"])
def test_f127_running_or_waiting_is_409_and_pressed_twice_it_is_sent_once(world: World, label: str) -> None:
    """A delivered one needs the explicit replay that this is."""
    assert label
    world.endpoint()
    (waiting,) = world.deliveries(1)
    assert refused(world, waiting) is ErrorCode.DELIVERY_PENDING
    seen: list[ErrorCode] = []

    def press_while_running(_: object) -> object:
        seen.append(refused(world, waiting, Process(world)))
        return OK

    world.sender.script = press_while_running  # type: ignore[assignment]  # answers as a script does
    world.work_off(for_ms=1_000)
    assert seen == [ErrorCode.DELIVERY_PENDING]
    world.sender.script = lambda _: OK
    assert replay(world, waiting)
    assert refused(world, waiting) is ErrorCode.DELIVERY_PENDING
    world.work_off(for_ms=1_000)
    assert len(world.sends(waiting)) == 2
    assert replay(world, waiting)
    world.work_off(for_ms=1_000)
    assert [generation_of(each) for each in world.sends(waiting)] == [0, 1, 2]
    check(world)


def test_a_retry_that_waits_is_409(world: World) -> None:
    delivery = ended(world, FAILS)
    assert refused(world, delivery) is ErrorCode.DELIVERY_PENDING


def test_one_whose_sender_died_is_409_until_it_has_ended(world: World) -> None:
    world.endpoint()
    (delivery,) = world.deliveries(1)
    world.sender.script = lambda _: DIES
    world.deliver(Process(world))
    assert refused(world, delivery) is ErrorCode.DELIVERY_PENDING
    world.clock.advance(ms=TAKE_OVER_MS + 1)
    assert refused(world, delivery) is ErrorCode.DELIVERY_PENDING


def test_whatever_two_at_once_do_one_is_told_that_it_is_on_its_way() -> None:
    for call in itertools.count(1):
        world = World()
        delivery = ended(world)
        one, other = Process(world), Process(world)
        answers: list[object] = []

        def press(process: Process, world: World = world, delivery: str = delivery) -> None:
            try:
                answers.append(replay(world, delivery, process))  # noqa: B023 - called in this turn
            except RelayError as error:
                answers.append(error.code)  # noqa: B023 - called in this turn

        came = at_call(one, call, lambda: press(other))  # noqa: B023 - called in this turn
        press(one)
        world.work_off(for_ms=1_000)
        assert len(world.sends(delivery)) == 2 if came() else True
        if not came():
            break
        assert Counter(map(type, answers)) == {Created: 1, ErrorCode: 1}
        check(world)
    assert call > 5


def test_killed_at_any_write_it_is_replayed_or_it_is_not() -> None:
    for after in (False, True):
        for death in deaths(at_least=2, after=after):
            world = World()
            delivery = ended(world)
            replay(world, delivery, death.process(world))
            check(world)
            begun = len([each for each in world.history(delivery) if isinstance(each, Created)]) == 2
            world.clock.advance(ms=2 * MINUTE_MS)
            world.sweep()
            world.work_off(for_ms=MINUTE_MS)
            assert len(world.sends(delivery)) == 1 + begun
            check(world)


def test_a_replay_whose_senders_die_goes_on_where_they_were() -> None:
    for after in (False, True):
        for death in deaths(at_least=3, after=after):
            world = World()
            delivery = ended(world)
            replay(world, delivery)
            world.deliver(death.process(world))
            check(world)
            for _ in range(3):
                world.clock.advance(ms=TAKE_OVER_MS)
                world.sweep()
                world.work_off(for_ms=MINUTE_MS)
            assert world.outcomes(delivery)[-1] == "success"
            assert world.owed() == []
            check(world)


def test_its_first_holder_died_before_the_old_row_went_and_neither_is_lost(world: World) -> None:
    """Arrived is what history says, though the row is still owed: the replay is a row of its own."""
    world.endpoint()
    (delivery,) = world.deliveries(1)
    process = Process(world)
    process.faults.kill_at(2, after=True)
    world.deliver(process)
    assert [each.generation for each in world.owed()] == [0]
    assert world.outcomes(delivery) == ["success"]
    replay(world, delivery)
    check(world)
    for _ in range(3):
        world.clock.advance(ms=TAKE_OVER_MS)
        world.sweep()
        world.work_off(for_ms=MINUTE_MS)
    assert [generation_of(each) for each in world.sends(delivery)] == [0, 1]
    assert world.owed() == []
    check(world)


def test_a_bell_that_comes_twice_sends_nothing_twice(world: World) -> None:
    endpoint = world.endpoint()
    delivery = ended(world, endpoint=endpoint)
    replay(world, delivery)
    for _ in range(3):
        world.ring(lane_of(endpoint, REPLAY_LANE))
    world.work_off(for_ms=1_000)
    world.ring(lane_of(endpoint, REPLAY_LANE))
    world.work_off(for_ms=1_000)
    assert len(world.sends(delivery)) == 2


def test_a_replay_that_fails_is_retried_and_dies_as_any_other(world: World) -> None:
    delivery = ended(world)
    world.sender.script = in_turn([FAILS, REFUSED])
    replay(world, delivery)
    world.work_off(for_ms=MINUTE_MS)
    assert world.outcomes(delivery) == ["success", "retryable", "permanent", "permanent_failure"]
    (letter,) = world.records_of(keys.DEAD_LETTERS)
    assert letter["sk"] == f"{delivery}#0001"
    check(world)


def test_replays_ring_on_their_own_lane_and_reconcile_knows_of_it(world: World) -> None:
    endpoint = world.endpoint()
    delivery = ended(world, endpoint=endpoint)
    world.losing = 1
    replay(world, delivery)
    world.losing = 0
    assert [each.lane.number for each in world.owed()] == [REPLAY_LANE]
    world.clock.advance(ms=2 * MINUTE_MS)
    assert world.sweep().rung == 1
    assert world.waiting[-1].bell.lane == lane_of(endpoint, REPLAY_LANE)
    world.work_off(for_ms=1_000)
    assert len(world.sends(delivery)) == 2


def test_an_endpoint_with_nothing_owed_is_let_go_with_its_line_of_replays(world: World) -> None:
    endpoint = world.endpoint()
    delivery = ended(world, endpoint=endpoint)
    replay(world, delivery)
    world.work_off(for_ms=1_000)
    assert world.gate(endpoint).replays
    world.clock.advance(ms=2 * 60 * MINUTE_MS)
    assert world.sweep().disarmed == 1
    assert not world.gate(endpoint).replays
    replay(world, delivery)
    assert world.gate(endpoint).replays


def test_a_deleted_endpoint_is_sent_nothing(world: World) -> None:
    endpoint = world.endpoint()
    delivery = ended(world, endpoint=endpoint)
    world.usual.manage.delete(world.now(endpoint), BY)
    assert refused(world, delivery) is ErrorCode.ENDPOINT_DELETED


def test_a_disabled_endpoint_s_replay_waits_for_it(world: World) -> None:
    endpoint = world.endpoint()
    delivery = ended(world, endpoint=endpoint)
    world.change(endpoint, state=EndpointState.DISABLED)
    replay(world, delivery)
    world.work_off(for_ms=MINUTE_MS)
    assert len(world.sends(delivery)) == 1
    world.change(endpoint, state=EndpointState.ENABLED)
    world.work_off(for_ms=2 * MINUTE_MS)
    assert len(world.sends(delivery)) == 2


def test_an_endpoint_is_sent_no_type_that_it_takes_no_more(world: World) -> None:
    endpoint = world.endpoint()
    delivery = ended(world, endpoint=endpoint)
    world.change(endpoint, event_types=("other",))
    assert refused(world, delivery) is ErrorCode.NOT_SUBSCRIBED


def test_bytes_that_are_gone_cannot_be_sent(world: World) -> None:
    delivery = ended(world)
    world.clock.advance(ms=PAYLOAD_DAYS * DAY_MS)
    assert refused(world, delivery) is ErrorCode.PAYLOAD_EXPIRED


def test_bytes_kept_apart_that_are_gone_cannot_be_sent(world: World) -> None:
    world.endpoint()
    (delivery,) = world.post(body=LARGE)["delivery_ids"]
    world.work_off(for_ms=1_000)
    world.kept.clear()
    assert refused(world, delivery) is ErrorCode.PAYLOAD_EXPIRED


def test_what_is_replayed_on_its_last_day_keeps_its_bytes_until_it_has_ended(world: World) -> None:
    endpoint = world.endpoint()
    delivery = ended(world, endpoint=endpoint)
    world.clock.advance(ms=PAYLOAD_DAYS * DAY_MS - MINUTE_MS)
    world.change(endpoint, state=EndpointState.DISABLED)
    replay(world, delivery)
    (event,) = [each for each in world.records_of(keys.EVENTS) if each["sk"].startswith("evt_")]
    assert event["ttl"] >= world.clock.now_ms() // 1000 + 13 * DAY_S


def test_another_tenant_s_delivery_is_not_found(world: World) -> None:
    delivery = ended(world)
    with pytest.raises(RelayError) as told:
        world.usual.replay.run("other", delivery, BY)
    assert told.value.code is ErrorCode.NOT_FOUND


def test_an_ordered_endpoint_s_replay_says_its_place_and_waits_for_nobody(world: World) -> None:
    endpoint = world.endpoint(ordering=Ordering.ENDPOINT)
    delivery = ended(world, endpoint=endpoint)
    world.sender.script = lambda asked: OK if dict(asked.headers)["Relay-Generation"] == "1" else FAILS
    world.deliveries(2)
    world.deliver()
    replay(world, delivery)
    world.pass_time(for_ms=2_000)
    first, second = requests(world, delivery)
    assert first["Relay-Event-Sequence"] == second["Relay-Event-Sequence"] == "1"


def test_with_a_cap_of_one_first_attempts_and_replays_take_turns(world: World) -> None:
    endpoint = world.endpoint(limits=ALONE)
    old = [ended(world, endpoint=endpoint) for _ in range(20)]
    world.sender.sent.clear()
    for each in old:
        replay(world, each)
    world.deliveries(20)
    world.work_off(for_ms=2 * MINUTE_MS)
    kinds = [generation_of(each) for each in world.sender.sent]
    assert Counter(kinds) == {0: 20, 1: 20}
    check(world)


def first_sent(sent: list[Sent]) -> list[int]:
    return [generation_of(each) for each in sent]
