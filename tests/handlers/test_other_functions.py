"""The functions behind the delay queue, the fan-out queue and the schedule."""

import json
import time
from typing import Any

import pytest

import app as lambdas
from chalicelib.domain import ids
from chalicelib.wire.bell import NotABellError, load_delayed, load_fan_out
from infra.local.invocation import LambdaContext
from infra.local.sqs_event import event_of
from tests.handlers.conftest import Lines, MakeRelay
from tests.handlers.relay import DEADLINE_S, SHARDS, Relay, message
from tests.receiver import Receiver

EP = "ep_01a22a7c-5366-79c3-90eb-70e6bdfad2fa"
EVT = "evt_01a22a7c-5366-79c3-90eb-70e6bdfad2fa"
LANE = f"default#{EP}#0"
DELAYED_POISON = {
    "not JSON": "not json",
    "deep": "[" * 100_000,
    "null": "null",
    "a list": "[]",
    "nothing": "{}",
    "a number": '{"lane":5}',
    "a list as lane": '{"lane":["default"]}',
    "no lane": '{"lane":"x"}',
    "half a surrogate": '{"lane":"\\ud83d"}',
    "a queue that is none": json.dumps({"lane": LANE, "queue": "hot-99"}),
    "a queue of another kind": json.dumps({"lane": LANE, "queue": "replay.fifo"}),
    "a number as queue": json.dumps({"lane": LANE, "queue": 5}),
    "null as queue": json.dumps({"lane": LANE, "queue": None}),
    "a list as queue": json.dumps({"lane": LANE, "queue": ["slow"]}),
}
FAN_OUT_POISON = {
    "not JSON": "not json",
    "deep": "[" * 100_000,
    "null": "null",
    "a list": "[]",
    "nothing": "{}",
    "no tenant": json.dumps({"event_id": EVT}),
    "an empty tenant": json.dumps({"tenant": "", "event_id": EVT}),
    "a tenant of another alphabet": json.dumps({"tenant": "grün", "event_id": EVT}),
    "a number as tenant": json.dumps({"tenant": 5, "event_id": EVT}),
    "no event": json.dumps({"tenant": "default"}),
    "a number as event": json.dumps({"tenant": "default", "event_id": 5}),
    "no id": json.dumps({"tenant": "default", "event_id": "evt_x"}),
}


def shard_of(endpoint_id: str) -> str:
    return f"shard-{int(ids.endpoint_tag(endpoint_id), 16) % SHARDS}"


def delayed(relay: Relay, *bodies: str) -> list[str]:
    """Hand messages to the function behind the delay queue; the ids it gives back."""
    messages = [message(body, number) for number, body in enumerate(bodies, 1)]
    return relay.run(lambdas.delayed_bells, event_of(messages, relay.arn("delayed")))


def fanned(relay: Relay, *bodies: str) -> list[str]:
    """Hand messages to the fan-out function; the ids it gives back."""
    messages = [message(body, number) for number, body in enumerate(bodies, 1)]
    return relay.run(lambdas.fan_out, event_of(messages, relay.arn("fan-out")))


def test_a_delayed_bell_rings_its_lane_where_its_endpoint_rings(relay: Relay) -> None:
    event = relay.sample("sqs_delayed")
    lanes = [json.loads(record["body"])["lane"] for record in event["Records"]]
    before_ms = time.time_ns() // 1_000_000
    assert relay.run(lambdas.delayed_bells, event) == []
    for lane, queue in zip(lanes, (shard_of(lanes[0].split("#")[1]), "slow"), strict=True):
        (rung,) = relay.messages(queue)
        assert rung["Attributes"]["MessageGroupId"] == lane
        body = json.loads(rung["Body"])
        assert (body["lane"], body["hints"]) == (lane, [])
        assert body["rung_ms"] >= before_ms


@pytest.mark.parametrize("queue", ["slow", "hot-0"])
def test_a_delayed_bell_that_names_a_queue_rings_there(relay: Relay, queue: str) -> None:
    assert delayed(relay, json.dumps({"lane": LANE, "queue": queue})) == []
    assert relay.waiting(queue) == (1, 0, 0)
    assert relay.waiting(shard_of(EP)) == (0, 0, 0)


def test_the_same_lane_can_be_rung_again_at_once(relay: Relay) -> None:
    body = json.dumps({"lane": LANE})
    assert delayed(relay, body, body) == []
    assert relay.waiting(shard_of(EP)) == (2, 0, 0)


def test_a_delayed_bell_that_cannot_be_rung_comes_back(relay: Relay) -> None:
    other = next(
        name
        for number in range(100)
        if shard_of(name := ids.new_id("ep", 1_796_009_122_052, number)) != shard_of(EP)
    )
    relay.drop_queue(shard_of(EP))
    lanes = [json.dumps({"lane": f"default#{each}#0"}) for each in (EP, other)]
    assert delayed(relay, *lanes) == [message("", 1)["MessageId"]]
    assert relay.waiting(shard_of(other)) == (1, 0, 0)


def test_f104_what_is_no_delayed_bell_is_in_nobody_s_way(relay: Relay, lines: Lines) -> None:
    poison = list(DELAYED_POISON.values())
    assert delayed(relay, *poison, json.dumps({"lane": LANE})) == []
    assert list(relay.rung()) == [shard_of(EP)]
    refused = [line["message_id"] for line in lines.named("bell.refused")]
    assert refused == [message("", number)["MessageId"] for number in range(1, len(poison) + 1)]


def test_a_delayed_bell_for_an_unknown_queue_costs_a_hint_and_no_delivery(
    relay: Relay, receiver: Receiver, lines: Lines
) -> None:
    """As when a newer Relay, which has more queues, rang it and an older one hears it."""
    made = relay.endpoint(url=receiver.url("/sink"))
    lane = f"default#{made['id']}#0"
    said = relay.event()
    assert delayed(relay, json.dumps({"lane": lane, "queue": "hot-1"})) == []
    assert [line["message_id"] for line in lines.named("bell.refused")] == [message("")["MessageId"]]
    assert len(relay.rows("owed")) == 1
    relay.deliver_all()
    assert [each["delivery_id"] for each in receiver.received()] == said["delivery_ids"]


@pytest.mark.parametrize("body", DELAYED_POISON.values(), ids=DELAYED_POISON.keys())
def test_f104_no_such_text_is_a_delayed_bell(body: str) -> None:
    with pytest.raises(NotABellError):
        load_delayed(body)


def test_a_retry_rings_through_the_delay_queue(relay: Relay, receiver: Receiver) -> None:
    relay.endpoint(
        url=receiver.script("once", {"status": 503, "headers": {"Retry-After": "1"}}, {"status": 200})
    )
    said = relay.event()
    relay.deliver_all()
    rung: list[dict[str, Any]] = []
    deadline = time.monotonic() + DEADLINE_S
    while not rung and time.monotonic() < deadline:
        rung = relay.messages("delayed")
    assert relay.run(lambdas.delayed_bells, event_of(rung, relay.arn("delayed"))) == []
    relay.deliver_all()
    shown = relay.get(f"/v1/deliveries/{said['delivery_ids'][0]}").json
    assert (shown["status"], [each["status"] for each in shown["attempts"]]) == ("succeeded", [503, 200])


@pytest.fixture
def later(make_relay: MakeRelay) -> Relay:
    """Give a Relay that fans everything out later."""
    return make_relay(
        RELAY_INLINE_FANOUT_MAX="0", RELAY_ALLOW_KEYLESS="true", RELAY_ALLOW_PRIVATE_ENDPOINTS="true"
    )


def test_a_later_fan_out_owes_and_rings_what_an_inline_one_would(later: Relay, receiver: Receiver) -> None:
    takers = [later.endpoint(url=receiver.url("/sink"))["id"] for _ in range(3)]
    said = later.event()
    late = later.endpoint(url=receiver.url("/sink"))["id"]
    assert (said["delivery_ids"], said["fan_out"]) == ([], "later")
    calls = later.messages("fan-out")
    assert later.run(lambdas.fan_out, event_of(calls, later.arn("fan-out"))) == []
    listed = later.get(f"/v1/events/{said['event_id']}/deliveries").json["items"]
    assert {each["endpoint_id"] for each in listed} == set(takers)
    assert {each["id"] for each in listed} == {ids.delivery_id(said["event_id"], each) for each in takers}
    assert later.get(f"/v1/endpoints/{late}/deliveries").json["items"] == []
    assert later.rows("fanouts") == []
    later.deliver_all()
    assert len(receiver.received()) == 3


def test_a_fan_out_called_twice_owes_nothing_twice(later: Relay) -> None:
    later.endpoint()
    said = later.event()
    body = json.dumps({"tenant": "default", "event_id": said["event_id"]})
    assert fanned(later, body, body) == []
    assert len(later.rows("owed")) == 1


def test_the_sample_call_is_for_an_event_that_is_gone_and_is_dropped(relay: Relay) -> None:
    assert relay.run(lambdas.fan_out, relay.sample("sqs_fan_out")) == []
    assert relay.nothing_is_stored()


def test_a_fan_out_that_fails_comes_back(later: Relay, lines: Lines) -> None:
    later.endpoint()
    said = later.event()
    later.drop_table("subs")
    body = json.dumps({"tenant": "default", "event_id": said["event_id"]})
    assert fanned(later, json.dumps({"tenant": "default", "event_id": EVT}), body) == [
        message("", 2)["MessageId"]
    ]
    assert len(lines.named("fan_out.failed")) == 1
    assert len(later.rows("fanouts")) == 1


def test_f104_what_names_no_event_is_in_nobody_s_way(later: Relay, lines: Lines) -> None:
    later.endpoint()
    said = later.event()
    poison = list(FAN_OUT_POISON.values())
    assert fanned(later, *poison, json.dumps({"tenant": "default", "event_id": said["event_id"]})) == []
    assert len(later.rows("owed")) == 1
    refused = [line["message_id"] for line in lines.named("fan_out.refused")]
    assert refused == [message("", number)["MessageId"] for number in range(1, len(poison) + 1)]


@pytest.mark.parametrize("body", FAN_OUT_POISON.values(), ids=FAN_OUT_POISON.keys())
def test_f104_no_such_text_names_an_event(body: str) -> None:
    with pytest.raises(NotABellError):
        load_fan_out(body)


def swept(relay: Relay, lines: Lines) -> dict[str, int]:
    """Run the schedule's function on the sample event and give what it says it did."""
    assert lambdas.reconcile(relay.sample("schedule"), LambdaContext("relay-reconcile")) is None
    line = lines.named("reconcile.swept")[-1]
    names = ("watched", "rung", "delayed", "released", "disarmed", "fanned_out")
    return {name: line[name] for name in names if line[name]}


def test_the_schedule_sweeps_and_says_what_it_did(relay: Relay, lines: Lines) -> None:
    assert swept(relay, lines) == {}
    relay.endpoint()
    relay.event()
    assert swept(relay, lines) == {"watched": 1}


def test_what_nobody_looked_at_for_a_minute_is_rung_again(
    relay: Relay, receiver: Receiver, lines: Lines
) -> None:
    made = relay.endpoint(url=receiver.url("/sink"))
    said = relay.event()
    relay.bells()
    (row,) = relay.rows("owed")
    ready_ms, _, rest = row["sk"]["S"].partition("#")
    table = relay.made.tables["owed"]
    relay.aws("dynamodb").delete_item(TableName=table, Key={name: row[name] for name in ("pk", "sk")})
    relay.change("owed", row, sk={"S": f"{int(ready_ms) - 61_000:015d}#{rest}"})
    assert swept(relay, lines) == {"watched": 1, "rung": 1}
    ((queue, (rung,)),) = relay.rung().items()
    assert rung["Attributes"]["MessageGroupId"] == f"default#{made['id']}#0#apart"
    assert relay.deliver(queue, [rung]) == []
    assert [each["delivery_id"] for each in receiver.received()] == said["delivery_ids"]


def test_a_sweep_that_fails_fails_the_function(relay: Relay) -> None:
    relay.drop_table("gates")
    with pytest.raises(Exception, match="store"):
        lambdas.reconcile(relay.sample("schedule"), LambdaContext("relay-reconcile"))


def test_a_sweep_that_fails_in_places_says_what_it_did_and_fails_the_function(
    relay: Relay, lines: Lines
) -> None:
    relay.endpoint()
    relay.event()
    relay.drop_table("owed")
    with pytest.raises(Exception, match="the store or a queue failed 1 times"):
        lambdas.reconcile(relay.sample("schedule"), LambdaContext("relay-reconcile"))
    line = lines.named("reconcile.swept")[-1]
    assert (line["watched"], line["failed"]) == (1, 1)
