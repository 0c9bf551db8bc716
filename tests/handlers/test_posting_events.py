"""What happens to an event that is accepted: its bytes, its ids, its bells."""

import base64
import json
import random

import pytest

from chalicelib.domain import ids
from tests.handlers.conftest import MakeRelay
from tests.handlers.relay import SHARDS, Relay, invoke, proxy_event, typed

LIMIT = 262_144
ODD_JSON = b'{"a": 1.0,  "b":"\\u2028x","c":[ ],"type":"order.paid"}\n'
EMOJI = '{"type":"t","t":"😊 café … 漢"}'.encode()
EVERY_BYTE = bytes(range(256))
INCOMPRESSIBLE = random.Random(7).randbytes(9_000)
FORM = "application/x-www-form-urlencoded"
TYPED = typed("order.paid")


def payload_of(relay: Relay, event_id: str) -> bytes:
    answer = relay.get(f"/v1/events/{event_id}/payload")
    assert answer.status == 200
    return answer.body


def test_an_event_is_accepted_with_the_ids_of_what_it_owes(tenant: Relay) -> None:
    takers = [tenant.endpoint(event_types=["order.*"])["id"], tenant.endpoint()["id"]]
    tenant.endpoint(event_types=["user.*"])
    answer = tenant.call("POST", "/v1/events", b'{"type":"order.paid"}')
    assert (answer.status, answer.headers["content-type"]) == (202, "application/json")
    assert "relay-idempotent-replay" not in answer.headers
    said = answer.json
    assert list(said) == ["event_id", "delivery_ids", "fan_out"]
    assert ids.is_id(said["event_id"], "evt")
    assert said["delivery_ids"] == [ids.delivery_id(said["event_id"], each) for each in sorted(takers)]
    assert said["fan_out"] == "inline"


def test_what_a_202_names_is_stored_and_rung(relay: Relay) -> None:
    endpoint = relay.endpoint()
    said = relay.event()
    assert relay.stored_events() == [said["event_id"]]
    (owed,) = relay.rows("owed")
    (created,) = relay.rows("history")
    assert said["delivery_ids"][0] in owed["sk"]["S"]
    assert created["sk"]["S"].startswith(said["delivery_ids"][0])
    ((bell,),) = relay.rung().values()
    assert bell["Attributes"]["MessageGroupId"] == f"default#{endpoint['id']}#0"


def test_no_matching_endpoint_is_a_202_that_says_so_and_the_event_is_kept(relay: Relay) -> None:
    relay.endpoint(event_types=["user.*"])
    said = relay.event()
    assert (said["delivery_ids"], said["fan_out"]) == ([], "none")
    assert relay.rows("owed") == []
    assert relay.bells() == {}
    (listed,) = relay.get("/v1/events").json["items"]
    assert (listed["id"], listed["fan_out"]) == (said["event_id"], "none")


@pytest.mark.parametrize(
    "headers",
    [{}, {"Relay-Event-Type": "order.paid"}, {"relay-event-TYPE": "order.paid", "content-type": "text/json"}],
    ids=["body", "both", "any case"],
)
def test_the_type_comes_from_the_body_or_the_header(tenant: Relay, headers: dict[str, str]) -> None:
    said = tenant.event(b'{"type":"order.paid"}', headers)
    assert tenant.get(f"/v1/events/{said['event_id']}").json["type"] == "order.paid"


def test_a_type_may_have_128_characters(tenant: Relay) -> None:
    said = tenant.event(b"{}", typed("x" * 128))
    assert tenant.get(f"/v1/events/{said['event_id']}").json["type"] == "x" * 128


BODIES = {
    "f001_odd_spacing": (ODD_JSON, {}),
    "f022_half_surrogate": (b'{"type":"t","t":"\\ud83d"}', {}),
    "f026_equal_keys_inside_data": (b'{"type":"t","data":{"x":1,"x":2},"x":1,"x":2}', {}),
    "f028_decimals": (b'{"type":"t","amt":30.40,"e":1e2,"z":1.10,"t":0.1}', {}),
    "f029_beyond_every_float": (b'{"type":"t","v":1e400,"w":' + b"9" * 5_000 + b"}", {}),
    "f031_invisible_characters": ('{"type":"t","data":"a\u200bb"}'.encode(), {}),
    "f031_form_with_invisible_characters": (b"data=a%E2%80%8Bb", typed("t", FORM)),
    "f032_text": ("alert 😱".encode(), typed("t", "text/plain")),
    "f034_form": (b"a=1&b=%20&a=2", typed("t", FORM + "; charset=utf-8")),
    "f036_null": (b"null", TYPED),
    "f036_zero": (b"0", TYPED),
    "f036_empty_text": (b'""', TYPED),
    "f036_empty_list": (b"[]", TYPED),
    "emoji": (EMOJI, {}),
    "spaces around": (b' \r\n{"type":"t"}\t\n', {}),
    "500 levels": (b'{"type":"t","a":' + b"[" * 499 + b"]" * 499 + b"}", {}),
    "brackets in text": (b'{"type":"t","a":"' + b"[{" * 5_000 + b'\\""}', {}),
    "text in latin-1": ("café".encode("latin-1"), typed("t", "text/plain; charset=iso-8859-1")),
    "binary": (EVERY_BYTE, typed("t", "application/octet-stream")),
    "xml": ("\ufeff<a/>".encode(), typed("t", "application/xml")),
    "one byte": (b"\x00", typed("t", "application/octet-stream")),
    "over the inline limit": (INCOMPRESSIBLE, typed("t", "image/png")),
}


@pytest.mark.parametrize("body, headers", BODIES.values(), ids=BODIES.keys())
def test_the_bytes_posted_come_back(tenant: Relay, body: bytes, headers: dict[str, str]) -> None:
    said = tenant.event(body, headers)
    answer = tenant.get(f"/v1/events/{said['event_id']}/payload")
    assert answer.body == body
    assert answer.headers["content-type"] == headers.get("Content-Type", "application/json")
    shown = tenant.get(f"/v1/events/{said['event_id']}").json
    assert (shown["size_bytes"], shown["content_type"]) == (len(body), answer.headers["content-type"])


def test_only_what_does_not_shrink_to_the_inline_limit_is_kept_apart(relay: Relay) -> None:
    relay.event(b"x" * 100_000, typed("t", "text/plain"))
    assert relay.stored_payloads() == []
    said = relay.event(INCOMPRESSIBLE, typed("t", "image/png"))
    assert relay.stored_payloads() == [f"default/{said['event_id']}"]


def test_f004_base64_or_plain_the_gateway_s_form_makes_no_difference(relay: Relay) -> None:
    coded = proxy_event("POST", "/v1/events", EMOJI)
    assert coded["isBase64Encoded"] is True
    assert base64.b64decode(coded["body"]) == EMOJI
    plain = {**coded, "body": EMOJI.decode(), "isBase64Encoded": False}
    bodies = [payload_of(relay, invoke(event).json["event_id"]) for event in (coded, plain)]
    assert bodies == [EMOJI, EMOJI]


def test_the_sample_request_is_accepted(relay: Relay) -> None:
    event = relay.sample("api_proxy")
    answer = invoke(event)
    assert answer.status == 202, answer.body
    (stored,) = relay.get("/v1/events").json["items"]
    assert payload_of(relay, stored["id"]) == event["body"].encode()


def test_f018_an_id_is_never_the_producer_s(tenant: Relay) -> None:
    said = tenant.event(headers={"Idempotency-Key": "evt_1.1700000000.{}"})
    for each in (said["event_id"], *said["delivery_ids"]):
        assert set(each) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")


@pytest.mark.parametrize("character", ["x", "漢"], ids=["ascii", "three bytes"])
@pytest.mark.parametrize("size", [LIMIT, LIMIT + 1, 399_000, 409_600, 1_048_576, 1_048_577])
def test_f037_a_body_is_kept_whole_or_refused_with_the_limit(
    tenant: Relay, character: str, size: int
) -> None:
    frame = b'{"type":"t","a":""}'
    room = size - len(frame)
    fill = character.encode() * (room // len(character.encode()))
    body = frame[:-2] + fill + b"x" * (room - len(fill)) + frame[-2:]
    answer = tenant.call("POST", "/v1/events", body)
    if size <= LIMIT:
        assert payload_of(tenant, answer.json["event_id"]) == body
    else:
        assert answer.is_problem(413, "body_too_large")
        assert f"{size} bytes" in answer.json["detail"]
        assert str(LIMIT) in answer.json["expected"]
        assert tenant.wrote_nothing()


def test_a_caller_who_accepts_only_json_is_answered(tenant: Relay) -> None:
    answer = tenant.call("POST", "/v1/events", EMOJI, {"Accept": "application/json"})
    assert answer.status == 202


def test_without_a_key_nothing_is_deduplicated(relay: Relay) -> None:
    answers = [relay.event() for _ in range(3)]
    assert relay.stored_events() == sorted(each["event_id"] for each in answers)
    assert relay.rows("idempotency") == []


def test_more_endpoints_than_fit_are_fanned_out_later(make_relay: MakeRelay) -> None:
    relay = make_relay(RELAY_INLINE_FANOUT_MAX="1", RELAY_ALLOW_KEYLESS="true")
    for _ in range(2):
        relay.endpoint()
    said = relay.event()
    assert (said["delivery_ids"], said["fan_out"]) == ([], "later")
    assert len(relay.rows("fanouts")) == 1
    (call,) = relay.messages("fan-out")
    assert json.loads(call["Body"]) == {"tenant": "default", "event_id": said["event_id"]}


def test_a_failing_subscription_read_is_fanned_out_later(relay: Relay) -> None:
    relay.endpoint()
    relay.drop_table("subs")
    assert relay.event()["fan_out"] == "later"
    assert len(relay.rows("fanouts")) == 1


def test_f113_an_event_that_could_not_be_rung_is_still_owed(relay: Relay) -> None:
    relay.endpoint()
    for queue in ("shard-0", "shard-1", "shard-2", "shard-3"):
        relay.drop_queue(queue)
    said = relay.event()
    (owed,) = relay.rows("owed")
    assert said["delivery_ids"][0] in owed["sk"]["S"]
    (gate,) = relay.rows("gates")
    assert "armed_until" in gate


def test_f113_one_queue_s_failure_loses_no_other_s_bells(relay: Relay) -> None:
    takers = [relay.endpoint()["id"] for _ in range(8)]
    shards = [f"shard-{int(ids.endpoint_tag(each), 16) % SHARDS}" for each in takers]
    relay.drop_queue(shards[0])
    said = relay.event()
    assert len(said["delivery_ids"]) == len(relay.rows("owed")) == len(takers)
    for shard in set(shards[1:]) - {shards[0]}:
        assert relay.waiting(shard) == (shards.count(shard), 0, 0)


def test_f113_an_event_that_could_not_be_stored_is_a_503_and_rings_nothing(relay: Relay) -> None:
    relay.endpoint()
    relay.drop_table("owed")
    answer = relay.call("POST", "/v1/events", b'{"type":"order.paid"}')
    assert answer.is_problem(503, "unavailable")
    assert relay.stored_events() == []
    assert relay.rows("history") == []
    assert relay.bells() == {}
