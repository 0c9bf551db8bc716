"""Bulk replays over the API: begun by time, status and type, followed, paused, resumed, cancelled."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

import app as lambdas
from chalicelib.domain import ids
from chalicelib.domain.api_key import Role
from infra.local.invocation import LambdaContext
from infra.local.sqs_event import event_of
from tests.handlers.conftest import Lines
from tests.handlers.relay import Answer, Relay, message
from tests.receiver import Receiver

SINCE = "2020-01-01T00:00:00Z"
NOBODY = ids.new_id("rp", 1_700_000_000_000, 1)


def outage(relay: Relay, receiver: Receiver, count: int = 3, name: str = "outage") -> Mapping[str, Any]:
    """Register an endpoint that refused that many deliveries and takes the next."""
    answers = [{"status": 404}] * count + [{"status": 200}]
    made: Mapping[str, Any] = relay.endpoint(url=receiver.script(name, *answers))
    for _ in range(count):
        relay.event()
    relay.deliver_all()
    return made


def order(relay: Relay, made: Mapping[str, Any], **fields: object) -> Answer:
    return relay.post(f"/v1/endpoints/{made['id']}/replay", {"since": SINCE, **fields})


def work_off(relay: Relay) -> None:
    """Do what the function of bulk replays and that behind the queue of replays do."""
    calls = relay.messages("replays")
    assert relay.run(lambdas.replay_many, event_of(calls, relay.arn("replays"))) == []
    relay.deliver("replay", relay.messages("replay"))


def test_what_an_outage_left_dead_is_sent_again(relay: Relay, receiver: Receiver) -> None:
    made = outage(relay, receiver)
    answer = order(relay, made)
    assert answer.status == 202
    begun = answer.json
    assert answer.headers["location"] == f"/v1/replays/{begun['id']}"
    assert begun == {
        "id": begun["id"],
        "endpoint_id": made["id"],
        "state": "running",
        "reason": None,
        "since": "2020-01-01T00:00:00.000Z",
        "until": begun["until"],
        "status": "dead",
        "event_types": ["*"],
        "matched": 3,
        "matched_exactly": True,
        "replayed": 0,
        "skipped": 0,
        "came_to": None,
        "created_at": begun["created_at"],
        "ended_at": None,
    }
    work_off(relay)
    done = relay.get(f"/v1/replays/{begun['id']}").json
    assert (done["state"], done["replayed"], done["skipped"]) == ("done", 3, 0)
    assert done["ended_at"]
    listed = relay.get(f"/v1/endpoints/{made['id']}/deliveries").json["items"]
    assert [(each["generation"], each["status"]) for each in listed] == [(1, "succeeded")] * 3
    letters = relay.get(f"/v1/endpoints/{made['id']}/dead-letters").json["items"]
    assert [each["replayed_as"] for each in letters] == [1] * 3


def test_paused_resumed_and_cancelled(relay: Relay, receiver: Receiver) -> None:
    begun = order(relay, outage(relay, receiver)).json
    path = f"/v1/replays/{begun['id']}"
    assert relay.call("POST", f"{path}/pause").json["state"] == "paused"
    work_off_nothing(relay)
    assert relay.call("POST", f"{path}/resume", b"{}").json["state"] == "running"
    assert relay.call("POST", f"{path}/cancel").json["state"] == "cancelled"
    assert relay.call("POST", f"{path}/resume").is_problem(409, "replay_ended", "id")
    assert relay.call("POST", f"{path}/pause", b'{"a":1}').is_problem(400, "field_unknown", "a")
    assert relay.get(path).json["replayed"] == 0


def work_off_nothing(relay: Relay) -> None:
    calls = relay.messages("replays")
    assert relay.run(lambdas.replay_many, event_of(calls, relay.arn("replays"))) == []
    assert relay.messages("replay") == []


@pytest.mark.parametrize(
    "fields, code, field",
    [
        ({"since": None}, "field_invalid", "since"),
        ({"since": "yesterday"}, "field_invalid", "since"),
        ({"since": "2020-01-01T00:00:00"}, "field_invalid", "since"),
        ({"until": "2019-01-01T00:00:00Z"}, "field_invalid", "since"),
        ({"until": SINCE}, "field_invalid", "since"),
        ({"until": 5}, "field_invalid", "until"),
        ({"since": "2999-01-01T00:00:00Z"}, "field_invalid", "since"),
        ({"since": "1960-01-01T00:00:00Z"}, "field_invalid", "since"),
        ({"status": "pending"}, "field_invalid", "status"),
        ({"event_types": []}, "field_invalid", "event_types"),
        ({"event_types": ["a b"]}, "field_invalid", "event_types"),
        ({"confirm": -1}, "field_invalid", "confirm"),
        ({"confirm": "1"}, "field_invalid", "confirm"),
        ({"all": True}, "field_unknown", "all"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(
    empty_relay: Relay, fields: Mapping[str, object], code: str, field: str
) -> None:
    endpoint = {"id": ids.new_id("ep", 1_700_000_000_000, 1)}
    assert order(empty_relay, endpoint, **fields).is_problem(400, code, field)
    assert empty_relay.wrote_nothing()


def test_more_than_is_confirmed_is_refused(
    relay: Relay, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chalicelib.domain.bulk_replay.CONFIRM_ABOVE", 2)
    made = outage(relay, receiver)
    answer = order(relay, made)
    assert answer.is_problem(409, "confirmation_required", "confirm")
    assert "3" in answer.json["expected"]
    assert order(relay, made, confirm=2).status == 409
    assert relay.rows("replays") == []
    assert order(relay, made, confirm=3).status == 202


def test_only_an_admin_of_the_same_tenant_replays(relay: Relay, receiver: Receiver) -> None:
    made = outage(relay, receiver)
    begun = order(relay, made).json
    path = f"/v1/replays/{begun['id']}"
    viewer = relay.another("default", Role.VIEWER)
    assert order(viewer, made).is_problem(403, "forbidden")
    assert viewer.call("POST", f"{path}/cancel").is_problem(403, "forbidden")
    assert viewer.get(path).status == 200
    other = relay.another("other")
    assert order(other, made).is_problem(404, "not_found", "id")
    assert other.get(path).is_problem(404, "not_found", "id")
    assert other.call("POST", f"{path}/cancel").is_problem(404, "not_found", "id")
    assert relay.get(f"/v1/replays/{NOBODY}").is_problem(404, "not_found", "id")
    assert relay.get("/v1/replays/x").is_problem(404, "not_found", "id")


def test_the_schedule_calls_for_what_was_not_called_for(relay: Relay, receiver: Receiver) -> None:
    begun = order(relay, outage(relay, receiver)).json
    relay.messages("replays")
    lambdas.call_replays(relay.sample("schedule"), LambdaContext("relay-call-replays"))
    (call,) = relay.messages("replays")
    assert json.loads(call["Body"]) == {"tenant": "default", "replay_id": begun["id"]}


def test_the_sample_is_understood_and_what_is_no_call_is_dropped(relay: Relay, lines: Lines) -> None:
    assert relay.run(lambdas.replay_many, relay.sample("sqs_replays")) == []
    bodies = [
        "",
        "[]",
        "{}",
        '{"tenant":"a b","replay_id":"' + NOBODY + '"}',
        '{"tenant":"a","replay_id":"x"}',
    ]
    messages = [message(body, number) for number, body in enumerate(bodies)]
    assert relay.run(lambdas.replay_many, event_of(messages, relay.arn("replays"))) == []
    assert len(lines.named("replay.refused")) == len(bodies)


def test_a_failing_store_gives_the_call_back(relay: Relay, receiver: Receiver, lines: Lines) -> None:
    order(relay, outage(relay, receiver))
    calls = relay.messages("replays")
    relay.drop_table("replays")
    failed = relay.run(lambdas.replay_many, event_of(calls, relay.arn("replays")))
    assert failed == [each["MessageId"] for each in calls]
    assert len(lines.named("replay.failed")) == 1
