"""The audit in DynamoDB: a record is inserted in the transaction of its change, and never written again."""

import json
from typing import Any

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Insert, Span, Tables
from chalicelib.application.ports import Asking, Page
from chalicelib.domain import audit, ids, retention
from chalicelib.domain.audit import Action, Actor, ActorKind, Difference, Record
from chalicelib.domain.change import Record as Row

_LOOKED_AT = 1_000


class DynamoAuditing:
    """Reads the audit."""

    def __init__(self, tables: Tables) -> None:
        """Read this table."""
        self._tables = tables

    def page(self, tenant: str, asking: Asking, after: str, limit: int, now_ms: int) -> Page[Record]:
        """List a tenant's records, newest first, looking at a bounded number of them."""
        span = Span(first_id(asking.since_ms), after or _last_id(asking.until_ms), backwards=True)
        if span.low > span.high:
            return Page(())
        at_once = _LOOKED_AT if asking.action or asking.subject else limit
        stretch = self._tables.query(keys.AUDIT, tenant, span, at_once + 2)
        found: list[Record] = []
        for row in stretch.records:
            if row["sk"] == after or row["ttl"] * 1000 <= now_ms:
                continue
            if len(found) == limit:
                return Page(tuple(found), found[-1].id)
            record = record_of(row)
            found += [record] if asking.fits(record) else []
        return Page(tuple(found), stretch.records[-1]["sk"] if stretch.more else "")


def first_id(at_ms: int) -> str:
    """Give the lowest id a record of a millisecond can have."""
    return ids.new_id(audit.PREFIX, at_ms, 0)


def _last_id(until_ms: int | None) -> str:
    return f"{audit.PREFIX}_~" if until_ms is None else first_id(until_ms)


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
