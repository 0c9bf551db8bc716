"""Chats as endpoints: everything but how the request is built is what every endpoint has."""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import pytest

from chalicelib.domain.chat.platform import PLATFORMS, Origins
from chalicelib.domain.delivery import Attempt, Status
from chalicelib.domain.endpoint import Endpoint, EndpointState, Transport
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.outcome import Reply
from chalicelib.domain.secret import Secret
from tests.fakes.scripted_sender import Answer, in_turn, status
from tests.unit.application.invariants import check_conservation
from tests.unit.application.world import BY, FAILS, HOUR_MS, MINUTE_MS, OK, TENANT, World
from tests.unit.domain.chats import ADDRESSES, BUILT, CHATS, CREDENTIALS, WRITTEN_IN, chat

EACH = pytest.mark.parametrize("transport", CHATS)
SECOND_MS = 1_000
TELEGRAM = Transport.TELEGRAM


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    history = defaultdict(list)
    for row in made.all_history():
        history[row.delivery_id, row.generation].append(row)
    check_conservation(made, history)


def registered(world: World, transport: Transport) -> Endpoint:
    """Register a chat that its platform's limits pace."""
    draft = replace(chat(transport, limits=PLATFORMS[transport].limits), tenant=TENANT, secrets=())
    return world.usual.manage.register(draft, BY, CREDENTIALS[transport]).endpoint


def too_many(body: object = None, *headers: tuple[str, str]) -> Answer:
    return Answer(Reply(429, headers=headers, body=json.dumps(body).encode()))


@EACH
def test_an_event_becomes_a_message_that_its_platform_gets(world: World, transport: Transport) -> None:
    registered(world, transport)
    (delivery_id,) = world.post()["delivery_ids"]
    world.work_off()
    (sent,) = world.sender.sent
    assert sent.request.url == BUILT[transport].format(CREDENTIALS[transport].reveal())
    assert json.loads(sent.request.body)[WRITTEN_IN[transport]].startswith("order.paid\n\n")
    found = world.usual.questions.delivery(TENANT, delivery_id)
    assert found.status is Status.SUCCEEDED
    (attempt,) = found.attempts
    assert attempt.sent is not None
    assert attempt.sent.url == ADDRESSES[transport]


@EACH
def test_a_failed_message_is_tried_again_as_any_delivery(world: World, transport: Transport) -> None:
    registered(world, transport)
    world.sender.script = in_turn([FAILS, FAILS, OK])
    (delivery_id,) = world.deliveries(1)
    world.work_off(HOUR_MS)
    assert world.outcomes(delivery_id) == ["retryable", "retryable", "success"]
    assert len({each.request.body for each in world.sender.sent}) == 1


def test_f135_a_wait_in_the_body_holds_the_chat_and_one_message_comes_later(world: World) -> None:
    receiver = registered(world, Transport.TELEGRAM)
    body = {"ok": False, "error_code": 429, "parameters": {"retry_after": 41}}
    world.sender.script = in_turn([too_many(body), OK])
    (delivery_id,) = world.deliveries(1)
    world.work_off()
    (first,) = world.sender.sent
    assert world.gate(receiver).hold_until // 1000 >= first.at_ms + 41 * SECOND_MS
    world.work_off(10 * MINUTE_MS)
    assert world.outcomes(delivery_id) == ["deferred", "success"]
    assert world.sender.sent[1].at_ms >= first.at_ms + 41 * SECOND_MS
    assert len(world.sender.sent) == 2


def test_f139_a_global_wait_is_rounded_up_and_holds_the_chat_that_got_it(world: World) -> None:
    receiver, other = registered(world, Transport.DISCORD), registered(world, Transport.SLACK)
    body = {"message": "You are being rate limited.", "retry_after": 0.529, "global": True}
    world.sender.script = lambda sent: too_many(body) if "discord" in sent.url else OK
    world.post()
    world.work_off()
    held = [each for each in (receiver, other) if world.gate(each).hold_until]
    assert held == [receiver]
    (first,) = [each for each in world.all_history() if isinstance(each, Attempt) and each.next_ms]
    assert first.next_ms >= first.at_ms + SECOND_MS


@pytest.mark.parametrize("body", [b"<html>error code: 1015</html>", b'{"message":"blocked","code":0}'])
def test_f139_a_ban_that_says_no_wait_pauses_for_minutes(world: World, body: bytes) -> None:
    receiver = registered(world, Transport.DISCORD)
    world.sender.script = in_turn([Answer(Reply(429, body=body)), OK])
    (delivery_id,) = world.deliveries(1)
    world.work_off()
    assert world.gate(receiver).hold_until // 1000 >= world.sender.sent[0].at_ms + 5 * MINUTE_MS
    world.work_off(HOUR_MS)
    assert world.outcomes(delivery_id) == ["deferred", "success"]


@EACH
def test_the_pace_of_a_chat_is_its_platforms(world: World, transport: Transport) -> None:
    registered(world, transport)
    world.deliveries(12)
    world.work_off(MINUTE_MS)
    moments = sorted(each.at_ms for each in world.sender.sent)
    assert len(moments) == 12
    allowed = {Transport.TELEGRAM: (1, 1_000), Transport.DISCORD: (5, 2_000), Transport.SLACK: (1, 1_000)}
    most, within_ms = allowed[transport]
    assert all(later - first >= within_ms for first, later in zip(moments, moments[most:], strict=False))


@pytest.mark.parametrize("transport, code", [(Transport.TELEGRAM, 403), (Transport.DISCORD, 404)])
def test_a_platforms_permanent_error_ends_the_delivery_and_nothing_else(
    world: World, transport: Transport, code: int
) -> None:
    receiver = registered(world, transport)
    world.sender.script = lambda _: status(code)
    (delivery_id,) = world.deliveries(1)
    world.work_off(HOUR_MS)
    assert world.outcomes(delivery_id) == ["permanent", "permanent_failure"]
    assert world.now(receiver).state is EndpointState.ENABLED


def test_an_archived_channel_disables_its_endpoint(world: World) -> None:
    receiver = registered(world, Transport.SLACK)
    world.sender.script = lambda _: Answer(Reply(410, body=b"channel_is_archived"))
    world.deliveries(1)
    world.work_off()
    assert world.now(receiver).state is EndpointState.DISABLED


@EACH
def test_an_echoed_credential_is_masked_in_history(world: World, transport: Transport) -> None:
    registered(world, transport)
    credential = CREDENTIALS[transport].reveal()
    world.sender.script = lambda sent: Answer(Reply(400, body=f"no: {sent.url} {credential}".encode()))
    (delivery_id,) = world.deliveries(1)
    world.work_off()
    (attempt,) = world.attempts(delivery_id)
    assert b"no: " in attempt.response
    assert credential.encode() not in attempt.response
    assert credential.rpartition(":")[2].encode() not in attempt.response


@EACH
def test_a_new_credential_is_used_at_once(world: World, transport: Transport) -> None:
    receiver = registered(world, transport)
    other = Secret("111222333:another-credential_0123456789" if transport is TELEGRAM else "x" * 40)
    rotated = world.usual.rotate.replace((TENANT, receiver.id), other, None, BY)
    assert (rotated.key.secret, len(rotated.endpoint.secrets)) == (None, 1)
    world.post()
    world.work_off()
    (sent,) = world.sender.sent
    assert sent.request.url == BUILT[transport].format(other.reveal())


@EACH
def test_the_policy_looks_at_the_url_that_is_built(world: World, transport: Transport) -> None:
    manage = replace(world.usual.manage, origins=Origins(*["https://10.0.0.5"] * 3))
    draft = replace(chat(transport), tenant=TENANT, secrets=())
    with pytest.raises(RelayError) as refused:
        manage.register(draft, BY, CREDENTIALS[transport])
    assert refused.value.code is ErrorCode.DESTINATION_NOT_ALLOWED
