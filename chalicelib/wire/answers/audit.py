"""The audit as the API shows it, and as it is exported: the same but for the tenant."""

from collections.abc import Mapping
from typing import Any

from typing_extensions import TypedDict

from chalicelib.domain.audit import Action, ActorKind, Record
from chalicelib.domain.request import event_time
from chalicelib.wire.answers.plain import Time


class ActorAnswer(TypedDict):
    """Whose hand it was: the id of the key (null where none was), and the address it came from."""

    kind: ActorKind
    key_id: str | None
    address: str | None


class AuditAnswer(TypedDict):
    """Who did what to which thing, and what that changed of it; only what changed stands in both views."""

    id: str
    at: Time
    action: Action
    subject: str
    actor: ActorAnswer
    before: Mapping[str, Any]
    after: Mapping[str, Any]


class ExportedAudit(AuditAnswer):
    """A record as its line of an export has it."""

    tenant: str


def audited(of: Record) -> AuditAnswer:
    """Show a record of the audit."""
    return {
        "id": of.id,
        "at": event_time(of.at_ms),
        "action": of.action,
        "subject": of.subject,
        "actor": {"kind": of.actor.kind, "key_id": of.actor.id or None, "address": of.actor.address or None},
        "before": of.change.before,
        "after": of.change.after,
    }


def exported(of: Record) -> ExportedAudit:
    """Show a record as its line of an export has it."""
    return {**audited(of), "tenant": of.tenant}
