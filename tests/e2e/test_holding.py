"""What one endpoint does to itself: it is paced, cut off, given back slowly, moved apart; and all is seen."""

import time
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest

from tests.e2e.customer import Customer, Hook, Record, moment
from tests.e2e.faults import Killer, hide_for
from tests.e2e.stack import RelayStack

RAMP_S, COOLDOWN_S, TOTAL_S = 20, 2, 2
SETTINGS = {
    "RELAY_TOTAL_TIMEOUT_SECS": str(TOTAL_S),
    "RELAY_LEASE_SECS": "6",
    "RELAY_BREAKER_COOLDOWN_SECS": str(COOLDOWN_S),
    "RELAY_BREAKER_MAX_COOLDOWN_SECS": str(2 * COOLDOWN_S),
    "RELAY_RAMP_SECS": str(RAMP_S),
}
AMPLE = {"rate_per_second": 1_000, "burst": 1_000}


@pytest.fixture(scope="module")
def customer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Customer]:
    """Give a customer of a stack with short times, on the emulator that a backlog does not slow down."""
    state = tmp_path_factory.mktemp("holding")
    with RelayStack(state, "--fast-emulator", settings=SETTINGS) as stack, Customer(stack, 90) as customer:
        hide_for(stack, 10)
        yield customer


def health(customer: Customer, hook: Hook) -> Record:
    """Ask how an endpoint does."""
    answer = customer.api.get(f"/v1/endpoints/{hook.id}/health")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def moments_s(received: Sequence[Record]) -> list[float]:
    return sorted(each["received_at"] / 1000 for each in received)


def switch(customer: Customer, path: str, to: str) -> None:
    customer.receiver.post(path, params={"to": to}).raise_for_status()


def test_a_held_delivery_shows_why_and_its_next_attempt_says_how_long(customer: Customer) -> None:
    hook = customer.hook("/sink", rate_per_second=1, burst=1)
    posted = customer.post_many(hook.type, 12)
    seen = {each["id"]: each["hold"] for each in customer.deliveries(hook.id)}
    customer.stack.until(lambda: _some_are_held(customer, hook, seen), within_s=20)
    held = {each["reason"] for each in seen.values() if each}
    assert held == {"rate_limit"}
    ended = customer.all_ended(hook.id, len(posted))
    waited = [each["attempts"][0]["platform_ms"]["held"] for each in ended]
    assert max(waited) > 8_000
    slowest = max(ended, key=lambda each: each["attempts"][0]["platform_ms"]["held"])
    assert slowest["attempts"][0]["held_for"] == "rate_limit"
    assert [each["attempts"][0]["attempt"] for each in ended] == [1] * len(ended)
    customer.stack.until(lambda: health(customer, hook)["hold"] is None)
    (hold,) = health(customer, hook)["recent_holds"]
    assert hold["reason"] == "rate_limit"
    assert moment(hold["until"]) - moment(hold["since"]) > 8


def _some_are_held(customer: Customer, hook: Hook, seen: dict[str, Record | None]) -> bool:
    seen.update({each["id"]: each["hold"] for each in customer.deliveries(hook.id)})
    return any(seen.values())


def test_a_recovering_endpoint_gets_its_rate_back_step_by_step(customer: Customer) -> None:
    rate = 20
    hook = customer.hook("/toggle/{key}", rate_per_second=rate, burst=rate, max_concurrency=20)
    path = f"/toggle/{hook.type}"
    switch(customer, path, "503")
    customer.post_many(hook.type, rate * RAMP_S + 100)
    customer.stack.until(lambda: health(customer, hook)["breaker"]["state"] == "open", within_s=60)
    assert health(customer, hook)["hold"]["reason"] == "breaker_open"
    switch(customer, path, "200")
    customer.arrived(rate * RAMP_S * 6 // 10, path=path)
    good = [each for each in customer.received(path=path, brief=1) if each["status"] == 200]
    moments = moments_s(good)
    began = moments[0]
    for second in range(2, RAMP_S - 3, 3):
        share = 0.1 + 0.9 * (second + 1.5) / RAMP_S
        got = sum(second <= each - began < second + 3 for each in moments)
        assert got <= 3 * rate * share * 1.15 + 8, f"{got} in 3 s from {second} s on"
        if moments[-1] - began > second + 3:
            assert got >= 3 * rate * share * 0.6, f"only {got} in 3 s from {second} s on"


def test_an_endpoint_that_stays_down_is_asked_once_per_cooldown_over_all_lanes(customer: Customer) -> None:
    hook = customer.hook("/toggle/{key}", **AMPLE, max_concurrency=30)
    path = f"/toggle/{hook.type}"
    switch(customer, path, "500")
    customer.post_many(hook.type, 200)
    customer.stack.until(lambda: health(customer, hook)["breaker"]["state"] == "open", within_s=60)
    opened = time.time()
    customer.stack.until(lambda: time.time() > opened + 6 * COOLDOWN_S, within_s=60)
    late = [each for each in moments_s(customer.received(path=path, brief=1)) if each > opened + 1]
    assert 2 <= len(late) <= 4
    assert all(later - earlier >= COOLDOWN_S for earlier, later in pairwise(late))
    switch(customer, path, "200")


def test_the_cap_holds_over_lanes_and_over_a_killed_worker(customer: Customer) -> None:
    cap = 12
    hook = customer.hook("/slow/{key}?ms=300", **AMPLE, max_concurrency=cap)
    path = f"/slow/{hook.type}"
    customer.post_many(hook.type, 300)
    customer.arrived(60, path=path)
    Killer(customer.stack, time.monotonic() - 60).kill()
    customer.arrived(300, path=path)
    assert customer.receiver.get("/stats").json()["paths"][path]["max_in_flight"] <= cap


def test_an_endpoint_that_times_out_moves_to_the_slow_queue_and_back(customer: Customer) -> None:
    hangs = [{"do": "hang"}] * 3
    target = customer.script(*hangs, {"status": 200})
    hook = customer.hook(target, **AMPLE, max_concurrency=1, retry_profile="quick")
    customer.post_many(hook.type, 3)
    customer.stack.until(lambda: health(customer, hook)["queue"] == "slow", within_s=60)
    customer.post_many(hook.type, 10)
    customer.stack.until(lambda: health(customer, hook)["queue"] == "shard", within_s=60)
    ended = customer.all_ended(hook.id, 13)
    assert {each["status"] for each in ended} == {"succeeded"}
