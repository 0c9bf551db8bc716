"""API keys over the API: made once, listed without themselves, revoked everywhere."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chalicelib import bootstrap
from chalicelib.domain.api_key import USE_NOTED_EVERY_MS, digest
from tests.fakes.fixed_clock import FixedClock
from tests.handlers.relay import Answer, Relay, forget


def create(relay: Relay, **fields: object) -> Answer:
    return relay.post("/v1/keys", {"role": "admin", **fields}, relay.elevated())


def made(relay: Relay, **fields: object) -> dict[str, Any]:
    answer = create(relay, **fields)
    assert answer.status == 201, answer.body
    shown: dict[str, Any] = answer.json
    return shown


def as_holder(relay: Relay, key: str) -> Relay:
    return Relay(relay.made, relay.clients, relay.counters, key)


def moment(**ahead: float) -> str:
    return (datetime.now(UTC) + timedelta(**ahead)).isoformat(timespec="milliseconds")


@pytest.mark.parametrize("role", ["producer", "viewer", "admin"])
def test_a_key_opens_its_tenant_in_its_role(guarded: Relay, role: str) -> None:
    shown = made(guarded, role=role, name="the shop")
    assert (shown["role"], shown["name"], shown["last_used_at"]) == (role, "the shop", None)
    holder = as_holder(guarded, shown["key"])
    statuses = (holder.call("POST", "/v1/events", b'{"type":"t"}').status, holder.get("/v1/endpoints").status)
    assert statuses == {"producer": (202, 403), "viewer": (403, 200), "admin": (202, 200)}[role]


def test_a_key_is_shown_once_and_kept_as_its_hash(guarded: Relay) -> None:
    shown = made(guarded)
    hidden = shown["key"].rpartition(".")[2]
    assert len(hidden) == 43
    listed = guarded.get("/v1/keys")
    assert hidden.encode() not in listed.body
    assert digest(shown["key"]).encode() not in listed.body
    assert hidden not in repr(guarded.rows("tenants")) + repr(guarded.rows("audit"))


def test_no_two_keys_are_the_same(guarded: Relay) -> None:
    keys = [made(guarded)["key"] for _ in range(20)]
    assert len({key.rpartition(".")[2] for key in keys}) == 20


def test_keys_are_listed_newest_first_page_by_page(guarded: Relay) -> None:
    names = [made(guarded, name=str(number))["name"] for number in range(5)]
    pages = list(guarded.pages("/v1/keys?limit=2"))
    assert [each["name"] for page in pages for each in page][:5] == names[::-1]
    assert [len(page) for page in pages] == [2, 2, 2]


@pytest.mark.parametrize(
    "fields, field",
    [
        ({"role": "operator"}, "role"),
        ({"role": "boss"}, "role"),
        ({"role": None}, "role"),
        ({"name": "n" * 101}, "name"),
        ({"expires_at": "tomorrow"}, "expires_at"),
        ({"expires_at": "2026-01-01T00:00:00Z"}, "expires_at"),
        ({"expires_at": "0001-01-01T00:00:00+01:00"}, "expires_at"),
        ({"expires_at": "9999-12-31T23:59:59-01:00"}, "expires_at"),
    ],
)
def test_a_key_that_cannot_be_is_refused(guarded: Relay, fields: dict[str, object], field: str) -> None:
    assert create(guarded, **fields).is_problem(400, "field_invalid", field)


def test_an_expired_key_is_refused_from_its_moment_on(guarded: Relay) -> None:
    shown = made(guarded, expires_at=moment(hours=1))
    holder = as_holder(guarded, shown["key"])
    assert holder.get("/v1/endpoints").status == 200
    (row,) = (each for each in guarded.rows("tenants") if each["sk"]["S"].endswith(shown["id"]))
    guarded.change("tenants", row, expires_ms={"N": str(bootstrap.clock().now_ms())})
    forget()
    assert holder.get("/v1/endpoints").is_problem(401, "unauthenticated", "Authorization")


def test_a_revoked_key_is_refused_where_it_was_revoked_and_in_a_new_process_at_once(guarded: Relay) -> None:
    shown = made(guarded)
    holder = as_holder(guarded, shown["key"])
    assert holder.get("/v1/endpoints").status == 200
    assert guarded.call("DELETE", f"/v1/keys/{shown['id']}").status == 204
    assert holder.get("/v1/endpoints").status == 401
    forget()
    assert holder.get("/v1/endpoints").status == 401
    again = guarded.call("DELETE", f"/v1/keys/{shown['id']}")
    assert again.is_problem(404, "not_found", "id")


def test_a_key_revoked_elsewhere_is_refused_within_a_minute_where_it_was_known(
    guarded: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = made(guarded)
    stopped = FixedClock(bootstrap.clock().now_ms())
    monkeypatch.setattr(bootstrap, "clock", lambda: stopped)
    forget()
    holder = as_holder(guarded, shown["key"])
    assert holder.get("/v1/endpoints").status == 200
    (row,) = (each for each in guarded.rows("tenants") if each["sk"]["S"].endswith(shown["id"]))
    guarded.aws("dynamodb").delete_item(
        TableName=guarded.made.tables["tenants"], Key={name: row[name] for name in ("pk", "sk")}
    )
    seconds = 0
    while holder.get("/v1/endpoints").status == 200:
        stopped.advance(ms=1_000)
        seconds += 1
    assert seconds == bootstrap.settings().key_cache_secs < 60


def test_a_hundred_events_read_the_tenants_table_once(guarded: Relay) -> None:
    shown = made(guarded, role="producer")
    holder = as_holder(guarded, shown["key"])
    holder.event()
    asked: list[str] = []
    client = bootstrap.client("dynamodb")
    table = guarded.made.tables["tenants"]

    def note(params: dict[str, Any], **_: object) -> None:
        asked.extend([table] if table in json.dumps(params, default=str) else [])

    client.meta.events.register_last("before-parameter-build.dynamodb", note)
    try:
        for _ in range(100):
            holder.event()
    finally:
        client.meta.events.unregister("before-parameter-build.dynamodb", note)
    assert asked == []


def test_a_key_may_revoke_itself(guarded: Relay) -> None:
    shown = made(guarded)
    made(guarded)
    holder = as_holder(guarded, shown["key"])
    assert holder.call("DELETE", f"/v1/keys/{shown['id']}").status == 204
    assert holder.get("/v1/endpoints").status == 401


def test_a_tenant_keeps_an_admin_s_key_that_lasts(operator: Relay) -> None:
    opened = operator.post("/v1/tenants", {"name": "Acme"}).json
    first = opened["admin_key"]
    admin = as_holder(operator, first["key"])
    made(admin, expires_at=moment(days=1))
    made(admin, role="viewer")
    path = f"/v1/keys/{first['id']}"
    assert admin.call("DELETE", path).is_problem(409, "last_admin_key", "id")
    second = as_holder(operator, made(admin)["key"])
    assert second.call("DELETE", path).status == 204
    (last,) = (
        each
        for each in second.get("/v1/keys").json["items"]
        if each["role"] == "admin" and not each["expires_at"]
    )
    assert second.call("DELETE", f"/v1/keys/{last['id']}").is_problem(409, "last_admin_key", "id")
    assert second.get("/v1/endpoints").status == 200


def test_a_key_that_was_used_says_when(guarded: Relay) -> None:
    shown = made(guarded)
    holder = as_holder(guarded, shown["key"])
    before_ms = bootstrap.clock().now_ms()
    assert holder.get("/v1/endpoints").status == 200
    (listed,) = (each for each in guarded.get("/v1/keys").json["items"] if each["id"] == shown["id"])
    used_ms = datetime.fromisoformat(listed["last_used_at"]).timestamp() * 1000
    assert before_ms - 1 <= used_ms <= bootstrap.clock().now_ms()
    assert USE_NOTED_EVERY_MS >= 60_000


def test_making_and_revoking_keys_is_in_the_audit(guarded: Relay) -> None:
    shown = made(guarded, name="the shop", role="producer")
    guarded.call("DELETE", f"/v1/keys/{shown['id']}")
    revoked, created = guarded.get("/v1/audit").json["items"]
    assert (created["action"], created["subject"]) == ("key.created", shown["id"])
    assert (revoked["action"], revoked["subject"]) == ("key.revoked", shown["id"])
    assert (
        created["after"] == {"role": "producer", "name": "the shop", "expires_at": None} == revoked["before"]
    )
    assert guarded.key is not None
    assert created["actor"]["key_id"] == guarded.key.split(".")[1]


@pytest.mark.parametrize("key_id", ["key_1", "%23", "key#1", "k" * 3_000, "lasting-keys"])
def test_what_is_no_key_s_id_names_nothing(guarded: Relay, key_id: str) -> None:
    assert guarded.call("DELETE", f"/v1/keys/{key_id}").is_problem(404, "not_found", "id")
