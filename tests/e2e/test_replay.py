"""Replay end to end: after an outage its owner gets what was lost, once, beside what comes meanwhile."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.e2e.customer import Customer, Record
from tests.e2e.stack import RelayStack

OUTAGE = 120


@pytest.fixture(scope="module")
def customer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Customer]:
    """Give a customer of a stack of this module's own."""
    with RelayStack(tmp_path_factory.mktemp("replay")) as stack, Customer(stack) as someone:
        yield someone


def replay_of(customer: Customer, path: str, **body: object) -> Record:
    """Ask for a replay that must be accepted."""
    answer = customer.api.post(f"{path}/replay", json=body)
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


def test_what_a_receiver_refused_is_replayed_once_it_is_mended(customer: Customer) -> None:
    hook, delivery_id = customer.deliver(customer.script({"status": 404}, {"status": 200}))
    assert customer.ended(delivery_id)["status"] == "dead"
    begun = replay_of(customer, f"/v1/deliveries/{delivery_id}")
    assert begun["generation"] == 1
    seen = customer.ended(delivery_id)
    received = customer.arrived(2, delivery_id=delivery_id, verified="true")
    assert [dict(each["headers"])["relay-generation"] for each in received] == ["0", "1"]
    assert (seen["status"], seen["generation"]) == ("succeeded", 1)
    (old,) = seen["earlier"]
    assert (old["status"], old["reason"], old["replayed_as"]) == ("dead", "permanent_failure", 1)
    letters = customer.api.get(f"/v1/endpoints/{hook.id}/dead-letters").json()["items"]
    assert [(each["delivery_id"], each["replayed_as"]) for each in letters] == [(delivery_id, 1)]


def test_an_outage_is_replayed_in_bulk_while_new_events_go_on_arriving(customer: Customer) -> None:
    key = customer.script(*[{"status": 404}] * OUTAGE, {"status": 200})
    hook = customer.hook(key, rate_per_second=1_000, burst=1_000, max_concurrency=20)
    lost = customer.post_many(hook.type, OUTAGE)
    dead = customer.all_ended(hook.id, OUTAGE)
    assert {each["status"] for each in dead} == {"dead"}
    begun = replay_of(customer, f"/v1/endpoints/{hook.id}", since="2020-01-01T00:00:00Z")
    assert begun["matched"] == OUTAGE
    fresh = [customer.post(hook.type).delivery_id for _ in range(10)]
    customer.stack.until(lambda: progress(customer, begun)["state"] == "done", 60)
    told = progress(customer, begun)
    assert (told["replayed"], told["skipped"]) == (OUTAGE, 0)
    seen = customer.all_ended(hook.id, OUTAGE + len(fresh))
    assert {each["status"] for each in seen} == {"succeeded"}
    assert Counter(each["generation"] for each in seen) == {0: len(fresh), 1: OUTAGE}
    assert {each["id"] for each in seen if each["generation"]} == set(lost)


def progress(customer: Customer, replay: Record) -> Record:
    answer = customer.api.get(f"/v1/replays/{replay['id']}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_a_bulk_replay_is_paused_resumed_and_cancelled(customer: Customer) -> None:
    key = customer.script(*[{"status": 404}] * OUTAGE, {"status": 200})
    hook = customer.hook(key, rate_per_second=200, burst=200, max_concurrency=20)
    customer.post_many(hook.type, OUTAGE)
    customer.all_ended(hook.id, OUTAGE)
    customer.change(hook.id, rate_per_second=1, burst=2)
    begun = replay_of(customer, f"/v1/endpoints/{hook.id}", since="2020-01-01T00:00:00Z")
    path = f"/v1/replays/{begun['id']}"
    customer.stack.until(lambda: progress(customer, begun)["replayed"] >= 50, 60)
    assert customer.api.post(f"{path}/pause").json()["state"] == "paused"
    assert progress(customer, begun)["replayed"] < OUTAGE
    assert customer.api.post(f"{path}/resume").json()["state"] == "running"
    assert customer.api.post(f"{path}/cancel").json()["state"] == "cancelled"
    refused = customer.api.post(f"{path}/resume")
    assert (refused.status_code, refused.json()["code"]) == (409, "replay_ended")
