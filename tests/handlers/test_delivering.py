"""The deliver functions: bells in, requests out, and which bells go back to the queue."""

import base64
import json
from dataclasses import fields
from typing import Any

import pytest

import app as lambdas
from chalicelib.application.visit import Attempted
from chalicelib.wire.bell import NotABellError, load
from tests.handlers.conftest import Lines, MakeRelay
from tests.handlers.relay import Relay, forget, message, typed
from tests.receiver import Receiver

EMOJI = '{"type":"t","t":"😊 café … 漢"}'.encode()
EP = "ep_01a22a7c-5366-79c3-90eb-70e6bdfad2fa"
EVT = "evt_01a22a7c-5366-79c3-90eb-70e6bdfad2fa"
BARE = "01a22a7c-5366-79c3-90eb-70e6bdfad2fa"
LANE = f"default#{EP}#0"
ALL_QUEUES = ["shard-0", "shard-1", "shard-2", "shard-3", "slow", "hot-0", "cloud", "replay"]


@pytest.fixture
def one_shard(make_relay: MakeRelay) -> Relay:
    """Give a Relay all of whose bells ring on one queue."""
    return make_relay(RELAY_SHARD_COUNT="1", RELAY_ALLOW_KEYLESS="true", RELAY_ALLOW_PRIVATE_ENDPOINTS="true")


def verified(relay: Relay, receiver: Receiver, path: str = "/verify", **fields: object) -> Any:  # noqa: ANN401 - JSON
    """Register an endpoint whose signatures the receiver checks."""
    made = relay.endpoint(url=receiver.url(path), **fields)
    receiver.add_secret(made["secret"])
    return made


def delivery(relay: Relay, said: Any) -> Any:  # noqa: ANN401 - JSON
    (delivery_id,) = said["delivery_ids"]
    return relay.get(f"/v1/deliveries/{delivery_id}").json


def bell(**changes: object) -> str:
    return json.dumps({"lane": LANE, "rung_ms": 1, "hints": [[BARE, EVT, 1]], **changes})


def test_a_bell_is_delivered_verified_and_deleted(relay: Relay, receiver: Receiver) -> None:
    made = verified(relay, receiver)
    said = relay.event()
    relay.deliver_all()
    (got,) = receiver.received()
    assert (got["verified"], got["delivery_id"], got["event_id"]) == (
        True,
        *said["delivery_ids"],
        said["event_id"],
    )
    shown = delivery(relay, said)
    assert (shown["status"], shown["endpoint_id"], shown["next_attempt_at"]) == (
        "succeeded",
        made["id"],
        None,
    )
    (attempt,) = shown["attempts"]
    assert (attempt["attempt"], attempt["outcome"], attempt["status"]) == (1, "success", 200)
    assert (attempt["response"], attempt["response_truncated"]) == ("ok\n", False)
    assert relay.rows("owed") == []
    assert all(relay.waiting(queue) == (0, 0, 0) for queue in ALL_QUEUES)


@pytest.mark.parametrize("form", ["relay", "standard"])
@pytest.mark.parametrize(
    "body, headers",
    [
        (EMOJI, {}),
        (bytes(range(256)), typed("t", "application/octet-stream")),
        ("é😱".encode(), typed("t", "text/plain")),
    ],
    ids=["f004_emoji", "binary", "f032_text"],
)
def test_the_bytes_posted_are_the_bytes_sent(
    relay: Relay, receiver: Receiver, form: str, body: bytes, headers: dict[str, str]
) -> None:
    verified(relay, receiver, signature=form)
    relay.event(body, headers)
    relay.deliver_all()
    (got,) = receiver.received()
    assert got["verified"] is True, got["unverified_because"]
    assert base64.b64decode(got["body_base64"]) == body
    assert got["headers"]["content-type"] == headers.get("Content-Type", "application/json")


def test_custom_headers_are_sent_and_not_logged(relay: Relay, receiver: Receiver, lines: Lines) -> None:
    made = verified(relay, receiver, "/verify?token=hush-query", headers={"X-Token": "hush-header"})
    relay.event(b'{"type":"t","data":"hush-payload"}')
    relay.deliver_all()
    (got,) = receiver.received()
    assert got["headers"]["x-token"] == "hush-header"
    assert "hush" not in str(lines.texts)
    assert made["secret"] not in str(lines.texts)
    assert got["headers"]["relay-signature"] not in str(lines.texts)


def test_each_attempt_is_one_wide_line(relay: Relay, receiver: Receiver, lines: Lines) -> None:
    made = verified(relay, receiver)
    said = relay.event()
    relay.deliver_all()
    (line,) = lines.named("delivery.attempted")
    told = {
        name: line[name]
        for name in ("lane", "delivery_id", "event_id", "attempt", "outcome", "status", "became")
    }
    assert told == {
        "lane": f"default#{made['id']}#0",
        "delivery_id": said["delivery_ids"][0],
        "event_id": said["event_id"],
        "attempt": 1,
        "outcome": "success",
        "status": 200,
        "became": "succeeded",
    }


def test_an_attempt_s_line_has_the_same_keys_whatever_happened(
    relay: Relay, receiver: Receiver, lines: Lines
) -> None:
    for url in (*map(receiver.url, ("/sink", "/status/404", "/always500")), "http://127.0.0.1:1/"):
        relay.endpoint(url=url)
    relay.event()
    relay.deliver_all()
    told = lines.named("delivery.attempted")
    names = {field.name for field in fields(Attempted)} - {"steps", "rung_in"}
    assert len(told) == 4
    assert all(names <= line.keys() for line in told)
    outcomes = {(line["status"], line["fault"]) for line in told}
    assert outcomes == {(200, ""), (404, ""), (500, ""), (0, "connect_failed")}


def test_f097_a_failure_of_an_endpoint_is_recorded_and_gives_no_bell_back(
    relay: Relay, receiver: Receiver
) -> None:
    verified(relay, receiver, "/always500")
    posted = [relay.event() for _ in range(3)]
    ((queue, messages),) = relay.rung().items()
    assert relay.deliver(queue, messages) == []
    for said in posted:
        shown = delivery(relay, said)
        (attempt,) = shown["attempts"]
        assert (shown["status"], attempt["outcome"], attempt["status"]) == ("pending", "retryable", 500)
        assert shown["next_attempt_at"] == attempt["next_attempt_at"] > shown["created_at"]
    assert relay.waiting(queue) == (0, 0, 0)
    visible, hidden, delayed = relay.waiting("delayed")
    assert (visible + delayed, hidden) == (1, 0)


def test_f098_one_lane_s_failure_stops_no_other_of_the_batch(one_shard: Relay, receiver: Receiver) -> None:
    paths = {"a": "/always500", "b": "/verify", "c": "/verify"}
    for name, path in paths.items():
        verified(one_shard, receiver, path, event_types=[name])
    said = [one_shard.event(f'{{"type":"{name}"}}'.encode()) for name in "abacb"]
    messages = one_shard.messages("shard-0")
    messages += one_shard.messages("shard-0")
    assert one_shard.deliver("shard-0", messages) == []
    statuses = [delivery(one_shard, each)["status"] for each in said]
    assert statuses == ["pending", "succeeded", "pending", "succeeded", "succeeded"]
    assert len(receiver.received(path="/verify", verified=True)) == 3


def test_f101_a_batch_that_comes_again_sends_nothing_twice(relay: Relay, receiver: Receiver) -> None:
    verified(relay, receiver)
    posted = [relay.event() for _ in range(5)]
    ((queue, messages),) = relay.rung().items()
    for _ in range(2):
        assert relay.deliver(queue, messages) == []
    got = receiver.received()
    assert sorted(each["delivery_id"] for each in got) == sorted(each["delivery_ids"][0] for each in posted)


def test_f103_how_often_a_bell_was_received_is_no_attempt(relay: Relay, receiver: Receiver) -> None:
    verified(relay, receiver)
    said = relay.event()
    ((queue, (rung,)),) = relay.rung().items()
    rung["Attributes"]["ApproximateReceiveCount"] = "1000"
    assert relay.deliver(queue, [rung]) == []
    assert [each["attempt"] for each in delivery(relay, said)["attempts"]] == [1]


POISON = {
    "not JSON": "not json",
    "empty": "",
    "null": "null",
    "a number": "5",
    "a list": "[]",
    "nothing": "{}",
    "deep": "[" * 100_000,
    "a long number": bell(rung_ms=0).replace("0", "9" * 5_000, 1),
    "no lane": bell(lane=None),
    "a number as lane": bell(lane=5),
    "a list as lane": bell(lane=["default", EP, "0"]),
    "two parts": bell(lane=f"default#{EP}"),
    "four parts": bell(lane=f"{LANE}#apart"),
    "no endpoint": bell(lane="default#x#0"),
    "no lane number": bell(lane=f"default#{EP}#x-1"),
    "another alphabet": bell(lane=f"grün#{EP}#0"),
    "no moment": bell(rung_ms=None),
    "a text as moment": bell(rung_ms="1"),
    "a truth as moment": bell(rung_ms=True),
    "a moment before time": bell(rung_ms=-1),
    "a moment without end": bell(rung_ms=1).replace('"rung_ms": 1', '"rung_ms": 1e999'),
    "NaN": bell(rung_ms=float("nan")),
    "a moment after time": bell(rung_ms=1 << 60),
    "no hints": bell(hints=None),
    "a text as hints": bell(hints="abc"),
    "a short hint": bell(hints=[[BARE, EVT]]),
    "a number as hint": bell(hints=[5]),
    "numbers in a hint": bell(hints=[[1, 2, 3]]),
    "no id in a hint": bell(hints=[["x", EVT, 1]]),
    "a moment without end in a hint": bell().replace(", 1]]", ", 1e999]]"),
    "half a surrogate": bell(lane="\ud83d"),
}


@pytest.mark.parametrize("body", POISON.values(), ids=POISON.keys())
def test_f104_no_such_text_is_a_bell(body: str) -> None:
    with pytest.raises(NotABellError):
        load(body)


def test_f104_what_is_no_bell_is_told_deleted_and_in_nobody_s_way(
    one_shard: Relay, receiver: Receiver, lines: Lines
) -> None:
    verified(one_shard, receiver)
    poison = [message(body, number) for number, body in enumerate(POISON.values())]
    for start in range(0, len(poison), 9):
        said = one_shard.event()
        ((_, (rung,)),) = one_shard.rung().items()
        assert one_shard.deliver("shard-0", [*poison[start : start + 9], rung]) == []
        assert delivery(one_shard, said)["status"] == "succeeded"
    assert [line["message_id"] for line in lines.named("bell.refused")] == [
        each["MessageId"] for each in poison
    ]
    assert "not json" not in str(lines.texts)


def test_f099_when_the_store_fails_one_bell_of_the_lane_and_no_other_is_given_back_within_seconds(
    relay: Relay, receiver: Receiver, lines: Lines
) -> None:
    verified(relay, receiver)
    posted = [relay.event() for _ in range(3)]
    ((queue, messages),) = relay.rung().items()
    relay.drop_table("gates")
    poison = message("not json", 99)
    assert relay.deliver(queue, [poison, *messages]) == [messages[0]["MessageId"]]
    assert len(lines.named("deliver.lanes_failed")) == 1
    assert relay.waiting(queue) == (0, 1, 0)
    assert receiver.received() == []
    assert len(relay.rows("owed")) == len(posted)


def test_a_bell_that_is_held_goes_back_and_stays_hidden(relay: Relay, receiver: Receiver) -> None:
    busy = {"status": 429, "headers": {"Retry-After": "30"}}
    relay.endpoint(url=receiver.script("busy", busy, {"status": 200}))
    relay.event()
    relay.deliver_all()
    said = relay.event()
    ((queue, messages),) = relay.rung().items()
    assert relay.deliver(queue, messages) == [each["MessageId"] for each in messages]
    assert relay.waiting(queue) == (0, len(messages), 0)
    assert delivery(relay, said)["attempts"] == []
    assert len(receiver.received()) == 1


def test_an_unknown_queue_s_bells_are_all_given_back(relay: Relay, receiver: Receiver, lines: Lines) -> None:
    verified(relay, receiver)
    relay.event()
    ((queue, messages),) = relay.rung().items()
    relay.drop_queue(queue)
    forget()
    assert relay.deliver(queue, messages) == [each["MessageId"] for each in messages]
    assert len(lines.named("deliver.failed")) == 1
    assert receiver.received() == []
    assert len(relay.rows("owed")) == 1


@pytest.mark.parametrize("queue", [each for each in ALL_QUEUES if each != "cloud"])
def test_a_bell_in_any_queue_finds_its_lane(relay: Relay, receiver: Receiver, queue: str) -> None:
    made = verified(relay, receiver)
    said = relay.event()
    (rung_on,) = relay.rung()
    relay.aws("sqs").send_message(
        QueueUrl=relay.made.queues[queue],
        MessageBody=bell(lane=f"default#{made['id']}#0", hints=[]),
        MessageGroupId="any",
        MessageDeduplicationId="any",
    )
    assert relay.deliver(queue, relay.messages(queue)) == []
    assert delivery(relay, said)["status"] == "succeeded"
    assert relay.waiting(queue) == (0, int(queue == rung_on), 0)


def test_the_sample_bells_ring_lanes_that_are_gone_and_are_dropped(relay: Relay) -> None:
    assert relay.run(lambdas.deliver_shard_0, relay.sample("sqs_fifo")) == []


def test_a_refusal_by_the_endpoint_is_a_death_with_its_reason(relay: Relay, receiver: Receiver) -> None:
    made = verified(relay, receiver, "/status/404")
    said = relay.event()
    relay.deliver_all()
    shown = delivery(relay, said)
    assert (shown["status"], shown["reason"]) == ("dead", "permanent_failure")
    assert shown["next_attempt_at"] is None
    assert len(relay.rows("dead-letters")) == 1
    path = f"/v1/endpoints/{made['id']}/deliveries?status="
    listed = {status: relay.get(path + status).json["items"] for status in ("dead", "pending", "succeeded")}
    assert listed == {"dead": [shown], "pending": [], "succeeded": []}


def test_an_endpoint_that_is_gone_is_disabled_and_says_why(relay: Relay, receiver: Receiver) -> None:
    made = verified(relay, receiver, "/gone")
    said = relay.event()
    relay.deliver_all()
    shown = relay.get(f"/v1/endpoints/{made['id']}")
    assert (shown.json["state"], shown.headers["etag"]) == ("disabled", '"2"')
    assert "410" in shown.json["state_reason"]
    assert delivery(relay, said)["status"] == "dead"


def test_what_a_deleted_endpoint_is_owed_ends_unsent(relay: Relay, receiver: Receiver) -> None:
    made = verified(relay, receiver)
    said = relay.event()
    assert relay.delete(made).status == 204
    relay.deliver_all()
    shown = delivery(relay, said)
    assert (shown["status"], shown["reason"], shown["attempts"]) == ("dead", "endpoint_deleted", [])
    assert receiver.received() == []


def test_a_changed_url_binds_what_is_already_owed(relay: Relay, receiver: Receiver) -> None:
    made = verified(relay, receiver, "/always500")
    relay.event()
    relay.patch(made, {"url": receiver.url("/verify")})
    relay.deliver_all()
    assert [each["path"] for each in receiver.received()] == ["/verify"]


def test_an_endpoint_s_answer_that_is_no_text_is_shown_in_base64(relay: Relay, receiver: Receiver) -> None:
    address = receiver.script("odd", {"status": 200, "body_b64": "/wA="})
    relay.endpoint(url=address)
    said = relay.event()
    relay.deliver_all()
    (attempt,) = delivery(relay, said)["attempts"]
    assert (attempt["response"], attempt["response_base64"]) == (None, "/wA=")
