"""The inspector over the API: the request of any attempt as the receiver got it, or why there is none."""

import base64
import json
import shlex
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest

from chalicelib.domain.api_key import Role
from tests.handlers.relay import Relay, typed
from tests.receiver import Receiver

SECRET_VALUE = "tok_custom-header-value"
BODIES = {
    "JSON": (b'{"type": "order.paid",  "n":1.0}\n', "application/json"),
    "every byte": (bytes(range(256)), "application/octet-stream"),
    "a quote and an at": (b"@it's $HOME\n", "text/plain; charset=utf-8"),
    "kept apart": (bytes(n * n % 251 for n in range(9_000)), "image/png"),
}

FORMS: dict[str, dict[str, str]] = {
    "relay": {"signature": "relay"},
    "standard": {"signature": "standard"},
    "asymmetric": {"signature": "standard", "signature_key": "ed25519"},
}


def delivered(relay: Relay, url: str, body: bytes, content_type: str, **fields: object) -> str:
    """Have one delivery that has been tried; its id."""
    relay.endpoint(url=url, **fields)
    (delivery_id,) = relay.event(body, typed("order.paid", content_type))["delivery_ids"]
    relay.deliver_all()
    return str(delivery_id)


def asked(relay: Relay, delivery_id: str, query: str = "") -> Any:  # noqa: ANN401 - the answer's JSON
    answer = relay.get(f"/v1/deliveries/{delivery_id}/request{query}")
    assert answer.status == 200, answer.body
    return answer.json


def bytes_of(request: Mapping[str, Any]) -> bytes:
    if request["body"] is not None:
        return str(request["body"]).encode()
    return base64.b64decode(request["body_base64"])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BODIES)
def test_what_is_shown_is_what_the_receiver_got(
    relay: Relay, receiver: Receiver, name: str, form: str
) -> None:
    body, content_type = BODIES[name]
    headers = {"X-Api-Key": SECRET_VALUE, "x-team": "billing"}
    url = receiver.url("/sink/a%20b?c=[d]&e")
    delivery_id = delivered(relay, url, body, content_type, headers=headers, **FORMS[form])
    said = asked(relay, delivery_id)
    (got,) = receiver.received()
    request = said["request"]
    assert request["method"] == "POST"
    assert request["url"] == receiver.url("/sink/a%20b?c=********&********")
    shown = {each["name"].lower(): each["value"] for each in request["headers"]}
    assert shown == {**got["headers"], "x-api-key": "********", "x-team": "********"}
    assert [each["name"].lower() for each in request["headers"]] == list(got["headers"])
    assert bytes_of(request) == body
    assert (request["size_bytes"], request["body_shown"]) == (len(body), "exact")
    assert (said["attempt"], said["generation"], said["outcome"], said["notes"]) == (1, 0, "success", [])


@pytest.mark.parametrize("name", BODIES)
def test_the_line_sends_the_same_bytes_with_a_signature_that_holds(
    relay: Relay, receiver: Receiver, name: str
) -> None:
    body, content_type = BODIES[name]
    made = relay.endpoint(url=receiver.url("/sink"))
    receiver.add_secret(made["secret"], "mine")
    (delivery_id,) = relay.event(body, typed("order.paid", content_type))["delivery_ids"]
    relay.deliver_all()
    said = asked(relay, delivery_id, f"?to={receiver.url('/verify/mine')}")
    subprocess.run(["/bin/sh", "-c", said["curl"]], check=True, capture_output=True, timeout=30)
    first, again = receiver.received()
    assert (again["path"], again["verified"]) == ("/verify/mine", True)
    assert again["headers"] == first["headers"]
    assert again["body_sha256"] == first["body_sha256"]


def test_any_attempt_of_any_generation_can_be_asked_for(relay: Relay, receiver: Receiver) -> None:
    url = receiver.script("mended", {"status": 404}, {"status": 200})
    delivery_id = delivered(relay, url, b"{}", "application/json")
    relay.call("POST", f"/v1/deliveries/{delivery_id}/replay")
    waiting = asked(relay, delivery_id)
    assert (waiting["generation"], waiting["attempt"], waiting["request"]) == (1, None, None)
    assert "No attempt has been made yet" in waiting["notes"][0]
    relay.deliver("replay", relay.messages("replay"))
    newest, first = asked(relay, delivery_id), asked(relay, delivery_id, "?generation=0&attempt=1")
    assert (newest["generation"], first["generation"]) == (1, 0)
    numbers = [
        {each["name"]: each["value"] for each in said["request"]["headers"]}["Relay-Generation"]
        for said in (newest, first)
    ]
    assert numbers == ["1", "0"]


@pytest.mark.parametrize(
    "query, refused",
    [
        ("?attempt=2", (404, "not_found", "attempt")),
        ("?generation=1", (404, "not_found", "generation")),
        ("?attempt=0", (400, "field_invalid", "attempt")),
        ("?attempt=one", (400, "field_invalid", "attempt")),
        ("?attempt=99999", (400, "field_invalid", "attempt")),
        ("?generation=-1", (400, "field_invalid", "generation")),
        ("?generation=%C2%B2", (400, "field_invalid", "generation")),
        ("?to=ftp://me", (400, "field_invalid", "to")),
        ("?to=http://a%20b", (400, "field_invalid", "to")),
        ("?number=1", (400, "field_unknown", "number")),
    ],
)
def test_what_cannot_be_asked_for_is_said(
    relay: Relay, receiver: Receiver, query: str, refused: tuple[int, str, str]
) -> None:
    delivery_id = delivered(relay, receiver.url("/sink"), b"{}", "application/json")
    answer = relay.get(f"/v1/deliveries/{delivery_id}/request{query}")
    assert answer.is_problem(*refused)


def test_viewers_may_look_and_nobody_of_another_tenant(relay: Relay, receiver: Receiver) -> None:
    delivery_id = delivered(relay, receiver.url("/sink"), b"{}", "application/json")
    path = f"/v1/deliveries/{delivery_id}/request"
    assert relay.another("default", Role.VIEWER).get(path).status == 200
    assert relay.another("default", Role.PRODUCER).get(path).is_problem(403, "forbidden")
    assert relay.another("other").get(path).is_problem(404, "not_found", "id")


def test_where_nothing_was_sent_it_says_so(relay: Relay) -> None:
    delivery_id = delivered(relay, "http://127.0.0.1:1/", b"{}", "application/json")
    said = asked(relay, delivery_id)
    assert (said["request"], said["curl"], said["outcome"]) == (None, None, "retryable")
    assert said["notes"] == [
        "Nothing was sent: what stood in the way (connect_failed) came before the request."
    ]


def test_an_attempt_that_nobody_knows_of_and_one_that_is_older_say_so(
    relay: Relay, receiver: Receiver
) -> None:
    delivery_id = delivered(relay, receiver.url("/sink"), b"{}", "application/json")
    (row,) = [each for each in relay.rows("history") if "outcome" in each]
    relay.change("history", row, sent=None)
    assert "older than the keeping of requests" in asked(relay, delivery_id)["notes"][0]
    relay.change("history", row, sent=None, outcome={"S": "unknown"})
    said = asked(relay, delivery_id)
    assert (said["request"], said["outcome"]) == (None, "unknown")
    assert "not known" in said["notes"][0]


def test_without_its_event_a_request_is_told_as_far_as_it_is_known(relay: Relay, receiver: Receiver) -> None:
    delivery_id = delivered(relay, receiver.url("/sink"), b"{}", "application/json")
    (got,) = receiver.received()
    (event,) = [row for row in relay.rows("events") if row["sk"]["S"].startswith("evt_")]
    relay.change("events", event, ttl={"N": "1"})
    said = asked(relay, delivery_id)
    request = said["request"]
    assert (request["body"], request["body_base64"], request["size_bytes"]) == (None, None, None)
    assert (request["body_shown"], said["curl"]) == ("gone", None)
    lacking = {"content-type", "content-length"}
    shown = {each["name"].lower(): each["value"] for each in request["headers"]}
    assert shown == {name: value for name, value in got["headers"].items() if name not in lacking}
    assert "past its retention" in said["notes"][0]


def test_a_later_change_of_the_endpoint_changes_nothing_of_what_was_sent(
    relay: Relay, receiver: Receiver
) -> None:
    made = relay.endpoint(url=receiver.url("/sink"), headers={"X-Api-Key": SECRET_VALUE})
    (delivery_id,) = relay.event()["delivery_ids"]
    relay.deliver_all()
    before = asked(relay, delivery_id)
    changes = {"url": receiver.url("/elsewhere"), "signature": "standard", "headers": {"x-other": "1"}}
    assert relay.patch(made, {**changes, "description": "changed"}).status in {200, 403}
    assert asked(relay, delivery_id) == before


def test_a_long_body_is_read_from_a_file(relay: Relay, receiver: Receiver) -> None:
    body = json.dumps({"long": "x" * 70_000}).encode()
    said = asked(relay, delivered(relay, receiver.url("/sink"), body, "application/json"))
    assert shlex.split(said["curl"])[-1] == "@payload.bin"
    assert said["request"]["body"] == body.decode()
    assert "too long for a line" in said["notes"][0]


def test_a_custom_header_s_value_is_stored_nowhere_but_with_its_endpoint(
    relay: Relay, receiver: Receiver
) -> None:
    for path in ("/sink", "/always500", "/status/404"):
        relay.endpoint(url=receiver.url(path), headers={"X-Api-Key": SECRET_VALUE})
    relay.event()
    relay.deliver_all()
    tables = set(relay.made.tables) - {"endpoints"}
    assert {"history", "owed", "dead-letters", "audit", "events", "gates"} <= tables
    coded = base64.b64encode(SECRET_VALUE.encode()).decode()
    for table in tables:
        dump = repr(relay.rows(table))
        assert SECRET_VALUE not in dump, table
        assert coded not in dump, table
