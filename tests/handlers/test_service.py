"""Whether Relay is alive, and whether it can work."""

import pytest

import app as lambdas
from chalicelib import bootstrap
from chalicelib.wire import bell as bells
from chalicelib.wire.answers import egress_ranges
from infra.local.invocation import LambdaContext
from tests.fakes.fixed_clock import FixedClock
from tests.handlers.conftest import Lines
from tests.handlers.relay import SHARDS, Relay, message
from tests.receiver import Receiver


def test_health_and_readiness_need_no_key(empty_guarded: Relay) -> None:
    anyone = Relay(empty_guarded.made, empty_guarded.clients)
    assert (anyone.get("/healthz").status, anyone.get("/healthz").json) == (200, {"status": "ok"})
    assert anyone.get("/readyz").status == 503


def measured(relay: Relay) -> None:
    """Do what the function that measures does once, and the deliver functions with its canaries."""
    lambdas.measure(relay.sample("schedule"), LambdaContext("relay-measure"))
    heard = {queue: relay.deliver(queue, rung) for queue, rung in relay.bells().items()}
    assert heard == {f"shard-{number}": [] for number in range(SHARDS)}


def failing(relay: Relay) -> list[str]:
    """Ask what keeps Relay from being ready; as many reasons are given in words."""
    ready = relay.get("/readyz")
    said = ready.json
    assert (ready.status, said["status"]) == ((503, "unavailable") if said["failing"] else (200, "ok"))
    assert len(said["reasons"]) == len(said["failing"])
    assert all(each.endswith(".") for each in said["reasons"])
    return list(said["failing"])


def test_a_new_relay_is_ready_as_soon_as_it_was_measured_and_its_canaries_came_through(relay: Relay) -> None:
    assert failing(relay) == ["canary", "lateness"]
    lambdas.measure(relay.sample("schedule"), LambdaContext("relay-measure"))
    assert failing(relay) == ["canary"]
    measured(relay)
    assert failing(relay) == []


def test_f142_a_shard_that_nobody_works_off_is_named_within_minutes(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the event source mapping of one shard was switched off; the API stays up."""
    clock = FixedClock(bootstrap.clock().now_ms())
    monkeypatch.setattr(bootstrap, "clock", lambda: clock)
    measured(relay)
    for minute in range(1, 5):
        clock.advance(ms=60_000)
        lambdas.measure(relay.sample("schedule"), LambdaContext("relay-measure"))
        for queue in ("shard-0", "shard-1", "shard-3"):
            relay.deliver(queue, relay.messages(queue))
        assert failing(relay) == (["canary"] if minute > 3 else [])
    relay.deliver("shard-2", relay.messages("shard-2"))
    assert failing(relay) == []


def test_f142_a_delivery_that_is_due_for_over_a_minute_is_told_while_health_is_green(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    relay.endpoint()
    relay.event()
    clock = FixedClock(bootstrap.clock().now_ms() + 61_000)
    monkeypatch.setattr(bootstrap, "clock", lambda: clock)
    lambdas.measure(relay.sample("schedule"), LambdaContext("relay-measure"))
    for number in range(SHARDS):
        bootstrap.gauging().came_through(f"shard-{number}.fifo", clock.now_ms())
    assert failing(relay) == ["lateness"]
    assert relay.get("/healthz").status == 200


def test_without_the_function_that_measures_nobody_knows_that_nothing_is_late(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured(relay)
    clock = FixedClock(bootstrap.clock().now_ms() + 181_000)
    monkeypatch.setattr(bootstrap, "clock", lambda: clock)
    assert failing(relay) == ["canary", "lateness"]


@pytest.mark.parametrize("table", ["endpoints", "metrics"])
def test_a_store_that_does_not_answer_is_named_and_health_does_not_look(relay: Relay, table: str) -> None:
    relay.drop_table(table)
    assert failing(relay) == ["store"]
    assert relay.get("/healthz").status == 200


def test_health_asks_nothing_that_is_shared(relay: Relay) -> None:
    for counter in relay.counters:
        counter.reset()
    assert relay.get("/healthz").status == 200
    assert [counter.calls() for counter in relay.counters if counter.calls()] == []


def test_a_canary_beside_bells_keeps_none_of_them_from_being_worked_off(
    relay: Relay, receiver: Receiver
) -> None:
    made = relay.endpoint(url=receiver.url("/sink"))
    (delivery_id,) = relay.event()["delivery_ids"]
    (queue, rung), *_ = relay.rung().items()
    canary = message(bells.dump_canary(1_700_000_000_000), 7)
    assert relay.deliver(queue, [canary, *rung]) == []
    assert relay.get(f"/v1/deliveries/{delivery_id}").json["status"] == "succeeded"
    assert bootstrap.gauging().signs([f"{queue}.fifo"]).canaries == {f"{queue}.fifo": 1_700_000_000_000}
    assert made["id"]


def test_a_canary_that_cannot_be_noted_is_let_go_and_told(
    relay: Relay, receiver: Receiver, lines: Lines
) -> None:
    relay.endpoint(url=receiver.url("/sink"))
    (delivery_id,) = relay.event()["delivery_ids"]
    (queue, rung), *_ = relay.rung().items()
    relay.drop_table("metrics")
    assert relay.deliver(queue, [message(bells.dump_canary(1_700_000_000_000), 7), *rung]) == []
    assert relay.get(f"/v1/deliveries/{delivery_id}").json["status"] == "succeeded"
    assert len(lines.named("canary.not_noted")) == 1


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_who_is_alive_logs_nothing(relay: Relay, lines: Lines, path: str) -> None:
    relay.get(path)
    assert lines.texts == []


def test_egress_ranges_are_for_everybody_with_their_version_and_date(empty_guarded: Relay) -> None:
    anyone = Relay(empty_guarded.made, empty_guarded.clients)
    said = anyone.get("/v1/egress-ranges")
    assert said.status == 200
    assert (said.json["version"], said.json["effective_on"]) == (1, "2026-11-30")
    assert {each["region"] for each in said.json["ranges"]} == {"us-east-1", "eu-central-1"}
    assert all(
        each["active"].endswith("/28") and each["standby"].endswith("/28") for each in said.json["ranges"]
    )


@pytest.mark.parametrize("today, version, upcoming", [("2027-05-31", 1, 2), ("2027-06-01", 2, None)])
def test_a_version_is_upcoming_until_it_takes_effect(today: str, version: int, upcoming: int | None) -> None:
    ranges = {"us-east-1": {"active": "192.0.2.0/28", "standby": "192.0.2.16/28"}}
    first = {"version": 1, "announced_on": "2026-11-30", "effective_on": "2026-11-30", "ranges": ranges}
    second = {"version": 2, "announced_on": "2027-01-01", "effective_on": "2027-06-01", "ranges": ranges}
    said = egress_ranges([first, second], today)
    next_one = said["upcoming"]
    assert (said["version"], next_one["version"] if next_one else None) == (version, upcoming)
