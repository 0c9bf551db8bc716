"""What an endpoint's hours came to, as the API shows it."""

from collections.abc import Sequence

from typing_extensions import TypedDict

from chalicelib.application.measure_backlog import Measured
from chalicelib.domain import gate as gates
from chalicelib.domain.gate import HoldReason, Tally
from chalicelib.domain.histogram import WITHIN_PERCENT, Histogram, percentile_ms
from chalicelib.domain.request import event_time
from chalicelib.wire.answers.endpoints import BacklogAnswer, backlog
from chalicelib.wire.answers.plain import Time


class PercentilesAnswer(TypedDict):
    """How long it took in half of all cases, in all but five percent, and in all but one."""

    p50: int
    p95: int
    p99: int


class HeldAnswer(TypedDict):
    """For how many seconds an endpoint was held, by reason."""

    rate_limit: float
    breaker_open: float
    endpoint_cap: float
    disabled: float
    ramp: float
    no_listener: float


class HourAnswer(TypedDict):
    """What an endpoint's requests of an hour came to."""

    hour: Time
    attempts: int
    succeeded: int
    failed: int
    timed_out: int
    success_rate: float | None
    platform_ms: PercentilesAnswer | None
    consumer_ms: PercentilesAnswer | None
    held_s: HeldAnswer


class StatsAnswer(TypedDict):
    """A page of an endpoint's hours, how far percentiles may be off, and, on the first page, what waits."""

    items: list[HourAnswer]
    cursor: str | None
    percentiles_within_percent: int
    backlog: BacklogAnswer | None


def hour(of: Tally) -> HourAnswer:
    """Show what an endpoint's requests of an hour came to."""
    return {
        "hour": event_time(of.hour * gates.HOUR // 1000),
        "attempts": of.attempts,
        "succeeded": of.attempts - of.failed,
        "failed": of.failed,
        "timed_out": of.timed_out,
        "success_rate": round((of.attempts - of.failed) / of.attempts, 4) if of.attempts else None,
        "platform_ms": _percentiles(of.waited),
        "consumer_ms": _percentiles(of.took),
        "held_s": {
            "rate_limit": _seconds(of, HoldReason.RATE_LIMIT),
            "breaker_open": _seconds(of, HoldReason.BREAKER_OPEN),
            "endpoint_cap": _seconds(of, HoldReason.ENDPOINT_CAP),
            "disabled": _seconds(of, HoldReason.DISABLED),
            "ramp": _seconds(of, HoldReason.RAMP),
            "no_listener": _seconds(of, HoldReason.NO_LISTENER),
        },
    }


def stats(
    endpoint_id: str, hours: Sequence[Tally], cursor: str | None, waits: Measured | None
) -> StatsAnswer:
    """Show a page of an endpoint's hours."""
    return {
        "items": [hour(each) for each in hours],
        "cursor": cursor,
        "percentiles_within_percent": WITHIN_PERCENT,
        "backlog": backlog(endpoint_id, waits) if waits else None,
    }


def _percentiles(of: Histogram) -> PercentilesAnswer | None:
    p50, p95, p99 = (percentile_ms(of, percent) for percent in (50, 95, 99))
    if p50 is None or p95 is None or p99 is None:
        return None
    return {"p50": p50, "p95": p95, "p99": p99}


def _seconds(of: Tally, reason: HoldReason) -> float:
    return of.held_ms.get(reason, 0) / 1000
