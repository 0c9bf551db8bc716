"""The operations about Relay itself; but for the metrics they need no key."""

from chalicelib.domain.errors import ErrorCode
from chalicelib.wire import answers
from chalicelib.wire.operations.operation import OPERATOR_ONLY, Answer, Bytes, Operation, Parameter

_READINESS = answers.ReadyAnswer
_IF_NONE_MATCH = Parameter("If-None-Match", "The `ETag` of a document that is there already.")
_ETAG = Parameter("ETag", "Changes when the document does.", required=True)

SERVICE = (
    Operation(
        method="GET",
        path="/healthz",
        id="healthz",
        says="Say that the function runs.",
        roles=None,
        answers={200: Answer("It runs.", answers.AliveAnswer)},
    ),
    Operation(
        method="GET",
        path="/readyz",
        id="readyz",
        says="Say whether Relay can work, and what of it cannot.",
        roles=None,
        answers={200: Answer("It can.", _READINESS), 503: Answer("It cannot.", _READINESS)},
        errors=frozenset({ErrorCode.INTERNAL_ERROR}),
    ),
    Operation(
        method="GET",
        path="/openapi.json",
        id="openapi",
        says="Give this document.",
        roles=None,
        headers=(_IF_NONE_MATCH,),
        answers={
            200: Answer("This document.", dict[str, object], (_ETAG,)),
            304: Answer("It is as `If-None-Match` says.", headers=(_ETAG,)),
        },
        errors=frozenset({ErrorCode.INTERNAL_ERROR}),
    ),
    Operation(
        method="GET",
        path="/metrics",
        id="metrics",
        says="Give every metric of the installation, as Prometheus reads it.",
        roles=OPERATOR_ONLY,
        keyless_too=True,
        answers={200: Answer("Text, in Prometheus's format 0.0.4.", Bytes())},
    ),
    Operation(
        method="GET",
        path="/v1/egress-ranges",
        id="egress_ranges",
        says="Give the address ranges that requests come from, for receivers' firewalls.",
        roles=None,
        answers={200: Answer("The version in force, and the next one.", answers.EgressRangesAnswer)},
        errors=frozenset({ErrorCode.INTERNAL_ERROR}),
    ),
)
