"""Filters at the door: shown as they were written, refused with the place, taken away with null."""

import json
from typing import Any

import pytest

import app as lambdas
from infra.local.sqs_event import event_of
from tests.handlers.conftest import MakeRelay
from tests.handlers.relay import URL, Relay, typed
from tests.receiver import Receiver

LARGE: dict[str, Any] = {"order": {"sum": [{"numeric": [">", 100]}]}}
MUCH, LITTLE = b'{"order":{"sum":500}}', b'{"order":{"sum":5}}'
PAID = typed("order.paid")


def posted(relay: Relay, body: bytes) -> Any:  # noqa: ANN401 - the answer's JSON
    return relay.event(body, PAID)


def test_only_events_that_pass_its_filter_are_owed_to_an_endpoint(tenant: Relay) -> None:
    tenant.endpoint(filter=LARGE)
    assert len(posted(tenant, MUCH)["delivery_ids"]) == 1
    said = posted(tenant, LITTLE)
    assert (said["delivery_ids"], said["fan_out"]) == ([], "none")
    assert tenant.get(f"/v1/events/{said['event_id']}/deliveries").json["items"] == []


def test_a_filter_is_changed_left_alone_and_taken_away(tenant: Relay) -> None:
    made = tenant.endpoint(filter=LARGE)
    made = tenant.patch(made, {"description": "same filter"}).json
    assert made["filter"] == LARGE
    assert posted(tenant, LITTLE)["delivery_ids"] == []
    made = tenant.patch(made, {"filter": {"order": {"sum": [{"numeric": ["<=", 100]}]}}}).json
    assert len(posted(tenant, LITTLE)["delivery_ids"]) == 1
    made = tenant.patch(made, {"filter": None}).json
    assert made["filter"] is None
    assert tenant.get(f"/v1/endpoints/{made['id']}").json["filter"] is None
    assert len(posted(tenant, MUCH)["delivery_ids"]) == 1


def test_null_is_no_filter_from_the_beginning(tenant: Relay) -> None:
    assert tenant.endpoint(filter=None)["filter"] is None
    assert tenant.endpoint()["filter"] is None
    assert len(tenant.event(b"no JSON", typed("t", "text/plain"))["delivery_ids"]) == 2


@pytest.mark.parametrize(
    "filter_, place, expected",
    [
        ({"a": {"b": [1, {"numeric": [">", "5"]}]}}, "filter.a.b[1].numeric[1]", "a number"),
        ({"a": [{"matches": "x"}]}, "filter.a[0].matches", "one of: anything-but"),
        ({}, "filter", "at least one field"),
        ({"a": ["x" * 2_048]}, "filter", "at most 2048 bytes"),
        ("a", "filter", "a JSON object"),
        ([], "filter", "a JSON object"),
    ],
    ids=["place", "operator", "empty", "large", "text", "list"],
)
def test_a_bad_filter_is_refused_with_its_place_at_creation_and_change(
    tenant: Relay, filter_: object, place: str, expected: str
) -> None:
    made = tenant.endpoint()
    created = tenant.post("/v1/endpoints", {"url": URL, "event_types": ["*"], "filter": filter_})
    for answer in (created, tenant.patch(made, {"filter": filter_})):
        assert answer.is_problem(400, "field_invalid", place)
        assert expected in answer.json["expected"]
    assert tenant.get(f"/v1/endpoints/{made['id']}").json["version"] == 1


@pytest.mark.parametrize(
    "number", ["0.1000000000000000055511", "1e999", "1.0000000000000000000001", "9" * 21]
)
def test_a_number_that_would_not_be_kept_as_written_is_refused(tenant: Relay, number: str) -> None:
    body = f'{{"url":"{URL}","event_types":["*"],"filter":{{"a":[{number}]}}}}'.encode()
    answer = tenant.call("POST", "/v1/endpoints", body, {"Content-Type": "application/json"})
    assert answer.is_problem(400, "body_not_json")
    assert "digits" in answer.json["detail"]


def test_a_name_that_stands_twice_in_a_filter_is_refused(tenant: Relay) -> None:
    body = f'{{"url":"{URL}","event_types":["*"],"filter":{{"a":[1],"a":[2]}}}}'.encode()
    answer = tenant.call("POST", "/v1/endpoints", body, {"Content-Type": "application/json"})
    assert answer.is_problem(400, "body_not_json", "a")


def test_the_audit_says_what_a_filter_was_and_is(tenant: Relay) -> None:
    made = tenant.endpoint(filter=LARGE)
    tenant.patch(made, {"filter": None})
    (changed, created) = tenant.get("/v1/audit").json["items"][:2]
    assert (created["after"]["filter"], changed["before"], changed["after"]) == (
        LARGE,
        {"filter": LARGE},
        {"filter": None},
    )


def test_a_later_fan_out_filters_by_the_payload(make_relay: MakeRelay, receiver: Receiver) -> None:
    relay = make_relay(
        RELAY_INLINE_FANOUT_MAX="0", RELAY_ALLOW_KEYLESS="true", RELAY_ALLOW_PRIVATE_ENDPOINTS="true"
    )
    wanted = relay.endpoint(url=receiver.url("/sink"), filter={"noise": [{"suffix": "!"}]})
    relay.endpoint(url=receiver.url("/sink"), filter={"noise": [{"suffix": "?"}]})
    body = json.dumps(
        {"noise": "".join(f"{n * n * 7919 % 104_729:05d}" for n in range(4_000)) + "!"}
    ).encode()
    said = posted(relay, body)
    assert said["fan_out"] == "later"
    assert len(relay.stored_payloads()) == 1
    calls = relay.messages("fan-out")
    assert relay.run(lambdas.fan_out, event_of(calls, relay.arn("fan-out"))) == []
    listed = relay.get(f"/v1/events/{said['event_id']}/deliveries").json["items"]
    assert [each["endpoint_id"] for each in listed] == [wanted["id"]]
