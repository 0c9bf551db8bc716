"""One key, one event: the first answer's exact bytes for every repeat, and a conflict for anything else."""

import time
from typing import Any

import pytest

from tests.handlers.relay import Answer, Relay, forget, typed

BODY = b'{"type":"order.paid"}'
KEY = {"Idempotency-Key": 'order 17 "~"'}
DAY_S = 24 * 3600


def post(relay: Relay, body: bytes = BODY, headers: dict[str, str] | None = None) -> Answer:
    return relay.call("POST", "/v1/events", body, {**KEY, **(headers or {})})


def test_a_repeat_gets_the_first_answer_s_bytes_and_says_so(relay: Relay) -> None:
    relay.endpoint()
    first = post(relay)
    assert first.status == 202
    assert "relay-idempotent-replay" not in first.headers
    relay.bells()
    for _ in range(2):
        repeat = post(relay)
        assert (repeat.status, repeat.body) == (202, first.body)
        assert repeat.headers["relay-idempotent-replay"] == "true"
        assert repeat.headers["content-type"] == first.headers["content-type"]
    assert relay.stored_events() == [first.json["event_id"]]
    assert len(relay.rows("owed")) == 1
    assert relay.bells() == {}


def test_what_changed_meanwhile_does_not_change_the_answer(relay: Relay) -> None:
    first = post(relay)
    relay.endpoint()
    forget()
    assert post(relay).body == first.body
    assert first.json["delivery_ids"] == []


def test_the_way_the_type_and_bytes_are_labelled_is_no_difference(tenant: Relay) -> None:
    first = post(tenant)
    repeat = post(tenant, headers=typed("order.paid", "application/cloudevents+json"))
    assert repeat.body == first.body


@pytest.mark.parametrize(
    "body, headers",
    [
        (b'{"type":"order.sent"}', {}),
        (b'{"type":"order.paid" }', {}),
        (b'{"type":"order.paid","a":1}', {}),
        (b"order.paid", typed("order.paid", "text/plain")),
    ],
    ids=["another type", "another space", "another body", "other bytes"],
)
def test_another_event_under_the_key_is_a_conflict_and_stores_nothing(
    relay: Relay, body: bytes, headers: dict[str, str]
) -> None:
    relay.endpoint()
    first = post(relay)
    owed = relay.rows("owed")
    answer = post(relay, body, headers)
    assert answer.is_problem(409, "idempotency_conflict", "Idempotency-Key")
    assert answer.json["expected"] == "the same event again, or a new key"
    assert relay.stored_events() == [first.json["event_id"]]
    assert relay.rows("owed") == owed
    assert post(relay).body == first.body


def test_a_type_and_body_cannot_be_cut_elsewhere(tenant: Relay) -> None:
    post(tenant, b"b", typed("a", "text/plain"))
    assert post(tenant, b"a\nb", typed("a", "text/plain")).status == 409


def test_a_refused_event_claims_no_key(tenant: Relay) -> None:
    assert post(tenant, b"{}").status == 400
    assert post(tenant).status == 202


def test_a_key_is_a_tenant_s_own(tenant: Relay) -> None:
    first = post(tenant)
    other = post(tenant.another("other"))
    assert (other.status, other.json["event_id"] != first.json["event_id"]) == (202, True)
    assert "relay-idempotent-replay" not in other.headers


def claim(relay: Relay) -> Any:  # noqa: ANN401 - a row as DynamoDB has it
    (row,) = relay.rows("idempotency")
    return row


def test_a_key_lives_a_day_and_is_free_again_while_its_row_still_lies_there(relay: Relay) -> None:
    first = post(relay)
    row = claim(relay)
    assert abs(int(row["ttl"]["N"]) - time.time() - DAY_S) < 60
    relay.change("idempotency", row, ttl={"N": str(int(time.time()) + 60)})
    assert post(relay).body == first.body
    relay.change("idempotency", row, ttl={"N": str(int(time.time()) - 1)})
    second = post(relay, b'{"type":"order.sent"}')
    assert second.status == 202
    assert "relay-idempotent-replay" not in second.headers
    assert post(relay, b'{"type":"order.sent"}').body == second.body
    assert len(relay.stored_events()) == 2
    assert int(claim(relay)["ttl"]["N"]) > time.time() + DAY_S - 60


def test_f113_a_repeat_after_a_503_makes_one_event(relay: Relay) -> None:
    relay.endpoint()
    table = relay.made.tables["history"]
    described = relay.aws("dynamodb").describe_table(TableName=table)["Table"]
    relay.drop_table("history")
    assert post(relay).is_problem(503, "unavailable")
    relay.aws("dynamodb").create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=described["KeySchema"],
        AttributeDefinitions=described["AttributeDefinitions"],
    )
    accepted = post(relay)
    assert accepted.status == 202
    assert post(relay).body == accepted.body
    assert relay.stored_events() == [accepted.json["event_id"]]
    assert len(relay.rows("owed")) == 1
