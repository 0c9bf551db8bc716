"""Every endpoint that is refused, at its creation and at a change: code and field. Nothing is stored."""

from typing import Any

import pytest

from tests.handlers.relay import JSON, URL, Relay

GOOD: dict[str, Any] = {"url": URL, "event_types": ["*"]}
REFUSED_ALWAYS: dict[str, tuple[dict[str, Any], str, str]] = {
    "f130 url the display form": (
        {"url": "https://receiver.example/hook/********?key=********"},
        "field_invalid",
        "url",
    ),
    "url a number": ({"url": 5}, "field_invalid", "url"),
    "no event types": ({"event_types": []}, "field_invalid", "event_types"),
    "event types no list": ({"event_types": "*"}, "field_invalid", "event_types"),
    "event type a number": ({"event_types": [5]}, "field_invalid", "event_types.0"),
    "too many event types": ({"event_types": [f"t{n}" for n in range(51)]}, "field_invalid", "event_types"),
    "event type empty": ({"event_types": [""]}, "field_invalid", "event_types"),
    "event type with a space": ({"event_types": ["order paid"]}, "field_invalid", "event_types"),
    "star in the middle": ({"event_types": ["order.*.paid"]}, "field_invalid", "event_types"),
    "two stars": ({"event_types": ["**"]}, "field_invalid", "event_types"),
    "event type beyond ASCII": ({"event_types": ["ü"]}, "field_invalid", "event_types"),
    "event type too long": ({"event_types": ["x" * 129]}, "field_invalid", "event_types"),
    "description too long": ({"description": "x" * 501}, "field_invalid", "description"),
    "f022 description half a surrogate": ({"description": "\ud83d"}, "field_invalid", "description"),
    "rate 0": ({"rate_per_second": 0}, "field_invalid", "rate_per_second"),
    "rate a decimal": ({"rate_per_second": 1.5}, "field_invalid", "rate_per_second"),
    "rate a text": ({"rate_per_second": "10"}, "field_invalid", "rate_per_second"),
    "rate a truth": ({"rate_per_second": True}, "field_invalid", "rate_per_second"),
    "rate too high": ({"rate_per_second": 100_001}, "field_invalid", "rate_per_second"),
    "burst negative": ({"burst": -1}, "field_invalid", "burst"),
    "burst too high": ({"burst": 100_001}, "field_invalid", "burst"),
    "no concurrency": ({"max_concurrency": 0}, "field_invalid", "max_concurrency"),
    "too much concurrency": ({"max_concurrency": 1_001}, "field_invalid", "max_concurrency"),
    "unknown profile": ({"retry_profile": "never"}, "field_invalid", "retry_profile"),
    "unknown signature": ({"signature": "none"}, "field_invalid", "signature"),
    "headers a list": ({"headers": [["a", "b"]]}, "field_invalid", "headers"),
    "too many headers": ({"headers": {f"x{n}": "1" for n in range(21)}}, "field_invalid", "headers"),
    "a header a number": ({"headers": {"x": 5}}, "field_invalid", "headers.x"),
    "an unknown field": ({"rate": 5}, "field_unknown", "rate"),
    "an id": ({"id": "ep_x"}, "field_unknown", "id"),
    "a secret": ({"secret": "whsec_x"}, "field_invalid", "secret"),
    "a state": ({"state": "enabled"}, "field_unknown", "state"),
}
REFUSED_NEW: dict[str, tuple[dict[str, Any], str, str]] = {
    "no url": ({"url": None}, "field_invalid", "url"),
    "transport unknown": ({"transport": "carrier-pigeon"}, "field_invalid", "transport"),
    "ordering unknown": ({"ordering": "always"}, "field_invalid", "ordering"),
}
REFUSED_CHANGES: dict[str, tuple[dict[str, Any], str, str]] = {
    "another transport": ({"transport": "http"}, "field_unknown", "transport"),
    "another ordering": ({"ordering": "endpoint"}, "field_invalid", "ordering"),
    "an unknown ordering": ({"ordering": "always"}, "field_invalid", "ordering"),
}
F039 = {
    "line break in a value": {"x": "a\r\nX-Evil: 1"},
    "line feed and blank in a value": {"x": "a\n b"},
    "NUL in a value": {"x": "a\x00b"},
    "value ending in a line feed": {"x": "a\n"},
    "value beyond ASCII": {"x": "é"},
    "value empty": {"x": ""},
    "value of blanks": {"x": "  "},
    "value too long": {"x": "v" * 2_049},
    "f130 value the mask": {"x": "********"},
    "name with a blank": {"bad name": "1"},
    "name with a colon": {"a:b": "1"},
    "name with a line break": {"a\r\nb": "1"},
    "name empty": {"": "1"},
    "name beyond ASCII": {"é": "1"},
    "name too long": {"n" * 129: "1"},
    "name twice": {"X-A": "1", "x-a": "2"},
    "Host": {"Host": "x"},
    "Content-Length": {"content-length": "1"},
    "Transfer-Encoding": {"Transfer-Encoding": "chunked"},
    "one of Relay's": {"Relay-Signature": "v1=00"},
    "one of Relay's that is not used yet": {"RELAY-anything": "1"},
    "one of the standard form's": {"webhook-id": "1"},
}
URLS = {
    "no scheme": "receiver.example/hook",
    "no host": "https:///hook",
    "scheme only": "https:",
    "empty": "",
    "ftp": "ftp://receiver.example/",
    "http": "http://receiver.example/",
    "script": "javascript:alert(1)",
    "user name": "https://user@receiver.example/",
    "password": "https://user:pass@receiver.example/",
    "empty user name": "https://@receiver.example/",
    "fragment": "https://receiver.example/#a",
    "empty fragment": "https://receiver.example/#",
    "control character": "https://receiver.example/\x07",
    "line break": "https://receiver.example/\r\nX-Evil: 1",
    "tab": "https://receiver.exa\tmple/",
    "blank": "https://receiver.example/a b",
    "leading blank": " https://receiver.example/",
    "backslash": "https://receiver.example\\@evil.example/",
    "path beyond ASCII": "https://receiver.example/é",
    "2,049 characters": "https://receiver.example/" + "x" * 2_024,
    "70,000 characters": "https://receiver.example/" + "x" * 70_000,
    "port 0": "https://receiver.example:0/",
    "port 22": "https://receiver.example:22/",
    "port 99999": "https://receiver.example:99999/",
    "empty port": "https://receiver.example:/",
    "port in words": "https://receiver.example:https/",
    "host ending in a hyphen": "https://-a-.example/",
    "label too long": f"https://{'x' * 64}.example/",
    "host a number": "https://2130706433/",
    "host half a surrogate": "https://\ud83d.example/",
}
PRIVATE = [
    "127.0.0.1", "10.1.2.3", "192.168.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",  # noqa: S104 - refused
    "[::1]", "[fe80::1]", "[fd00::1]", "[::ffff:10.0.0.1]", "[64:ff9b::a00:1]", "[2002:a00:1::]",
]  # fmt: skip


def cases(*tables: dict[str, tuple[dict[str, Any], str, str]]) -> list[Any]:
    return [pytest.param(*case, id=name) for table in tables for name, case in table.items()]


@pytest.mark.parametrize("fields, code, field", cases(REFUSED_ALWAYS, REFUSED_NEW))
def test_a_bad_endpoint_is_refused(empty_relay: Relay, fields: dict[str, Any], code: str, field: str) -> None:
    answer = empty_relay.post("/v1/endpoints", {**GOOD, **fields})
    assert answer.is_problem(400, code, field), answer.body
    assert answer.json["expected"]
    assert empty_relay.wrote_nothing()


def test_a_bad_change_is_refused_and_changes_nothing(relay: Relay) -> None:
    made = relay.endpoint()
    kept = [relay.rows(table) for table in ("endpoints", "subs", "gates")]
    for fields, code, field in {**REFUSED_ALWAYS, **REFUSED_CHANGES}.values():
        assert relay.patch(made, fields).is_problem(400, code, field), fields
    for headers in F039.values():
        assert relay.patch(made, {"headers": headers}).is_problem(400, "field_invalid", "headers"), headers
    assert relay.patch(made, {"url": "https://user@x.example"}).is_problem(400, "url_invalid", "url")
    assert [relay.rows(table) for table in ("endpoints", "subs", "gates")] == kept


@pytest.mark.parametrize("headers", F039.values(), ids=F039.keys())
def test_f039_a_header_that_cannot_be_sent_is_refused(empty_relay: Relay, headers: dict[str, str]) -> None:
    answer = empty_relay.post("/v1/endpoints", {**GOOD, "headers": headers})
    assert answer.is_problem(400, "field_invalid", "headers"), answer.body
    assert "v" * 100 not in answer.json["detail"]
    assert empty_relay.wrote_nothing()


@pytest.mark.parametrize("url", URLS.values(), ids=URLS.keys())
def test_a_bad_url_is_refused(empty_guarded: Relay, url: str) -> None:
    answer = empty_guarded.post("/v1/endpoints", {**GOOD, "url": url})
    assert answer.is_problem(400, "url_invalid", "url"), answer.body
    assert answer.json["expected"]
    assert len(answer.body) < 600
    assert empty_guarded.wrote_nothing()


def test_a_url_of_2048_characters_is_taken(guarded: Relay) -> None:
    url = "https://receiver.example/" + "x/" * 1_011 + "x"
    assert guarded.endpoint(url=url)["url"] == url


@pytest.mark.parametrize("host", PRIVATE)
def test_a_private_address_is_refused_without_being_named(empty_guarded: Relay, host: str) -> None:
    answer = empty_guarded.post("/v1/endpoints", {**GOOD, "url": f"https://{host}/"})
    assert answer.is_problem(400, "destination_not_allowed", "url"), answer.body
    assert host.strip("[]").encode() not in answer.body
    assert empty_guarded.wrote_nothing()


BODIES = {
    "empty": (b"", 400, "body_empty", ""),
    "a list": (b"[]", 400, "field_invalid", ""),
    "null": (b"null", 400, "field_invalid", ""),
    "cut off": (b"{", 400, "body_not_json", ""),
    "f025 byte-order mark": (b"\xef\xbb\xbf{}", 400, "body_not_json", ""),
    "f029 NaN": (b'{"burst":NaN}', 400, "body_not_json", ""),
    "a long number": (b'{"burst":' + b"9" * 5_000 + b"}", 400, "body_not_json", ""),
    "a number of an endless size": (b'{"burst":1e9999999999999999999}', 400, "body_not_json", ""),
    "a number of no size": (b'{"burst":1e-9999999999999999999}', 400, "body_not_json", ""),
    "f026 a name twice": (b'{"burst":1,"burst":2}', 400, "body_not_json", "burst"),
    "not UTF-8": (b'{"description":"\xff"}', 400, "body_not_utf8", ""),
    "5,000 levels": (b'{"url":' + b"[" * 5_000 + b"]" * 5_000 + b"}", 400, "body_too_deep", ""),
    "a byte too many": (b" " * 131_073, 413, "body_too_large", ""),
}


@pytest.mark.parametrize("body, status, code, field", BODIES.values(), ids=BODIES.keys())
def test_a_body_that_is_no_json_object_is_refused(
    empty_relay: Relay, body: bytes, status: int, code: str, field: str
) -> None:
    answer = empty_relay.call("POST", "/v1/endpoints", body, JSON)
    assert answer.is_problem(status, code, field), answer.body
    assert "sys." not in answer.json["detail"]
    assert empty_relay.wrote_nothing()


def test_such_a_body_is_no_change_either(tenant: Relay) -> None:
    made = tenant.endpoint()
    path = f"/v1/endpoints/{made['id']}"
    for body, status, code, field in BODIES.values():
        answer = tenant.call("PATCH", path, body, {**JSON, "If-Match": '"1"'})
        assert answer.is_problem(status, code, field), answer.body
    assert tenant.get(path).json["version"] == 1


def test_several_unknown_fields_are_all_named(empty_relay: Relay) -> None:
    answer = empty_relay.post("/v1/endpoints", {**GOOD, "one": 1, "two": 2})
    assert answer.json["detail"] == "Unknown field: one, two."
    assert answer.json["expected"].startswith("any of: url, event_types")
