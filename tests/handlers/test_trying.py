"""The test of an endpoint over the API: 200 with the attempt, or 202 and what it waits for."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from chalicelib import bootstrap
from chalicelib.domain.api_key import Role
from tests.handlers.relay import JSON, Answer, Relay, typed
from tests.receiver import Receiver

NOBODY = "ep_01a22a7c-5366-79c3-90eb-70e6bdfad2fa"
Try = Callable[[str], Answer]


@dataclass(frozen=True, slots=True)
class Delivering:
    """Patience that does the delivery plane's part: whatever rings on the queue of replays is delivered."""

    relay: Relay

    def wait(self, ms: int) -> None:
        if rung := self.relay.messages("replay"):
            assert self.relay.deliver("replay", rung) == []


@pytest.fixture
def try_out(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> Try:
    use = replace(bootstrap.try_endpoint(), patience=Delivering(relay))
    monkeypatch.setattr(bootstrap, "try_endpoint", lambda: use)
    return lambda endpoint_id: relay.call("POST", f"/v1/endpoints/{endpoint_id}/test", b"{}", JSON)


def test_the_attempt_comes_back(relay: Relay, receiver: Receiver, try_out: Try) -> None:
    wants = {"event_types": ["order.paid"], "filter": {"country": ["NZ"]}}
    made = relay.endpoint(url=receiver.url("/verify"), **wants)
    receiver.add_secret(made["secret"])
    answer = try_out(made["id"])
    assert (answer.status, answer.json["status"], answer.json["waits_for"]) == (200, "succeeded", None)
    assert answer.json["attempt"]["status"] == 200
    (got,) = receiver.received()
    assert (got["verified"], got["headers"]["relay-event-type"]) == (True, "relay.test")
    assert answer.headers["location"] == f"/v1/deliveries/{answer.json['delivery_id']}"
    assert relay.get(answer.headers["location"]).json["event_type"] == "relay.test"
    request = relay.get(f"{answer.headers['location']}/request").json["request"]
    assert {each["name"].lower(): each["value"] for each in request["headers"]} == got["headers"]


def test_one_that_fails_comes_back_with_what_went_wrong(
    relay: Relay, receiver: Receiver, try_out: Try
) -> None:
    made = relay.endpoint(url=receiver.url("/status/500?body=oops"))
    answer = try_out(made["id"])
    assert (answer.status, answer.json["status"], answer.json["reason"]) == (
        200,
        "dead",
        "attempts_exhausted",
    )
    assert (answer.json["attempt"]["status"], answer.json["attempt"]["next_attempt_at"]) == (500, None)
    assert relay.get(f"/v1/endpoints/{made['id']}/dead-letters").json["items"] == []
    assert relay.rows("owed") == []


def test_one_that_waits_says_for_what(relay: Relay, receiver: Receiver, try_out: Try) -> None:
    busy = {"status": 429, "headers": {"Retry-After": "3000"}}
    made = relay.endpoint(url=receiver.script("busy", busy))
    relay.event()
    relay.deliver_all()
    answer = try_out(made["id"])
    assert (answer.status, answer.json["status"], answer.json["attempt"]) == (202, "pending", None)
    assert answer.json["hold"]["reason"] == "rate_limit"
    assert answer.json["waits_for"].startswith("The endpoint is held (rate_limit)")


def test_a_disabled_or_deleted_endpoint_is_409_and_an_unknown_one_404(relay: Relay, try_out: Try) -> None:
    made = relay.endpoint()
    relay.call("POST", f"/v1/endpoints/{made['id']}/disable")
    assert try_out(made["id"]).is_problem(409, "endpoint_disabled", "id")
    relay.delete(relay.get(f"/v1/endpoints/{made['id']}").json)
    assert try_out(made["id"]).is_problem(409, "endpoint_deleted", "id")
    assert try_out(NOBODY).is_problem(404, "not_found", "id")


def test_only_an_admin_of_the_same_tenant_sends_one(relay: Relay, receiver: Receiver) -> None:
    path = f"/v1/endpoints/{relay.endpoint(url=receiver.url('/sink'))['id']}/test"
    assert relay.another("default", Role.VIEWER).call("POST", path).is_problem(403, "forbidden")
    assert relay.another("default", Role.PRODUCER).call("POST", path).is_problem(403, "forbidden")
    assert relay.another("other").call("POST", path).is_problem(404, "not_found", "id")
    assert relay.call("POST", path, b'{"now":1}').is_problem(400, "field_unknown", "now")
    assert receiver.received() == []


def test_relay_s_own_types_are_nobody_s_to_post_or_to_subscribe_to(relay: Relay) -> None:
    refused = relay.call("POST", "/v1/events", b"{}", typed("relay.test"))
    assert refused.is_problem(400, "event_type_invalid", "Relay-Event-Type")
    made = relay.post("/v1/endpoints", {"url": "https://receiver.example/", "event_types": ["relay.*"]})
    assert made.is_problem(400, "field_invalid", "event_types")
