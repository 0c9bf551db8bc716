"""The audit in DynamoDB: a record is inserted in the transaction of its change, and never written again."""

import json
from typing import Any

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Insert, Put, Span, Tables
from chalicelib.application.ports import Asking, Page
from chalicelib.domain import audit, ids, retention
from chalicelib.domain.audit import Action, Actor, ActorKind, Difference, Record
from chalicelib.domain.audit_export import HOUR_MS, Exported
from chalicelib.domain.change import Op, Test
from chalicelib.domain.change import Record as Row

_LOOKED_AT = 1_000
_LAST_ENTROPY = (1 << ids.ENTROPY_BITS) - 1


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


class DynamoExportingAudit:
    """What the export of the audit reads, and where it notes how far it has come."""

    def __init__(self, tables: Tables) -> None:
        """Use these tables."""
        self._tables = tables

    def exported(self) -> Exported | None:
        """Read how far the export has come; None: it never ran."""
        at = keys.audit_export()
        row = self._tables.get([at]).get(at)
        return Exported(row["hour"], row["last_one"]) if row else None

    def move(self, old: Exported | None, new: Exported) -> bool:
        """Note how far it has come since it was read; False when another run has come further."""
        at, row = keys.audit_export(), {"hour": new.hour, "last_one": new.after}
        if old is None:
            return not self._tables.together([Insert(at, row)])
        same = (Test("hour", Op.EQ, old.hour), Test("last_one", Op.EQ, old.after))
        return not self._tables.together([Put(at, row, same)])

    def tenants(self, hour: int) -> list[str]:
        """List the tenants that have records of an hour (since the epoch), in order; a moment late."""
        listed = self._tables.indexed(keys.AUDIT, keys.EXPORT_INDEX, keys.hour_shard(hour))
        return sorted({row["pk"] for row in listed})

    def records(self, tenant: str, hour: int, after: str, limit: int) -> list[Record]:
        """Read a tenant's records of an hour behind an id, oldest first, strongly consistent."""
        low = f"{after}~" if after else first_id(hour * HOUR_MS)
        span = Span(low, ids.new_id(audit.PREFIX, (hour + 1) * HOUR_MS - 1, _LAST_ENTROPY))
        if span.low > span.high:
            return []
        return [record_of(row) for row in self._tables.query(keys.AUDIT, tenant, span, limit).records]


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
        "export_shard": keys.hour_shard(keys.hour_of(record.at_ms)),
        "export_until": record.at_ms,
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
