"""Every event that is refused: its status, code, field and what would be right. Nothing of it is stored."""

from dataclasses import dataclass, field

import pytest

from tests.handlers.relay import Relay, invoke, proxy_event, typed

GOOD = b'{"type":"order.paid"}'
TYPE = "Relay-Event-Type"
KEY = "Idempotency-Key"


@dataclass(frozen=True)
class Refused:
    code: str
    body: bytes = GOOD
    headers: dict[str, str] = field(default_factory=dict)
    field: str = ""
    expected: str = ""
    status: int = 400


def bad_type(name: str) -> Refused:
    return Refused("event_type_invalid", b"{}", {TYPE: name}, TYPE, "such as order.paid")


def bad_type_in_body(value: str) -> Refused:
    return Refused("event_type_invalid", f'{{"type":{value}}}'.encode(), {}, "type", "such as order.paid")


def no_type(body: bytes) -> Refused:
    return Refused("event_type_missing", body, {}, TYPE, "header Relay-Event-Type")


def not_json(body: bytes) -> Refused:
    return Refused("body_not_json", body, {TYPE: "t"}, "", "JSON")


def twice(body: bytes, headers: dict[str, str] | None = None) -> Refused:
    return Refused("body_not_json", body, headers or {}, "type", "one `type`")


def bad_key(key: str) -> Refused:
    return Refused("idempotency_key_invalid", GOOD, {KEY: key}, KEY, "1 to 255 printable ASCII")


def bad_media_type(content_type: str) -> Refused:
    headers = typed("t", content_type)
    return Refused("content_type_invalid", b"{}", headers, "Content-Type", "printable ASCII, at most 256")


REFUSED = {
    "f036 empty": Refused("body_empty", b"", {TYPE: "t"}, "", "at least one byte"),
    "f036 empty without a type": Refused("body_empty", b"", {}, "", "at least one byte"),
    "empty text": Refused("body_empty", b"", typed("t", "text/plain"), "", "at least one byte"),
    "f036 null": no_type(b"null"),
    "f036 scalar": no_type(b"0"),
    "f036 text": no_type(b'""'),
    "f036 array": no_type(b"[]"),
    "array of an object": no_type(b'[{"type":"order.paid"}]'),
    "no type": no_type(b'{"a":1}'),
    "type deeper": no_type(b'{"data":{"type":"order.paid"}}'),
    "type null": no_type(b'{"type":null}'),
    "text without a header": Refused(
        "event_type_missing", b"hello", {"Content-Type": "text/plain"}, TYPE, "header Relay-Event-Type"
    ),
    "type empty": bad_type(""),
    "type too long": bad_type("x" * 129),
    "type with a space": bad_type("order paid"),
    "type with a hyphen": bad_type("order-paid"),
    "type with a star": bad_type("order.*"),
    "type with a control character": bad_type("order\x07paid"),
    "f039 type with a line break": bad_type("order\r\nX-Evil: 1"),
    "type ending in a line feed": bad_type("order.paid\n"),
    "type beyond ASCII": bad_type("bestellung.bezahlt.ü"),
    "f031 type with a zero-width space": bad_type("user\u200b.created"),
    "type with another script's digits": bad_type("order.\u0661"),
    "body type empty": bad_type_in_body('""'),
    "body type too long": bad_type_in_body('"' + "x" * 129 + '"'),
    "body type with a space": bad_type_in_body('"order paid"'),
    "body type with a control character": bad_type_in_body('"order\\u0007paid"'),
    "body type beyond ASCII": bad_type_in_body('"ü"'),
    "f022 body type half a surrogate": bad_type_in_body('"\\ud83d"'),
    "body type a number": bad_type_in_body("5"),
    "body type a decimal": bad_type_in_body("1.5"),
    "body type a truth": bad_type_in_body("true"),
    "body type a list": bad_type_in_body('["order.paid"]'),
    "body type an object": bad_type_in_body("{}"),
    "types differ": Refused(
        "event_type_conflict", GOOD, {TYPE: "order.sent"}, "type", "the same name in both"
    ),
    "types differ in kind": Refused(
        "event_type_conflict", b'{"type":5}', {TYPE: "5"}, "type", "the same name"
    ),
    "f026 type twice": twice(b'{"type":"a","type":"b","data":{}}'),
    "f026 type twice the same": twice(b'{"type":"a","type":"a"}'),
    "f026 type twice, once escaped": twice(b'{"type":"a","\\u0074ype":"b"}'),
    "f026 type twice beside the header": twice(b'{"type":"a","type":"b"}', {TYPE: "a"}),
    "not JSON": not_json(b"hello"),
    "JSON cut off": not_json(b'{"type":"a"'),
    "JSON twice": not_json(b'{"type":"a"}{}'),
    "a control character in a JSON text": not_json(b'{"a":"\x00"}'),
    "f025 byte-order mark": not_json(b"\xef\xbb\xbf{}"),
    "f029 NaN": not_json(b'{"v":NaN}'),
    "f029 infinity": not_json(b'{"v":Infinity}'),
    "f029 minus infinity": not_json(b'{"v":-Infinity}'),
    "JSON by another name": Refused("body_not_json", b"hello", typed("t", "application/cloudevents+json")),
    "JSON in capitals": Refused("body_not_json", b"hello", typed("t", "Application/JSON ; charset=utf-8")),
    "invalid UTF-8": Refused("body_not_utf8", b'{"type":"caf\xe9"}', {}, "", "JSON in UTF-8"),
    "UTF-8 of half a surrogate": Refused("body_not_utf8", b'{"t":"\xed\xa0\xbd"}', {TYPE: "t"}, "", "UTF-8"),
    "UTF-16": Refused("body_not_utf8", '{"type":"ü"}'.encode("utf-16"), {}, "", "JSON in UTF-8"),
    "5,000 levels": Refused(
        "body_too_deep", b"[" * 5_000 + b"]" * 5_000, {TYPE: "t"}, "", "at most 500 levels"
    ),
    "5,000 open levels": Refused("body_too_deep", b'{"a":' * 5_000, {TYPE: "t"}, "", "at most 500 levels"),
    "501 levels": Refused("body_too_deep", b"[" * 501 + b"]" * 501, {TYPE: "t"}, "", "at most 500 levels"),
    "a byte too many": Refused("body_too_large", b"x" * 262_145, typed("t", "text/plain"), "", "262144", 413),
    "key empty": bad_key(""),
    "key too long": bad_key("k" * 256),
    "key with a control character": bad_key("a\tb"),
    "key beyond ASCII": bad_key("schlüssel"),
    "key with a line break": bad_key("a\r\nb"),
    "content type empty": bad_media_type(""),
    "content type no type": bad_media_type("json"),
    "content type beyond ASCII": bad_media_type("text/ü"),
    "content type too long": bad_media_type("text/" + "x" * 256),
    "f039 content type with a line break": bad_media_type("text/plain;\r\nX-Evil: 1"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_a_bad_event_is_refused_and_leaves_nothing(empty_relay: Relay, case: Refused) -> None:
    answer = empty_relay.call("POST", "/v1/events", case.body, case.headers)
    assert answer.is_problem(case.status, case.code, case.field), answer.body
    assert case.expected in answer.json["expected"]
    assert empty_relay.wrote_nothing()


def test_a_key_of_255_characters_is_taken(relay: Relay) -> None:
    assert relay.event(headers={KEY: "k" * 255})


@pytest.mark.parametrize("name", [TYPE, KEY, "Content-Type"])
@pytest.mark.parametrize("second", ["other", "t"])
def test_a_header_that_decides_may_not_be_there_twice(empty_relay: Relay, name: str, second: str) -> None:
    headers = ((name, "t"), (name.lower(), second), (TYPE, "t"))[: 2 if name == TYPE else 3]
    answer = invoke(proxy_event("POST", "/v1/events", b"{}", headers))
    assert answer.is_problem(400, "field_invalid", name)
    assert answer.json["expected"] == "the header once"
    assert empty_relay.wrote_nothing()


def test_a_refusal_is_told_without_a_python_word(empty_relay: Relay) -> None:
    answer = empty_relay.call("POST", "/v1/events", b"\xef\xbb\xbf{}", {TYPE: "t"})
    assert answer.json["detail"] == "The body begins with a byte-order mark."
