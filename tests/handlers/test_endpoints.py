"""Endpoints: created with a secret shown once, read, changed only as they were read, deleted."""

import base64
from typing import Any

import pytest

from tests.handlers.relay import JSON, URL, Relay

NOBODY = "ep_01a22a7c-5366-79c3-90eb-70e6bdfad2fa"
MASK = "********"
FULL: dict[str, Any] = {
    "url": "https://Receiver.Example/hook?a=%20b",
    "transport": "http",
    "event_types": ["order.*", "user.made", "order.*"],
    "description": "café 😊",
    "rate_per_second": 100_000,
    "burst": 1,
    "max_concurrency": 1_000,
    "ordering": "none",
    "retry_profile": "patient",
    "signature": "standard",
    "headers": {"X-Token": "hush hush", "Authorization": "Bearer hush"},
    "filter": {"amount": [{"numeric": [">", 0.5]}, None], "$or": [{"a": ["é"]}, {"b": {"c": [1, True]}}]},
}
CHANGES: dict[str, Any] = {
    "url": "https://other.example/",
    "event_types": ["order.paid"],
    "description": "",
    "rate_per_second": 1,
    "burst": 100_000,
    "max_concurrency": 11,
    "retry_profile": "quick",
    "signature": "standard",
    "headers": {"X-Other": "hush"},
    "filter": {"amount": [5]},
}


def test_a_new_endpoint_is_shown_whole_with_its_secret_and_etag(relay: Relay) -> None:
    answer = relay.post("/v1/endpoints", FULL)
    said = answer.json
    assert (answer.status, answer.headers["etag"]) == (201, '"1"')
    assert answer.headers["location"] == f"/v1/endpoints/{said['id']}"
    assert len(base64.b64decode(said.pop("secret").removeprefix("whsec_"), validate=True)) == 32
    assert said.pop("public_key") is None
    assert said == {
        **FULL,
        "id": said["id"],
        "url": "https://receiver.example/hook?a=********",
        "event_types": ["order.*", "user.made"],
        "headers": {"X-Token": MASK, "Authorization": MASK},
        "auth": None,
        "role": None,
        "external_id": None,
        "state": "enabled",
        "state_reason": None,
        "signature_key": "hmac",
        "previous_secret_expires_at": None,
        "created_at": said["created_at"],
        "version": 1,
    }
    shown = relay.get(f"/v1/endpoints/{said['id']}")
    assert (shown.status, shown.json, shown.headers["etag"]) == (200, said, '"1"')


def test_what_is_left_out_has_the_documented_default(tenant: Relay) -> None:
    said = tenant.post("/v1/endpoints", {"url": URL, "event_types": ["*"]}).json
    names = (
        "rate_per_second",
        "burst",
        "max_concurrency",
        "ordering",
        "retry_profile",
        "signature",
        "headers",
    )
    assert [said[name] for name in names] == [10, 20, 8, "none", "default", "relay", {}]
    assert (said["transport"], said["description"]) == ("http", "")


def test_no_two_endpoints_share_a_secret(tenant: Relay) -> None:
    assert len({tenant.endpoint()["secret"] for _ in range(3)}) == 3


def test_secrets_and_header_values_are_in_no_other_answer_and_no_row(relay: Relay) -> None:
    made = relay.endpoint(headers={"X-Token": "hush hush"})
    said = relay.event()
    path = f"/v1/endpoints/{made['id']}"
    answers = [
        relay.get(path),
        relay.get("/v1/endpoints"),
        relay.patch(made, {"burst": 5}),
        relay.patch(made, {"burst": 5}),
        relay.get(f"{path}/deliveries"),
        relay.get(f"/v1/deliveries/{said['delivery_ids'][0]}"),
        relay.get(f"/v1/events/{said['event_id']}/deliveries"),
        relay.delete(made, '"2"'),
    ]
    for answer in answers:
        assert made["secret"].removeprefix("whsec_").encode() not in answer.body
        assert b"hush" not in answer.body
        assert b'"secret"' not in answer.body
    kept = repr([relay.rows(table) for table in relay.made.tables])
    assert made["secret"].removeprefix("whsec_") not in kept


@pytest.mark.parametrize("name, value", CHANGES.items(), ids=CHANGES.keys())
def test_a_change_changes_one_thing_and_the_etag(tenant: Relay, name: str, value: object) -> None:
    made = tenant.endpoint(max_concurrency=25, description="old")
    before = tenant.get(f"/v1/endpoints/{made['id']}").json
    answer = tenant.patch(made, {name: value})
    shown = dict.fromkeys(CHANGES["headers"], MASK) if name == "headers" else value
    assert (answer.status, answer.headers["etag"]) == (200, '"2"')
    assert answer.json == {**before, name: shown, "version": 2}
    assert tenant.get(f"/v1/endpoints/{made['id']}").json == answer.json
    assert tenant.patch(made, {name: value}).is_problem(412, "version_stale", "If-Match")


def test_a_change_of_nothing_is_a_change(tenant: Relay) -> None:
    made = tenant.endpoint()
    assert tenant.patch(made, {}).json["version"] == 2


def test_a_changed_subscription_binds_the_next_event(tenant: Relay) -> None:
    made = tenant.endpoint(event_types=["user.*"])
    assert tenant.event()["fan_out"] == "none"
    tenant.patch(made, {"event_types": ["order.paid", "order.*"]})
    assert len(tenant.event()["delivery_ids"]) == 1
    assert tenant.event(b'{"type":"user.made"}')["fan_out"] == "none"


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_a_change_has_to_say_of_what(tenant: Relay, method: str) -> None:
    made = tenant.endpoint()
    answer = tenant.call(method, f"/v1/endpoints/{made['id']}", b'{"burst":5}', JSON)
    assert answer.is_problem(428, "if_match_required", "If-Match")
    assert answer.json["expected"] == "the ETag of the latest GET"
    assert tenant.get(f"/v1/endpoints/{made['id']}").json["version"] == 1


@pytest.mark.parametrize("etag", ['"2"', "1", "*", 'W/"1"', '"1", "2"', '"01"', "é"])
def test_a_change_of_another_version_is_stale(tenant: Relay, etag: str) -> None:
    made = tenant.endpoint()
    for answer in (tenant.patch(made, {"burst": 5}, etag), tenant.delete(made, etag)):
        assert answer.is_problem(412, "version_stale", "If-Match")
    assert tenant.get(f"/v1/endpoints/{made['id']}").json["burst"] == 20


def test_a_new_url_needs_the_custom_headers_again(tenant: Relay) -> None:
    made = tenant.endpoint(headers={"X-Token": "hush"})
    other = "https://other.example/"
    assert tenant.patch(made, {"url": other}).is_problem(400, "field_invalid", "headers")
    assert tenant.patch(made, {"url": other, "headers": {"X-Token": MASK}}).is_problem(
        400, "field_invalid", "headers"
    )
    assert tenant.get(f"/v1/endpoints/{made['id']}").json["url"] == URL
    assert tenant.patch(made, {"url": URL}).status == 200
    assert tenant.patch(made, {"url": other, "headers": {}}, '"2"').json["headers"] == {}


def test_a_deleted_endpoint_is_gone_but_for_its_deliveries(tenant: Relay) -> None:
    made = tenant.endpoint()
    kept = tenant.endpoint()
    said = tenant.event()
    answer = tenant.delete(made)
    assert (answer.status, answer.body) == (204, b"")
    path = f"/v1/endpoints/{made['id']}"
    assert tenant.get(path).is_problem(404, "not_found", "id")
    changes = [tenant.delete(made, '"2"'), tenant.patch(made, {"burst": 5}, '"2"')]
    assert all(each.is_problem(409, "endpoint_deleted", "id") for each in changes)
    assert [each["id"] for each in tenant.get("/v1/endpoints").json["items"]] == [kept["id"]]
    (delivery,) = tenant.get(f"{path}/deliveries").json["items"]
    assert delivery["id"] in said["delivery_ids"]
    assert len(tenant.event()["delivery_ids"]) == 1


def test_endpoints_are_listed_newest_first_to_the_end(tenant: Relay) -> None:
    made = [tenant.endpoint()["id"] for _ in range(5)]
    for limit in (1, 2, 200):
        pages = tenant.pages(f"/v1/endpoints?limit={limit}")
        assert [each["id"] for page in pages for each in page] == sorted(made, reverse=True)


def test_an_endpoint_s_deliveries_are_listed_newest_first_to_the_end(tenant: Relay) -> None:
    made = tenant.endpoint()
    tenant.endpoint(event_types=["user.*"])
    posted = [tenant.event()["delivery_ids"][0] for _ in range(5)]
    for limit in (1, 2, 200):
        pages = tenant.pages(f"/v1/endpoints/{made['id']}/deliveries?limit={limit}")
        assert [each["id"] for page in pages for each in page] == sorted(posted, reverse=True)


@pytest.mark.parametrize("status", ["done", "", "PENDING", "pending,dead"])
def test_an_unknown_status_is_refused_naming_the_four(empty_relay: Relay, status: str) -> None:
    answer = empty_relay.get(f"/v1/endpoints/{NOBODY}/deliveries?status={status}")
    assert answer.is_problem(400, "field_invalid", "status")
    assert answer.json["expected"] == "one of: pending, inflight, succeeded, dead"


@pytest.mark.parametrize(
    "name", ["x", NOBODY, NOBODY.upper(), "evt_" + NOBODY[3:], "tag%23x", "%F0%9F%98%8A"]
)
def test_what_names_no_endpoint_is_not_found(empty_relay: Relay, name: str) -> None:
    path = f"/v1/endpoints/{name}"
    etag = {"If-Match": '"1"'}
    answers = [
        empty_relay.get(path),
        empty_relay.get(f"{path}/deliveries"),
        empty_relay.call("PATCH", path, b"{}", etag),
        empty_relay.call("DELETE", path, b"", etag),
        empty_relay.call("DELETE", path),
    ]
    assert all(each.is_problem(404, "not_found", "id") for each in answers)
