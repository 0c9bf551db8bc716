"""Rotating and ending overlaps by the API: what is answered, what is refused, what is shown of keys."""

import base64
from datetime import datetime
from typing import Any

import pytest

from chalicelib.domain.step_up import ElevatedAction
from tests.handlers.relay import JSON, Answer, Relay

NOBODY = "ep_01a22a7c-5366-79c3-90eb-70e6bdfad2fa"
DAY_S = 86_400
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "a negative overlap": ({"overlap_s": -1}, "field_invalid", "overlap_s"),
    "an overlap too long": ({"overlap_s": 30 * DAY_S + 1}, "field_invalid", "overlap_s"),
    "an overlap as text": ({"overlap_s": "60"}, "field_invalid", "overlap_s"),
    "an unknown kind of key": ({"signature_key": "rsa"}, "field_invalid", "signature_key"),
    "a key pair for Relay's own form": ({"signature_key": "ed25519"}, "field_invalid", "signature_key"),
    "a secret of the caller's": ({"secret": "whsec_x"}, "field_invalid", "secret"),
}


def rotate(relay: Relay, endpoint_id: str, value: object = None, **headers: str) -> Answer:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return relay.post(f"/v1/endpoints/{endpoint_id}/rotate-secret", value or {}, relay.elevated() | named)


def end_overlap(relay: Relay, endpoint_id: str, value: object = None, **headers: str) -> Answer:
    path = f"/v1/endpoints/{endpoint_id}/end-overlap"
    return relay.post(path, value or {}, {name.replace("_", "-"): text for name, text in headers.items()})


def in_s(text: str, relay: Relay, endpoint_id: str) -> float:
    """Measure how long after the last change a moment is."""
    changed = next(iter(relay.get(f"/v1/audit?subject={endpoint_id}").json["items"]))["at"]
    return (datetime.fromisoformat(text) - datetime.fromisoformat(changed)).total_seconds()


def test_a_rotation_answers_with_a_new_secret_once_and_when_the_old_one_ends(tenant: Relay) -> None:
    made = tenant.endpoint()
    answer = rotate(tenant, made["id"])
    said = answer.json
    assert (answer.status, answer.headers["etag"]) == (200, '"2"')
    assert said.keys() == {"id", "secret", "public_key", "previous_secret_expires_at"}
    assert (said["id"], said["public_key"]) == (made["id"], None)
    assert len(base64.b64decode(said["secret"].removeprefix("whsec_"), validate=True)) == 32
    assert said["secret"] != made["secret"]
    assert abs(in_s(said["previous_secret_expires_at"], tenant, made["id"]) - 7 * DAY_S) <= 1
    shown = tenant.get(f"/v1/endpoints/{made['id']}")
    assert shown.json["previous_secret_expires_at"] == said["previous_secret_expires_at"]
    assert b"whsec_" not in shown.body


def test_a_rotation_is_elevated_and_the_end_of_an_overlap_is_not(tenant: Relay) -> None:
    made = tenant.endpoint()
    refused = tenant.post(f"/v1/endpoints/{made['id']}/rotate-secret", {})
    assert refused.is_problem(403, "step_up_required", "Relay-Step-Up")
    other = tenant.elevated(ElevatedAction.URL_CHANGE)
    assert tenant.post(f"/v1/endpoints/{made['id']}/rotate-secret", {}, other).status == 403
    assert end_overlap(tenant, made["id"]).status == 200
    assert tenant.get(f"/v1/endpoints/{made['id']}").json["version"] == 1


def test_no_body_is_an_empty_one(tenant: Relay) -> None:
    made = tenant.endpoint()
    for action in ("rotate-secret", "end-overlap"):
        asked = tenant.call("POST", f"/v1/endpoints/{made['id']}/{action}", b"", tenant.elevated())
        assert asked.status == 200


def test_the_overlap_is_set_per_call_and_ended_per_call(tenant: Relay) -> None:
    made = tenant.endpoint()
    said = rotate(tenant, made["id"], {"overlap_s": DAY_S}).json
    assert abs(in_s(said["previous_secret_expires_at"], tenant, made["id"]) - DAY_S) <= 1
    shorter = end_overlap(tenant, made["id"], {"within_s": 60})
    assert abs(in_s(shorter.json["previous_secret_expires_at"], tenant, made["id"]) - 60) <= 1
    assert end_overlap(tenant, made["id"]).json["previous_secret_expires_at"] is None
    over = end_overlap(tenant, made["id"])
    assert (over.status, over.headers["etag"]) == (200, '"4"')
    assert rotate(tenant, made["id"], {"overlap_s": 0}).json["previous_secret_expires_at"] is None


@pytest.mark.parametrize("name", REFUSED)
def test_a_rotation_that_cannot_be_is_refused_and_changes_nothing(tenant: Relay, name: str) -> None:
    value, code, field = REFUSED[name]
    made = tenant.endpoint()
    assert rotate(tenant, made["id"], value).is_problem(400, code, field)
    assert tenant.get(f"/v1/endpoints/{made['id']}").json["version"] == 1


def test_a_version_that_is_named_has_to_be_the_latest(tenant: Relay) -> None:
    """So a rotation whose answer was lost can be asked for again without pushing the oldest key out."""
    made = tenant.endpoint()
    assert rotate(tenant, made["id"], If_Match='"1"').status == 200
    for tag in ('"1"', '"3"', "2", "*", ""):
        assert rotate(tenant, made["id"], If_Match=tag).is_problem(412, "version_stale", "If-Match")
        assert end_overlap(tenant, made["id"], If_Match=tag).is_problem(412, "version_stale", "If-Match")
    assert end_overlap(tenant, made["id"], If_Match='"2"').status == 200


def test_what_is_deleted_or_nowhere_is_not_rotated(tenant: Relay) -> None:
    gone = tenant.endpoint()
    tenant.delete(gone)
    for ask in (rotate, end_overlap):
        assert ask(tenant, gone["id"]).is_problem(409, "endpoint_deleted", "id")
        assert ask(tenant, NOBODY).is_problem(404, "not_found", "id")
    assert tenant.get(f"/v1/endpoints/{gone['id']}/public-key").is_problem(404, "not_found", "id")


def test_a_key_pair_is_made_when_it_is_asked_for_and_only_its_public_part_shown(relay: Relay) -> None:
    made = relay.endpoint(signature="standard", signature_key="ed25519")
    assert (made["secret"], made["signature_key"]) == (None, "ed25519")
    assert len(base64.b64decode(made["public_key"].removeprefix("whpk_"), validate=True)) == 32
    path = f"/v1/endpoints/{made['id']}/public-key"
    first = {"public_key": made["public_key"], "expires_at": None}
    assert relay.get(path).json == {"endpoint_id": made["id"], "keys": [first]}
    said = rotate(relay, made["id"]).json
    assert said["secret"] is None
    assert relay.get(path).json["keys"] == [
        {"public_key": said["public_key"], "expires_at": None},
        {**first, "expires_at": said["previous_secret_expires_at"]},
    ]
    assert rotate(relay, made["id"], {"signature_key": "hmac", "overlap_s": 0}).json["public_key"] is None
    assert relay.get(path).json["keys"] == []
    assert "whsk_" not in repr([relay.rows(table) for table in relay.made.tables])


def test_an_endpoint_with_shared_secrets_has_no_public_key(tenant: Relay) -> None:
    made = tenant.endpoint()
    assert (made["public_key"], made["signature_key"]) == (None, "hmac")
    assert tenant.get(f"/v1/endpoints/{made['id']}/public-key").json["keys"] == []


def test_a_key_pair_for_relays_own_form_is_refused(tenant: Relay) -> None:
    for value in ({"signature_key": "ed25519"}, {"signature_key": "ed25519", "signature": "relay"}):
        body = {"url": "https://receiver.example/", "event_types": ["*"], **value}
        refused = tenant.post("/v1/endpoints", body, JSON)
        assert refused.is_problem(400, "field_invalid", "signature_key")
    made = tenant.endpoint(signature="standard", signature_key="ed25519")
    assert tenant.patch(made, {"signature": "relay"}).is_problem(400, "field_invalid", "signature")
