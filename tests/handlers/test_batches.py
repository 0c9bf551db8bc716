"""Many events at once: each item is accepted or refused on its own, in its place, and kept byte for byte."""

import base64
import json
from typing import Any

import pytest

from tests.handlers.relay import JSON, Relay

ORDER = {"type": "order.paid", "payload": "{}"}
EMOJI = "😊 café … 漢"
EVERY_BYTE = bytes(range(256))
LIMIT = 262_144
BATCH_LIMIT = 4_194_304


def coded(body: bytes) -> str:
    return base64.b64encode(body).decode()


def payload(relay: Relay, result: Any) -> tuple[bytes, str]:  # noqa: ANN401 - one result's JSON
    assert result["status"] == 202, result
    answer = relay.get(f"/v1/events/{result['event_id']}/payload")
    return answer.body, answer.headers["content-type"]


def is_refused(result: Any, status: int, code: str, field: str) -> bool:  # noqa: ANN401 - one result's JSON
    assert result.keys() == {"status", "error"}
    error = result["error"]
    assert error["status"] == result["status"]
    return (result["status"], error["code"], error.get("field", "")) == (status, code, field)


def test_each_event_has_its_own_answer_in_its_place(relay: Relay) -> None:
    relay.endpoint(event_types=["order.*"])
    bad: dict[str, Any] = {**ORDER, "type": "not a type"}
    first, second, third, fourth = relay.batch(ORDER, bad, {**ORDER, "type": "user.made"}, ORDER)
    assert list(first) == ["status", "event_id", "delivery_ids", "fan_out"]
    assert is_refused(second, 400, "event_type_invalid", "type")
    assert [each["fan_out"] for each in (first, third, fourth)] == ["inline", "none", "inline"]
    assert relay.stored_events() == sorted(each["event_id"] for each in (first, third, fourth))
    assert len(relay.rows("owed")) == 2


def test_events_of_a_batch_ring_their_lane_once(relay: Relay) -> None:
    relay.endpoint()
    results = relay.batch(ORDER, ORDER, ORDER)
    ((bell,),) = relay.rung().values()
    hinted = [hint[0] for hint in json.loads(bell["Body"])["hints"]]
    assert hinted == [each["delivery_ids"][0] for each in results]


ITEMS = {
    "f001_odd_json": ({"payload": '{ "a":1.0 }\n'}, b'{ "a":1.0 }\n', "application/json"),
    "emoji": ({"payload": json.dumps(EMOJI)}, json.dumps(EMOJI).encode(), "application/json"),
    "raw_emoji": ({"payload": f'"{EMOJI}"'}, f'"{EMOJI}"'.encode(), "application/json"),
    "f022_escape_inside": ({"payload": '"\\ud83d"'}, b'"\\ud83d"', "application/json"),
    "f032_text": (
        {"payload": "alert 😱", "content_type": "text/plain"},
        "alert 😱".encode(),
        "text/plain; charset=utf-8",
    ),
    "text_in_utf_8": (
        {"payload": "é", "content_type": 'text/plain; charset="UTF-8"'},
        "é".encode(),
        'text/plain; charset="UTF-8"',
    ),
    "f034_form": (
        {"payload": "a=%E2%80%8B", "content_type": "application/x-www-form-urlencoded"},
        b"a=%E2%80%8B",
        "application/x-www-form-urlencoded",
    ),
    "binary": (
        {"payload_base64": coded(EVERY_BYTE), "content_type": "application/octet-stream"},
        EVERY_BYTE,
        "application/octet-stream",
    ),
    "latin_1_bytes": (
        {"payload_base64": coded("é".encode("latin-1")), "content_type": "text/plain; charset=latin-1"},
        b"\xe9",
        "text/plain; charset=latin-1",
    ),
    "json_in_base64": ({"payload_base64": coded(b'{"a": 1}')}, b'{"a": 1}', "application/json"),
    "nothing_else": (
        {"payload": "{}", "content_type": None, "payload_base64": None},
        b"{}",
        "application/json",
    ),
}


@pytest.mark.parametrize("item, body, content_type", ITEMS.values(), ids=ITEMS.keys())
def test_an_item_s_bytes_come_back(
    tenant: Relay, item: dict[str, Any], body: bytes, content_type: str
) -> None:
    (result,) = tenant.batch({"type": "order.paid", **item})
    assert payload(tenant, result) == (body, content_type)


def test_an_item_without_a_type_has_that_of_its_json(tenant: Relay) -> None:
    (result,) = tenant.batch({"payload": '{"type":"order.paid"}'})
    assert tenant.get(f"/v1/events/{result['event_id']}").json["type"] == "order.paid"


BAD_ITEMS = {
    "no object": (5, 400, "field_invalid", ""),
    "null": (None, 400, "field_invalid", ""),
    "no bytes": ({"type": "t"}, 400, "field_invalid", "payload"),
    "bytes twice": ({**ORDER, "payload_base64": "e30="}, 400, "field_invalid", "payload"),
    "an object as payload": ({"type": "t", "payload": {}}, 400, "field_invalid", "payload"),
    "an unknown field": ({**ORDER, "topic": "x"}, 400, "field_unknown", "topic"),
    "empty": ({"type": "t", "payload": ""}, 400, "body_empty", ""),
    "empty base64": ({"type": "t", "payload_base64": ""}, 400, "body_empty", ""),
    "no base64": ({"type": "t", "payload_base64": "e30"}, 400, "field_invalid", "payload_base64"),
    "base64 with blanks": ({"type": "t", "payload_base64": "e3 0="}, 400, "field_invalid", "payload_base64"),
    "base64 for URLs": ({"type": "t", "payload_base64": "_-8="}, 400, "field_invalid", "payload_base64"),
    "base64 beyond ASCII": ({"type": "t", "payload_base64": "é"}, 400, "field_invalid", "payload_base64"),
    "f022 half a surrogate": ({"type": "t", "payload": '"\ud83d"'}, 400, "field_invalid", "payload"),
    "not JSON": ({"type": "t", "payload": "hello"}, 400, "body_not_json", ""),
    "not UTF-8": ({"type": "t", "payload_base64": coded(b'"\xff"')}, 400, "body_not_utf8", ""),
    "no type": ({"payload": "{}"}, 400, "event_type_missing", "type"),
    "a type that is none": ({**ORDER, "type": "order paid"}, 400, "event_type_invalid", "type"),
    "a number as type": ({**ORDER, "type": 5}, 400, "field_invalid", "type"),
    "two types": ({"type": "a", "payload": '{"type":"b"}'}, 400, "event_type_conflict", "type"),
    "a bad key": ({**ORDER, "idempotency_key": ""}, 400, "idempotency_key_invalid", "idempotency_key"),
    "a bad content type": ({**ORDER, "content_type": "json"}, 400, "content_type_invalid", "content_type"),
    "an empty content type": ({**ORDER, "content_type": ""}, 400, "content_type_invalid", "content_type"),
    "f032 a charset that it is not sent in": (
        {"type": "t", "payload": "é", "content_type": "text/plain; charset=latin-1"},
        400,
        "content_type_invalid",
        "content_type",
    ),
    "a byte too many": ({"type": "t", "payload": '"' + "x" * (LIMIT - 1) + '"'}, 413, "body_too_large", ""),
}


@pytest.mark.parametrize("item, status, code, field", BAD_ITEMS.values(), ids=BAD_ITEMS.keys())
def test_a_bad_item_is_refused_alone(
    empty_relay: Relay, item: object, status: int, code: str, field: str
) -> None:
    (result,) = empty_relay.batch(item)
    assert is_refused(result, status, code, field), result
    assert result["error"]["detail"].endswith(".")
    assert empty_relay.wrote_nothing()


def test_all_bad_items_leave_the_good_ones_alone(relay: Relay) -> None:
    items = [each[0] for each in BAD_ITEMS.values()]
    results = relay.batch(*items, ORDER)
    assert [each["status"] for each in results[:-1]] == [each[1] for each in BAD_ITEMS.values()]
    assert relay.stored_events() == [results[-1]["event_id"]]


def test_one_key_twice_in_a_batch_is_one_event(relay: Relay) -> None:
    relay.endpoint()
    keyed = {**ORDER, "idempotency_key": "k"}
    first, other, again, conflict = relay.batch(keyed, ORDER, keyed, {**keyed, "type": "order.sent"})
    assert again == {**first, "idempotent_replay": True}
    assert is_refused(conflict, 409, "idempotency_conflict", "idempotency_key")
    assert relay.stored_events() == sorted([first["event_id"], other["event_id"]])
    assert len(relay.rows("owed")) == 2


def test_a_batch_repeated_under_its_keys_stores_nothing_new(relay: Relay) -> None:
    items = [{**ORDER, "idempotency_key": f"k{number}"} for number in range(5)]
    first = relay.batch(*items)
    again = relay.batch(*items)
    assert again == [{**each, "idempotent_replay": True} for each in first]
    assert len(relay.stored_events()) == 5


def test_an_item_s_key_is_that_of_a_single_post(tenant: Relay) -> None:
    (first,) = tenant.batch({**ORDER, "idempotency_key": "k"})
    repeat = tenant.call(
        "POST", "/v1/events", b"{}", {"Relay-Event-Type": "order.paid", "Idempotency-Key": "k"}
    )
    assert repeat.json["event_id"] == first["event_id"]
    assert repeat.headers["relay-idempotent-replay"] == "true"


def test_a_hundred_events_are_taken(relay: Relay) -> None:
    results = relay.batch(*[ORDER] * 100)
    assert {each["status"] for each in results} == {202}
    assert len(set(relay.stored_events())) == 100


BAD_BATCHES = {
    "empty": (b"", 400, "body_empty", ""),
    "not JSON": (b"{", 400, "body_not_json", ""),
    "f025 byte-order mark": (
        b'\xef\xbb\xbf{"events":[{"type":"t","payload":"{}"}]}',
        400,
        "body_not_json",
        "",
    ),
    "not UTF-8": (b'{"events":["\xff"]}', 400, "body_not_utf8", ""),
    "f029 NaN": (b'{"events":[NaN]}', 400, "body_not_json", ""),
    "a list": (b"[]", 400, "field_invalid", ""),
    "no events": (b"{}", 400, "field_invalid", "events"),
    "an empty list": (b'{"events":[]}', 400, "field_invalid", "events"),
    "no list": (b'{"events":{}}', 400, "field_invalid", "events"),
    "an unknown field": (b'{"events":[{}],"mode":"fast"}', 400, "field_unknown", "mode"),
    "events twice": (b'{"events":[{}],"events":[{}]}', 400, "body_not_json", "events"),
    "f026 type twice": (b'{"events":[{"type":"a","type":"b","payload":"{}"}]}', 400, "body_not_json", "type"),
    "5,000 levels": (b'{"events":' + b"[" * 5_000 + b"]" * 5_000 + b"}", 400, "body_too_deep", ""),
    "101 events": (json.dumps({"events": [ORDER] * 101}).encode(), 400, "field_invalid", "events"),
    "a byte too many": (b" " * (BATCH_LIMIT + 1), 413, "body_too_large", ""),
}


@pytest.mark.parametrize("body, status, code, field", BAD_BATCHES.values(), ids=BAD_BATCHES.keys())
def test_a_bad_batch_is_refused_as_a_whole(
    empty_relay: Relay, body: bytes, status: int, code: str, field: str
) -> None:
    answer = empty_relay.call("POST", "/v1/events/batch", body, JSON)
    assert answer.is_problem(status, code, field), answer.body
    assert empty_relay.wrote_nothing()


def test_a_batch_at_its_limit_is_taken_whole(tenant: Relay) -> None:
    body = json.dumps({"events": [{"type": "t", "payload": '"' + "x" * 200_000 + '"'}] * 20}).encode()
    answer = tenant.call("POST", "/v1/events/batch", body + b" " * (BATCH_LIMIT - len(body)), JSON)
    assert answer.status == 207
    assert {each["status"] for each in answer.json["results"]} == {202}


def test_the_limits_are_named(empty_relay: Relay) -> None:
    many = empty_relay.post("/v1/events/batch", {"events": [ORDER] * 101})
    assert (many.json["detail"], many.json["expected"]) == ("The batch has 101 events.", "at most 100 events")
    large = empty_relay.call("POST", "/v1/events/batch", b" " * (BATCH_LIMIT + 1))
    assert large.json["detail"] == "The body has 4194305 bytes; the limit is 4194304 bytes."
