"""Disabling, enabling with a choice, the backlog, and the functions that end what was chosen to end."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

import app as lambdas
from chalicelib.wire.bell import NotABellError, load_ending
from infra.local.invocation import LambdaContext
from infra.local.sqs_event import event_of
from tests.handlers.conftest import Lines
from tests.handlers.relay import Answer, Relay, message
from tests.receiver import Receiver

NOBODY = "ep_01a22a7c-5366-79c3-90eb-70e6bdfad2fa"
DELIVER, SKIP = {"backlog": "deliver"}, {"backlog": "skip"}
POISON = {
    "not JSON": "not json",
    "null": "null",
    "nothing": "{}",
    "no endpoint": '{"tenant":"default"}',
    "an event": '{"tenant":"default","endpoint_id":"evt_01a22a7c-5366-79c3-90eb-70e6bdfad2fa"}',
    "no tenant's name": json.dumps({"tenant": "a#b", "endpoint_id": NOBODY}),
    "a number": '{"tenant":"default","endpoint_id":5}',
}


def disable(relay: Relay, of: Mapping[str, Any]) -> dict[str, Any]:
    answer = relay.call("POST", f"/v1/endpoints/{of['id']}/disable")
    assert answer.status == 200, answer.body
    shown: dict[str, Any] = answer.json
    return shown


def enable(relay: Relay, of: Mapping[str, Any], choice: object) -> Answer:
    return relay.post(f"/v1/endpoints/{of['id']}/enable", choice, relay.elevated())


def backlog(relay: Relay, of: Mapping[str, Any]) -> dict[str, Any]:
    answer = relay.get(f"/v1/endpoints/{of['id']}/backlog")
    assert answer.status == 200, answer.body
    shown: dict[str, Any] = answer.json
    return shown


def delivery(relay: Relay, said: Mapping[str, Any]) -> dict[str, Any]:
    (delivery_id,) = said["delivery_ids"]
    shown: dict[str, Any] = relay.get(f"/v1/deliveries/{delivery_id}").json
    return shown


def end_called(relay: Relay) -> None:
    """Hand every call that waits to the function that ends deliveries."""
    calls = relay.messages("endings")
    assert calls
    assert relay.run(lambdas.end_owed, event_of(calls, relay.arn("endings"))) == []


class TestDisable:
    def test_a_disabled_endpoint_says_so_and_its_version_moves_once(self, tenant: Relay) -> None:
        made = tenant.endpoint()
        off = disable(tenant, made)
        assert (off["state"], off["state_reason"], off["version"]) == ("disabled", None, made["version"] + 1)
        assert disable(tenant, made) == off

    def test_an_empty_object_says_as_little_as_nothing(self, tenant: Relay) -> None:
        made = tenant.endpoint()
        assert tenant.post(f"/v1/endpoints/{made['id']}/disable", {}).status == 200
        answer = tenant.post(f"/v1/endpoints/{made['id']}/disable", {"until": "tomorrow"})
        assert answer.is_problem(400, "field_unknown", "until")

    def test_a_deleted_endpoint_is_switched_no_more(self, tenant: Relay) -> None:
        made = tenant.endpoint()
        tenant.delete(made)
        answer = tenant.call("POST", f"/v1/endpoints/{made['id']}/disable")
        assert answer.is_problem(409, "endpoint_deleted", "id")
        assert enable(tenant, made, DELIVER).is_problem(409, "endpoint_deleted", "id")

    @pytest.mark.parametrize("name", [NOBODY, "x", "%00"])
    def test_what_names_no_endpoint_is_not_found(self, empty_relay: Relay, name: str) -> None:
        assert empty_relay.call("POST", f"/v1/endpoints/{name}/disable").is_problem(404, "not_found", "id")
        assert enable(empty_relay, {"id": name}, DELIVER).is_problem(404, "not_found", "id")
        assert empty_relay.get(f"/v1/endpoints/{name}/backlog").is_problem(404, "not_found", "id")


class TestEnable:
    @pytest.mark.parametrize(
        "choice, code, field",
        [
            ({}, "field_invalid", "backlog"),
            ({"backlog": "drop"}, "field_invalid", "backlog"),
            ({"backlog": None}, "field_invalid", "backlog"),
            ({"backlog": "resume_from"}, "field_invalid", "resume_from"),
            ({"backlog": "skip", "resume_from": "2026-01-01T00:00:00Z"}, "field_invalid", "resume_from"),
            ({"backlog": "resume_from", "resume_from": "yesterday"}, "field_invalid", "resume_from"),
            ({"backlog": "resume_from", "resume_from": "2026-01-01"}, "field_invalid", "resume_from"),
            (
                {"backlog": "resume_from", "resume_from": "2026-01-01T00:00:00"},
                "field_invalid",
                "resume_from",
            ),
            (
                {"backlog": "resume_from", "resume_from": "2026-02-30T00:00:00Z"},
                "field_invalid",
                "resume_from",
            ),
            (
                {"backlog": "resume_from", "resume_from": "2999-01-01T00:00:00Z"},
                "field_invalid",
                "resume_from",
            ),
            ({"backlog": "resume_from", "resume_from": 1_700_000_000}, "field_invalid", "resume_from"),
            ({"backlog": "deliver", "confirm": True}, "field_unknown", "confirm"),
        ],
    )
    def test_what_is_no_choice_is_refused_and_it_stays_disabled(
        self, tenant: Relay, choice: object, code: str, field: str
    ) -> None:
        made = tenant.endpoint()
        disable(tenant, made)
        assert enable(tenant, made, choice).is_problem(400, code, field)
        assert tenant.get(f"/v1/endpoints/{made['id']}").json["state"] == "disabled"

    def test_the_words_are_named_to_who_knows_none(self, tenant: Relay) -> None:
        made = tenant.endpoint()
        assert enable(tenant, made, {"backlog": "?"}).json["expected"] == "one of: deliver, skip, resume_from"

    def test_who_sends_nothing_has_chosen_nothing(self, tenant: Relay) -> None:
        made = tenant.endpoint()
        disable(tenant, made)
        assert tenant.call("POST", f"/v1/endpoints/{made['id']}/enable").status == 400

    def test_an_enabled_endpoint_is_a_conflict(self, tenant: Relay) -> None:
        made = tenant.endpoint()
        assert enable(tenant, made, SKIP).is_problem(409, "endpoint_enabled", "id")

    def test_what_waited_is_delivered(self, relay: Relay, receiver: Receiver) -> None:
        made = relay.endpoint(url=receiver.url("/sink"))
        disable(relay, made)
        said = relay.event()
        relay.deliver_all()
        assert delivery(relay, said)["hold"]["reason"] == "disabled"
        assert enable(relay, made, DELIVER).json["state"] == "enabled"
        relay.deliver_all()
        assert delivery(relay, said)["status"] == "succeeded"

    def test_what_is_skipped_says_so_at_once_and_is_a_dead_letter_soon(
        self, relay: Relay, receiver: Receiver
    ) -> None:
        made = relay.endpoint(url=receiver.url("/sink"))
        disable(relay, made)
        said = relay.event()
        relay.bells()
        enable(relay, made, SKIP)
        shown = delivery(relay, said)
        assert (shown["status"], shown["ending"], shown["hold"]) == ("pending", "skipped", None)
        assert shown["next_attempt_at"] is None
        end_called(relay)
        shown = delivery(relay, said)
        assert (shown["status"], shown["reason"], shown["ending"]) == ("dead", "skipped", None)
        assert (relay.rows("owed"), relay.rows("endings")[1:], receiver.received()) == ([], [], [])

    def test_it_resumes_from_a_time_in_any_zone(self, relay: Relay, receiver: Receiver) -> None:
        made = relay.endpoint(url=receiver.url("/sink"))
        disable(relay, made)
        early = relay.event()
        late = relay.event()
        moment = delivery(relay, late)["created_at"].replace("Z", "+00:00")
        assert delivery(relay, early)["created_at"] < delivery(relay, late)["created_at"]
        answer = enable(relay, made, {"backlog": "resume_from", "resume_from": moment})
        assert answer.status == 200, answer.body
        assert [delivery(relay, each)["ending"] for each in (early, late)] == ["skipped", None]


class TestBacklog:
    def test_it_says_how_much_since_when_and_how_long(self, relay: Relay) -> None:
        made = relay.endpoint(rate_per_second=1)
        assert backlog(relay, made) == {
            "endpoint_id": made["id"],
            "size": 0,
            "size_is_exact": True,
            "oldest_at": None,
            "estimated_drain_s": 0,
        }
        disable(relay, made)
        first = relay.event()
        relay.event()
        shown = backlog(relay, made)
        assert (shown["size"], shown["estimated_drain_s"]) == (2, 2)
        assert shown["oldest_at"] == delivery(relay, first)["created_at"]

    def test_it_takes_no_parameter(self, tenant: Relay) -> None:
        made = tenant.endpoint()
        answer = tenant.get(f"/v1/endpoints/{made['id']}/backlog?limit=1")
        assert answer.is_problem(400, "field_unknown", "limit")


class TestEnding:
    def test_a_deleted_endpoint_s_deliveries_say_how_they_end_and_end(self, relay: Relay) -> None:
        made = relay.endpoint()
        said = relay.event()
        relay.bells()
        assert relay.delete(made).status == 204
        assert delivery(relay, said)["ending"] == "endpoint_deleted"
        listed = relay.get(f"/v1/endpoints/{made['id']}/deliveries").json["items"]
        assert [each["ending"] for each in listed] == ["endpoint_deleted"]
        end_called(relay)
        shown = delivery(relay, said)
        assert (shown["status"], shown["reason"]) == ("dead", "endpoint_deleted")
        assert relay.rows("endings") == []

    def test_the_schedule_calls_for_what_nobody_was_told_of(self, relay: Relay, lines: Lines) -> None:
        made = relay.endpoint()
        relay.event()
        relay.delete(made)
        assert relay.messages("endings")
        assert lambdas.call_endings(relay.sample("schedule"), LambdaContext("relay-call-endings")) is None
        assert lines.named("endings.called")[-1]["endpoints"] == 1
        end_called(relay)
        line = lines.named("ending.worked_off")[-1]
        assert (line["tenant"], line["endpoint_id"], line["ended"]) == ("default", made["id"], 1)

    def test_the_sample_call_is_for_an_endpoint_that_is_gone_and_is_dropped(self, relay: Relay) -> None:
        assert relay.run(lambdas.end_owed, relay.sample("sqs_endings")) == []
        assert relay.nothing_is_stored()

    def test_a_call_that_fails_comes_back(self, relay: Relay, lines: Lines) -> None:
        made = relay.endpoint()
        relay.event()
        relay.delete(made)
        (call,) = relay.messages("endings")
        relay.drop_table("owed")
        given_back = relay.run(lambdas.end_owed, event_of([call], relay.arn("endings")))
        assert given_back == [call["MessageId"]]
        assert len(lines.named("ending.failed")) == 1

    def test_what_names_no_endpoint_is_in_nobody_s_way(self, relay: Relay, lines: Lines) -> None:
        poison = [message(body, number) for number, body in enumerate(POISON.values(), 1)]
        assert relay.run(lambdas.end_owed, event_of(poison, relay.arn("endings"))) == []
        assert len(lines.named("ending.refused")) == len(POISON)

    @pytest.mark.parametrize("body", POISON.values(), ids=POISON.keys())
    def test_no_such_text_names_an_endpoint(self, body: str) -> None:
        with pytest.raises(NotABellError):
            load_ending(body)


def test_an_unsubscribe_or_a_delete_that_the_store_refuses_is_no_false_yes(relay: Relay) -> None:
    """What still stands may be sent, so its owner is not told otherwise; a disable needs no subscriptions."""
    made = relay.endpoint(event_types=["order.*"])
    relay.drop_table("subs")
    assert relay.patch(made, {"event_types": ["user.*"]}).is_problem(503, "unavailable")
    assert relay.delete(made).is_problem(503, "unavailable")
    shown = relay.get(f"/v1/endpoints/{made['id']}").json
    assert (shown["event_types"], shown["state"], shown["version"]) == (["order.*"], "enabled", 1)
    assert disable(relay, made)["state"] == "disabled"
