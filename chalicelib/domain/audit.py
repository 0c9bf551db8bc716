"""The audit record: who changed what of a tenant's, when and from where.

Append-only, and written in the transaction of the change itself, so that neither exists without the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

PREFIX = "aud"


class ActorKind(StrEnum):
    """What kind of hand it was: an API key, the operator's key, or Relay by a rule of its own."""

    KEY = "key"
    OPERATOR = "operator"
    RELAY = "relay"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did something: the kind, the id of the key (empty for Relay), and the address it came from."""

    kind: ActorKind
    id: str = ""
    address: str = ""


RELAY = Actor(ActorKind.RELAY)


class Action(StrEnum):
    """What was done, named thing first."""

    ENDPOINT_CREATED = "endpoint.created"
    ENDPOINT_CHANGED = "endpoint.changed"
    ENDPOINT_DELETED = "endpoint.deleted"
    ENDPOINT_ENABLED = "endpoint.enabled"
    ENDPOINT_DISABLED = "endpoint.disabled"
    SECRET_ROTATED = "secret.rotated"  # noqa: S105 - the name of an action
    OVERLAP_ENDED = "secret.overlap_ended"
    DELIVERY_REPLAYED = "delivery.replayed"
    REPLAY_BEGUN = "replay.begun"
    REPLAY_PAUSED = "replay.paused"
    REPLAY_RESUMED = "replay.resumed"
    REPLAY_CANCELLED = "replay.cancelled"
    KEY_CREATED = "key.created"
    KEY_REVOKED = "key.revoked"
    STEPPED_UP = "key.stepped_up"
    TUNNEL_TOKEN_MADE = "tunnel.token_made"  # noqa: S105 - the name of an action
    TENANT_CREATED = "tenant.created"
    TENANT_CHANGED = "tenant.changed"
    TENANT_RECOVERED = "tenant.recovered"
    TENANT_PURGED = "tenant.purged"
    DEAD_LETTERS_PURGED = "dead_letters.purged"


@dataclass(frozen=True, slots=True)
class Difference:
    """What a change changed, as an API answer would show it before and after: never a secret."""

    before: Mapping[str, object] = field(default_factory=dict)
    after: Mapping[str, object] = field(default_factory=dict)


NOTHING = Difference()


def difference(before: Mapping[str, object], after: Mapping[str, object]) -> Difference:
    """Keep of two views what is not the same in both."""
    return Difference(
        {name: value for name, value in before.items() if after.get(name, value) != value},
        {name: value for name, value in after.items() if name in before and before[name] != value},
    )


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the audit.

    `subject` is the id of what was changed; `at_ms` is Unix epoch milliseconds; the id sorts by time.
    """

    tenant: str
    id: str
    at_ms: int
    action: Action
    subject: str
    actor: Actor
    change: Difference = NOTHING
