"""How an endpoint does: in a word, and by the hour; and that one that fails for very long is disabled."""

from collections.abc import Mapping
from typing import Any

import pytest

from chalicelib.domain.gate import HoldReason
from tests.handlers.conftest import MakeRelay
from tests.handlers.relay import Relay
from tests.receiver import Receiver

NOBODY = "ep_01a22a7c-5366-79c3-90eb-70e6bdfad2fa"
OPEN = {"RELAY_ALLOW_KEYLESS": "true", "RELAY_ALLOW_PRIVATE_ENDPOINTS": "true"}


def health(relay: Relay, of: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = relay.get(f"/v1/endpoints/{of['id']}/health").json
    return shown


def delivered(relay: Relay, times: int = 1) -> None:
    for _ in range(times):
        relay.event()
        relay.deliver_all()


def gate_row(relay: Relay, of: Mapping[str, Any]) -> dict[str, Any]:
    (row,) = [each for each in relay.rows("gates") if each["pk"]["S"].endswith(of["id"])]
    return row


class TestStatus:
    def test_it_is_degraded_by_a_failure_among_few_and_healthy_again_among_many(
        self, relay: Relay, receiver: Receiver
    ) -> None:
        made = relay.endpoint(url=receiver.script("once", {"status": 404}, {"status": 200}))
        delivered(relay)
        shown = health(relay, made)
        assert shown["status"] == "degraded"
        assert shown["lately"] == {"attempts": 1, "failed": 1, "failed_in_a_row": 1}
        relay.batch(*[{"type": "a", "payload": "{}"}] * 24)
        for _ in range(8):
            if relay.rows("owed"):
                relay.deliver_all()
        assert health(relay, made)["lately"] == {"attempts": 25, "failed": 1, "failed_in_a_row": 0}
        assert health(relay, made)["status"] == "healthy"

    def test_it_is_failing_while_its_breaker_is_open(self, relay: Relay, receiver: Receiver) -> None:
        made = relay.endpoint(url=receiver.url("/always500"))
        relay.change("gates", gate_row(relay, made), fails={"N": "19"})
        delivered(relay)
        assert health(relay, made)["status"] == "failing"

    def test_it_is_failing_after_twenty_in_a_row_of_any_kind(self, relay: Relay) -> None:
        made = relay.endpoint()
        relay.change("gates", gate_row(relay, made), bad={"N": "20"})
        shown = health(relay, made)
        assert shown["thresholds"]["failing_after_failures_in_a_row"] == 20
        assert (shown["status"], shown["breaker"]["state"]) == ("failing", "closed")

    def test_a_disabled_endpoint_is_disabled(self, tenant: Relay) -> None:
        made = tenant.endpoint()
        tenant.call("POST", f"/v1/endpoints/{made['id']}/disable")
        assert health(tenant, made)["status"] == "disabled"


class TestStats:
    def test_the_hour_that_goes_on_is_told_at_once(self, relay: Relay, receiver: Receiver) -> None:
        made = relay.endpoint(url=receiver.script("mixed", {"status": 404}, {"status": 200}))
        delivered(relay, 2)
        answer = relay.get(f"/v1/endpoints/{made['id']}/stats")
        (hour,) = answer.json["items"]
        assert hour["hour"].endswith(":00:00.000Z")
        assert (hour["attempts"], hour["succeeded"], hour["failed"], hour["timed_out"]) == (2, 1, 1, 0)
        assert (answer.json["cursor"], hour["success_rate"]) == (None, 0.5)

    def test_an_hour_has_percentiles_of_relay_s_time_and_of_its_receiver_s(
        self, relay: Relay, receiver: Receiver
    ) -> None:
        made = relay.endpoint(
            url=receiver.script("slowly", {"status": 200}, {"status": 200, "delay_ms": 300})
        )
        delivered(relay, 2)
        answer = relay.get(f"/v1/endpoints/{made['id']}/stats").json
        (hour,) = answer["items"]
        took, waited = hour["consumer_ms"], hour["platform_ms"]
        assert took["p50"] < 250 <= took["p95"] == took["p99"] < 600
        assert waited["p50"] <= waited["p95"] <= waited["p99"]
        assert answer["percentiles_within_percent"] == 15
        assert hour["held_s"].keys() == set(HoldReason)

    def test_an_hour_says_how_long_what_held_its_endpoint(self, relay: Relay, receiver: Receiver) -> None:
        made = relay.endpoint(url=receiver.url("/sink"))
        delivered(relay)
        relay.call("POST", f"/v1/endpoints/{made['id']}/disable")
        row = gate_row(relay, made)
        relay.change("gates", row, off_from={"N": str(int(row["off_from"]["N"]) - 2_000_000)})
        (hour,) = relay.get(f"/v1/endpoints/{made['id']}/stats").json["items"]
        assert 0 < hour["held_s"]["disabled"] < 60
        assert hour["held_s"]["rate_limit"] == 0

    def test_what_waits_is_measured_for_the_first_page(self, relay: Relay) -> None:
        made = relay.endpoint()
        for _ in range(3):
            relay.event()
        answer = relay.get(f"/v1/endpoints/{made['id']}/stats").json
        assert answer["items"] == []
        assert answer["backlog"] == relay.get(f"/v1/endpoints/{made['id']}/backlog").json
        assert answer["backlog"]["size"] == 3

    def test_hours_are_paged_newest_first(self, relay: Relay) -> None:
        made = relay.endpoint()
        table = relay.made.tables["stats"]
        for hour in (495_000, 495_001, 495_002):
            item = {
                "pk": {"S": f"default#{made['id']}"},
                "sk": {"S": f"{hour:07d}"},
                "attempts": {"N": "1"},
                "failed": {"N": "0"},
                "timed_out": {"N": "0"},
                "ttl": {"N": "9999999999"},
            }
            relay.aws("dynamodb").put_item(TableName=table, Item=item)
        pages = list(relay.pages(f"/v1/endpoints/{made['id']}/stats?limit=2"))
        assert [len(each) for each in pages] == [2, 1]
        hours = [each["hour"] for page in pages for each in page]
        assert hours == sorted(hours, reverse=True)

    @pytest.mark.parametrize("cursor", ["x", "", "WyJob3VycyIsIjEiXQ"])
    def test_a_cursor_of_another_list_is_refused(self, tenant: Relay, cursor: str) -> None:
        made = tenant.endpoint()
        answer = tenant.get(f"/v1/endpoints/{made['id']}/stats?cursor={cursor}")
        assert answer.is_problem(400, "cursor_invalid", "cursor")

    @pytest.mark.parametrize("name", [NOBODY, "x"])
    def test_what_names_no_endpoint_is_not_found(self, empty_relay: Relay, name: str) -> None:
        assert empty_relay.get(f"/v1/endpoints/{name}/stats").is_problem(404, "not_found", "id")


def test_f071_what_fails_for_very_long_is_disabled_and_says_why(
    make_relay: MakeRelay, receiver: Receiver
) -> None:
    relay = make_relay(**OPEN, RELAY_AUTO_DISABLE_SECS="3600", RELAY_AUTO_DISABLE_ATTEMPTS="2")
    made = relay.endpoint(url=receiver.url("/status/401"))
    delivered(relay)
    assert health(relay, made)["state"] == "enabled"
    began_us = int(gate_row(relay, made)["bad_from"]["N"])
    relay.change("gates", gate_row(relay, made), bad_from={"N": str(began_us - 3_600_000_000)})
    delivered(relay)
    shown = health(relay, made)
    assert (shown["state"], shown["status"]) == ("disabled", "disabled")
    assert "the last 2 failed" in shown["state_reason"]
    answer = relay.post(f"/v1/endpoints/{made['id']}/enable", {"backlog": "deliver"}, relay.elevated())
    assert (answer.json["state"], answer.json["state_reason"]) == ("enabled", None)
    relay.deliver_all()
    delivered(relay)
    assert health(relay, made)["state"] == "enabled", "it has its time anew"
