"""The operations of deliveries, bulk replays and notices."""

from chalicelib.domain.errors import ErrorCode
from chalicelib.wire import answers, bodies, notices, queries
from chalicelib.wire.operations.operation import (
    ADMINS_ONLY,
    LOCATION,
    PAGED,
    VIEWERS,
    Answer,
    ListOf,
    Operation,
    Parameter,
)

_NUMBER = {"type": "integer", "minimum": 0, "maximum": queries.NUMBER_MAX}
INSPECTED = (
    Parameter(
        "attempt", "The attempt's number, from 1; the newest unless it is given.", {**_NUMBER, "minimum": 1}
    ),
    Parameter("generation", "The generation, from 0; the newest unless it is given.", _NUMBER),
    Parameter(
        "to",
        "Where the line to run sends the request: an address of your own.",
        {"type": "string", "pattern": queries.ADDRESS, "examples": ["http://localhost:8080/webhook"]},
    ),
)
_REPLAY = {200: Answer("The bulk replay.", answers.BulkReplayAnswer)}

DELIVERIES = (
    Operation(
        method="GET",
        path="/v1/deliveries/{delivery_id}",
        id="get_delivery",
        says="Show a delivery with every attempt of its newest generation, and those before.",
        roles=VIEWERS,
        answers={200: Answer("The delivery.", answers.DeliveryAnswer)},
    ),
    Operation(
        method="GET",
        path="/v1/deliveries/{delivery_id}/request",
        id="get_delivery_request",
        says="Show the exact request of an attempt, and a line that sends it once more.",
        roles=VIEWERS,
        query=INSPECTED,
        answers={200: Answer("The request, or why there is none.", answers.InspectedAnswer)},
    ),
    Operation(
        method="POST",
        path="/v1/deliveries/{delivery_id}/replay",
        id="replay_delivery",
        says="Send a delivery that has ended once more, as its next generation.",
        roles=ADMINS_ONLY,
        body=bodies.EmptyBody,
        body_optional=True,
        answers={202: Answer("The generation that has begun.", answers.ReplayAnswer, (LOCATION,))},
        errors=frozenset(
            {
                ErrorCode.DELIVERY_PENDING,
                ErrorCode.ENDPOINT_DELETED,
                ErrorCode.NOT_SUBSCRIBED,
                ErrorCode.PAYLOAD_EXPIRED,
            }
        ),
    ),
    Operation(
        method="POST",
        path="/v1/endpoints/{endpoint_id}/replay",
        id="replay_endpoint",
        says="Send again what of an endpoint's deliveries has ended, by time, status and type.",
        roles=ADMINS_ONLY,
        body=bodies.BulkReplayBody,
        answers={202: Answer("The bulk replay that has begun.", answers.BulkReplayAnswer, (LOCATION,))},
        errors=frozenset({ErrorCode.CONFIRMATION_REQUIRED, ErrorCode.ENDPOINT_DELETED}),
    ),
    Operation(
        method="GET",
        path="/v1/replays/{replay_id}",
        id="get_replay",
        says="Show how far a bulk replay is.",
        roles=VIEWERS,
        answers=_REPLAY,
    ),
    *(
        Operation(
            method="POST",
            path=f"/v1/replays/{{replay_id}}/{turn}",
            id=f"{turn}_replay",
            says=says,
            roles=ADMINS_ONLY,
            body=bodies.EmptyBody,
            body_optional=True,
            answers=_REPLAY,
            errors=frozenset({ErrorCode.REPLAY_ENDED}),
        )
        for turn, says in (
            ("pause", "Let a bulk replay begin no more for now."),
            ("resume", "Let a bulk replay go on."),
            ("cancel", "End a bulk replay for good."),
        )
    ),
    Operation(
        method="GET",
        path="/v1/notices",
        id="list_notices",
        says="List what the tenant was told, newest first.",
        roles=VIEWERS,
        query=PAGED,
        answers={200: Answer("A page of notices.", ListOf(notices.NoticeAnswer))},
    ),
)
