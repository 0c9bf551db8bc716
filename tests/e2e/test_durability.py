"""Nothing accepted is lost: real kills, emptied queues, restarts, simultaneous producers.

Duplicates are allowed, silent ones are not: they share the delivery's id, and each request beyond the last
is told of by an attempt whose outcome is unknown.
"""

import hashlib
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.e2e.customer import Customer, Hook, Posted, Record, outcome
from tests.e2e.faults import Killer, hide_for, purge, restarted
from tests.e2e.stack import RelayStack
from tests.receiver import Receiver

SETTINGS = {"RELAY_TOTAL_TIMEOUT_SECS": "2", "RELAY_LEASE_SECS": "5"}
EVERY_SECOND = ("--schedule-speed", "60")
# Above any batch's time here, as six function timeouts are above it on AWS; what a dead process held is seen
# again after it.
VISIBILITY_S = 10
LATE_S = 60
NOISE = b"".join(hashlib.sha256(number.to_bytes(2)).digest() for number in range(8192))
Get = Callable[[], httpx.Response]


@pytest.fixture(scope="module")
def customer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Customer]:
    with (
        RelayStack(tmp_path_factory.mktemp("durable"), *EVERY_SECOND, settings=SETTINGS) as stack,
        Customer(stack) as customer,
    ):
        hide_for(stack, VISIBILITY_S)
        yield customer


@pytest.fixture(scope="module")
def killer(customer: Customer) -> Killer:
    return Killer(customer.stack, time.monotonic())


@pytest.fixture(scope="module")
def unrung(customer: Customer) -> list[str]:
    """Owe deliveries that nothing rings for any more, and give their ids.

    The endpoint is held for a moment by its own 429, so that everything is owed when all queues are emptied.
    """
    held = {"status": 429, "headers": {"Retry-After": "20"}}
    hook = customer.hook(customer.script(held, {"status": 200}), rate_per_second=1000, burst=1000)
    first = customer.post(hook.type)
    customer.tried(first.delivery_id)
    posted = [first, *(customer.post(hook.type) for _ in range(15))]
    purge(customer.stack)
    assert received_of(customer, [hook]) == 1
    return [each.delivery_id for each in posted]


@dataclass(frozen=True, slots=True)
class Crowd:
    """Events for more endpoints than are fanned out at once."""

    hooks: list[Hook]
    posted: list[Posted]


@pytest.fixture(scope="module")
def crowd(customer: Customer, unrung: list[str], killer: Killer) -> Crowd:
    """Kill the workers as soon as the first of fifty endpoints has got its delivery."""
    fields = {"event_types": ["crowd.paid"], "rate_per_second": 1000, "burst": 1000}
    hooks = [customer.hook("/sink", **fields) for _ in range(50)]
    posted = [customer.post("crowd.paid") for _ in range(4)]
    customer.arrived(event_id=posted[0].event_id)
    killer.kill()
    return Crowd(hooks, posted)


@pytest.fixture(scope="module")
def interrupted(customer: Customer, crowd: Crowd, killer: Killer) -> dict[Hook, int]:
    """Kill the workers six times in the middle of batches; give endpoints and how much each is owed."""
    targets = ["/slow/{key}?ms=150"] * 4 + ["/verify/{key}"] * 4
    hooks = [customer.hook(each, rate_per_second=1000, burst=1000) for each in targets]
    for kills in range(6):
        enough = received_of(customer, hooks) + 5
        for n in range(32):
            post(customer, hooks[n % 8], f"k{kills}-{n}")
        customer.stack.until(partial(has_received, customer, hooks, enough), within_s=30)
        killer.kill()
    return dict.fromkeys(hooks, 24)


def persistently(ask: Get, within_s: float = 60) -> httpx.Response:
    """Ask again while nobody answers, as a producer does who was cut off."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            return ask()
        except httpx.TransportError:
            assert time.monotonic() < deadline, f"nobody answered within {within_s} s"


def post(customer: Customer, hook: Hook, key: str) -> Posted:
    """Post an event in spite of an API that comes and goes."""
    headers = {"Relay-Event-Type": hook.type, "Idempotency-Key": key}
    answer = persistently(lambda: customer.api.post("/v1/events", json={"key": key}, headers=headers))
    assert answer.status_code == 202, answer.text
    return Posted(**answer.json())


def check_all(customer: Customer, owed: Mapping[Hook, int], *, killed: bool = True) -> int:
    """Wait until each endpoint got what it is owed, and check that history explains every request.

    The number of attempts whose outcome is unknown comes back.
    """
    delivered = [
        each for hook, times in owed.items() for each in customer.all_ended(hook.id, times, within_s=90)
    ]
    requests: defaultdict[str, list[int]] = defaultdict(list)
    for each in customer.received(brief=1):
        requests[each["delivery_id"]].append(each["attempt"])
    for each in delivered:
        check(each, requests[each["id"]])
    unknown = sum(len(each["attempts"]) - 1 for each in delivered)
    assert killed or not unknown
    return unknown


def check(delivery: Record, requests: list[int]) -> None:
    *lost, last = delivery["attempts"]
    assert delivery["status"] == "succeeded"
    assert [each["attempt"] for each in delivery["attempts"]] == list(range(1, len(lost) + 2))
    assert outcome(last) == ("success", 200, None)
    assert {outcome(each) for each in lost} <= {("unknown", None, None)}
    assert len(set(requests)) == len(requests), f"an attempt was sent twice: {requests}"
    assert {len(lost) + 1} <= set(requests) <= set(range(1, len(lost) + 2))


def received_of(customer: Customer, hooks: Sequence[Hook]) -> int:
    """Count the requests that endpoints with paths of their own got."""
    paths = {httpx.URL(each.shown["url"]).path for each in hooks}
    seen = customer.receiver.get("/stats").json()["paths"]
    return sum(stats["count"] for path, stats in seen.items() if path in paths)


def has_received(customer: Customer, hooks: Sequence[Hook], enough: int) -> bool:
    return received_of(customer, hooks) >= enough


def identical(customer: Customer, hook: Hook, key: str, pool: ThreadPoolExecutor) -> list[httpx.Response]:
    """Post the same event a hundred times at once, each until it is answered."""
    headers = {"Relay-Event-Type": hook.type, "Idempotency-Key": key}
    url = f"{customer.stack.api_url}/v1/events"

    def one(_number: int) -> httpx.Response:
        with httpx.Client(timeout=60, trust_env=False) as producer:
            return persistently(lambda: producer.post(url, json={"same": True}, headers=headers))

    return list(pool.map(one, range(100)))


def check_one_event(customer: Customer, hook: Hook, answers: list[httpx.Response]) -> None:
    assert Counter(each.status_code for each in answers) == {202: 100}
    (body,) = {each.content for each in answers}
    posted = Posted(**json.loads(body))
    listed = customer.api.get("/v1/events?limit=200").json()["items"]
    assert [each["id"] for each in listed if each["type"] == hook.type] == [posted.event_id]
    check_all(customer, {hook: 1}, killed=False)
    seen = customer.received(path=httpx.URL(hook.shown["url"]).path)
    assert {each["delivery_id"] for each in seen} == {posted.delivery_id}


def test_a_hundred_simultaneous_identical_requests_make_one_event(
    customer: Customer, interrupted: dict[Hook, int]
) -> None:
    hook = customer.hook("/verify/{key}")
    with ThreadPoolExecutor(100) as pool:
        answers = identical(customer, hook, "one of a hundred", pool)
    check_one_event(customer, hook, answers)
    replays = [each.headers.get("Relay-Idempotent-Replay") for each in answers]
    assert Counter(replays) == {"true": 99, None: 1}


@pytest.mark.parametrize("moment", ["when the first are asked", "when the event has arrived"])
def test_an_api_killed_among_identical_requests_leaves_one_event(customer: Customer, moment: str) -> None:
    hook = customer.hook("/verify/{key}")
    stack = customer.stack
    before, restarts = stack.pid("api"), stack.output().count("started again")
    with ThreadPoolExecutor(101) as pool:
        asked = pool.submit(identical, customer, hook, moment, pool)
        if moment == "when the event has arrived":
            stack.until(partial(has_received, customer, [hook], 1), within_s=30)
        stack.kill("api")
        restarted(stack, "api", before)
        check_one_event(customer, hook, asked.result(90))
    assert stack.output().count("started again") == restarts + 1


def test_the_api_restarts_alone_while_deliveries_go_on(customer: Customer) -> None:
    stack = customer.stack
    hook = customer.hook("/slow/{key}?ms=200", rate_per_second=1000, burst=1000, max_concurrency=4)
    for n in range(60):
        post(customer, hook, f"before-{n}")
    workers, began_ms = stack.pid("workers"), time.time() * 1000
    with ThreadPoolExecutor(1) as pool:
        restarting = pool.submit(stack.restart_api)
        for n in range(20):
            post(customer, hook, f"during-{n}")
        assert restarting.result(60).returncode == 0
    ended_ms = time.time() * 1000
    check_all(customer, {hook: 80}, killed=False)
    seen = customer.received(brief=1, path=f"/slow/{hook.type}")
    assert [each for each in seen if began_ms < each["received_at"] < ended_ms]
    assert stack.pid("workers") == workers


def test_workers_killed_again_and_again_lose_nothing(
    customer: Customer, interrupted: dict[Hook, int]
) -> None:
    unknown = check_all(customer, interrupted)
    assert unknown > 0, "no kill came in the middle of a send"
    assert 0 <= received_of(customer, list(interrupted)) - sum(interrupted.values()) <= unknown
    assert customer.received(brief=1, verified="false") == []


def test_a_later_fan_out_killed_in_the_middle_reaches_every_endpoint_once(
    customer: Customer, crowd: Crowd
) -> None:
    assert {(each.fan_out, tuple(each.delivery_ids)) for each in crowd.posted} == {("later", ())}
    check_all(customer, dict.fromkeys(crowd.hooks, len(crowd.posted)))
    for posted in crowd.posted:
        listed = customer.api.get(f"/v1/events/{posted.event_id}/deliveries?limit=200").json()["items"]
        assert sorted(each["endpoint_id"] for each in listed) == sorted(each.id for each in crowd.hooks)


def test_emptied_queues_are_rung_again(customer: Customer, unrung: list[str]) -> None:
    """By the watchdog: it looks each second here, for what nobody looked at for a minute."""
    for delivery_id in unrung:
        assert customer.ended(delivery_id, within_s=LATE_S + 30)["status"] == "succeeded"
    (last,) = customer.received(brief=1, delivery_id=unrung[-1])[-1:]
    (first,) = customer.received(brief=1, delivery_id=unrung[0])[:1]
    assert last["received_at"] - first["received_at"] >= 1_000 * (LATE_S - 1)
    swept = [
        json.loads(line) for line in customer.stack.log("workers").splitlines() if "reconcile.swept" in line
    ]
    assert sum(each["rung"] for each in swept) > 0


def test_what_was_pending_when_all_of_it_stopped_is_delivered_after_the_next_start(tmp_path: Path) -> None:
    """The witness is a receiver that outlives the stack; the last start has the development switch off."""
    with Receiver() as witness:
        first = RelayStack(tmp_path, *EVERY_SECOND, settings=SETTINGS)
        witness.toggle("down")
        with first, Customer(first) as customer:
            hook = customer.hook(witness.url("/toggle"))
            witness.add_secret(hook.secret)
            small = customer.post(hook.type)
            big = customer.post(hook.type, NOISE, "application/octet-stream")
            for each in (small, big):
                customer.tried(each.delivery_id)
        assert first.errors() == ""
        witness.toggle("up")
        second = RelayStack(tmp_path, *EVERY_SECOND, ports=first.ports, settings=SETTINGS)
        with second, Customer(second) as customer:
            assert customer.endpoint(hook.id).json() == hook.shown
            for each in (small, big):
                assert customer.ended(each.delivery_id)["status"] == "succeeded"
            check_restarted(witness, small, big)
            customer.counted('relay_ingest_total{result="accepted"}', 2)
            customer.counted('relay_delivery_attempts_total{outcome="success"}', 2)
            down = {"status": 503, "headers": {"Retry-After": "3"}}
            refused = customer.post(customer.hook(witness.script("later", down)).type)
            customer.tried(refused.delivery_id)
        seen = len(witness.received())
        switched_off = {**SETTINGS, "RELAY_ALLOW_PRIVATE_ENDPOINTS": "false"}
        third = RelayStack(tmp_path, *EVERY_SECOND, ports=first.ports, settings=switched_off)
        with third, Customer(third) as customer:
            assert customer.ended(refused.delivery_id)["reason"] == "refused"
        assert len(witness.received()) == seen


def check_restarted(witness: Receiver, small: Posted, big: Posted) -> None:
    for posted, body in ((small, b'{"n": 1}'), (big, NOISE)):
        *failed, arrived = witness.received(event_id=posted.event_id)
        assert failed
        assert {each["status"] for each in failed} == {503}
        assert (arrived["status"], arrived["attempt"]) == (200, len(failed) + 1)
        assert {each["body_sha256"] for each in (*failed, arrived)} == {hashlib.sha256(body).hexdigest()}
        assert {each["verified"] for each in (*failed, arrived)} == {True}
