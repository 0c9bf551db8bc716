"""Ordered endpoints at the API: said plainly when one is created, kept to, and never late."""

from typing import Any

import pytest

from chalicelib.domain.endpoint import ORDERED_MAX
from tests.handlers.relay import URL, Relay
from tests.receiver import Receiver

ORDERED = {"ordering": "endpoint"}
EVENT = b'{"type":"order.paid"}'


def owed(relay: Relay, of: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - the answer's JSON
    rows = [row for row in relay.rows("owed") if of["id"] in row["pk"]["S"]]
    return sorted(rows, key=lambda row: str(row["sk"]["S"]))


def test_who_creates_one_is_told_what_a_failing_delivery_does(tenant: Relay) -> None:
    made = tenant.endpoint(**ORDERED)
    assert made["ordering"] == "endpoint"
    (warning,) = made["warnings"]
    for words in ("holds up every delivery behind it", "until it has succeeded", "dead"):
        assert words in warning
    shown = tenant.get(f"/v1/endpoints/{made['id']}").json
    at_creation = {"secret", "public_key", "warnings"}
    assert shown == {name: value for name, value in made.items() if name not in at_creation}
    assert tenant.get("/v1/endpoints").json["items"] == [shown]
    assert "warnings" not in tenant.endpoint(ordering="none", url=f"{URL}/other")


@pytest.mark.parametrize("now, other", [("none", "endpoint"), ("endpoint", "none")])
def test_the_ordering_of_an_endpoint_cannot_be_changed(tenant: Relay, now: str, other: str) -> None:
    made = tenant.endpoint(ordering=now)
    refused = tenant.patch(made, {"ordering": other, "burst": 5})
    assert refused.is_problem(400, "field_invalid", "ordering")
    assert "cannot be changed" in refused.json["detail"]
    assert "a new endpoint" in refused.json["expected"]
    assert tenant.get(f"/v1/endpoints/{made['id']}").json["burst"] == 20
    changed = tenant.patch(made, {"ordering": now, "burst": 5})
    assert (changed.status, changed.json["ordering"], changed.json["burst"]) == (200, now, 5)


def test_events_are_owed_in_the_order_of_their_answers(relay: Relay) -> None:
    made = relay.endpoint(**ORDERED, max_concurrency=40)
    order = [relay.event()["event_id"] for _ in range(2)]
    order += [each["event_id"] for each in relay.batch(*[{"type": "t", "payload": "{}"}] * 3)]
    order.append(relay.event()["event_id"])
    rows = owed(relay, made)
    assert [row["event"]["S"] for row in rows] == order
    assert {row["pk"]["S"].rpartition("#")[2] for row in rows} == {"o0"}


def test_a_tenant_has_forty_at_most(tenant: Relay) -> None:
    made = [tenant.endpoint(**ORDERED, event_types=["user.*"]) for _ in range(ORDERED_MAX)]
    body = {"url": made[0]["url"], "event_types": ["*"], **ORDERED}
    refused = tenant.post("/v1/endpoints", body)
    assert refused.is_problem(409, "too_many_ordered_endpoints", "ordering")
    assert "40" in refused.json["detail"]
    assert tenant.delete(made[0]).status == 204
    assert tenant.post("/v1/endpoints", body).status == 201


def test_more_than_forty_matches_leave_no_ordered_one_for_later(tenant: Relay) -> None:
    for _ in range(40):
        tenant.endpoint()
    made = tenant.endpoint(**ORDERED)
    said = tenant.event()
    (delivery,) = said["delivery_ids"]
    assert said["fan_out"] == "later"
    shown = tenant.get(f"/v1/deliveries/{delivery}").json
    assert (shown["endpoint_id"], shown["status"]) == (made["id"], "pending")
    listed = tenant.get(f"/v1/events/{said['event_id']}/deliveries").json["items"]
    assert [each["id"] for each in listed] == [delivery]


def test_an_event_is_refused_while_the_subscriptions_of_an_ordered_endpoint_cannot_be_read(
    relay: Relay,
) -> None:
    relay.endpoint(**ORDERED, event_types=["user.*"])
    relay.drop_table("subs")
    for path in ("/v1/events", "/v1/events/batch"):
        body = EVENT if path == "/v1/events" else b'{"events":[{"type":"order.paid","payload":"{}"}]}'
        refused = relay.call("POST", path, body)
        assert refused.is_problem(503, "unavailable")
        assert "Try again" in refused.json["detail"]
    assert relay.stored_events() == []
    assert (relay.rows("fanouts"), relay.rows("owed"), relay.rows("idempotency")) == ([], [], [])


def test_without_ordered_endpoints_it_is_taken_and_fanned_out_later(relay: Relay) -> None:
    relay.endpoint()
    relay.drop_table("subs")
    assert relay.event()["fan_out"] == "later"


def test_nobody_guesses_whether_there_are_ordered_endpoints(relay: Relay) -> None:
    relay.endpoint()
    for table in ("subs", "tenants"):
        relay.drop_table(table)
    assert relay.call("POST", "/v1/events", EVENT).is_problem(503, "unavailable")
    assert relay.stored_events() == []


@pytest.mark.parametrize("form", ["relay", "standard"])
def test_f132_an_ordered_endpoint_s_requests_are_numbered_and_no_other_s(
    relay: Relay, receiver: Receiver, form: str
) -> None:
    numbered = relay.endpoint(url=receiver.url("/verify"), signature=form, **ORDERED)
    plain = relay.endpoint(url=receiver.url("/verify"), signature=form)
    for each in (numbered, plain):
        receiver.add_secret(each["secret"])
    said = relay.event()
    relay.deliver_all()
    got = {each["delivery_id"]: each for each in receiver.received()}
    first, second = (got[each] for each in said["delivery_ids"])
    assert first["headers"]["relay-event-sequence"] == "1"
    assert "relay-event-sequence" not in second["headers"]
    assert first["verified"]
    assert second["verified"]
