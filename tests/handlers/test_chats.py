"""Chats over the API: what they take and refuse, and that a credential, once given, is never seen again."""

import json
import subprocess
from dataclasses import replace
from typing import Any

import pytest

from chalicelib import bootstrap
from chalicelib.domain.api_key import development_key
from chalicelib.domain.chat.platform import PLATFORMS
from chalicelib.domain.endpoint import Transport
from chalicelib.domain.step_up import ElevatedAction
from chalicelib.domain.tenant import development_tenant
from tests.handlers.conftest import MakeRelay
from tests.handlers.relay import JSON, URL, Relay, typed
from tests.handlers.test_trying import Delivering
from tests.receiver import Receiver
from tests.unit.domain.chats import ADDRESSES, CHATS, CREDENTIALS

EACH = pytest.mark.parametrize("transport", CHATS)
PACE = {Transport.TELEGRAM: (1, 1), Transport.DISCORD: (2, 1), Transport.SLACK: (1, 1)}
OTHER = {
    Transport.TELEGRAM: ("telegram://@other_channel", "111222333:another-credential_0123456789abc"),
    Transport.DISCORD: ("discord://9876543210987654321", "y" * 68),
    Transport.SLACK: ("slack://T01ABCDEF/B09OTHER", "z" * 24),
}
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "no credential": ({"secret": None}, "field_invalid", "secret"),
    "a credential of another form": ({"secret": "no credential!"}, "field_invalid", "secret"),
    "a credential without end": ({"secret": "1:" + "x" * 300}, "field_invalid", "secret"),
    "custom headers": ({"headers": {"X-A": "b"}}, "field_invalid", "headers"),
    "a signature": ({"signature": "standard"}, "field_invalid", "signature"),
    "no signature": ({"signature": "none"}, "field_invalid", "signature"),
    "a key": ({"signature_key": "hmac"}, "field_invalid", "signature_key"),
    "a URL of the web": ({"url": URL}, "url_invalid", "url"),
}


def given(transport: Transport, **fields: object) -> dict[str, Any]:
    body = {
        "transport": transport.value,
        "url": ADDRESSES[transport],
        "secret": CREDENTIALS[transport].reveal(),
        "event_types": ["*"],
    }
    return {name: value for name, value in {**body, **fields}.items() if value is not None}


def chat(relay: Relay, transport: Transport, **fields: object) -> Any:  # noqa: ANN401 - JSON
    answer = relay.post("/v1/endpoints", given(transport, **fields))
    assert answer.status == 201, answer.body
    return answer.json


def rotate(relay: Relay, endpoint_id: str, value: object) -> Any:  # noqa: ANN401 - an answer
    return relay.post(f"/v1/endpoints/{endpoint_id}/rotate-secret", value, relay.elevated())


@EACH
def test_a_chat_is_registered_and_its_credential_never_shown(tenant: Relay, transport: Transport) -> None:
    made = chat(tenant, transport)
    assert (made["transport"], made["url"]) == (transport.value, ADDRESSES[transport])
    assert (made["secret"], made["public_key"], made["signature"], made["signature_key"]) == (
        None,
        None,
        "none",
        None,
    )
    assert (made["rate_per_second"], made["burst"]) == PACE[transport]
    told = [
        tenant.get(f"/v1/endpoints/{made['id']}").body,
        tenant.get("/v1/endpoints").body,
        tenant.get("/v1/audit").body,
    ]
    assert not any(CREDENTIALS[transport].reveal().encode() in each for each in told)


@EACH
def test_a_pace_of_ones_own_is_kept(tenant: Relay, transport: Transport) -> None:
    made = chat(tenant, transport, rate_per_second=10, burst=7)
    assert (made["rate_per_second"], made["burst"]) == (10, 7)


@EACH
@pytest.mark.parametrize("name", REFUSED)
def test_what_a_chat_cannot_have_is_refused_by_name(
    empty_relay: Relay, transport: Transport, name: str
) -> None:
    fields, code, field = REFUSED[name]
    answer = empty_relay.post("/v1/endpoints", given(transport, **fields))
    assert answer.is_problem(400, code, field), answer.body
    assert CREDENTIALS[transport].reveal().encode() not in answer.body


@EACH
def test_who_forgets_the_transport_is_told_which(empty_relay: Relay, transport: Transport) -> None:
    answer = empty_relay.post("/v1/endpoints", {"url": ADDRESSES[transport], "event_types": ["*"]})
    assert answer.is_problem(400, "field_invalid", "transport")
    assert answer.json["expected"] == f"`{transport.value}`"


def test_a_secret_is_for_chats_alone(tenant: Relay) -> None:
    answer = tenant.post("/v1/endpoints", {"url": URL, "event_types": ["*"], "secret": "whsec_" + "A" * 44})
    assert answer.is_problem(400, "field_invalid", "secret")
    made = tenant.endpoint()
    assert tenant.patch(made, {"secret": "x" * 40}).is_problem(400, "field_invalid", "secret")
    assert rotate(tenant, made["id"], {"secret": "x" * 40}).is_problem(400, "field_invalid", "secret")


@EACH
def test_f130_a_new_address_needs_its_own_credential(tenant: Relay, transport: Transport) -> None:
    made = chat(tenant, transport)
    url, credential = OTHER[transport]
    assert tenant.patch(made, {"url": url}).is_problem(400, "field_invalid", "secret")
    changed = tenant.patch(made, {"url": url, "secret": credential})
    assert (changed.status, changed.json["url"]) == (200, url)
    assert credential.encode() not in changed.body
    assert tenant.patch(changed.json, {"secret": credential}).is_problem(400, "field_invalid", "secret")
    same = tenant.patch(changed.json, {"url": url, "description": "as it was"})
    assert (same.status, same.json["description"]) == (200, "as it was")


@EACH
@pytest.mark.parametrize("field", ["headers", "signature"])
def test_a_change_refuses_what_a_chat_cannot_have(tenant: Relay, transport: Transport, field: str) -> None:
    made = chat(tenant, transport)
    value = {"X-A": "b"} if field == "headers" else "relay"
    assert tenant.patch(made, {field: value}).is_problem(400, "field_invalid", field)


@EACH
def test_a_moved_chat_is_an_elevated_change(tenant: Relay, transport: Transport) -> None:
    made = chat(tenant, transport)
    url, credential = OTHER[transport]
    wrong = tenant.elevated(ElevatedAction.PURGE)
    headers = {**JSON, **wrong, "If-Match": f'"{made["version"]}"'}
    body = f'{{"url": "{url}", "secret": "{credential}"}}'.encode()
    answer = tenant.call("PATCH", f"/v1/endpoints/{made['id']}", body, headers)
    assert answer.status == 403


@EACH
def test_a_credential_is_replaced_at_once_and_not_shown(tenant: Relay, transport: Transport) -> None:
    made = chat(tenant, transport)
    credential = OTHER[transport][1]
    answer = rotate(tenant, made["id"], {"secret": credential})
    assert answer.status == 200, answer.body
    assert answer.json == {
        "id": made["id"],
        "secret": None,
        "public_key": None,
        "previous_secret_expires_at": None,
    }
    (record, *_) = tenant.get(f"/v1/audit?subject={made['id']}").json["items"]
    assert record["action"] == "secret.rotated"
    for body, field in (({}, "secret"), ({"secret": credential, "overlap_s": 5}, "overlap_s")):
        assert rotate(tenant, made["id"], body).is_problem(400, "field_invalid", field)


@EACH
def test_a_chat_has_no_public_key_and_no_overlap(tenant: Relay, transport: Transport) -> None:
    made = chat(tenant, transport)
    assert tenant.get(f"/v1/endpoints/{made['id']}/public-key").json["keys"] == []
    assert tenant.post(f"/v1/endpoints/{made['id']}/end-overlap", {}).json["version"] == 1


@EACH
def test_an_origin_that_is_private_is_refused_as_any_url(make_relay: MakeRelay, transport: Transport) -> None:
    relay = make_relay(
        RELAY_ALLOW_KEYLESS="true", **{f"RELAY_{transport.value.upper()}_ORIGIN": "https://10.0.0.5"}
    )
    answer = relay.post("/v1/endpoints", given(transport))
    assert answer.is_problem(400, "destination_not_allowed", "url")


@pytest.fixture
def standing_in(make_relay: MakeRelay, receiver: Receiver) -> Relay:
    """Give a Relay whose platforms the receiver stands in for."""
    origins = {f"RELAY_{each.value.upper()}_ORIGIN": receiver.url(f"/{each.value}") for each in CHATS}
    return make_relay(RELAY_ALLOW_KEYLESS="true", RELAY_ALLOW_PRIVATE_ENDPOINTS="true", **origins)


def delivered(relay: Relay, body: bytes = b'{"type":"order.paid","card":"4711-0815"}') -> str:
    """Have one delivery that has been tried; its id."""
    (delivery_id,) = relay.event(body)["delivery_ids"]
    relay.deliver_all()
    return str(delivery_id)


def inspected(relay: Relay, delivery_id: str) -> Any:  # noqa: ANN401 - JSON
    answer = relay.get(f"/v1/deliveries/{delivery_id}/request")
    assert answer.status == 200, answer.body
    return answer.json


@EACH
def test_a_message_arrives_and_the_inspector_shows_it_without_the_credential(
    standing_in: Relay, receiver: Receiver, transport: Transport
) -> None:
    chat(standing_in, transport)
    delivery_id = delivered(standing_in)
    (got,) = receiver.received()
    assert standing_in.get(f"/v1/deliveries/{delivery_id}").json["status"] == "succeeded"
    said = inspected(standing_in, delivery_id)
    request = said["request"]
    assert (request["url"], request["method"], said["notes"]) == (ADDRESSES[transport], "POST", [])
    assert (request["body"], request["size_bytes"]) == (got["body_text"], got["body_length"])
    shown = {each["name"].lower(): each["value"] for each in request["headers"]}
    assert shown == {name: value for name, value in got["headers"].items() if name != "host"}
    placeholder = PLATFORMS[transport].placeholder
    assert placeholder in said["curl"]
    line = said["curl"].replace(placeholder, CREDENTIALS[transport].reveal())
    subprocess.run(["/bin/sh", "-c", line], check=True, capture_output=True, timeout=30)
    first, second = receiver.received()
    assert (first["path"], first["body_sha256"]) == (second["path"], second["body_sha256"])


@EACH
def test_what_a_tenant_marks_sensitive_is_sent_and_not_shown(
    standing_in: Relay, receiver: Receiver, transport: Transport
) -> None:
    bootstrap.seed(replace(development_tenant(), sensitive_paths=("$.card",)), development_key())
    chat(standing_in, transport)
    said = inspected(standing_in, delivered(standing_in))
    (got,) = receiver.received()
    assert "4711-0815" in got["body_text"]
    assert said["request"]["body_shown"] == "redacted"
    assert "4711-0815" not in json.dumps(said)
    assert "order.paid" in said["request"]["body"]
    assert "redacted" in said["notes"][0]


@EACH
def test_a_test_of_a_chat_says_what_its_platform_answered(
    standing_in: Relay, receiver: Receiver, transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = chat(standing_in, transport)
    use = replace(bootstrap.try_endpoint(), patience=Delivering(standing_in))
    monkeypatch.setattr(bootstrap, "try_endpoint", lambda: use)
    answer = standing_in.call("POST", f"/v1/endpoints/{made['id']}/test", b"{}", JSON)
    assert (answer.status, answer.json["status"]) == (200, "succeeded")
    assert answer.json["attempt"]["status"] == (204 if transport is Transport.DISCORD else 200)
    (got,) = receiver.received()
    assert "This is a test" in got["body_text"]


@EACH
def test_a_replay_writes_the_same_message(
    standing_in: Relay, receiver: Receiver, transport: Transport
) -> None:
    chat(standing_in, transport)
    delivery_id = delivered(standing_in)
    assert standing_in.post(f"/v1/deliveries/{delivery_id}/replay", {}).status == 202
    assert standing_in.deliver("replay", standing_in.messages("replay")) == []
    first, second = receiver.received()
    assert (first["path"], first["body_sha256"]) == (second["path"], second["body_sha256"])


@EACH
@pytest.mark.parametrize("status", [301, 302, 307, 400, 500])
def test_no_answer_of_a_platform_brings_a_credential_to_light(
    standing_in: Relay, receiver: Receiver, transport: Transport, status: int
) -> None:
    credential = CREDENTIALS[transport].reveal()
    where = f"https://10.0.0.5/moved/bot{credential}/x?token={credential}"
    key = "/".join((transport.value, ADDRESSES[transport].partition("://")[2]))
    receiver.script(key, {"status": status, "headers": {"Location": where}, "body": f"see {where}"})
    chat(standing_in, transport)
    delivery_id = delivered(standing_in)
    (got,) = receiver.received()
    assert got["status"] == status
    shown = standing_in.get(f"/v1/deliveries/{delivery_id}")
    assert credential.rpartition(":")[2].encode() not in shown.body
    assert shown.json["attempts"][0]["outcome"] in {"permanent", "retryable"}


def test_a_message_of_what_cannot_be_redacted_is_hidden(standing_in: Relay, receiver: Receiver) -> None:
    bootstrap.seed(replace(development_tenant(), sensitive_paths=("$.card",)), development_key())
    chat(standing_in, Transport.SLACK)
    (delivery_id,) = standing_in.event(b"card 4711-0815", typed("order.paid", "text/plain"))["delivery_ids"]
    standing_in.deliver_all()
    said = inspected(standing_in, delivery_id)
    request = said["request"]
    assert (request["body"], request["body_base64"], request["body_shown"]) == (None, None, "hidden")
    assert said["curl"] is None
    assert "4711-0815" not in json.dumps(said)
    assert "The message is not shown" in said["notes"][0]


def test_a_message_outlives_its_event_as_far_as_it_is_known(standing_in: Relay, receiver: Receiver) -> None:
    chat(standing_in, Transport.DISCORD)
    delivery_id = delivered(standing_in)
    (event,) = [row for row in standing_in.rows("events") if row["sk"]["S"].startswith("evt_")]
    standing_in.change("events", event, ttl={"N": "1"})
    said = inspected(standing_in, delivery_id)
    request = said["request"]
    assert (request["url"], request["body_shown"]) == (ADDRESSES[Transport.DISCORD], "gone")
    assert (request["body"], request["size_bytes"], said["curl"]) == (None, None, None)
    assert {each["name"] for each in request["headers"]} == {"Accept", "Accept-Encoding", "User-Agent"}
    assert "past its retention" in said["notes"][0]
