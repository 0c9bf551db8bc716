"""What an owner is shown of a hold: in an endpoint's health, in a delivery, in the attempt that follows."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from chalicelib import bootstrap
from chalicelib.domain.endpoint import Endpoint, EndpointState
from tests.handlers.relay import BY, URL, Relay, message
from tests.receiver import Receiver

TENANT = "default"
NOBODY = "ep_01a22a7c-5366-79c3-90eb-70e6bdfad2fa"
BUSY = {"status": 429, "headers": {"Retry-After": "30"}}


def health(relay: Relay, of: Mapping[str, Any]) -> dict[str, Any]:
    answer = relay.get(f"/v1/endpoints/{of['id']}/health")
    assert answer.status == 200, answer.body
    shown: dict[str, Any] = answer.json
    return shown


def delivery(relay: Relay, said: Mapping[str, Any]) -> dict[str, Any]:
    (delivery_id,) = said["delivery_ids"]
    shown: dict[str, Any] = relay.get(f"/v1/deliveries/{delivery_id}").json
    return shown


def visited(relay: Relay, of: Mapping[str, Any]) -> None:
    """Look at the endpoint's lane, as a bell that nobody knows anything of makes a function do."""
    body = {"lane": f"{TENANT}#{of['id']}#0", "rung_ms": 1, "hints": []}
    relay.deliver("shard-0", [message(json.dumps(body))])


def gate_row(relay: Relay, of: Mapping[str, Any]) -> dict[str, Any]:
    (row,) = [each for each in relay.rows("gates") if each["pk"]["S"].endswith(of["id"])]
    return row


def switched(of: Mapping[str, Any], state: EndpointState) -> Endpoint:
    """Switch an endpoint as its owner does."""
    manage = bootstrap.manage_endpoints()
    old = manage.get(TENANT, of["id"])
    return manage.change(old, replace(old, state=state), BY)


def held(relay: Relay, receiver: Receiver) -> tuple[Any, dict[str, Any]]:
    """Make an endpoint that asked for half a minute, and an event that waits for it since then."""
    made = relay.endpoint(url=receiver.script("busy", BUSY, {"status": 200}))
    relay.event()
    relay.deliver_all()
    said = relay.event()
    visited(relay, made)
    return made, said


class TestHealth:
    def test_an_endpoint_that_does_well_says_so(self, tenant: Relay) -> None:
        made = tenant.endpoint()
        assert health(tenant, made) == {
            "endpoint_id": made["id"],
            "state": "enabled",
            "state_reason": None,
            "status": "healthy",
            "lately": {"attempts": 0, "failed": 0, "failed_in_a_row": 0},
            "thresholds": {
                "degraded_below_success_percent": 95,
                "of_the_last_attempts": 50,
                "within_s": 3_600,
                "failing_after_failures_in_a_row": 20,
            },
            "breaker": {"state": "closed", "consecutive_failures": 0, "open_until": None},
            "in_flight": 0,
            "queue": "shard",
            "hold": None,
            "recent_holds": [],
        }

    @pytest.mark.parametrize("name", [NOBODY, "x", NOBODY[3:], NOBODY.upper(), "%00", "%F0%9F%98%8A"])
    def test_what_names_no_endpoint_is_not_found(self, empty_relay: Relay, name: str) -> None:
        assert empty_relay.get(f"/v1/endpoints/{name}/health").is_problem(404, "not_found", "id")

    def test_another_tenant_s_endpoint_is_told_from_none_by_nothing(self, guarded: Relay) -> None:
        made = guarded.endpoint()
        stranger = guarded.another("stranger")
        foreign, none = (stranger.get(f"/v1/endpoints/{each}/health") for each in (made["id"], NOBODY))
        assert foreign.is_problem(404, "not_found", "id")
        assert foreign.body.replace(made["id"].encode(), b"") == none.body.replace(NOBODY.encode(), b"")

    def test_a_deleted_endpoint_still_tells_how_it_did(self, tenant: Relay) -> None:
        made = tenant.endpoint()
        assert tenant.delete(made).status == 204
        assert health(tenant, made)["state"] == "deleted"

    def test_an_open_breaker_says_until_when(self, relay: Relay, receiver: Receiver) -> None:
        made = relay.endpoint(url=receiver.url("/always500"))
        relay.change("gates", gate_row(relay, made), fails={"N": "19"})
        said = relay.event()
        relay.deliver_all()
        shown = health(relay, made)
        assert shown["breaker"] | {"open_until": None} == {
            "state": "open",
            "consecutive_failures": 20,
            "open_until": None,
        }
        assert shown["hold"]["reason"] == "breaker_open"
        assert shown["hold"]["until"] == shown["breaker"]["open_until"] > shown["hold"]["since"]
        assert delivery(relay, said)["hold"] == shown["hold"]
        assert relay.waiting("delayed")[2] >= 1, "one comes when it may be tried again"

    def test_an_endpoint_that_is_apart_says_where(self, relay: Relay) -> None:
        made = relay.endpoint()
        relay.change("gates", gate_row(relay, made), queue={"S": "slow"})
        assert health(relay, made)["queue"] == "slow"


class TestAHeldDelivery:
    def test_it_says_why_since_when_and_until_when(self, relay: Relay, receiver: Receiver) -> None:
        made, said = held(relay, receiver)
        shown = delivery(relay, said)
        assert (shown["status"], shown["attempts"]) == ("pending", [])
        assert shown["hold"].keys() == {"reason", "since", "until"}
        assert shown["hold"]["reason"] == "rate_limit"
        assert shown["hold"]["until"] > shown["hold"]["since"]
        assert health(relay, made)["hold"] == shown["hold"]
        listed = relay.get(f"/v1/endpoints/{made['id']}/deliveries").json["items"]
        assert [each["hold"] for each in listed] == [shown["hold"]] * 2

    def test_its_next_attempt_says_how_long_and_why_and_the_hold_is_history(
        self, relay: Relay, receiver: Receiver
    ) -> None:
        made, said = held(relay, receiver)
        since = health(relay, made)["hold"]["since"]
        relay.change("gates", gate_row(relay, made), hold_until={"N": "0"})
        visited(relay, made)
        shown = delivery(relay, said)
        (attempt,) = shown["attempts"]
        assert (shown["status"], shown["hold"], attempt["attempt"]) == ("succeeded", None, 1)
        assert attempt["held_for"] == "rate_limit"
        took = attempt["platform_ms"]
        assert 0 < took["held"] <= took["total"] == took["queue"] + took["held"] + took["processing"]
        told = health(relay, made)
        assert told["hold"] is None
        (past,) = told["recent_holds"]
        assert past["reason"] == "rate_limit"
        assert past["since"] == since < past["until"] <= attempt["at"]

    def test_one_that_was_never_held_says_nothing_of_it(self, relay: Relay, receiver: Receiver) -> None:
        relay.endpoint(url=receiver.url("/sink"))
        said = relay.event()
        relay.deliver_all()
        (attempt,) = delivery(relay, said)["attempts"]
        assert (attempt["held_for"], attempt["platform_ms"]["held"]) == (None, 0)


class TestADisabledEndpoint:
    def test_what_it_is_owed_waits_and_says_so(self, relay: Relay, receiver: Receiver) -> None:
        made = relay.endpoint(url=receiver.url("/sink"))
        switched(made, EndpointState.DISABLED)
        said = relay.event()
        visited(relay, made)
        shown = health(relay, made)
        assert (shown["state"], shown["hold"]["reason"], shown["hold"]["until"]) == (
            "disabled",
            "disabled",
            None,
        )
        assert delivery(relay, said)["hold"] == shown["hold"]
        assert (delivery(relay, said)["status"], receiver.received()) == ("pending", [])

    def test_enabled_again_it_gets_what_waited_and_its_hold_is_history(
        self, relay: Relay, receiver: Receiver
    ) -> None:
        made = relay.endpoint(url=receiver.url("/sink"))
        switched(made, EndpointState.DISABLED)
        said = relay.event()
        relay.bells()
        switched(made, EndpointState.ENABLED)
        assert relay.waiting("delayed") == (0, 0, 2), "for what is accepted by who still saw it switched off"
        visited(relay, made)
        (attempt,) = delivery(relay, said)["attempts"]
        assert (attempt["status"], attempt["held_for"]) == (200, "disabled")
        shown = health(relay, made)
        assert (shown["state"], shown["hold"]) == ("enabled", None)
        (past,) = shown["recent_holds"]
        assert past["reason"] == "disabled"
        assert past["since"] < past["until"]

    def test_after_a_410_it_says_what_switched_it_off(self, relay: Relay, receiver: Receiver) -> None:
        made = relay.endpoint(url=receiver.url("/gone"))
        said = relay.event()
        relay.deliver_all()
        shown = health(relay, made)
        assert (shown["state"], shown["hold"]["reason"]) == ("disabled", "disabled")
        assert "410" in shown["state_reason"]
        assert (delivery(relay, said)["status"], delivery(relay, said)["hold"]) == ("dead", None)


def test_an_endpoint_seen_to_be_slow_is_rung_on_the_slow_queue(relay: Relay) -> None:
    made = relay.endpoint()
    relay.event()
    relay.bells()
    relay.change("gates", gate_row(relay, made), queue={"S": "slow"})
    relay.event()
    assert relay.waiting("slow") == (1, 0, 0)
    assert relay.bells() == {}


@pytest.mark.parametrize(
    "change", [{"rate_per_second": 20}, {"burst": 40}, {"max_concurrency": 9}, {"url": URL + "/new"}]
)
def test_who_may_take_more_is_rung_now_and_once_more_a_minute_later(
    relay: Relay, change: dict[str, object]
) -> None:
    made = relay.endpoint()
    assert relay.patch(made, change).status == 200
    assert sum(len(each) for each in relay.rung().values()) == 1
    assert [each["Attributes"]["MessageGroupId"][-2:] for each in relay.messages("replay")] == ["r0"]
    assert relay.waiting("delayed") == (0, 0, 2)


@pytest.mark.parametrize("change", [{"rate_per_second": 5}, {"max_concurrency": 2}, {"description": "d"}])
def test_who_may_take_no_more_than_before_is_not_rung(relay: Relay, change: dict[str, object]) -> None:
    made = relay.endpoint()
    assert relay.patch(made, change).status == 200
    assert (relay.bells(), relay.waiting("delayed")) == ({}, (0, 0, 0))
