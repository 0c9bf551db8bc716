"""Limits and quotas as a caller meets them: 429 with a true Retry-After, 409 with the quota's name."""

import itertools
import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from chalicelib import bootstrap
from chalicelib.application.admit_requests import TESTS_PER_SECOND
from chalicelib.domain.api_key import ApiKey, Role, digest
from chalicelib.domain.tenant import QUOTAS_MAX, Quotas, Tenant
from tests.fakes.fixed_clock import FixedClock
from tests.handlers.relay import COUNTS, URL, Answer, Relay, forget

Ask = Callable[..., Relay]
_NUMBERS = itertools.count(1)
EVENT = b'{"type":"order.paid"}'


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FixedClock:
    """Give the time by which all of this tier's Relay goes."""
    fixed = FixedClock()
    monkeypatch.setattr(bootstrap, "clock", lambda: fixed)
    return fixed


@pytest.fixture
def asks(tenant: Relay, clock: FixedClock) -> Ask:
    """Give what makes a tenant with these quotas, and the Relay as a key of it sees it."""
    forget()

    def make(quotas: Quotas, role: Role = Role.ADMIN) -> Relay:
        name = f"limited{next(_NUMBERS)}"
        now_ms = clock.now_ms()
        key = f"relay_{name}.key1.secret"
        made = ApiKey(name, "key1", digest(key), role, created_ms=now_ms, used_ms=now_ms)
        bootstrap.seed(Tenant(name, quotas=quotas, created_ms=now_ms), made)
        return replace(tenant, key=key)

    return make


def limited(**quotas: int) -> Quotas:
    return replace(QUOTAS_MAX, **quotas)


def post(relay: Relay) -> Answer:
    return relay.call("POST", "/v1/events", EVENT)


def items(count: int) -> list[dict[str, str]]:
    return [{"type": "order.paid", "payload": json.dumps({"number": number})} for number in range(count)]


class TestRequests:
    def test_a_key_over_its_limit_is_told_when_to_come_again(self, asks: Ask, clock: FixedClock) -> None:
        relay = asks(limited(requests_per_second=3))
        assert [relay.get("/v1/events").status for _ in range(4)] == [200, 200, 200, 429]
        refused = relay.get("/v1/events")
        assert refused.is_problem(429, "too_many_requests")
        assert "`requests_per_second`" in refused.json["detail"]
        wait_s = int(refused.headers["retry-after"])
        assert wait_s >= 1
        clock.advance(ms=wait_s * 1000)
        assert relay.get("/v1/events").status == 200

    def test_every_route_counts_whatever_comes_of_it(self, asks: Ask) -> None:
        relay = asks(limited(requests_per_second=3), Role.VIEWER)
        statuses = [relay.get("/v1/events/evt_none").status, post(relay).status]
        statuses += [relay.get("/v1/endpoints?what=1").status, relay.get("/v1/endpoints").status]
        assert statuses == [404, 403, 400, 429]

    def test_a_tenant_sends_a_few_tests_a_second_as_each_holds_a_function(
        self, asks: Ask, clock: FixedClock
    ) -> None:
        relay = asks(limited(requests_per_second=100))
        path = "/v1/endpoints/ep_none/test"
        statuses = [relay.call("POST", path, b"").status for _ in range(TESTS_PER_SECOND)]
        assert statuses == [404] * TESTS_PER_SECOND
        refused = relay.call("POST", path, b"")
        assert refused.is_problem(429, "too_many_requests")
        assert "tests" in refused.json["detail"]
        clock.advance(ms=int(refused.headers["retry-after"]) * 1000)
        assert relay.call("POST", path, b"").status == 404

    def test_each_key_has_a_limit_of_its_own(self, asks: Ask) -> None:
        relay, other = asks(limited(requests_per_second=1)), asks(limited(requests_per_second=1))
        assert [relay.get("/v1/events").status for _ in range(2)] == [200, 429]
        assert other.get("/v1/events").status == 200

    def test_what_needs_no_key_is_not_counted(self, asks: Ask) -> None:
        relay = asks(limited(requests_per_second=1))
        assert {relay.get("/healthz").status for _ in range(5)} == {200}


class TestEvents:
    def test_an_event_over_the_quota_is_not_kept(self, asks: Ask, clock: FixedClock) -> None:
        relay = asks(limited(events_per_second=2))
        assert [post(relay).status for _ in range(3)] == [202, 202, 429]
        refused = post(relay)
        assert refused.is_problem(429, "too_many_events")
        assert "`events_per_second`" in refused.json["detail"]
        clock.advance(ms=int(refused.headers["retry-after"]) * 1000)
        assert post(relay).status == 202
        assert len(relay.get("/v1/events").json["items"]) == 3

    def test_of_a_batch_each_event_is_counted_and_the_first_are_accepted(
        self, asks: Ask, clock: FixedClock
    ) -> None:
        relay = asks(limited(events_per_second=4))
        answer = relay.post("/v1/events/batch", {"events": items(6)})
        assert answer.status == 207
        results = answer.json["results"]
        assert [each["status"] for each in results] == [202] * 4 + [429] * 2
        assert {each["error"]["code"] for each in results[4:]} == {"too_many_events"}
        assert {each["retry_after_s"] for each in results[4:]} == {int(answer.headers["retry-after"])}
        clock.advance(ms=int(answer.headers["retry-after"]) * 1000)
        again = relay.post("/v1/events/batch", {"events": items(6)[4:]})
        assert [each["status"] for each in again.json["results"]] == [202, 202]

    def test_a_batch_larger_than_the_quota_gets_in_part_by_part(self, asks: Ask, clock: FixedClock) -> None:
        relay = asks(limited(events_per_second=30))
        left, rounds = items(100), 0
        while left:
            rounds += 1
            answer = relay.post("/v1/events/batch", {"events": left})
            left = [
                one for one, each in zip(left, answer.json["results"], strict=True) if each["status"] == 429
            ]
            clock.advance(ms=int(answer.headers.get("retry-after", 1)) * 1000)
        assert rounds == 4

    def test_a_batch_of_which_nothing_may_pass_is_refused_as_a_whole(self, asks: Ask) -> None:
        relay = asks(limited(events_per_second=1))
        assert post(relay).status == 202
        refused = relay.post("/v1/events/batch", {"events": items(2)})
        assert refused.is_problem(429, "too_many_events")
        assert int(refused.headers["retry-after"]) == 1

    def test_a_fault_in_a_batch_is_told_though_the_rest_is_over_the_quota(self, asks: Ask) -> None:
        relay = asks(limited(events_per_second=1))
        assert post(relay).status == 202
        answer = relay.post("/v1/events/batch", {"events": [*items(1), {"type": "order.paid"}]})
        assert [each["status"] for each in answer.json["results"]] == [429, 400]

    def test_what_is_refused_for_its_faults_takes_nothing_of_the_quota(self, asks: Ask) -> None:
        relay = asks(limited(events_per_second=2))
        assert {relay.batch({"type": "order paid", "payload": "{}"})[0]["status"] for _ in range(5)} == {400}
        assert [each["status"] for each in relay.batch(*items(2))] == [202, 202]


class TestEndpoints:
    def test_one_endpoint_too_many_is_refused_and_the_quota_named(self, asks: Ask) -> None:
        relay = asks(limited(endpoints=2))
        made = [relay.endpoint() for _ in range(2)]
        refused = relay.post("/v1/endpoints", {"url": URL, "event_types": ["*"]})
        assert refused.is_problem(409, "too_many_endpoints")
        assert "its quota `endpoints`" in refused.json["detail"]
        assert relay.delete(made[0]).status == 204
        relay.endpoint(ordering="endpoint")
        refused = relay.post("/v1/endpoints", {"url": URL, "event_types": ["*"], "ordering": "endpoint"})
        assert refused.is_problem(409, "too_many_endpoints")


class TestFanOut:
    def test_over_the_budget_an_event_is_accepted_and_fanned_out_later(self, asks: Ask) -> None:
        relay = asks(limited(fan_out_per_second=3))
        for _ in range(2):
            relay.endpoint()
        answers = [relay.event(EVENT) for _ in range(3)]
        assert [each["fan_out"] for each in answers] == ["inline", "later", "later"]
        assert [len(each["delivery_ids"]) for each in answers] == [2, 0, 0]


def test_what_limits_cost_is_a_call_or_two_an_idle_post_and_next_to_none_a_busy_one(
    asks: Ask, clock: FixedClock
) -> None:
    relay = asks(Quotas(requests_per_second=2_000, events_per_second=2_000, fan_out_per_second=2_000))
    relay.endpoint()

    def calls(posts: int, apart_ms: int) -> int:
        for counter in relay.counters:
            counter.reset()
        for _ in range(posts):
            assert post(relay).status == 202
            clock.advance(ms=apart_ms)
        made = {name: count for each in relay.counters for name, count in each.calls().items()}
        statements = "BatchExecuteStatement"
        return made["dynamodb", statements] - made.get((COUNTS, statements), 0)

    calls(1, 2_000)
    assert calls(5, 2_000) == 5 * 2
    assert calls(200, 5) <= 2 * 12
