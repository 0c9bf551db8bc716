"""What a tenant marks sensitive is in no view, whoever said it; `…/payload` alone is exact, for admins."""

import base64
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from chalicelib import bootstrap
from chalicelib.domain.api_key import Role, development_key
from chalicelib.domain.tenant import development_tenant
from chalicelib.wire.operations import OPERATIONS
from tests.handlers.relay import Relay, typed
from tests.receiver import Receiver

MASK = "********"
CARD, NAME, CODE = "4111111111111111", "Zoë O'Neill", "739"
PAYLOAD = {"type": "order.paid", "card": {"number": CARD, "code": 739}, "items": [{"name": NAME}, {"n": 1}]}
BODY = json.dumps(PAYLOAD).encode()
PATHS = ("$.card.number", "$.card.code", "$.items[*].name")


@pytest.fixture
def discreet(relay: Relay) -> Relay:
    """Give a Relay whose default tenant has marked some of its payloads."""
    bootstrap.seed(replace(development_tenant(), sensitive_paths=PATHS), development_key())
    return relay


def echo(body: bytes, status: int = 200) -> dict[str, Any]:
    return {"status": status, "body_b64": base64.b64encode(body).decode()}


def delivered(relay: Relay, url: str, body: bytes = BODY, content_type: str = "application/json") -> Any:  # noqa: ANN401 - the answer's JSON
    made = relay.endpoint(url=url)
    said = relay.event(body, typed("order.paid", content_type))
    relay.deliver_all()
    return {"endpoint_id": made["id"], "event_id": said["event_id"], "delivery_id": said["delivery_ids"][0]}


def attempts(relay: Relay, names: dict[str, str]) -> Any:  # noqa: ANN401 - JSON
    return relay.get(f"/v1/deliveries/{names['delivery_id']}").json["attempts"]


def test_no_view_has_a_sensitive_value_but_the_payload_for_admins(
    discreet: Relay, receiver: Receiver
) -> None:
    raw = base64.b64encode(f"HTTP/1.1 {CARD} {NAME}\r\n\r\n".encode()).decode()
    said = f"no such card {CARD} of {NAME}".encode()
    scripts = [echo(BODY, 404), echo(BODY), echo(said), {"raw_b64": raw}]
    ids = [delivered(discreet, receiver.script(f"s{n}", each)) for n, each in enumerate(scripts)]
    seen = 0
    for operation in OPERATIONS:
        if operation.method != "GET" or operation.path.endswith("/payload"):
            continue
        for names in ids:
            named = set(re.findall(r"{(.*?)}", operation.path))
            if not named <= set(names) or (operation.roles and Role.ADMIN not in operation.roles):
                continue
            answer = discreet.get(operation.path.format(**names))
            text = answer.body.decode()
            both = text + json.dumps(json.loads(text), ensure_ascii=False)
            assert CARD not in both, operation.id
            assert NAME not in both, operation.id
            seen += answer.status == 200
    assert seen > 30
    exact = discreet.get(f"/v1/events/{ids[0]['event_id']}/payload")
    assert exact.body == BODY


def test_the_request_is_shown_redacted_and_its_signature_is_of_what_was_sent(
    discreet: Relay, receiver: Receiver
) -> None:
    names = delivered(discreet, receiver.url("/sink"))
    said = discreet.get(f"/v1/deliveries/{names['delivery_id']}/request").json
    (got,) = receiver.received()
    request = said["request"]
    assert json.loads(request["body"]) == {
        "type": "order.paid",
        "card": {"number": MASK, "code": MASK},
        "items": [{"name": MASK}, {"n": 1}],
    }
    assert (request["body_shown"], request["size_bytes"]) == ("redacted", len(BODY))
    shown = {each["name"].lower(): each["value"] for each in request["headers"]}
    assert shown == got["headers"]
    assert said["curl"].endswith("--data-binary @payload.bin")
    assert "is shown redacted" in said["notes"][0]
    assert f"/v1/events/{names['event_id']}/payload" in said["notes"][0]


def test_an_answer_is_redacted_by_path_and_by_echo(discreet: Relay, receiver: Receiver) -> None:
    answer = {"ok": True, "card": {"number": "another"}, "error": f"{NAME}: {CODE} is wrong, 1739 too"}
    names = delivered(discreet, receiver.script("json", echo(json.dumps(answer).encode())))
    (attempt,) = attempts(discreet, names)
    assert json.loads(attempt["response"]) == {
        "ok": True,
        "card": {"number": MASK},
        "error": f"{MASK}: {MASK} is wrong, 1739 too",
    }


@pytest.mark.parametrize("body", [b'{"card":{"number":"41', b"\xff\xfe", b'{"a":"' + b"x" * 3_000 + b'"}'])
def test_an_answer_that_cannot_be_read_whole_is_hidden(
    discreet: Relay, receiver: Receiver, body: bytes
) -> None:
    names = delivered(discreet, receiver.script("odd", echo(body)))
    (attempt,) = attempts(discreet, names)
    assert attempt["response"] == MASK
    assert "response_base64" not in attempt


def test_a_payload_that_is_no_json_is_hidden_with_what_was_said_to_it(
    discreet: Relay, receiver: Receiver
) -> None:
    names = delivered(
        discreet, receiver.script("plain", echo(b"thanks")), b"card=" + CARD.encode(), "text/plain"
    )
    said = discreet.get(f"/v1/deliveries/{names['delivery_id']}/request").json
    request = said["request"]
    assert (request["body"], request["body_base64"], request["body_shown"]) == (None, None, "hidden")
    assert attempts(discreet, names)[0]["response"] == MASK
    assert "cannot be read as JSON" in said["notes"][0]


def test_once_a_payload_is_gone_nothing_is_shown_of_what_was_said_to_it(
    discreet: Relay, receiver: Receiver
) -> None:
    names = delivered(discreet, receiver.script("late", echo(f"thanks for {CARD}".encode())))
    (event,) = [row for row in discreet.rows("events") if row["sk"]["S"].startswith("evt_")]
    discreet.change("events", event, ttl={"N": "1"})
    assert attempts(discreet, names)[0]["response"] == MASK


def test_what_is_marked_later_is_hidden_in_what_was_sent_before(relay: Relay, receiver: Receiver) -> None:
    names = delivered(relay, receiver.script("mirror", echo(BODY)))
    assert attempts(relay, names)[0]["response"] == BODY.decode()
    bootstrap.seed(replace(development_tenant(), sensitive_paths=PATHS), development_key())
    assert CARD not in attempts(relay, names)[0]["response"]


def test_marking_changes_neither_what_is_sent_nor_what_is_kept(discreet: Relay, receiver: Receiver) -> None:
    names = delivered(discreet, receiver.url("/sink"))
    (got,) = receiver.received()
    assert got["headers"]["content-length"] == str(len(BODY))
    assert discreet.get(f"/v1/events/{names['event_id']}/payload").body == BODY
