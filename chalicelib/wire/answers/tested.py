"""What a test of an endpoint came to, as the API shows it."""

from typing_extensions import TypedDict

from chalicelib.application.questions import Delivery
from chalicelib.domain.delivery import Status
from chalicelib.domain.outcome import DeathReason
from chalicelib.wire.answers.deliveries import AttemptAnswer, attempt
from chalicelib.wire.answers.health import HoldAnswer, hold


class TestedAnswer(TypedDict):
    """The test's delivery and its attempt, or in plain words what it still waits for."""

    delivery_id: str
    event_id: str
    endpoint_id: str
    status: Status
    reason: DeathReason | None
    attempt: AttemptAnswer | None
    hold: HoldAnswer | None
    waits_for: str | None


def tested(of: Delivery) -> TestedAnswer:
    """Show what a test came to."""
    return {
        "delivery_id": of.delivery_id,
        "event_id": of.event_id,
        "endpoint_id": of.endpoint_id,
        "status": of.status,
        "reason": of.ended.reason if of.ended else None,
        "attempt": attempt(of.attempts[-1]) if of.attempts else None,
        "hold": hold(of.hold) if of.hold else None,
        "waits_for": _waits_for(of) if of.waits else None,
    }


def _waits_for(of: Delivery) -> str:
    if of.hold is not None:
        return f"The endpoint is held ({of.hold.reason.value}); the test is sent once that is over."
    if of.status is Status.INFLIGHT:
        return "It is being sent; the endpoint has not answered yet."
    return "It has its turn after what is already on its way to this endpoint."
