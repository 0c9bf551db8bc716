"""Who may ask what: keys, roles, and the wall between tenants."""

import pytest

from chalicelib import bootstrap
from chalicelib.domain.api_key import DEVELOPMENT_KEY, GIVEN, Role
from chalicelib.wire.operations import OPERATIONS
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
    "the development key": f"Bearer {DEVELOPMENT_KEY}",
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


def test_another_tenant_s_things_are_not_there(guarded: Relay) -> None:
    made = guarded.endpoint()
    said = guarded.event()
    (delivery_id,) = said["delivery_ids"]
    replay = guarded.post(f"/v1/endpoints/{made['id']}/replay", {"since": "2026-01-01T00:00:00Z"}).json
    kept = [guarded.rows(table) for table in ("events", "owed", "history", "endpoints", "subs", "gates")]
    names = {"event_id": said["event_id"], "endpoint_id": made["id"], "delivery_id": delivery_id}
    key = guarded.post("/v1/keys", {"role": "admin"}, guarded.elevated()).json
    names |= {"replay_id": replay["id"], "tenant_id": "acme", "key_id": key["id"]}
    stranger = guarded.another("stranger")
    for each in GUARDED:
        if "{" in each.path:
            body = BODIES.get(each.id, b"{}")
            answer = stranger.call(each.method, each.path.format(**names), body, {**JSON, "If-Match": '"1"'})
            assert answer.is_problem(404, "not_found", "id"), each.id
            assert b"receiver.example" not in answer.body
    for path in ("/v1/events", "/v1/endpoints"):
        assert stranger.get(path).json == {"items": [], "cursor": None}
    assert stranger.wrote_nothing()
    assert [
        guarded.rows(table) for table in ("events", "owed", "history", "endpoints", "subs", "gates")
    ] == kept


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


def test_another_tenant_s_cursor_leads_nowhere_else(guarded: Relay) -> None:
    for _ in range(2):
        guarded.event()
    cursor = guarded.get("/v1/events?limit=1").json["cursor"]
    assert guarded.another("stranger").get(f"/v1/events?cursor={cursor}").json["items"] == []


def test_production_takes_no_request_without_a_key_by_default(make_relay: MakeRelay) -> None:
    assert is_refused(make_relay().get("/v1/events"))
