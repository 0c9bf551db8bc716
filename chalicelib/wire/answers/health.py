"""How an endpoint does, as the API shows it: its breaker, its holds, its hours."""

from typing import Final

from typing_extensions import TypedDict

from chalicelib.application.ports import Health
from chalicelib.domain import gate as gates
from chalicelib.domain.endpoint import Endpoint, EndpointState
from chalicelib.domain.gate import Breaker, HoldReason, Spell
from chalicelib.domain.gate.tally import Health as Condition
from chalicelib.domain.request import event_time
from chalicelib.wire.answers.plain import Time, time_or_none


class HoldAnswer(TypedDict):
    """A hold of an endpoint: why, since when, and until when as far as that is known."""

    reason: HoldReason
    since: Time
    until: Time | None


class LatelyAnswer(TypedDict):
    """The figures that a condition is computed from."""

    attempts: int
    failed: int
    failed_in_a_row: int


class ThresholdsAnswer(TypedDict):
    """The numbers that a condition is computed with."""

    degraded_below_success_percent: int
    of_the_last_attempts: int
    within_s: int
    failing_after_failures_in_a_row: int


class BreakerAnswer(TypedDict):
    """The breaker of an endpoint."""

    state: Breaker
    consecutive_failures: int
    open_until: Time | None


class HealthAnswer(TypedDict):
    """How an endpoint does."""

    endpoint_id: str
    state: EndpointState
    state_reason: str | None
    status: Condition
    lately: LatelyAnswer
    thresholds: ThresholdsAnswer
    breaker: BreakerAnswer
    in_flight: int
    queue: str
    hold: HoldAnswer | None
    recent_holds: list[HoldAnswer]


THRESHOLDS: Final[ThresholdsAnswer] = {
    "degraded_below_success_percent": gates.HEALTHY_PERCENT,
    "of_the_last_attempts": gates.LATELY,
    "within_s": gates.LATELY_FOR // gates.SECOND,
    "failing_after_failures_in_a_row": gates.FAILING_IN_A_ROW,
}


def hold(of: Spell) -> HoldAnswer:
    """Show a hold of an endpoint: why, since when, and until when as far as that is known."""
    return {
        "reason": of.reason,
        "since": event_time(of.since // 1000),
        "until": time_or_none(of.until // 1000),
    }


def health(endpoint: Endpoint, of: Health, now_us: int) -> HealthAnswer:
    """Show how an endpoint does: its breaker, the hold that goes on, and the last ones."""
    gate = of.gate
    enabled = endpoint.state is EndpointState.ENABLED
    attempts, failed = gates.lately(gate, now_us)
    current = gates.current_hold(gate, now_us)
    opens = gate.state is Breaker.OPEN
    return {
        "endpoint_id": endpoint.id,
        "state": endpoint.state,
        "state_reason": endpoint.state_reason or None,
        "status": gates.health_of(gate, now_us, enabled=enabled),
        "lately": {"attempts": attempts, "failed": failed, "failed_in_a_row": gate.bad},
        "thresholds": THRESHOLDS,
        "breaker": {
            "state": gate.state,
            "consecutive_failures": gate.fails,
            "open_until": event_time(gate.open_until // 1000) if opens else None,
        },
        "in_flight": gate.held_slots,
        "queue": gate.queue.value or "shard",
        "hold": hold(current) if current else None,
        "recent_holds": [hold(each) for each in of.holds],
    }
