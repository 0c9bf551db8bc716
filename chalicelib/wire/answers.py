"""The shapes of API answers: plain dictionaries in the words of the glossary, times in RFC 3339."""

import base64
import codecs
from typing import Any

from chalicelib.application.measure_backlog import Measured
from chalicelib.application.ports import GivenUp, Health, StoredEvent
from chalicelib.application.questions import Delivery
from chalicelib.domain import gate as gates
from chalicelib.domain import ids
from chalicelib.domain.bulk_replay import BulkReplay
from chalicelib.domain.delivery import Attempt, Created, Status
from chalicelib.domain.endpoint import Endpoint, EndpointState
from chalicelib.domain.gate import Breaker, Spell, Tally
from chalicelib.domain.request import event_time
from chalicelib.domain.secret import MASK

HEAD_OF_LINE = (
    "This endpoint is ordered: a delivery that fails holds up every delivery behind it until it has succeeded"
    " or is dead, which can take days. `retry_profile` says how long it is retried."
)
THRESHOLDS = {
    "degraded_below_success_percent": gates.HEALTHY_PERCENT,
    "of_the_last_attempts": gates.LATELY,
    "within_s": gates.LATELY_FOR // gates.SECOND,
    "failing_after_failures_in_a_row": gates.FAILING_IN_A_ROW,
}
_DECODER = codecs.getincrementaldecoder("utf-8")


def endpoint(of: Endpoint) -> dict[str, Any]:
    """Show an endpoint; secrets never, custom header values masked."""
    return {
        "id": of.id,
        "url": of.url,
        "transport": of.transport.value,
        "event_types": list(of.event_types),
        "description": of.description,
        "rate_per_second": of.limits.rate_per_second,
        "burst": of.limits.burst,
        "max_concurrency": of.limits.max_concurrency,
        "ordering": of.ordering.value,
        "retry_profile": of.retry_profile.value,
        "signature": of.signature.value,
        "headers": {name: MASK for name, _ in of.headers},
        "state": of.state.value,
        "state_reason": of.state_reason or None,
        "created_at": event_time(of.created_ms),
        "version": of.version,
    }


def created_endpoint(of: Endpoint, secret: str) -> dict[str, Any]:
    """Show a new endpoint with its secret, this once, and what its owner should know of its ways."""
    warnings = {"warnings": [HEAD_OF_LINE]} if of.ordered else {}
    return endpoint(of) | {"secret": secret} | warnings


def event(of: StoredEvent) -> dict[str, Any]:
    """Show an event without its bytes."""
    return {
        "id": of.event.id,
        "type": of.event.type,
        "content_type": of.event.content_type,
        "size_bytes": of.size,
        "received_at": event_time(of.event.received_ms),
        "fan_out": of.fan_out,
    }


def attempt(of: Attempt) -> dict[str, Any]:
    """Show an attempt; a response that is not text is given in base64."""
    return {
        "attempt": of.number,
        "generation": of.generation,
        "outcome": of.outcome.value,
        "at": event_time(of.at_ms),
        "status": of.status,
        "fault": of.fault.value if of.fault else None,
        "detail": of.detail or None,
        **_response(of.response, truncated=of.truncated),
        "response_truncated": of.truncated,
        "platform_ms": {"queue": of.queue_ms, "held": of.held_ms},
        "held_for": of.held_for.value if of.held_for else None,
        "consumer_ms": {"connect": of.connect_ms, "first_byte": of.first_byte_ms, "total": of.total_ms},
        "next_attempt_at": event_time(of.next_ms) if of.next_ms else None,
    }


def delivery(of: Delivery) -> dict[str, Any]:
    """Show a delivery's newest generation with every attempt."""
    return {
        "id": of.delivery_id,
        "event_id": of.event_id,
        "event_type": of.event_type,
        "endpoint_id": of.endpoint_id,
        "generation": of.generation,
        "generations": list(of.generations),
        "replayed_as": of.generation + 1 if of.replayed_ms else None,
        "replayed_at": event_time(of.replayed_ms) if of.replayed_ms else None,
        "status": of.status.value,
        "reason": of.ended.reason.value if of.ended else None,
        "ending": of.ending.value if of.ending else None,
        "created_at": event_time(of.created_ms),
        "next_attempt_at": event_time(of.next_ms) if of.next_ms else None,
        "hold": hold(of.hold) if of.hold else None,
        "attempts": [attempt(each) for each in of.attempts],
        "earlier": [delivery(each) for each in of.earlier],
    }


def replay(of: Created) -> dict[str, Any]:
    """Show the generation that a replay has begun."""
    return {
        "id": of.delivery_id,
        "event_id": of.event_id,
        "event_type": of.event_type,
        "generation": of.generation,
        "status": Status.PENDING.value,
        "created_at": event_time(of.at_ms),
    }


def backlog(endpoint_id: str, of: Measured) -> dict[str, Any]:
    """Show how much waits for an endpoint; when not all was counted, `size` is the least there is."""
    return {
        "endpoint_id": endpoint_id,
        "size": of.size,
        "size_is_exact": of.complete,
        "oldest_at": event_time(of.oldest_ms) if of.oldest_ms else None,
        "estimated_drain_s": of.drain_s,
    }


def bulk_replay(of: BulkReplay) -> dict[str, Any]:
    """Show a bulk replay: what it takes, and how far it has come in the order of the events."""
    wanted = of.wanted
    return {
        "id": of.id,
        "endpoint_id": of.endpoint_id,
        "state": of.state.value,
        "reason": of.reason or None,
        "since": event_time(wanted.since_ms),
        "until": event_time(wanted.until_ms),
        "status": wanted.status.value,
        "event_types": list(wanted.event_types),
        "matched": of.matched,
        "matched_exactly": of.exact,
        "replayed": of.replayed,
        "skipped": of.skipped,
        "came_to": event_time(ids.created_ms(of.cursor)) if of.cursor else None,
        "created_at": event_time(of.created_ms),
        "ended_at": event_time(of.ended_ms) if of.ended_ms else None,
    }


def dead_letter(of: GivenUp) -> dict[str, Any]:
    """Show a dead letter, and the generation that it was replayed as if it was."""
    ended = of.ended
    return {
        "delivery_id": ended.delivery_id,
        "generation": ended.generation,
        "event_id": ended.event_id,
        "reason": ended.reason.value,
        "at": event_time(ended.at_ms),
        "attempts": ended.attempts,
        "replayed_as": ended.generation + 1 if of.replayed else None,
    }


def hour(of: Tally) -> dict[str, Any]:
    """Show what an endpoint's requests of an hour came to."""
    return {
        "hour": event_time(of.hour * gates.HOUR // 1000),
        "attempts": of.attempts,
        "succeeded": of.attempts - of.failed,
        "failed": of.failed,
        "timed_out": of.timed_out,
    }


def hold(of: Spell) -> dict[str, Any]:
    """Show a hold of an endpoint: why, since when, and until when as far as that is known."""
    return {
        "reason": of.reason.value,
        "since": event_time(of.since // 1000),
        "until": event_time(of.until // 1000) if of.until else None,
    }


def health(endpoint: Endpoint, of: Health, now_us: int) -> dict[str, Any]:
    """Show how an endpoint does: its breaker, the hold that goes on, and the last ones."""
    gate = of.gate
    enabled = endpoint.state is EndpointState.ENABLED
    attempts, failed = gates.lately(gate, now_us)
    current = gates.current_hold(gate, now_us)
    opens = gate.state is Breaker.OPEN
    return {
        "endpoint_id": endpoint.id,
        "state": endpoint.state.value,
        "state_reason": endpoint.state_reason or None,
        "status": gates.health_of(gate, now_us, enabled=enabled).value,
        "lately": {"attempts": attempts, "failed": failed, "failed_in_a_row": gate.bad},
        "thresholds": THRESHOLDS,
        "breaker": {
            "state": gate.state.value,
            "consecutive_failures": gate.fails,
            "open_until": event_time(gate.open_until // 1000) if opens else None,
        },
        "in_flight": gate.held_slots,
        "queue": gate.queue.value or "shard",
        "hold": hold(current) if current else None,
        "recent_holds": [hold(each) for each in of.holds],
    }


def _response(start: bytes, *, truncated: bool) -> dict[str, Any]:
    if not start:
        return {"response": None}
    try:
        # The cap may have cut within a character: its first bytes are left out.
        return {"response": _DECODER().decode(start, final=not truncated)}
    except UnicodeDecodeError:
        return {"response": None, "response_base64": base64.b64encode(start).decode("ascii")}
