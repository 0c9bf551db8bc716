"""Tunnels as the API has them: endpoints without an address, and tokens for who listens there."""

import re
from datetime import datetime
from typing import Any

import pytest

from tests.handlers.conftest import MakeRelay
from tests.handlers.relay import Relay, forget

NODE = "https://relay.example.com"
TUNNEL = {"url": "tunnel:", "transport": "tunnel"}


@pytest.fixture
def relay(make_relay: MakeRelay) -> Relay:
    return make_relay(RELAY_ALLOW_KEYLESS="true", RELAY_ALLOW_PRIVATE_ENDPOINTS="true", RELAY_NODE_URL=NODE)


def _token(relay: Relay, endpoint_id: str) -> Any:  # noqa: ANN401 - the answer's JSON
    answer = relay.post(f"/v1/endpoints/{endpoint_id}/tunnel-token", {})
    assert answer.status == 201, answer.body
    return answer.json


def test_a_tunnel_is_signed_for_like_any_other_endpoint(relay: Relay) -> None:
    made = relay.endpoint(**TUNNEL)
    assert (made["url"], made["transport"]) == ("tunnel:", "tunnel")
    assert made["secret"].startswith("whsec_")
    assert made["signature"] == "relay"


def test_several_tunnels_of_a_tenant_lead_to_places_of_their_own(relay: Relay) -> None:
    relay.endpoint(**TUNNEL)
    assert "warnings" not in relay.endpoint(**TUNNEL)


@pytest.mark.parametrize(
    "fields, field",
    [
        ({**TUNNEL, "url": "https://example.com/"}, "url"),
        ({**TUNNEL, "url": "tunnel://x"}, "url"),
        ({"url": "tunnel:", "transport": "http"}, "transport"),
        ({**TUNNEL, "auth": {"basic": {"username": "a", "password": "b"}}}, "auth"),
        ({**TUNNEL, "secret": "mine"}, "secret"),
        ({**TUNNEL, "role": "arn:aws:iam::123456789012:role/relay-deliver-x"}, "role"),
    ],
)
def test_what_a_tunnel_cannot_have_is_named(relay: Relay, fields: dict[str, object], field: str) -> None:
    answer = relay.post("/v1/endpoints", {"event_types": ["*"], **fields})
    assert (answer.status, answer.json["field"]) == (400, field)


def test_a_token_says_where_to_and_until_when(relay: Relay) -> None:
    made = relay.endpoint(**TUNNEL)
    token = _token(relay, made["id"])
    assert token.keys() == {"endpoint_id", "url", "token", "expires_at"}
    assert (token["endpoint_id"], token["url"]) == (made["id"], "wss://relay.example.com/tunnel")
    assert re.fullmatch(r"tt_[0-9a-f]{64}", token["token"])
    assert datetime.fromisoformat(token["expires_at"]).tzinfo is not None
    assert _token(relay, made["id"])["token"] != token["token"]


def test_a_token_is_stored_hashed(relay: Relay) -> None:
    token = _token(relay, relay.endpoint(**TUNNEL)["id"])["token"]
    rows = str(relay.rows("registry"))
    assert "ticket#" in rows
    assert token not in rows
    assert token.removeprefix("tt_") not in rows


def test_nobody_listens_at_what_is_no_tunnel(relay: Relay) -> None:
    made = relay.endpoint()
    answer = relay.post(f"/v1/endpoints/{made['id']}/tunnel-token", {})
    assert (answer.status, answer.json["code"], answer.json["field"]) == (400, "field_invalid", "id")


def test_an_installation_without_a_node_says_so(make_relay: MakeRelay) -> None:
    relay = make_relay(RELAY_ALLOW_KEYLESS="true", RELAY_ALLOW_PRIVATE_ENDPOINTS="true")
    made = relay.endpoint(**TUNNEL)
    answer = relay.post(f"/v1/endpoints/{made['id']}/tunnel-token", {})
    assert (answer.status, answer.json["code"]) == (409, "tunnels_off")


def test_where_no_node_can_be_reached_an_endpoint_is_held_untried(
    make_relay: MakeRelay,
) -> None:
    relay = make_relay(
        RELAY_ALLOW_KEYLESS="true", RELAY_ALLOW_PRIVATE_ENDPOINTS="true", RELAY_NODE_URL="http://127.0.0.1:9"
    )
    made = relay.endpoint(**TUNNEL)
    (delivery_id,) = relay.event()["delivery_ids"]
    for queue, messages in relay.rung().items():
        relay.deliver(queue, messages)
    forget()
    found = relay.get(f"/v1/deliveries/{delivery_id}").json
    assert (found["status"], found["attempts"]) == ("pending", [])
    health = relay.get(f"/v1/endpoints/{made['id']}/health").json
    assert health["hold"]["reason"] == "no_listener"
    assert health["breaker"]["state"] == "closed"
