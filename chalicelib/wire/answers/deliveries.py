"""Deliveries, attempts and dead letters as the API shows them."""

import base64
import codecs
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from chalicelib.application.ports import GivenUp
from chalicelib.application.purge import Ordered
from chalicelib.application.questions import Delivery
from chalicelib.domain.delivery import Attempt, Created, Status
from chalicelib.domain.gate import HoldReason
from chalicelib.domain.outcome import DeathReason, Fault, Outcome
from chalicelib.domain.request import event_time
from chalicelib.wire.answers.health import HoldAnswer, hold
from chalicelib.wire.answers.plain import Time, time_or_none

_DECODER = codecs.getincrementaldecoder("utf-8")


class PlatformTimes(TypedDict):
    """What Relay itself took, from when the attempt was due: in line, held, at work on it, and in all."""

    queue: int
    held: int
    processing: int
    total: int


class ConsumerTimes(TypedDict):
    """What the endpoint took: to connect, for TLS, then from the start to the first byte and to the end."""

    connect: int
    tls: int
    first_byte: int
    total: int


class ShownResponse(TypedDict):
    """The start of a response: as text, or in base64 when it is none."""

    response: str | None
    response_base64: NotRequired[str]


class AttemptAnswer(ShownResponse):
    """One try of a delivery."""

    attempt: int
    generation: int
    outcome: Outcome
    at: Time
    status: int | None
    fault: Fault | None
    detail: str | None
    response_truncated: bool
    platform_ms: PlatformTimes
    held_for: HoldReason | None
    consumer_ms: ConsumerTimes
    next_attempt_at: Time | None


class ListedAttemptAnswer(AttemptAnswer):
    """One try, and of which delivery and event."""

    delivery_id: str
    event_id: str


class DeliveryAnswer(TypedDict):
    """A generation of a delivery with every attempt; `earlier` are those before it."""

    id: str
    event_id: str
    event_type: str
    endpoint_id: str
    generation: int
    generations: list[int]
    replayed_as: int | None
    replayed_at: Time | None
    status: Status
    reason: DeathReason | None
    ending: DeathReason | None
    created_at: Time
    next_attempt_at: Time | None
    hold: HoldAnswer | None
    attempts: list[AttemptAnswer]
    earlier: list["DeliveryAnswer"]


class ReplayAnswer(TypedDict):
    """The generation that a replay has begun."""

    id: str
    event_id: str
    event_type: str
    generation: int
    status: Literal[Status.PENDING]
    created_at: Time


class PurgedLettersAnswer(TypedDict):
    """What of an endpoint's dead letters goes within minutes; when not all were counted, there are more."""

    endpoint_id: str
    before: Time
    dead_letters: int
    counted_exactly: bool


class DeadLetterAnswer(TypedDict):
    """A generation that was given up on, and what it was replayed as if it was."""

    delivery_id: str
    generation: int
    event_id: str
    reason: DeathReason
    at: Time
    attempts: int
    replayed_as: int | None


def attempt(of: Attempt) -> AttemptAnswer:
    """Show an attempt; a response that is not text is given in base64."""
    return {
        "attempt": of.number,
        "generation": of.generation,
        "outcome": of.outcome,
        "at": event_time(of.at_ms),
        "status": of.status,
        "fault": of.fault,
        "detail": of.detail or None,
        **_response(of.response, truncated=of.truncated),
        "response_truncated": of.truncated,
        "platform_ms": {
            "queue": of.stood_ms,
            "held": of.held_ms,
            "processing": of.processing_ms,
            "total": of.queue_ms,
        },
        "held_for": of.held_for,
        "consumer_ms": {
            "connect": of.connect_ms,
            "tls": of.tls_ms,
            "first_byte": of.first_byte_ms,
            "total": of.total_ms,
        },
        "next_attempt_at": time_or_none(of.next_ms),
    }


def listed_attempt(of: Attempt) -> ListedAttemptAnswer:
    """Show an attempt where it does not stand within its delivery."""
    return {"delivery_id": of.delivery_id, "event_id": of.event_id, **attempt(of)}


def delivery(of: Delivery) -> DeliveryAnswer:
    """Show a delivery's newest generation with every attempt."""
    return {
        "id": of.delivery_id,
        "event_id": of.event_id,
        "event_type": of.event_type,
        "endpoint_id": of.endpoint_id,
        "generation": of.generation,
        "generations": list(of.generations),
        "replayed_as": of.generation + 1 if of.replayed_ms else None,
        "replayed_at": time_or_none(of.replayed_ms),
        "status": of.status,
        "reason": of.ended.reason if of.ended else None,
        "ending": of.ending,
        "created_at": event_time(of.created_ms),
        "next_attempt_at": time_or_none(of.next_ms),
        "hold": hold(of.hold) if of.hold else None,
        "attempts": [attempt(each) for each in of.attempts],
        "earlier": [delivery(each) for each in of.earlier],
    }


def replay(of: Created) -> ReplayAnswer:
    """Show the generation that a replay has begun."""
    return {
        "id": of.delivery_id,
        "event_id": of.event_id,
        "event_type": of.event_type,
        "generation": of.generation,
        "status": Status.PENDING,
        "created_at": event_time(of.at_ms),
    }


def purged_letters(of: Ordered) -> PurgedLettersAnswer:
    """Show what of an endpoint's dead letters goes."""
    return {
        "endpoint_id": of.endpoint_id,
        "before": event_time(of.before_ms),
        "dead_letters": of.count,
        "counted_exactly": of.exact,
    }


def dead_letter(of: GivenUp) -> DeadLetterAnswer:
    """Show a dead letter, and the generation that it was replayed as if it was."""
    ended = of.ended
    return {
        "delivery_id": ended.delivery_id,
        "generation": ended.generation,
        "event_id": ended.event_id,
        "reason": ended.reason,
        "at": event_time(ended.at_ms),
        "attempts": ended.attempts,
        "replayed_as": ended.generation + 1 if of.replayed else None,
    }


def _response(start: bytes, *, truncated: bool) -> ShownResponse:
    if not start:
        return {"response": None}
    try:
        # The cap may have cut within a character: its first bytes are left out.
        return {"response": _DECODER().decode(start, final=not truncated)}
    except UnicodeDecodeError:
        return {"response": None, "response_base64": base64.b64encode(start).decode("ascii")}
