"""Each alarm of the template rings for its fault, by the lines that CloudWatch reads, and only then.

The numbers of field cases stand where their faults are.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest

from chalicelib import bootstrap
from chalicelib.application.ingest import Post
from chalicelib.domain.outcome import Fault, Reply
from chalicelib.domain.retention import DAY_MS
from tests.fakes.fixed_clock import FixedClock
from tests.fakes.memory_canaries import MemoryCanaries
from tests.fakes.scripted_sender import DIES, Answer, ScriptedSender, status
from tests.handlers.conftest import MakeRelay
from tests.handlers.night import MINUTE_MS, QUEUES, Night, names
from tests.handlers.relay import JSON, typed

BIG = random.Random(3).randbytes(9_000)
HOUR_MS = 60 * MINUTE_MS


@pytest.fixture
def night(
    make_relay: MakeRelay, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Night:
    relay = make_relay(RELAY_ALLOW_KEYLESS="true", RELAY_ALLOW_PRIVATE_ENDPOINTS="true")
    clock = FixedClock(bootstrap.clock().now_ms())
    sender = ScriptedSender(clock)
    monkeypatch.setattr(bootstrap, "clock", lambda: clock)
    monkeypatch.setattr(bootstrap, "sender", lambda: sender)
    made = Night(relay, clock, sender, monkeypatch, lambda: capsys.readouterr().out)
    relay.endpoint(event_types=["order.*"])
    made.hourly()
    made.minutes(3)
    return made


def late(night: Night) -> None:
    """F142: nobody works the queues off, while the API stays up."""
    night.events(1)
    night.minutes(4, without=QUEUES)


def canary_stale(night: Night) -> None:
    """F142: the event source mapping of one shard is off, and it happens to have nothing to do."""
    night.minutes(5, without={"shard-2"})


def rescued(night: Night) -> None:
    night.events(1)
    for queue in QUEUES:
        night.relay.messages(queue)
    night.minutes(2)
    assert len(night.sender.sent) == 1


def reconcile_silent(night: Night) -> None:
    night.clock.advance(ms=8 * MINUTE_MS)
    night.run("notify")
    night.minutes(3, without={"reconcile"})


def ingest_unavailable(night: Night) -> None:
    night.relay.drop_table("idempotency")
    for _ in range(3):
        for number in range(10):
            headers = {**typed("a"), **JSON, "Idempotency-Key": str(number)}
            assert night.relay.call("POST", "/v1/events", b"{}", headers).status == 503
        night.minutes()


def unknown_attempts(night: Night) -> None:
    """F144: the holder dies between claim and answer; its lease ends, and the attempts are numbered on."""
    deliveries = night.events(5)
    night.sender.script = lambda _: DIES
    night.deliver()
    night.sender.script = lambda _: Answer()
    night.minutes(3)
    for each in deliveries:
        shown = night.relay.get(f"/v1/deliveries/{each}").json
        assert shown["status"] == "succeeded"


def poisoned(night: Night) -> None:
    """Something about a delivery kills whatever sends it; its bells come back."""
    made = night.relay.endpoint(event_types=["held"])
    night.events(1, headers=typed("held"))
    night.sender.script = lambda _: DIES
    for number in range(10):
        night.ring(made["id"], number)
        night.clock.advance(ms=MINUTE_MS)
        if night.relay.rows("dead-letters"):
            break
    night.sender.script = lambda _: Answer()
    night.minutes(4)


def payloads_lost(night: Night) -> None:
    night.events(1, BIG, typed("order.big", "image/png"))
    for key in night.relay.stored_payloads():
        night.relay.aws("s3").delete_object(Bucket=night.relay.made.bucket, Key=key)
    night.deliver()
    night.minutes(2)
    assert night.sender.sent == []


def payloads_lost_in_part(night: Night) -> None:
    night.events(1, BIG, typed("order.big", "image/png"))
    for key in night.relay.stored_payloads():
        night.relay.aws("s3").put_object(Bucket=night.relay.made.bucket, Key=key, Body=b"=" + BIG[:-1])
    night.deliver()
    night.minutes(2)
    assert night.sender.sent == []


def slow_platform(night: Night) -> None:
    for _ in range(3):
        night.events(1)
        night.clock.advance(ms=20_000)
        night.deliver()
        night.clock.advance(ms=-20_000)
        night.minutes()


def bells_in_flight(night: Night) -> None:
    """F141: what waits fills a queue with messages in flight."""
    measure = bootstrap.measure()
    full = MemoryCanaries(measure.canaries.queues)
    full.in_flight = 60_000
    night.patch.setattr(bootstrap, "measure", lambda: replace(measure, canaries=full))
    for _ in range(2):
        for queue in full.queues:
            bootstrap.gauging().came_through(queue, night.clock.now_ms())
        night.minutes()


def leases_lost(night: Night) -> None:
    made = night.relay.endpoint(event_types=["held"])
    night.events(1, headers=typed("held"))
    calls = count()

    def stands_still(_: object) -> Answer:
        if not next(calls):
            night.clock.advance(ms=47_001)
            night.ring(made["id"])
        return Answer()

    night.sender.script = stands_still
    night.deliver()
    night.minutes(2)


def expired(night: Night) -> None:
    """What was tried once and then by nobody for days."""
    (delivery,) = night.events(1)
    night.sender.script = lambda _: status(500)
    night.deliver()
    night.clock.advance(ms=80 * HOUR_MS)
    night.hourly()
    night.run("notify")
    night.run("reconcile")
    night.minutes(4)
    assert night.relay.get(f"/v1/deliveries/{delivery}").json["status"] == "dead"


def notify_silent(night: Night) -> None:
    night.clock.advance(ms=13 * MINUTE_MS)
    night.run("reconcile")
    night.minutes(3, without={"notify"})


def requests_refused(night: Night) -> None:
    night.sender.script = lambda _: Answer(Reply(fault=Fault.REFUSED))
    night.events(10)
    night.deliver()
    night.minutes(2)


def a_day_without(night: Night, name: str) -> None:
    night.clock.advance(ms=DAY_MS)
    night.hourly(without={name})
    night.run("notify")
    night.run("reconcile")
    night.minutes(4)


def retention_silent(night: Night) -> None:
    a_day_without(night, "retention")


def audit_export_silent(night: Night) -> None:
    a_day_without(night, "export_audit")


def retention_overdue(night: Night) -> None:
    past = FixedClock(night.clock.now_ms() - 40 * DAY_MS)
    replace(bootstrap.ingest(), clock=past).one(Post("default", b"{}", "image/png", "unheard"))
    a_day_without(night, "nothing")


def reporter_silent(night: Night) -> None:
    night.minutes(3, without={"measure"})


Cause = Callable[[Night], None]
FAULTS: dict[Cause, set[str]] = {
    late: {"late", "canary-stale", "rescued"},
    canary_stale: {"canary-stale"},
    rescued: {"rescued"},
    reconcile_silent: {"reconcile-silent"},
    ingest_unavailable: {"ingest-unavailable"},
    unknown_attempts: {"unknown-attempts", "rescued"},
    poisoned: {"poisoned", "unknown-attempts"},
    payloads_lost: {"payloads-lost", "expired"},
    payloads_lost_in_part: {"payloads-lost", "expired"},
    slow_platform: {"slow-platform"},
    bells_in_flight: {"bells-in-flight"},
    leases_lost: {"leases-lost"},
    expired: {"expired", "rescued"},
    notify_silent: {"notify-silent"},
    requests_refused: {"requests-refused"},
    retention_silent: {"retention-silent"},
    retention_overdue: {"retention-overdue"},
    audit_export_silent: {"audit-export-silent"},
    reporter_silent: {"reporter-silent"},
}
"""What is done to Relay, and all that rings for it: the alarm it is named after, and those dragged along."""


def test_every_alarm_has_its_fault() -> None:
    assert {each.__name__.replace("_", "-") for each in FAULTS} >= set(names())
    for fault, rings in FAULTS.items():
        assert any(fault.__name__.replace("_", "-").startswith(each) for each in rings)


def test_without_a_fault_no_alarm_rings(night: Night) -> None:
    for _ in range(3):
        night.events(3)
        night.deliver()
        night.minutes()
    assert len(night.sender.sent) == 9
    assert night.ringing() == set()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda each: each.__name__)
def test_an_alarm_rings_for_its_fault_and_not_before(night: Night, fault: Cause) -> None:
    assert night.ringing() == set()
    fault(night)
    assert night.ringing() == FAULTS[fault]
