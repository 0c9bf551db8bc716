"""Lists by status and by time, and an endpoint's attempts: what is asked for, page by page, no more."""

from typing import Any

import pytest

from tests.handlers.relay import Relay
from tests.receiver import Receiver

NOBODY = "ep_01a22a7c-5366-79c3-90eb-70e6bdfad2fa"
OF_ENDPOINT = [
    "deliveries",
    "deliveries?status=dead",
    "attempts",
    "dead-letters",
    "stats",
    "health",
    "backlog",
]
IN_TIME = [
    "/v1/events",
    *(f"/v1/endpoints/{NOBODY}/{each}" for each in ("deliveries", "attempts", "dead-letters")),
]


def listed(relay: Relay, target: str, name: str = "id") -> list[Any]:
    return [each[name] for page in relay.pages(target) for each in page]


def tried(relay: Relay, receiver: Receiver, count: int) -> tuple[str, list[str], list[dict[str, Any]]]:
    """Deliver events one by one to an endpoint that refuses every other: its path, deliveries, events."""
    turns = [{"status": 200}, {"status": 404}] * count
    made = relay.endpoint(url=receiver.script("turns", *turns[:count]))
    events = []
    for _ in range(count):
        said = relay.event()
        events.append(
            relay.get(f"/v1/events/{said['event_id']}").json | {"delivery": said["delivery_ids"][0]}
        )
        relay.deliver_all()
    return f"/v1/endpoints/{made['id']}", [each["delivery"] for each in events], events


class TestAttempts:
    def test_they_are_listed_newest_first_to_the_end(self, relay: Relay, receiver: Receiver) -> None:
        path, deliveries, events = tried(relay, receiver, 4)
        for limit in (1, 2, 4, 200):
            assert listed(relay, f"{path}/attempts?limit={limit}", "delivery_id") == deliveries[::-1]
        newest = relay.get(f"{path}/attempts?limit=1").json["items"][0]
        (within,) = relay.get(f"/v1/deliveries/{deliveries[-1]}").json["attempts"]
        assert newest == {"delivery_id": deliveries[-1], "event_id": events[-1]["id"], **within}

    def test_each_has_the_times_of_relay_and_of_its_receiver(self, relay: Relay, receiver: Receiver) -> None:
        path, _, _ = tried(relay, receiver, 1)
        (attempt,) = relay.get(f"{path}/attempts").json["items"]
        platform, consumer = attempt["platform_ms"], attempt["consumer_ms"]
        assert platform.keys() == {"queue", "held", "processing", "total"}
        assert platform["total"] == platform["queue"] + platform["held"] + platform["processing"]
        assert consumer.keys() == {"connect", "tls", "first_byte", "total"}
        assert consumer["tls"] == 0
        assert consumer["connect"] <= consumer["first_byte"] <= consumer["total"]

    def test_a_time_is_that_of_the_attempt(self, relay: Relay, receiver: Receiver) -> None:
        path, deliveries, _ = tried(relay, receiver, 3)
        at = [each["at"] for each in relay.get(f"{path}/attempts").json["items"]][::-1]
        assert listed(relay, f"{path}/attempts?since={at[1]}", "delivery_id") == deliveries[:0:-1]
        assert listed(relay, f"{path}/attempts?until={at[1]}", "delivery_id") == deliveries[:1]
        assert listed(relay, f"{path}/attempts?since={at[1]}&until={at[2]}", "at") == [at[1]]


class TestByStatus:
    def test_each_status_has_its_own(self, relay: Relay, receiver: Receiver) -> None:
        path, deliveries, _ = tried(relay, receiver, 4)
        waiting = [relay.event()["delivery_ids"][0] for _ in range(3)]
        told = {
            status: listed(relay, f"{path}/deliveries?limit=2&status={status}")
            for status in ("succeeded", "dead", "pending", "inflight")
        }
        assert told == {
            "succeeded": deliveries[-2::-2],
            "dead": deliveries[-1::-2],
            "pending": waiting[::-1],
            "inflight": [],
        }

    def test_an_event_s_are_told_apart_too(self, relay: Relay, receiver: Receiver) -> None:
        relay.endpoint(url=receiver.url("/sink"))
        relay.endpoint(url=receiver.url("/status/404"))
        said = relay.event()
        relay.deliver_all()
        path = f"/v1/events/{said['event_id']}/deliveries"
        told = [listed(relay, f"{path}?limit=1&status={each}") for each in ("succeeded", "dead", "pending")]
        assert sorted(each for some in told for each in some) == sorted(said["delivery_ids"])
        assert [len(each) for each in told] == [1, 1, 0]
        answer = relay.get(f"{path}?status=done")
        assert answer.is_problem(400, "field_invalid", "status")
        assert answer.json["expected"] == "one of: pending, inflight, succeeded, dead"


class TestByTime:
    def test_the_time_of_deliveries_is_that_of_their_events(self, relay: Relay, receiver: Receiver) -> None:
        path, deliveries, events = tried(relay, receiver, 4)
        since, until = events[1]["received_at"], events[3]["received_at"]
        within = f"since={since}&until={until}"
        for limit in (1, 50):
            assert listed(relay, f"{path}/deliveries?{within}&limit={limit}") == deliveries[2:0:-1]
        assert listed(relay, f"{path}/deliveries?{within}&status=dead") == deliveries[1:2]
        assert listed(relay, f"{path}/deliveries?{within}&status=succeeded") == deliveries[2:3]
        assert listed(relay, f"{path}/dead-letters?{within}", "delivery_id") == deliveries[1:2]
        ids = [each["id"] for each in events]
        assert listed(relay, f"/v1/events?{within}&limit=1") == ids[2:0:-1]

    def test_a_time_with_an_offset_may_stand_as_it_is(self, tenant: Relay) -> None:
        tenant.event()
        assert len(listed(tenant, "/v1/events?since=2020-01-01T00:00:00+01:00")) == 1
        assert listed(tenant, "/v1/events?until=2020-01-01T00:00:00%2B01:00") == []

    @pytest.mark.parametrize("path", IN_TIME)
    @pytest.mark.parametrize(
        "query, field",
        [
            ("since=yesterday", "since"),
            ("until=2026-01-01", "until"),
            ("since=", "since"),
            ("since=1969-12-31T23:59:59Z", "since"),
            ("until=9999-12-31T23:59:59-01:00", "until"),
            ("since=2026-01-02T00:00:00Z&until=2026-01-02T00:00:00Z", "since"),
        ],
    )
    def test_what_is_no_time_is_refused(self, empty_relay: Relay, path: str, query: str, field: str) -> None:
        assert empty_relay.get(f"{path}?{query}").is_problem(400, "field_invalid", field)

    def test_a_cursor_goes_on_in_its_own_time(self, tenant: Relay) -> None:
        for _ in range(3):
            tenant.event()
        cursor = tenant.get("/v1/events?limit=1&since=2020-01-01T00:00:00Z").json["cursor"]
        again = tenant.get(f"/v1/events?since=2020-01-01T00:00:00Z&cursor={cursor}")
        assert len(again.json["items"]) == 2
        other = tenant.get(f"/v1/events?since=2021-01-01T00:00:00Z&cursor={cursor}")
        assert other.is_problem(400, "cursor_invalid", "cursor")


@pytest.mark.parametrize("name", ["x", NOBODY, "evt_" + NOBODY[3:], "%F0%9F%98%8A"])
@pytest.mark.parametrize("question", OF_ENDPOINT)
def test_an_endpoint_that_is_not_there_has_no_empty_list(
    empty_relay: Relay, name: str, question: str
) -> None:
    assert empty_relay.get(f"/v1/endpoints/{name}/{question}").is_problem(404, "not_found", "id")
