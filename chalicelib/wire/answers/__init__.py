"""The shapes of API answers: in the words of the glossary, times in RFC 3339.

Each shape is a TypedDict named after what it shows, and beside it stands the function that fills it in: so
mypy checks each answer, and /openapi.json is made from the very same class. A new answer is both, in the
module of its topic, named here. Its members are plain JSON types, `Time`, the domain's StrEnums as they are,
or further shapes; a member that is not always there is `NotRequired`, one that may be null says `| None`.
TypedDict comes from typing_extensions: pydantic cannot read Python 3.11's own.
"""

from chalicelib.wire.answers.audit import ActorAnswer, AuditAnswer, ExportedAudit, audited, exported
from chalicelib.wire.answers.deliveries import (
    AttemptAnswer,
    DeadLetterAnswer,
    DeliveryAnswer,
    ListedAttemptAnswer,
    PurgedLettersAnswer,
    ReplayAnswer,
    attempt,
    dead_letter,
    delivery,
    listed_attempt,
    purged_letters,
    replay,
)
from chalicelib.wire.answers.endpoints import (
    BacklogAnswer,
    CreatedEndpointAnswer,
    EndpointAnswer,
    PublicKeyAnswer,
    PublicKeysAnswer,
    RotatedAnswer,
    TunnelTokenAnswer,
    backlog,
    created_endpoint,
    endpoint,
    public_keys,
    rotated,
    tunnel_token,
)
from chalicelib.wire.answers.events import (
    AcceptedAnswer,
    BatchAnswer,
    BatchItemAnswer,
    EventAnswer,
    ProblemAnswer,
    event,
)
from chalicelib.wire.answers.health import HealthAnswer, HoldAnswer, health, hold
from chalicelib.wire.answers.inspection import InspectedAnswer, inspected
from chalicelib.wire.answers.replays import BulkReplayAnswer, bulk_replay
from chalicelib.wire.answers.service import AliveAnswer, EgressRangesAnswer, ReadyAnswer, egress_ranges, ready
from chalicelib.wire.answers.stats import HourAnswer, StatsAnswer, hour, stats
from chalicelib.wire.answers.tested import TestedAnswer, tested
from chalicelib.wire.answers.trust import (
    CreatedKeyAnswer,
    CreatedTenantAnswer,
    KeyAnswer,
    StepUpAnswer,
    TenantAnswer,
    created_key,
    created_tenant,
    key,
    stepped_up,
    tenant,
)

__all__ = [
    "AcceptedAnswer",
    "ActorAnswer",
    "AliveAnswer",
    "AttemptAnswer",
    "AuditAnswer",
    "BacklogAnswer",
    "BatchAnswer",
    "BatchItemAnswer",
    "BulkReplayAnswer",
    "CreatedEndpointAnswer",
    "CreatedKeyAnswer",
    "CreatedTenantAnswer",
    "DeadLetterAnswer",
    "DeliveryAnswer",
    "EgressRangesAnswer",
    "EndpointAnswer",
    "EventAnswer",
    "ExportedAudit",
    "HealthAnswer",
    "HoldAnswer",
    "HourAnswer",
    "InspectedAnswer",
    "KeyAnswer",
    "ListedAttemptAnswer",
    "ProblemAnswer",
    "PublicKeyAnswer",
    "PublicKeysAnswer",
    "PurgedLettersAnswer",
    "ReadyAnswer",
    "ReplayAnswer",
    "RotatedAnswer",
    "StatsAnswer",
    "StepUpAnswer",
    "TenantAnswer",
    "TestedAnswer",
    "TunnelTokenAnswer",
    "attempt",
    "audited",
    "backlog",
    "bulk_replay",
    "created_endpoint",
    "created_key",
    "created_tenant",
    "dead_letter",
    "delivery",
    "egress_ranges",
    "endpoint",
    "event",
    "exported",
    "health",
    "hold",
    "hour",
    "inspected",
    "key",
    "listed_attempt",
    "public_keys",
    "purged_letters",
    "ready",
    "replay",
    "rotated",
    "stats",
    "stepped_up",
    "tenant",
    "tested",
    "tunnel_token",
]
