"""What is in AWS as endpoints: one function alone sends there, and all else is what every endpoint has."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.application.ports import Bell
from chalicelib.domain import rebuild
from chalicelib.domain.bulk_replay import Wanted
from chalicelib.domain.cloud import answers
from chalicelib.domain.delivery import Attempt, Status
from chalicelib.domain.endpoint import REPLAY_LANE, Backlog, Endpoint, Ordering, Transport
from chalicelib.domain.errors import RelayError
from chalicelib.domain.gate import Breaker, Queue
from chalicelib.domain.outcome import Reply
from tests.fakes.scripted_sender import Answer, in_turn
from tests.unit.application.invariants import check_conservation
from tests.unit.application.world import BY, FAILS, HOUR_MS, OK, TENANT, World, lane_of
from tests.unit.domain.clouds import ARNS, CLOUDS, ROLE, in_aws

EACH = pytest.mark.parametrize("transport", CLOUDS)
SQS = Transport.SQS


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    history = defaultdict(list)
    for row in made.all_history():
        history[row.delivery_id, row.generation].append(row)
    check_conservation(made, history)


def registered(world: World, transport: Transport, **changes: Any) -> Endpoint:  # noqa: ANN401 - any field
    draft = replace(in_aws(transport, **changes), tenant=TENANT, secrets=())
    return world.usual.manage.register(draft, BY, None).endpoint


def test_an_address_needs_its_role(world: World) -> None:
    for changes in ({"role": ""}, {"role": ROLE.replace("123456789012", "999999999999")}, {"url": "x"}):
        with pytest.raises(RelayError):
            registered(world, SQS, **changes)
    assert not world.records.by_key


@EACH
def test_an_event_becomes_an_errand_under_the_role_of_its_owner(world: World, transport: Transport) -> None:
    made = registered(world, transport)
    (delivery_id,) = world.post()["delivery_ids"]
    world.work_off()
    (sent,) = world.sender.sent
    assert sent.request.errand is not None
    assert (sent.request.errand.role, sent.request.errand.external_id) == (ROLE, f"relay:{TENANT}")
    assert made.secrets == ()
    found = world.usual.questions.delivery(TENANT, delivery_id)
    assert found.status is Status.SUCCEEDED
    (attempt,) = found.attempts
    assert attempt.sent is not None
    assert attempt.sent.url == ARNS[transport]


def test_bells_ring_where_they_can_be_answered_once_the_gate_was_seen(world: World) -> None:
    registered(world, SQS)
    rung = []
    for _ in range(3):
        world.post()
        rung += [each.bell.queue for each in world.waiting]
        world.work_off()
    assert rung == [Queue.SHARD, Queue.CLOUD, Queue.CLOUD]
    assert len(world.sender.sent) == 3


def test_whoever_finds_a_lane_that_others_send_passes_it_on_and_spends_no_attempt(world: World) -> None:
    there, here = registered(world, SQS), world.endpoint()
    world.deliveries(3)
    world.purge()
    for endpoint in (there, here):
        world.ring(lane_of(endpoint))
    first = world.deliver()
    assert first is not None
    assert {each.request.url for each in world.sender.sent} == {here.url}
    assert [(each.bell.lane, each.bell.queue) for each in world.waiting] == [(lane_of(there), Queue.CLOUD)]
    assert world.gate(there).slots == there.limits.max_concurrency
    world.work_off()
    assert {each.request.url for each in world.sender.sent} == {here.url, there.url}
    assert len(world.sender.sent) == 6
    assert {each.outcome.value for each in world.all_history() if isinstance(each, Attempt)} == {"success"}


def test_the_function_of_aws_sends_nothing_over_http(world: World) -> None:
    here = world.endpoint()
    world.deliveries(1)
    world.purge()
    world._enqueue([Bell(lane_of(here), world.clock.now_ms(), queue=Queue.CLOUD)])  # noqa: SLF001 - a bell astray
    world.deliver()
    assert world.sender.sent == []
    assert [each.bell.queue for each in world.waiting] == [Queue.SHARD]
    world.work_off()
    assert len(world.sender.sent) == 1


def test_replays_tests_and_what_waited_ring_where_they_can_be_sent(world: World) -> None:
    made = registered(world, SQS)
    (delivery_id,) = world.deliveries(1)
    world.work_off()
    world.run(lambda it: it.replay.run(TENANT, delivery_id, BY), world.usual)
    assert [(each.bell.lane.number, each.bell.queue) for each in world.waiting] == [
        (REPLAY_LANE, Queue.CLOUD)
    ]
    world.work_off()
    world.usual.manage.disable(TENANT, made.id, BY)
    world.deliveries(1)
    world.purge()
    world.run(lambda it: it.manage.enable(TENANT, made.id, (Backlog.DELIVER, 0), BY), world.usual)
    assert {each.bell.queue for each in world.waiting} == {Queue.CLOUD}
    assert {each.queue for each in world.delayed} == {Queue.CLOUD}
    world.work_off(HOUR_MS)
    assert len(world.sender.sent) == 3


def test_a_denial_is_tried_again_and_opens_the_breaker_as_an_outage_does(world: World) -> None:
    made = registered(world, SQS)
    world.sender.script = in_turn([Answer(answers.denied("no")), OK])
    (delivery_id,) = world.deliveries(1)
    world.work_off(HOUR_MS)
    assert world.outcomes(delivery_id) == ["retryable", "success"]
    world.sender.script = lambda _: Answer(answers.denied("no"))
    world.deliveries(25)
    world.work_off(1_000)
    assert world.gate(made).state is Breaker.OPEN
    assert world.gate(made).queue is Queue.CLOUD


def test_what_is_gone_or_too_large_is_dead_at_once(world: World) -> None:
    registered(world, SQS)
    gone, large = answers.refused("QueueDoesNotExist", 400), answers.too_large("3 bytes")
    world.sender.script = in_turn([Answer(gone), Answer(large)])
    ids = world.deliveries(2)
    world.work_off()
    assert [world.outcomes(each) for each in ids] == [["permanent", "permanent_failure"]] * 2


def test_what_times_out_stays_where_it_can_be_sent(world: World) -> None:
    made = registered(world, SQS)
    world.sender.script = lambda _: FAILS
    world.deliveries(5)
    world.work_off(HOUR_MS)
    assert world.gate(made).queue is Queue.CLOUD


def test_an_ordered_queue_gets_its_events_in_their_order(world: World) -> None:
    registered(world, SQS, ordering=Ordering.ENDPOINT)
    world.sender.script = in_turn([Answer(Reply(503)), OK])
    ids = world.deliveries(3)
    world.work_off(HOUR_MS)
    assert [each.key.split("#")[1] for each in world.sender.sent] == [ids[0], *ids]


def test_a_gate_made_again_is_where_its_endpoint_can_be_sent(world: World) -> None:
    made = registered(world, SQS)
    holds = rebuild.Holds((), 0, world.clock.now_us())
    record = rebuild.gate_again(made, ["0"], holds, world.rules)
    assert record["queue"] == Queue.CLOUD.value


def test_a_bulk_replay_sends_what_has_died_without_another_function_in_between(world: World) -> None:
    made = registered(world, SQS)
    world.sender.script = lambda _: Answer(answers.refused("QueueDoesNotExist", 400))
    dead = world.deliveries(12)
    world.work_off(HOUR_MS)
    world.sender.script = lambda _: OK
    wanted = Wanted(0, world.clock.now_ms() + 1, Status.DEAD, ("*",))
    world.run(lambda it: it.order_replays.begin((TENANT, made.id), wanted, None, BY), world.usual)
    world.replays_called()
    assert {each.bell.queue for each in world.waiting} == {Queue.CLOUD}
    world.work_off(HOUR_MS)
    assert {world.usual.questions.delivery(TENANT, each).status for each in dead} == {Status.SUCCEEDED}
