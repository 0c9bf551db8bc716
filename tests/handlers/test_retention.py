"""The hourly function: it removes what is overdue and tells how much, and that it came to its end."""

import random
from dataclasses import replace

import pytest

import app as lambdas
from chalicelib import bootstrap
from chalicelib.application.ingest import Post
from chalicelib.domain.audit_export import HOUR_MS
from chalicelib.domain.metrics import Schedule
from chalicelib.domain.retention import DAY_MS, PAYLOAD_DAYS
from infra.local.invocation import LambdaContext
from tests.fakes.fixed_clock import FixedClock
from tests.handlers.conftest import Lines, MakeRelay
from tests.handlers.relay import Relay

LARGE = random.Random(3).randbytes(9_000)
SWEEPING = {"RELAY_ALLOW_KEYLESS": "true", "RELAY_SWEEP_EXPIRED_ROWS": "true"}


def retained(relay: Relay, lines: Lines) -> dict[str, object]:
    """Run the function on the sample event, and give the line it wrote."""
    assert lambdas.retention(relay.sample("schedule"), LambdaContext("relay-retention")) is None
    return lines.named("retention.swept")[-1]


def test_it_removes_what_is_overdue_and_tells_how_much(
    make_relay: MakeRelay, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    relay = make_relay(**SWEEPING)
    # In the middle of an hour: the row that lists an hour goes with it, and would count beside the others.
    now_ms = bootstrap.clock().now_ms()
    half_past = FixedClock(now_ms - now_ms % HOUR_MS + HOUR_MS // 2)
    monkeypatch.setattr(bootstrap, "clock", lambda: half_past)
    past = FixedClock(half_past.now_ms() - PAYLOAD_DAYS * DAY_MS - 60_000)
    ingest = replace(bootstrap.ingest(), clock=past)
    for number in range(3):
        ingest.one(Post("default", LARGE, "image/png", "a", f"key {number}"))
    past.advance(ms=120_000)
    young = ingest.one(Post("default", LARGE, "image/png", "a")).answer
    told = retained(relay, lines)
    assert {name: told[name] for name in ("payloads", "rows", "removed", "overdue", "finished")} == {
        "payloads": 3,
        "rows": 6,
        "removed": 9,
        "overdue": 0,
        "finished": 1,
    }
    assert relay.stored_payloads() == [f"default/{event_id}" for event_id in relay.stored_events()]
    assert relay.stored_events()[0] in young
    assert retained(relay, lines)["removed"] == 0


def test_where_rows_go_by_themselves_it_leaves_them(make_relay: MakeRelay, lines: Lines) -> None:
    relay = make_relay(RELAY_ALLOW_KEYLESS="true")
    past = FixedClock(bootstrap.clock().now_ms() - (PAYLOAD_DAYS + 1) * DAY_MS)
    replace(bootstrap.ingest(), clock=past).one(Post("default", LARGE, "image/png", "a"))
    told = retained(relay, lines)
    assert (told["payloads"], told["rows"]) == (1, 0)
    assert len(relay.stored_events()) == 1


def test_a_run_that_finished_its_chores_is_noted_with_what_is_overdue(
    make_relay: MakeRelay, lines: Lines
) -> None:
    relay = make_relay()
    before_ms = bootstrap.clock().now_ms()
    told = retained(relay, lines)
    run = bootstrap.gauging().signs(()).runs[Schedule.RETENTION]
    assert run.at_ms >= before_ms
    assert run.overdue == told["overdue"] == 0
