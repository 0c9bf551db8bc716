"""The operations of events."""

from chalicelib.domain import event as events
from chalicelib.domain.errors import ErrorCode
from chalicelib.wire import answers, bodies
from chalicelib.wire.operations.operation import (
    ADMINS_ONLY,
    OF_A_TIME,
    PAGED,
    PRODUCERS,
    STATUS,
    VIEWERS,
    Answer,
    Bytes,
    ListOf,
    Operation,
    Parameter,
)

_EVENT_TYPE = Parameter(
    "Relay-Event-Type",
    "The event's type; it may stand as `type` in a JSON body instead.",
    {"type": "string", "pattern": f"^{events.TYPE_PATTERN}$"},
)
_IDEMPOTENCY_KEY = Parameter(
    "Idempotency-Key",
    "A repeat with the same key within 24 hours gets the first answer.",
    {"type": "string", "pattern": "^[ -~]{1,255}$"},
)
_REPLAYED = Parameter(
    "Relay-Idempotent-Replay", "The answer is that of an earlier request.", {"const": "true"}
)
_POSTING = frozenset(
    {
        ErrorCode.BODY_EMPTY,
        ErrorCode.BODY_NOT_JSON,
        ErrorCode.BODY_NOT_UTF8,
        ErrorCode.BODY_TOO_DEEP,
        ErrorCode.BODY_TOO_LARGE,
        ErrorCode.CONTENT_TYPE_INVALID,
        ErrorCode.EVENT_TYPE_CONFLICT,
        ErrorCode.EVENT_TYPE_INVALID,
        ErrorCode.EVENT_TYPE_MISSING,
        ErrorCode.IDEMPOTENCY_CONFLICT,
        ErrorCode.IDEMPOTENCY_KEY_INVALID,
        ErrorCode.TOO_MANY_EVENTS,
    }
)
_RETRY_AFTER = Parameter(
    "Retry-After",
    "Some events were above the quota; after so many seconds they can be posted again.",
    {"type": "integer", "minimum": 1},
)

EVENTS = (
    Operation(
        method="POST",
        path="/v1/events",
        id="post_event",
        says="Accept one event: its body is kept and sent exactly as posted.",
        roles=PRODUCERS,
        body=Bytes(),
        headers=(_EVENT_TYPE, _IDEMPOTENCY_KEY),
        answers={
            202: Answer("The event and what is owed are durable.", answers.AcceptedAnswer, (_REPLAYED,))
        },
        errors=_POSTING,
    ),
    Operation(
        method="POST",
        path="/v1/events/batch",
        id="post_events",
        says="Accept up to a hundred events, each all or nothing.",
        roles=PRODUCERS,
        body=bodies.BatchBody,
        answers={
            207: Answer("What became of each, in its place.", answers.BatchAnswer, (_RETRY_AFTER,)),
        },
        errors=frozenset({ErrorCode.TOO_MANY_EVENTS}),
    ),
    Operation(
        method="GET",
        path="/v1/events",
        id="list_events",
        says="List events, newest first.",
        roles=VIEWERS,
        query=(*PAGED, *OF_A_TIME),
        answers={200: Answer("A page of events.", ListOf(answers.EventAnswer))},
    ),
    Operation(
        method="GET",
        path="/v1/events/{event_id}",
        id="get_event",
        says="Show an event.",
        roles=VIEWERS,
        answers={200: Answer("The event without its bytes.", answers.EventAnswer)},
    ),
    Operation(
        method="GET",
        path="/v1/events/{event_id}/payload",
        id="get_payload",
        says="Give an event's exact bytes, in the media type they were posted with.",
        roles=ADMINS_ONLY,
        answers={200: Answer("The bytes.", Bytes())},
    ),
    Operation(
        method="GET",
        path="/v1/events/{event_id}/deliveries",
        id="list_event_deliveries",
        says="List an event's deliveries.",
        roles=VIEWERS,
        query=(*PAGED, STATUS),
        answers={200: Answer("A page of deliveries.", ListOf(answers.DeliveryAnswer))},
    ),
)
