"""What is counted, end to end: requests and deliveries in, `/metrics` out."""

from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

import app as lambdas
from chalicelib import bootstrap
from chalicelib.domain import metrics
from chalicelib.domain.api_key import DEVELOPMENT_KEY, Role, digest
from chalicelib.domain.gauging import STALE_MS, Seen
from chalicelib.domain.metrics import Metric
from chalicelib.domain.tenant import Quotas
from infra.local.invocation import LambdaContext
from tests.handlers.conftest import OPERATOR_KEY, MakeRelay
from tests.handlers.relay import JSON, Relay, forget, typed
from tests.receiver import Receiver


def told(relay: Relay, of: Metric) -> dict[str, float]:
    """Read from /metrics what one metric says, by its label's value; of a histogram how often it was told."""
    answer = relay.get("/metrics")
    assert (answer.status, answer.headers["content-type"]) == (
        200,
        "text/plain; version=0.0.4; charset=utf-8",
    )
    families = text_string_to_metric_families(answer.body.decode())
    found = [each for family in families for each in family.samples]
    counts = {each.labels.get(of.label, ""): each.value for each in found if each.name == of.name}
    return counts or {each.name: each.value for each in found if each.name == f"{of.name}_count"}


def ingested(relay: Relay) -> dict[str, float]:
    return {result: count for result, count in told(relay, metrics.INGESTED).items() if count}


def test_each_event_is_counted_by_what_became_of_it(relay: Relay) -> None:
    relay.event()
    for _ in range(2):
        relay.event(headers={"Idempotency-Key": "twice"})
    assert relay.call("POST", "/v1/events", b"no json", JSON).status == 400
    assert relay.call("POST", "/v1/events", b"x" * 300_000, typed("a", "image/png")).status == 413
    assert ingested(relay) == {"accepted": 2, "repeated": 1, "rejected": 2}
    assert told(relay, metrics.INGEST_TIME) == {f"{metrics.INGEST_TIME.name}_count": 5}


def test_each_event_of_a_batch_is_counted_by_what_became_of_it(relay: Relay) -> None:
    good = {"type": "a", "payload": "{}", "idempotency_key": "k"}
    relay.batch(good, good, {"type": "a b", "payload": "{}"}, {"type": "b", "payload": "{}"})
    assert relay.post("/v1/events/batch", {"events": "none"}).status == 400
    assert ingested(relay) == {"accepted": 2, "repeated": 1, "rejected": 2}
    assert told(relay, metrics.INGEST_TIME) == {f"{metrics.INGEST_TIME.name}_count": 2}


def test_what_a_quota_turns_away_is_counted_apart(make_relay: MakeRelay) -> None:
    operator = replace(make_relay(RELAY_OPERATOR_KEY_SHA256=digest(OPERATOR_KEY)), key=OPERATOR_KEY)
    opened = operator.post("/v1/tenants", {"name": "Acme", "quotas": {"events_per_second": 1}}).json
    admin = replace(operator, key=opened["admin_key"]["key"])
    assert Quotas().events_per_second > 1
    items = [{"type": "a", "payload": "{}"}] * 20
    while admin.post("/v1/events/batch", {"events": items}).status == 207:
        pass
    found = told(operator, metrics.INGESTED)
    assert found["limited"] >= 20
    assert (found["accepted"] + found["limited"]) % 20 == 0


def test_an_event_that_the_store_kept_from_being_accepted_is_counted(make_relay: MakeRelay) -> None:
    relay = make_relay(RELAY_ALLOW_KEYLESS="true")
    relay.drop_table("events")
    assert relay.call("POST", "/v1/events", b'{"type":"a"}', JSON).status == 503
    assert ingested(relay) == {"unavailable": 1}


def test_who_may_not_post_has_posted_nothing(make_relay: MakeRelay) -> None:
    made = make_relay(RELAY_OPERATOR_KEY_SHA256=digest(OPERATOR_KEY))
    viewer = made.another("acme", Role.VIEWER)
    assert viewer.call("POST", "/v1/events", b'{"type":"a"}', JSON).status == 403
    assert made.call("POST", "/v1/events", b'{"type":"a"}', JSON).status == 401
    assert ingested(replace(made, key=OPERATOR_KEY)) == {}


def test_no_request_fails_when_nothing_can_be_counted(make_relay: MakeRelay, receiver: Receiver) -> None:
    relay = make_relay(RELAY_ALLOW_KEYLESS="true", RELAY_ALLOW_PRIVATE_ENDPOINTS="true")
    relay.drop_table("metrics")
    relay.endpoint(url=receiver.url("/sink"))
    (delivery,) = relay.event()["delivery_ids"]
    relay.deliver_all()
    assert relay.get(f"/v1/deliveries/{delivery}").json["status"] == "succeeded"
    assert relay.get("/metrics").is_problem(503, "unavailable")


def test_a_delivery_is_counted_by_the_function_that_made_it(relay: Relay, receiver: Receiver) -> None:
    relay.endpoint(url=receiver.url("/sink"))
    relay.endpoint(url=receiver.url("/status/404"))
    relay.event()
    relay.deliver_all()
    forget()
    found = told(relay, metrics.ATTEMPTS)
    assert {outcome: count for outcome, count in found.items() if count} == {"success": 1, "permanent": 1}
    assert told(relay, metrics.DEAD_LETTERS)["permanent_failure"] == 1
    assert told(relay, metrics.FIRST_ATTEMPT) == {f"{metrics.FIRST_ATTEMPT.name}_count": 2}


@pytest.mark.parametrize("function, of", [("reconcile", metrics.RESCUED), ("retention", metrics.REMOVED)])
def test_functions_that_found_nothing_to_do_count_nothing(relay: Relay, function: str, of: Metric) -> None:
    getattr(lambdas, function)(relay.sample("schedule"), LambdaContext("relay-upkeep"))
    assert set(told(relay, of).values()) == {0}


def test_gauges_are_what_the_reporter_saw_and_nothing_once_that_is_long_ago(relay: Relay) -> None:
    now_ms = bootstrap.clock().now_ms()
    seen = Seen(now_ms, {(metrics.DEPTH.name, ""): 7.0})
    assert str(told(relay, metrics.DEPTH)) == "{'': nan}"
    bootstrap.gauging().keep(seen)
    assert told(relay, metrics.DEPTH) == {"": 7.0}
    assert str(told(relay, metrics.OLDEST_PENDING)) == "{'': nan}"
    bootstrap.gauging().keep(replace(seen, at_ms=now_ms - STALE_MS - 1))
    assert str(told(relay, metrics.DEPTH)) == "{'': nan}"
    assert told(relay, metrics.READING_AGE)[""] > STALE_MS / 1000


def test_metrics_are_the_operator_s_and_where_no_key_is_needed_everybody_s(make_relay: MakeRelay) -> None:
    made = make_relay(RELAY_OPERATOR_KEY_SHA256=digest(OPERATOR_KEY))
    assert made.get("/metrics").is_problem(401, "unauthenticated", "Authorization")
    for role in (Role.ADMIN, Role.VIEWER, Role.PRODUCER):
        assert made.another("acme", role).get("/metrics").is_problem(403, "forbidden")
    assert replace(made, key=OPERATOR_KEY).get("/metrics").status == 200


def test_an_emulator_s_own_key_and_no_key_read_them_too(relay: Relay) -> None:
    bootstrap.seed_development()
    assert relay.get("/metrics").status == 200
    assert replace(relay, key=DEVELOPMENT_KEY).get("/metrics").status == 200
    assert relay.another("acme").get("/metrics").is_problem(403, "forbidden")
