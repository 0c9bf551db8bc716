"""Limits and quotas on a whole stack: who has little is told when to come again, paced, and loses nothing."""

import time
from collections import Counter
from collections.abc import Iterator

import httpx
import pytest

from tests.e2e.customer import Customer, Record
from tests.e2e.stack import RelayStack

OPERATOR = {"Authorization": "Bearer relay_operator.local-development-only"}
BUDGET, TAKERS, EVENTS = 10, 4, 30
LATE_S = 2.0


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RelayStack]:
    with RelayStack(tmp_path_factory.mktemp("limits")) as stack:
        yield stack


def customer_with(stack: RelayStack, **quotas: int) -> Customer:
    """Open a tenant with these quotas and give a customer with its key."""
    customer = Customer(stack, 90)
    opened = customer.api.post("/v1/tenants", json={"name": "Small", "quotas": quotas}, headers=OPERATOR)
    assert opened.status_code == httpx.codes.CREATED, opened.text
    customer.api.headers["Authorization"] = f"Bearer {opened.json()['admin_key']['key']}"
    return customer


def test_a_small_fan_out_budget_is_paced_and_nothing_is_dropped(stack: RelayStack) -> None:
    with customer_with(stack, fan_out_per_second=BUDGET) as customer:
        first = customer.hook("/sink")
        hooks = [first, *(customer.hook("/sink", event_types=[first.type]) for _ in range(TAKERS - 1))]
        results: list[Record] = customer.api.post(
            "/v1/events/batch", json={"events": [{"type": first.type, "payload": "{}"}] * EVENTS}
        ).json()["results"]
        assert Counter(each["status"] for each in results) == {202: EVENTS}
        assert {each["fan_out"] for each in results} == {"inline", "later"}
        arrived = customer.arrived(EVENTS * TAKERS, path="/sink")
        assert len({each["delivery_id"] for each in arrived}) == EVENTS * TAKERS
        assert all(len(customer.all_ended(hook.id, EVENTS)) == EVENTS for hook in hooks)
        at_s = sorted(each["received_at"] / 1_000 for each in arrived)
        for number, moment in enumerate(at_s):
            within = [each for each in at_s[number:] if each - moment <= LATE_S]
            assert len(within) <= BUDGET * (2 * LATE_S + 2)
        assert at_s[-1] - at_s[0] >= EVENTS * TAKERS / BUDGET - 2 - LATE_S


def test_who_is_told_to_come_again_passes_then(stack: RelayStack) -> None:
    with customer_with(stack, events_per_second=3) as customer:
        item = {"type": "small.made", "payload": "{}"}
        answer = customer.api.post("/v1/events/batch", json={"events": [item] * 5})
        assert Counter(each["status"] for each in answer.json()["results"]) == {202: 3, 429: 2}
        again_at = time.monotonic() + int(answer.headers["Retry-After"])
        stack.until(lambda: time.monotonic() >= again_at, within_s=60)
        answer = customer.api.post("/v1/events/batch", json={"events": [item] * 2})
        assert Counter(each["status"] for each in answer.json()["results"]) == {202: 2}
