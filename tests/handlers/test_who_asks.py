"""Who may ask what: keys, roles, and the wall between tenants."""

import inspect
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pytest

import app as lambdas
from chalicelib import bootstrap
from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Key
from chalicelib.domain.api_key import DEVELOPMENT_KEY, GIVEN, Role
from chalicelib.domain.delivery import Lane, Owed
from chalicelib.domain.ending import Cause
from chalicelib.wire import operations
from chalicelib.wire.operations import OPERATIONS
from chalicelib.wire.operations.operation import CURSOR
from tests.handlers.conftest import MakeRelay
from tests.handlers.relay import JSON, Answer, Relay

NAMES = {
    "event_id": "evt_01a22a7c-5366-79c3-90eb-70e6bdfad2fa",
    "endpoint_id": "ep_01a22a7c-5366-79c3-90eb-70e6bdfad2fa",
    "delivery_id": "01a22a7c-5366-79c3-90eb-70e6bdfad2fa",
    "tenant_id": "tn_01a22a7c-5366-79c3-90eb-70e6bdfad2fa",
    "key_id": "key_01a22a7c-5366-79c3-90eb-70e6bdfad2fa",
    "replay_id": "rp_01a22a7c-5366-79c3-90eb-70e6bdfad2fa",
}
GUARDED = [each for each in OPERATIONS if each.roles is not None]
GUARDED_ROUTES = sorted(
    (method, path)
    for path, methods in lambdas.app.routes.items()
    for method in methods
    if operations.find(method, path).roles is not None
)
ROUTES = sorted((each.method, each.path.format(**NAMES)) for each in GUARDED)
NOT_KEYS = {
    "none": None,
    "empty": "",
    "scheme only": "Bearer",
    "no scheme": "relay_acme.k1.secret",
    "another scheme": "Basic relay_acme.k1.secret",
    "two parts": "Bearer relay_acme.k1",
    "four parts": "Bearer relay_acme.k1.se.cret",
    "empty parts": "Bearer relay_..",
    "unknown tenant": "Bearer relay_nobody.k1.secret",
    "unknown key": "Bearer relay_acme.k999999.secret",
    "beyond ASCII": "Bearer relay_acme.k1.sécret",
    "long": "Bearer relay_acme.k1." + "s" * 10_000,
    "a key of the table's": "Bearer relay_acme.k#1.secret",
    "a control character": "Bearer relay_acme.k1.\x00",
}


def is_refused(answer: Answer) -> bool:
    return answer.is_problem(401, "unauthenticated", "Authorization")


def test_there_are_routes_to_guard() -> None:
    assert len(ROUTES) > 10


@pytest.mark.parametrize("method, path", ROUTES)
def test_without_a_key_nothing_is_answered(empty_guarded: Relay, method: str, path: str) -> None:
    anyone = Relay(empty_guarded.made, empty_guarded.clients, empty_guarded.counters)
    answer = anyone.call(method, path, b'{"type":"order.paid"}', JSON)
    assert is_refused(answer)
    assert answer.json["expected"] == "Authorization: Bearer relay_…"
    assert empty_guarded.wrote_nothing()


@pytest.mark.parametrize("authorization", NOT_KEYS.values(), ids=NOT_KEYS.keys())
def test_what_is_no_key_is_refused(empty_guarded: Relay, authorization: str | None) -> None:
    anyone = Relay(empty_guarded.made, empty_guarded.clients, empty_guarded.counters)
    headers = {} if authorization is None else {"Authorization": authorization}
    assert is_refused(anyone.call("POST", "/v1/events", b'{"type":"order.paid"}', headers))
    assert empty_guarded.wrote_nothing()


def test_the_development_key_opens_nothing_where_nobody_has_put_it(guarded: Relay) -> None:
    anyone = Relay(guarded.made, guarded.clients, guarded.counters, key=DEVELOPMENT_KEY)
    assert is_refused(anyone.call("POST", "/v1/events", b'{"type":"order.paid"}'))


@pytest.mark.parametrize("change", ["{}x", "{}.x", "x{}", "{} x"])
def test_a_key_is_whole_or_nothing(empty_guarded: Relay, change: str) -> None:
    assert empty_guarded.get("/v1/events").status == 200
    authorization = {"Authorization": "Bearer " + change.format(empty_guarded.key)}
    assert is_refused(empty_guarded.call("GET", "/v1/events", headers=authorization))


@pytest.mark.parametrize("scheme", ["bearer", "BEARER"])
def test_the_scheme_may_be_written_in_any_case(empty_guarded: Relay, scheme: str) -> None:
    headers = {"authorization": f"{scheme} {empty_guarded.key}"}
    anyone = Relay(empty_guarded.made, empty_guarded.clients)
    assert anyone.call("GET", "/v1/events", headers=headers).status == 200


def test_two_keys_in_one_request_are_refused_as_a_header_that_is_there_twice(empty_guarded: Relay) -> None:
    answer = empty_guarded.call("GET", "/v1/events", headers={"authorization": "Bearer relay_acme.k1.x"})
    assert answer.is_problem(400, "field_invalid", "Authorization")


def test_a_key_is_kept_as_its_hash_alone(guarded: Relay) -> None:
    assert guarded.key is not None
    assert guarded.key.rpartition(".")[2] not in repr(guarded.rows("tenants"))


def test_the_development_tenant_needs_no_key_and_has_one(relay: Relay) -> None:
    bootstrap.seed_development()
    said = relay.event()
    keyed = Relay(relay.made, relay.clients, key=DEVELOPMENT_KEY)
    assert [each["id"] for each in keyed.get("/v1/events").json["items"]] == [said["event_id"]]
    bootstrap.seed_development()
    assert keyed.get("/v1/endpoints").status == 200


def test_a_wrong_key_is_refused_even_where_none_is_needed(relay: Relay) -> None:
    headers = {"Authorization": "Bearer relay_default.development.guess"}
    assert is_refused(relay.call("GET", "/v1/events", headers=headers))


BODIES = {"replay_endpoint": b'{"since": "2026-01-01T00:00:00Z"}'}
"""What is no fault of the body."""


@pytest.mark.parametrize("role", GIVEN)
def test_a_role_may_do_its_own_and_an_admin_all(empty_guarded: Relay, role: Role) -> None:
    caller = empty_guarded.another("acme", role)
    for each in GUARDED:
        answer = caller.call(each.method, each.path.format(**NAMES), b"", JSON)
        if role in (each.roles or ()):
            assert answer.status in {200, 400, 404}, each.id
        else:
            assert answer.is_problem(403, "forbidden"), each.id
            assert answer.json["expected"].endswith(" or ".join(sorted(each.roles or ())))
    assert caller.wrote_nothing()


Everything = dict[str, list[dict[str, Any]]]


def everything(relay: Relay, tenant: str) -> Everything:
    """Read all that is stored of a tenant, but for when its keys were used and what they are allowed."""
    rows = {table: relay.rows(table) for table in relay.made.tables}
    return {
        table: sorted((each for each in found if owner(each) == tenant), key=repr)
        for table, found in rows.items()
    }


def owner(row: Mapping[str, Any]) -> str:
    return str(row["pk"]["S"]).partition("#")[0]


def busy(relay: Relay) -> dict[str, str]:
    """Let a tenant have some of everything, two of what is listed; the names of one of each."""
    made, _ = relay.endpoint(), relay.endpoint()
    said, _ = relay.event(), relay.event()
    replay = relay.post(f"/v1/endpoints/{made['id']}/replay", {"since": "2026-01-01T00:00:00Z"}).json
    key = relay.post("/v1/keys", {"role": "admin"}, relay.elevated()).json
    return {
        "event_id": said["event_id"],
        "endpoint_id": made["id"],
        "delivery_id": said["delivery_ids"][0],
        "replay_id": replay["id"],
        "tenant_id": "acme",
        "key_id": key["id"],
    }


def test_another_tenant_s_things_are_not_there(guarded: Relay) -> None:
    names = busy(guarded)
    kept = everything(guarded, "acme")
    stranger = guarded.another("stranger")
    with_names = [
        (method, path)
        for method, path in GUARDED_ROUTES
        if "{" in path and Role.ADMIN in (operations.find(method, path).roles or ())
    ]
    assert len(with_names) > 15
    for method, path in with_names:
        body = BODIES.get(operations.find(method, path).id, b"{}")
        headers = {**JSON, "If-Match": '"1"', **stranger.elevated()}
        answer = stranger.call(method, path.format(**names), body, headers)
        assert answer.is_problem(404, "not_found", "id"), (method, path)
        assert b"receiver.example" not in answer.body
    assert stranger.wrote_nothing()
    assert everything(guarded, "acme") == kept


def test_another_tenant_s_names_and_cursors_in_a_query_lead_to_nothing_of_it(guarded: Relay) -> None:
    names = busy(guarded)
    lists = [each for each in GUARDED if each.method == "GET" and "{" not in each.path]
    cursors = {
        each.id: guarded.get(f"{each.path}?limit=1").json["cursor"] for each in lists if CURSOR in each.query
    }
    assert len([each for each in cursors.values() if each]) >= 4
    stranger = guarded.another("stranger")
    own_path = f"/v1/endpoints/{stranger.endpoint()['id']}"
    for each in lists:
        values = [*names.values(), *filter(None, cursors.values())]
        for asked in each.query:
            for value in values:
                answer = stranger.get(f"{each.path}?{asked.name}={quote(value)}")
                assert answer.status in {200, 400, 404}, (each.id, asked.name, value)
                if asked == CURSOR and value in cursors.values():
                    assert answer.is_problem(404, "not_found", "cursor"), (each.id, value)
                assert not shown(answer, names), (each.id, asked.name, value)
    assert stranger.get(own_path).status == 200


def shown(answer: Answer, names: Mapping[str, str]) -> list[str]:
    """Name what an answer shows of somebody's things; only a refusal may repeat what was sent."""
    return [name for name in names.values() if answer.status == 200 and name in answer.body.decode()]


def test_another_tenant_s_names_in_a_body_lead_to_nothing_of_it(guarded: Relay) -> None:
    names = busy(guarded)
    kept = everything(guarded, "acme")
    stranger = guarded.another("stranger")
    own = stranger.endpoint()
    tenant = {"tenant": "acme", "id": names["endpoint_id"]}
    for each in GUARDED:
        if each.body is None:
            continue
        path = each.path.replace("{endpoint_id}", own["id"]).format(**names)
        for body in (
            {**names, **tenant},
            {"type": "order.paid", **names, **tenant},
            [names],
            names["endpoint_id"],
        ):
            answer = stranger.call(
                each.method,
                path,
                json.dumps(body).encode(),
                {**JSON, "If-Match": '"1"', **stranger.elevated()},
            )
            assert answer.status < 500, (each.id, body)
            assert not shown(answer, names), (each.id, body)
    assert everything(guarded, "acme") == kept


def test_every_row_of_every_table_begins_with_its_tenant(guarded: Relay) -> None:
    busy(guarded)
    stranger = guarded.another("stranger")
    stranger.endpoint()
    stranger.event()
    tables = set(guarded.made.tables) - {"metrics"}
    found = {table: {owner(row) for row in guarded.rows(table)} for table in tables}
    assert set().union(*found.values()) <= {"acme", "stranger", ""}
    assert {table for table, owners in found.items() if "acme" in owners} >= {
        "events", "owed", "history", "endpoints", "subs", "gates", "tenants", "audit", "replays",
    }  # fmt: skip
    apart = [row["pk"]["S"] for table in tables for row in guarded.rows(table) if not owner(row)]
    assert set(apart) <= {keys.INSTALLATION}


BUILT = {
    name: function
    for name, function in inspect.getmembers(keys, inspect.isfunction)
    if function.__module__ == keys.__name__
    and function.__annotations__["return"] is Key
    and name not in {"canary", "counters", "gauges", "reported", "run", "owner", "relay_node", "ticket"}
}
"""All but those of metrics and of relay nodes, whose tables hold nothing that is listed by tenant."""
INSTALLATION_S = {"audit_export", "listed_tenant", "retention"}
"""What belongs to no tenant: where a run of the installation's has come, and the operator's list."""
LANE = Lane("acme", NAMES["endpoint_id"], "0")
GIVEN_PARTS: dict[Any, Any] = {
    str: NAMES["event_id"],
    int: 1,
    Cause: Cause.OWNER,
    Owed: Owed(LANE, NAMES["delivery_id"], NAMES["event_id"], 1),
    tuple[str, int, int]: (NAMES["delivery_id"], 0, 1),
}


@pytest.mark.parametrize("name", BUILT)
def test_every_key_begins_with_its_tenant(name: str) -> None:
    parts = {
        each: "acme" if each in {"tenant", "tenant_id"} else GIVEN_PARTS[kind]
        for each, kind in BUILT[name].__annotations__.items()
        if each != "return"
    }
    made = BUILT[name](**parts)
    expected = keys.INSTALLATION if name in INSTALLATION_S else "acme"
    assert f"{made.pk}#".startswith(f"{expected}#")


def test_an_unknown_thing_and_another_tenant_s_are_told_apart_by_nothing(guarded: Relay) -> None:
    made = guarded.endpoint()
    stranger = guarded.another("stranger")
    foreign = stranger.get(f"/v1/endpoints/{made['id']}").body
    assert foreign.replace(made["id"].encode(), b"") == stranger.get(
        f"/v1/endpoints/{NAMES['endpoint_id']}"
    ).body.replace(NAMES["endpoint_id"].encode(), b"")


def test_another_tenant_s_events_are_fanned_out_to_its_own_endpoints_only(guarded: Relay) -> None:
    guarded.endpoint()
    stranger = guarded.another("stranger")
    assert stranger.event()["fan_out"] == "none"
    own = stranger.endpoint()
    (delivery,) = stranger.get(f"/v1/events/{stranger.event()['event_id']}/deliveries").json["items"]
    assert delivery["endpoint_id"] == own["id"]


def test_production_takes_no_request_without_a_key_by_default(make_relay: MakeRelay) -> None:
    assert is_refused(make_relay().get("/v1/events"))
