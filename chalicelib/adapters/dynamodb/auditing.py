"""The audit in DynamoDB: a record is inserted in the transaction of its change, and never written again."""

import json
from typing import Any

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Insert
from chalicelib.domain import retention
from chalicelib.domain.audit import Action, Actor, ActorKind, Difference, Record
from chalicelib.domain.change import Record as Row


def recorded(record: Record) -> Insert:
    """Write a record, one of many writes of a transaction."""
    return Insert(keys.audit(record.tenant, record.id), record_row(record))


def record_row(record: Record) -> dict[str, Any]:
    """Write a record; what was changed as JSON, since that is all it is ever used as."""
    actor, change = record.actor, record.change
    return {
        "at_ms": record.at_ms,
        "action": record.action.value,
        "subject": record.subject,
        "actor_kind": actor.kind.value,
        "actor_id": actor.id,
        "address": actor.address,
        "before": json.dumps(change.before),
        "after": json.dumps(change.after),
        "ttl": retention.audit_until_s(record.at_ms),
    }


def record_of(row: Row) -> Record:
    """Read a record."""
    return Record(
        row["pk"],
        row["sk"],
        row["at_ms"],
        Action(row["action"]),
        row["subject"],
        Actor(ActorKind(row["actor_kind"]), row["actor_id"], row["address"]),
        Difference(json.loads(row["before"]), json.loads(row["after"])),
    )
