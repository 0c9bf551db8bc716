"""Events as the API shows them, and what their producer is told."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from chalicelib.application.ports import StoredEvent
from chalicelib.domain.errors import ErrorCode
from chalicelib.domain.request import event_time
from chalicelib.wire.answers.plain import Time

FanOut = Literal["inline", "later", "none"]


class EventAnswer(TypedDict):
    """An event without its bytes."""

    id: str
    type: str
    content_type: str
    size_bytes: int
    received_at: Time
    fan_out: str


class AcceptedAnswer(TypedDict):
    """An event that was accepted."""

    event_id: str
    delivery_ids: list[str]
    fan_out: FanOut


class ProblemAnswer(TypedDict):
    """Why something was refused or failed: a problem document of RFC 9457."""

    type: str
    title: str
    status: int
    code: ErrorCode
    detail: str
    field: NotRequired[str]
    expected: NotRequired[str]


class AcceptedItemAnswer(AcceptedAnswer):
    """An event of a batch that was accepted."""

    status: Literal[202]
    idempotent_replay: NotRequired[Literal[True]]


class RefusedItemAnswer(TypedDict):
    """An event of a batch that was not accepted; when it can be, where time cures it."""

    status: int
    error: ProblemAnswer
    retry_after_s: NotRequired[int]


BatchItemAnswer = AcceptedItemAnswer | RefusedItemAnswer


class BatchAnswer(TypedDict):
    """What became of each event of a batch, in its place."""

    results: list[BatchItemAnswer]


def event(of: StoredEvent) -> EventAnswer:
    """Show an event without its bytes."""
    return {
        "id": of.event.id,
        "type": of.event.type,
        "content_type": of.event.content_type,
        "size_bytes": of.size,
        "received_at": event_time(of.event.received_ms),
        "fan_out": of.fan_out,
    }
