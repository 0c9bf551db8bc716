"""Order: what was acknowledged before the next was posted is never first received after it.

Eight producers, twenty ordered endpoints that fail now and then, workers killed and queues emptied.
"""

import json
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import count
from random import Random

import pytest

from tests.e2e.customer import Customer, Hook
from tests.e2e.faults import Killer, hide_for, purge
from tests.e2e.order import Posted, inversions
from tests.e2e.stack import RelayStack

SETTINGS = {"RELAY_TOTAL_TIMEOUT_SECS": "2", "RELAY_LEASE_SECS": "5", "RELAY_BREAKER_COOLDOWN_SECS": "2"}
EVENTS, PRODUCERS, ENDPOINTS = 10_000, 8, 20
SINGLY, AT_MOST = 0.2, 10
VISIBILITY_S = 10
BLOW_EVERY = 1_600


@pytest.fixture(scope="module")
def customer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Customer]:
    """Give a customer of a stack whose watchdog runs every two seconds."""
    state = tmp_path_factory.mktemp("ordered")
    with (
        RelayStack(state, "--fast-emulator", "--schedule-speed", "30", settings=SETTINGS) as stack,
        Customer(stack) as customer,
    ):
        hide_for(stack, VISIBILITY_S)
        yield customer


def produce(customer: Customer, hooks: list[Hook], events: int, dice: Random) -> list[Posted]:
    """Post events one after another, some in batches, each batch to one endpoint."""
    posted: list[Posted] = []
    while len(posted) < events:
        hook = dice.choice(hooks)
        size = 1 if dice.random() < SINGLY else min(AT_MOST, events - len(posted))
        items = [{"type": hook.type, "payload": json.dumps({"n": n})} for n in range(size)]
        began_s = time.monotonic()
        answer = customer.api.post("/v1/events/batch", json={"events": items})
        assert answer.status_code == 207, answer.text
        ended_s = time.monotonic()
        for result in answer.json()["results"]:
            (delivery_id,) = result["delivery_ids"]
            posted.append(Posted(hook.type, delivery_id, began_s, ended_s))
    return posted


@pytest.mark.parametrize("first, second, wrong", [(1, 2, 0), (2, 1, 1)])
def test_an_inversion_is_seen(first: int, second: int, wrong: int) -> None:
    posted = [Posted("e", "a", 1.0, 2.0), Posted("e", "b", 3.0, 4.0)]
    assert len(inversions(posted, {"a": first, "b": second})) == wrong


def test_order_holds_over_failures_kills_and_emptied_queues(customer: Customer) -> None:
    limits = {"rate_per_second": 1_000, "burst": 1_000, "retry_profile": "quick"}
    hooks = [customer.hook("/flaky/{key}?pct=1", ordering="endpoint", **limits) for _ in range(ENDPOINTS)]
    killer = Killer(customer.stack, time.monotonic())
    share = EVENTS // PRODUCERS
    with ThreadPoolExecutor(PRODUCERS) as producers:
        posting = [
            producers.submit(produce, customer, hooks, share, Random(number)) for number in range(PRODUCERS)
        ]
        for blow in count(1):
            if all(each.done() for each in posting):
                break
            enough = customer.count() + BLOW_EVERY
            customer.stack.until(partial(reached, customer, enough, posting), within_s=60)
            if blow % 2:
                killer.kill()
            else:
                purge(customer.stack)
        posted = [each for producer in posting for each in producer.result()]
    expected = {each.name for each in posted}
    assert len(expected) == EVENTS
    customer.stack.until(lambda: all_succeeded(customer), within_s=240)
    first_received: dict[str, int] = {}
    for arrival in customer.received(brief=1):
        first_received.setdefault(arrival["delivery_id"], arrival["number"])
    assert set(first_received) == expected
    for hook in hooks:
        mine = [each for each in posted if each.endpoint == hook.type]
        assert not inversions(mine, first_received)


def reached(customer: Customer, enough: int, posting: list[Future[list[Posted]]]) -> bool:
    return customer.count() >= enough or all(each.done() for each in posting)


def all_succeeded(customer: Customer) -> bool:
    """Say whether every event arrived; looks into the whole log only when there are enough answers."""
    paths = customer.receiver.get("/stats").json()["paths"].values()
    if sum(each["statuses"].get("200", 0) for each in paths) < EVENTS:
        return False
    good = {each["delivery_id"] for each in customer.received(brief=1) if each["status"] == 200}
    return len(good) >= EVENTS
