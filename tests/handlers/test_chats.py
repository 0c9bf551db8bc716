"""Chats over the API: what they take and refuse, and that a credential, once given, is never seen again."""

from typing import Any

import pytest

from chalicelib.domain.endpoint import Transport
from chalicelib.domain.step_up import ElevatedAction
from tests.handlers.conftest import MakeRelay
from tests.handlers.relay import JSON, URL, Relay
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
