"""After an outage: an endpoint is switched off and on, by hand or for what it did; nobody is surprised."""

import time
from collections.abc import Iterator

import pytest

from tests.e2e.customer import Customer, Hook, Record
from tests.e2e.stack import RelayStack

BACKLOG = 300
AUTO_S = 6
SETTINGS = {
    "RELAY_AUTO_DISABLE_SECS": str(AUTO_S),
    "RELAY_AUTO_DISABLE_ATTEMPTS": "3",
    "RELAY_BREAKER_THRESHOLD": "100",
}
AMPLE = {"rate_per_second": 1_000, "burst": 1_000}


@pytest.fixture(scope="module")
def customer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Customer]:
    """Give a customer of a stack that gives up on an endpoint after seconds, not days."""
    state = tmp_path_factory.mktemp("recovery")
    with RelayStack(state, "--fast-emulator", settings=SETTINGS) as stack, Customer(stack, 90) as customer:
        yield customer


def switch(customer: Customer, hook: Hook, to: str, choice: Record | None = None) -> Record:
    answer = customer.api.post(
        f"/v1/endpoints/{hook.id}/{to}", json=choice or {}, headers=customer.elevated()
    )
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def shown(customer: Customer, hook: Hook, what: str) -> Record:
    answer = customer.api.get(f"/v1/endpoints/{hook.id}/{what}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def ends(customer: Customer, ids: list[str]) -> set[tuple[str, str | None]]:
    told = [customer.delivery(each) for each in ids]
    return {(each["status"], each["reason"]) for each in told}


def test_what_waited_is_counted_and_delivered(customer: Customer) -> None:
    hook = customer.hook("/sink/{key}", **AMPLE)
    switch(customer, hook, "disable")
    ids = customer.post_many(hook.type, 40)
    backlog = shown(customer, hook, "backlog")
    assert (backlog["size"], backlog["size_is_exact"], backlog["estimated_drain_s"]) == (40, True, 1)
    assert shown(customer, hook, "health")["status"] == "disabled"
    assert customer.count(path=f"/sink/{hook.type}") == 0
    switch(customer, hook, "enable", {"backlog": "deliver"})
    customer.arrived(40, path=f"/sink/{hook.type}")
    customer.stack.until(lambda: ends(customer, ids) == {("succeeded", None)}, within_s=60)
    assert shown(customer, hook, "backlog")["size"] == 0


def test_what_is_skipped_is_told_so_at_once_and_never_sent(customer: Customer) -> None:
    hook = customer.hook("/sink/{key}", **AMPLE)
    switch(customer, hook, "disable")
    ids = customer.post_many(hook.type, BACKLOG)
    switch(customer, hook, "enable", {"backlog": "skip"})
    first = customer.delivery(ids[-1])
    assert (first["status"] == "dead" and first["reason"] == "skipped") or first["ending"] == "skipped"
    later = customer.post(hook.type).delivery_id
    assert customer.ended(later)["status"] == "succeeded"
    customer.stack.until(lambda: ends(customer, ids[:5] + ids[-5:]) == {("dead", "skipped")}, within_s=60)
    customer.stack.until(lambda: len(_all_dead(customer, hook)) == BACKLOG, within_s=60)
    assert customer.count(path=f"/sink/{hook.type}") == 1


def _all_dead(customer: Customer, hook: Hook) -> list[Record]:
    found: list[Record] = []
    cursor = None
    while True:
        params = {"limit": "200", "status": "dead", **({"cursor": cursor} if cursor else {})}
        answer = customer.api.get(f"/v1/endpoints/{hook.id}/deliveries", params=params).json()
        found += answer["items"]
        cursor = answer["cursor"]
        if cursor is None:
            return found


def test_it_resumes_from_a_moment(customer: Customer) -> None:
    hook = customer.hook("/sink/{key}", **AMPLE)
    switch(customer, hook, "disable")
    early = customer.post_many(hook.type, 5)
    late = customer.post_many(hook.type, 5)
    moment = min(customer.delivery(each)["created_at"] for each in late)
    switch(customer, hook, "enable", {"backlog": "resume_from", "resume_from": moment})
    customer.stack.until(lambda: ends(customer, early) == {("dead", "skipped")}, within_s=60)
    customer.stack.until(lambda: ends(customer, late) == {("succeeded", None)}, within_s=60)


def test_a_deleted_endpoint_s_deliveries_end_and_say_why(customer: Customer) -> None:
    hook = customer.hook("/sink/{key}", **AMPLE)
    switch(customer, hook, "disable")
    ids = customer.post_many(hook.type, 50)
    customer.delete(hook.id)
    told = customer.delivery(ids[0])
    assert "endpoint_deleted" in {told["ending"], told["reason"]}
    customer.stack.until(lambda: ends(customer, ids) == {("dead", "endpoint_deleted")}, within_s=60)
    assert customer.count(path=f"/sink/{hook.type}") == 0


def test_f071_what_fails_for_long_is_disabled_and_enabled_again_it_works(customer: Customer) -> None:
    hook = customer.hook("/toggle/{key}", **AMPLE)
    path = f"/toggle/{hook.type}"
    customer.receiver.post(path, params={"to": "401"}).raise_for_status()
    customer.tried(customer.post(hook.type).delivery_id)
    assert shown(customer, hook, "health")["state"] == "enabled", "not after one"
    began = time.time()

    def posted() -> bool:
        customer.post(hook.type)
        return bool(shown(customer, hook, "health")["state"] == "disabled")

    customer.stack.until(posted, within_s=60)
    assert time.time() - began > AUTO_S - 2
    assert "no attempt has succeeded since" in shown(customer, hook, "health")["state_reason"]
    waits = customer.post(hook.type).delivery_id
    customer.receiver.post(path, params={"to": "200"}).raise_for_status()
    switch(customer, hook, "enable", {"backlog": "deliver"})
    assert customer.ended(waits)["status"] == "succeeded"
    missed = [each["id"] for each in customer.dead_letters(hook.id)]
    again = customer.api.post(f"/v1/endpoints/{hook.id}/replay", json={"since": "2020-01-01T00:00:00Z"})
    assert again.status_code == 202, again.text
    customer.stack.until(lambda: ends(customer, missed) == {("succeeded", None)}, within_s=60)
    hours = shown(customer, hook, "stats")["items"]
    assert sum(each["succeeded"] for each in hours) >= 1
    assert sum(each["failed"] for each in hours) >= 3


def test_f070_a_410_disables_and_what_is_pending_waits(customer: Customer) -> None:
    hook = customer.hook(customer.script({"status": 410}, {"status": 200}), **AMPLE, max_concurrency=1)
    gone = customer.post(hook.type).delivery_id
    customer.stack.until(lambda: shown(customer, hook, "health")["state"] == "disabled", within_s=60)
    assert customer.ended(gone)["reason"] == "permanent_failure"
    pending = customer.post_many(hook.type, 20)
    assert shown(customer, hook, "backlog")["size"] == 20
    switch(customer, hook, "enable", {"backlog": "deliver"})
    customer.stack.until(lambda: ends(customer, pending) == {("succeeded", None)}, within_s=60)
