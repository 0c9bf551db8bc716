"""Tenants over the API: opened by the operator, changed by either as far as each may, seen by themselves."""

import json
from collections.abc import Mapping
from typing import Any

import pyotp
import pytest

from chalicelib import bootstrap
from chalicelib.domain.api_key import DEVELOPMENT_KEY, DEVELOPMENT_OPERATOR_KEY, Role
from chalicelib.domain.step_up import DEVELOPMENT_SECRET, ElevatedAction
from chalicelib.domain.tenant import Quotas
from infra.package import ROOT
from tests.handlers.relay import JSON, Answer, Relay

DEFAULTS = {
    "endpoints": Quotas().endpoints,
    "events_per_second": Quotas().events_per_second,
    "fan_out_per_second": Quotas().fan_out_per_second,
    "requests_per_second": Quotas().requests_per_second,
}


def opened(operator: Relay, **fields: object) -> dict[str, Any]:
    answer = operator.post("/v1/tenants", {"name": "Acme", **fields})
    assert answer.status == 201, answer.body
    shown: dict[str, Any] = answer.json
    return shown


def admin_of(operator: Relay, shown: Mapping[str, Any]) -> Relay:
    return Relay(operator.made, operator.clients, operator.counters, shown["admin_key"]["key"])


def patch(relay: Relay, tenant_id: str, value: object, etag: str = '"1"') -> Answer:
    headers = {**JSON, "If-Match": etag}
    return relay.call("PATCH", f"/v1/tenants/{tenant_id}", json.dumps(value).encode(), headers)


def test_a_new_tenant_works_with_what_is_shown_this_once(operator: Relay) -> None:
    shown = opened(operator, contacts=["oncall@acme.example"], quotas={"endpoints": 5})
    assert shown["quotas"] == DEFAULTS | {"endpoints": 5}
    assert shown["admin_key"]["role"] == "admin"
    admin = admin_of(operator, shown)
    totp = pyotp.parse_uri(shown["second_factor"]["otpauth_uri"])
    assert isinstance(totp, pyotp.TOTP)
    assert (totp.secret, totp.issuer, totp.name) == (shown["second_factor"]["secret"], "Relay", "Acme")
    code = totp.at(bootstrap.clock().now_ms() // 1000)
    proof = admin.post("/v1/step-up", {"code": code, "actions": ["key_creation"]}).json["assertion"]
    assert admin.post("/v1/keys", {"role": "producer"}, {"Relay-Step-Up": proof}).status == 201
    assert admin.endpoint()["url"]


def test_what_is_shown_once_is_kept_sealed_or_hashed_and_shown_nowhere_else(operator: Relay) -> None:
    shown = opened(operator)
    admin = admin_of(operator, shown)
    secrets = (shown["second_factor"]["secret"], shown["admin_key"]["key"].rpartition(".")[2])
    seen = [repr(operator.rows(table)) for table in ("tenants", "audit")] + [
        answer.body.decode()
        for answer in (
            operator.get("/v1/tenants"),
            operator.get(f"/v1/tenants/{shown['id']}"),
            admin.get("/v1/keys"),
            admin.get("/v1/audit"),
        )
    ]
    assert not [secret for secret in secrets if any(secret in each for each in seen)]


def test_two_tenants_have_nothing_in_common(operator: Relay) -> None:
    one, other = opened(operator), opened(operator)
    assert one["id"] != other["id"]
    assert one["second_factor"]["secret"] != other["second_factor"]["secret"]


def test_the_operator_lists_all_and_a_tenant_itself(operator: Relay) -> None:
    ids = [opened(operator, name=str(number))["id"] for number in range(3)]
    listed = [each["id"] for page in operator.pages("/v1/tenants?limit=2") for each in page]
    assert listed == ids[::-1]
    shown = opened(operator, name="own")
    admin = admin_of(operator, shown)
    assert [each["id"] for each in admin.get("/v1/tenants").json["items"]] == [shown["id"]]
    assert admin.get(f"/v1/tenants/{shown['id']}").json["name"] == "own"
    assert admin.get(f"/v1/tenants/{ids[0]}").is_problem(404, "not_found", "id")
    assert patch(admin, ids[0], {"contacts": []}).is_problem(404, "not_found", "id")


def test_the_operator_changes_quotas_and_names_and_a_tenant_its_own_affairs(operator: Relay) -> None:
    shown = opened(operator, quotas={"endpoints": 5})
    admin = admin_of(operator, shown)
    changed = patch(operator, shown["id"], {"name": "Acme Ltd", "quotas": {"events_per_second": 9}})
    assert changed.json["quotas"] == DEFAULTS | {"endpoints": 5, "events_per_second": 9}
    own = {"contacts": ["a@acme.example"], "sensitive_paths": ["$.card.number"]}
    assert patch(admin, shown["id"], own, changed.headers["etag"]).json["version"] == 3
    seen = operator.get(f"/v1/tenants/{shown['id']}").json
    assert (seen["name"], seen["contacts"], seen["sensitive_paths"]) == (
        "Acme Ltd",
        ["a@acme.example"],
        ["$.card.number"],
    )
    for field, value in (("name", "Mine"), ("quotas", {"endpoints": 9})):
        assert patch(admin, shown["id"], {field: value}, '"3"').is_problem(403, "forbidden", field)
    lifted = patch(operator, shown["id"], {"sensitive_paths": []}, '"3"')
    assert lifted.is_problem(403, "forbidden", "sensitive_paths")
    assert patch(operator, shown["id"], {"contacts": ["b@acme.example"]}, '"3"').status == 200


def test_a_change_names_the_version_it_is_of(operator: Relay) -> None:
    shown = opened(operator)
    path, body = f"/v1/tenants/{shown['id']}", b'{"name": "Two"}'
    assert operator.call("PATCH", path, body, JSON).is_problem(428, "if_match_required", "If-Match")
    assert patch(operator, shown["id"], {"name": "Two"}).status == 200
    assert patch(operator, shown["id"], {"name": "Three"}).is_problem(412, "version_stale", "If-Match")
    assert operator.get(path).json["name"] == "Two"


@pytest.mark.parametrize(
    "fields, field",
    [
        ({"name": ""}, "name"),
        ({"name": "n" * 201}, "name"),
        ({"contacts": ["nobody"]}, "contacts"),
        ({"contacts": ["a@b.example\n"]}, "contacts"),
        ({"contacts": ["a@b.example"] * 11}, "contacts"),
        ({"quotas": {"endpoints": 0}}, "quotas.endpoints"),
        ({"quotas": {"events_per_second": 10**9}}, "quotas.events_per_second"),
        ({"sensitive_paths": ["card"]}, "sensitive_paths.0"),
    ],
)
def test_a_tenant_that_cannot_be_is_refused(operator: Relay, fields: dict[str, object], field: str) -> None:
    answer = operator.post("/v1/tenants", {"name": "Acme", **fields})
    assert answer.is_problem(400, "field_invalid", field)
    assert operator.rows("tenants") == []


def test_only_the_operator_opens_tenants(guarded: Relay) -> None:
    for role in (Role.ADMIN, Role.VIEWER, Role.PRODUCER):
        answer = guarded.another("acme", role).post("/v1/tenants", {"name": "Mine"})
        assert answer.is_problem(403, "forbidden")
        assert answer.json["expected"] == "a key with the role operator"


def test_the_operator_sees_nothing_of_a_tenant_s_but_its_audit(operator: Relay) -> None:
    admin_of(operator, opened(operator)).event()
    for path in ("/v1/events", "/v1/endpoints", "/v1/keys", "/v1/notices"):
        assert operator.get(path).is_problem(403, "forbidden"), path


def test_opening_and_changing_tenants_is_in_their_audit(operator: Relay) -> None:
    shown = opened(operator)
    patch(operator, shown["id"], {"name": "Two"})
    changed, created = admin_of(operator, shown).get("/v1/audit").json["items"]
    assert (created["action"], created["actor"]["kind"]) == ("tenant.created", "operator")
    assert (changed["before"], changed["after"]) == ({"name": "Acme"}, {"name": "Two"})
    assert changed["actor"]["address"] == "192.0.2.7"


def test_a_tenant_that_has_lost_everything_gets_new_keys_and_what_was_proven_is_void(operator: Relay) -> None:
    shown = opened(operator)
    old = admin_of(operator, shown)
    proof = old.elevated()
    assert old.post("/v1/keys", {"role": "viewer"}, proof).status == 201
    renewed = operator.call("POST", f"/v1/tenants/{shown['id']}/recover").json
    assert renewed["second_factor"]["secret"] != shown["second_factor"]["secret"]
    assert old.post("/v1/keys", {"role": "viewer"}, proof).is_problem(
        403, "step_up_required", "Relay-Step-Up"
    )
    now_s = bootstrap.clock().now_ms() // 1000
    new = admin_of(operator, renewed)
    lost, found = (pyotp.TOTP(each["second_factor"]["secret"]).at(now_s) for each in (shown, renewed))
    actions = ["key_creation"]
    assert new.post("/v1/step-up", {"code": lost, "actions": actions}).status == 403
    assert new.post("/v1/step-up", {"code": found, "actions": actions}).status == 200
    assert new.call("DELETE", f"/v1/keys/{shown['admin_key']['id']}").status == 204
    recorded = [each["action"] for each in new.get("/v1/audit").json["items"]]
    assert "tenant.recovered" in recorded


def test_only_the_operator_recovers_a_tenant(guarded: Relay) -> None:
    assert guarded.call("POST", "/v1/tenants/acme/recover").is_problem(403, "forbidden")


def test_the_page_has_what_one_s_own_machine_begins_with() -> None:
    page = (ROOT / "docs/tenants.md").read_text(encoding="utf-8")
    for text in (DEVELOPMENT_KEY, DEVELOPMENT_SECRET, DEVELOPMENT_OPERATOR_KEY):
        assert f"`{text}`" in page
    for action in ElevatedAction:
        assert f"| `{action}` |" in page


@pytest.mark.parametrize("tenant_id", ["tn_1", "%23installation", "t" * 3_000, "acme"])
def test_what_is_no_tenant_s_id_names_nothing(operator: Relay, tenant_id: str) -> None:
    assert operator.get(f"/v1/tenants/{tenant_id}").is_problem(404, "not_found", "id")
