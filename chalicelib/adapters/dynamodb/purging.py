"""Purging in DynamoDB: every row of a tenant, table by table, and the rows that say how far that is.

How a table's rows of a tenant are found is said once, in `FOUND`; a test holds it to resources.yaml, so
that no table is forgotten.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any

from chalicelib.adapters.dynamodb import keys, rows
from chalicelib.adapters.dynamodb.auditing import recorded
from chalicelib.adapters.dynamodb.records import Delete, Insert, Key, Put, Span, Tables, Write
from chalicelib.adapters.dynamodb.trusting import tenant_row
from chalicelib.domain import ending, retention
from chalicelib.domain import gate as gates
from chalicelib.domain.audit import Record
from chalicelib.domain.change import Op, Test
from chalicelib.domain.change import Record as Row
from chalicelib.domain.delivery import Lane
from chalicelib.domain.endpoint import Endpoint
from chalicelib.domain.purge import LetterPurge, Purge, Stage, Swept
from chalicelib.domain.tenant import Tenant


class Found(StrEnum):
    """How the rows of a tenant are found in a table, and so when they go."""

    OWN = "in the tenant's partition"
    ENDPOINT = "in partitions of its endpoints"
    HOUR = "in partitions of its hours"
    SCAN = "by reading the whole table"
    LAST = "in the tenant's partition, when all else is gone, and what is left by reading the table before"
    STAYS = "not at all"
    NONE = "there are none"


FOUND = {
    keys.ENDINGS: Found.OWN,
    keys.REPLAYS: Found.OWN,
    keys.FANOUTS: Found.OWN,
    keys.NOTICES: Found.OWN,
    keys.OWED: Found.ENDPOINT,
    keys.HISTORY: Found.ENDPOINT,
    keys.DEAD_LETTERS: Found.ENDPOINT,
    keys.STATS: Found.ENDPOINT,
    keys.GATES: Found.ENDPOINT,
    keys.EVENTS: Found.HOUR,
    keys.SUBS: Found.SCAN,
    keys.IDEMPOTENCY: Found.SCAN,
    keys.ALLOWANCES: Found.SCAN,
    keys.ENDPOINTS: Found.LAST,
    keys.TENANTS: Found.LAST,
    keys.PURGES: Found.LAST,
    keys.AUDIT: Found.STAYS,
    keys.METRICS: Found.NONE,
    keys.REGISTRY: Found.NONE,
}
_OWN = [table for table, found in FOUND.items() if found is Found.OWN]
_SCANNED = [table for table, found in FOUND.items() if found is Found.SCAN] + [keys.ENDPOINTS, keys.TENANTS]
_LAST = [keys.ENDPOINTS, keys.PURGES, keys.TENANTS]
_SORTED_BY_ENDPOINT = (keys.HISTORY, keys.DEAD_LETTERS, keys.STATS)
_MORE = "more"
_SCANNED_AT_ONCE = 500
_LETTERS = 500


class DynamoPurging:
    """Where purges are kept, and what they remove."""

    def __init__(self, tables: Tables) -> None:
        """Read and write these tables."""
        self._tables = tables

    def begin(self, old: Tenant, new: Tenant, purge: Purge, record: Record) -> bool:
        """Write a tenant that is being purged, and its purge, together; False when it changed meanwhile."""
        same = (Test("version", Op.EQ, old.version),)
        writes: list[Write] = [
            Put(keys.tenant(new.id), tenant_row(new), same),
            Insert(keys.purge(purge.tenant), purge_row(purge)),
            recorded(record),
        ]
        return not self._tables.together(writes)

    def waiting(self) -> Iterator[Purge]:
        """Walk the purges of tenants, due or not."""
        return (purge_of(each) for each in self._tables.walk(keys.PURGES) if each["sk"] == keys.WHOLE)

    def note(self, old: Purge, new: Purge) -> bool:
        """Write how far one has come since it was read; False when another run has come further."""
        return not self._tables.together([Put(keys.purge(new.tenant), purge_row(new), _same(old))])

    def sweep(self, purge: Purge, limit: int) -> Swept:
        """Remove about so many rows, at most, of the stage a purge is at, from where it was left."""
        match purge.stage:
            case Stage.OWN:
                found = self._keys(purge.tenant, limit)
                own = [(table, purge.tenant) for table in _OWN]
                return found if found.removed else self._first_of(own, limit)
            case Stage.ENDPOINTS:
                return self._of_endpoint(purge, limit)
            case Stage.EVENTS:
                return self._of_hour(purge.tenant, limit)
            case Stage.SCANS:
                return self._scanned(purge)
            case _:
                return self._last(purge.tenant, limit)

    def finish(self, purge: Purge, record: Record) -> bool:
        """Remove the tenant's row and its purge, and write the audit's record, together."""
        writes: list[Write] = [
            Delete(keys.purge(purge.tenant), _same(purge)),
            Delete(keys.tenant(purge.tenant)),
            Delete(keys.listed_tenant(purge.tenant)),
            recorded(record),
        ]
        return not self._tables.together(writes)

    def _remove(self, at: Sequence[Key]) -> int:
        if at:
            self._tables.each([Delete(each) for each in at])
        return len(at)

    def _first_of(self, partitions: Iterable[tuple[str, str]], limit: int) -> Swept:
        """Remove from the first of some partitions that has rows; what is left is found by looking again."""
        for table, pk in partitions:
            stretch = self._tables.query(table, pk, _ALL, limit)
            if stretch.records:
                return Swept(self._remove([Key.of(table, each) for each in stretch.records]), _MORE)
        return Swept(0)

    def _keys(self, tenant: str, limit: int) -> Swept:
        """Remove API keys: who still reads uses up allowances, which are rows."""
        stretch = self._tables.query(keys.TENANTS, tenant, Span(keys.KEY, f"{keys.KEY}~"), limit)
        return Swept(self._remove([Key.of(keys.TENANTS, each) for each in stretch.records]), _MORE)

    def _of_endpoint(self, purge: Purge, limit: int) -> Swept:
        """Remove what is kept of one endpoint, the cursor being the last that had nothing left."""
        low = f"{purge.cursor}~" if purge.cursor not in {"", _MORE} else "ep_"
        stretch = self._tables.query(keys.ENDPOINTS, purge.tenant, Span(low, "ep_~"), 1)
        if not stretch.records:
            return Swept(0)
        endpoint = rows.endpoint_of(stretch.records[0])
        found = self._first_of(self._partitions(endpoint), limit)
        if found.removed:
            return Swept(found.removed, purge.cursor or _MORE)
        gate = keys.gate(purge.tenant, endpoint.id)
        return Swept(self._remove([gate] if gate in self._tables.get([gate]) else []), endpoint.id)

    def _partitions(self, endpoint: Endpoint) -> Iterator[tuple[str, str]]:
        """Name the partitions of an endpoint, large ones first: the others are looked at but once."""
        for table in _SORTED_BY_ENDPOINT:
            yield table, keys.endpoint_partition(endpoint.tenant, endpoint.id)
        at = keys.gate(endpoint.tenant, endpoint.id)
        record = self._tables.get([at]).get(at)
        numbers = {*endpoint.lanes_ever, *ending.lanes_of(endpoint, gates.read(record) if record else None)}
        for number in sorted(numbers):
            yield keys.OWED, keys.lane(Lane(endpoint.tenant, endpoint.id, number))

    def _of_hour(self, tenant: str, limit: int) -> Swept:
        """Remove the events of the first hour that is listed, then the hour."""
        listed = self._tables.query(keys.EVENTS, keys.hours_partition(tenant), _ALL, 1)
        if not listed.records:
            return Swept(0)
        hour = Key.of(keys.EVENTS, listed.records[0])
        partitions = [
            (keys.EVENTS, keys.events_partition(tenant, int(hour.sk), nibble)) for nibble in keys.NIBBLES
        ]
        found = self._first_of(partitions, limit)
        return found if found.removed else Swept(self._remove([hour]), _MORE)

    def _scanned(self, purge: Purge) -> Swept:
        """Read on through the tables in which a tenant's partitions are not known, and remove what is its."""
        table, _, last = (purge.cursor if "|" in purge.cursor else f"{_SCANNED[0]}|").partition("|")
        pk, _, sk = last.partition("|")
        stretch = self._tables.browse(table, Key(table, pk, sk) if pk else None, _SCANNED_AT_ONCE)
        at = [Key.of(table, each) for each in stretch.records]
        gone = [each for each in at if each.pk.startswith(f"{purge.tenant}#")]
        removed = self._remove(gone)
        if stretch.more:
            # Best from a row that stays: not every emulator goes on from one that is gone.
            stays = [each for each in at if each not in gone]
            behind = f"{table}|{stays[-1].pk}|{stays[-1].sk}" if stays else purge.cursor
            return Swept(removed, behind or _MORE)
        following = _SCANNED[_SCANNED.index(table) + 1 :]
        return Swept(removed, f"{following[0]}|" if following else "")

    def _last(self, tenant: str, limit: int) -> Swept:
        """Remove what names the rest: endpoints, marks of purges, keys; all but the tenant and its purge."""
        kept = {keys.tenant(tenant), keys.purge(tenant)}
        for table in _LAST:
            stretch = self._tables.query(table, tenant, _ALL, limit + len(kept))
            at = [each for each in (Key.of(table, row) for row in stretch.records) if each not in kept]
            if at:
                return Swept(self._remove(at), _MORE)
        return Swept(0)

    def letters(self, tenant: str, endpoint_id: str) -> LetterPurge | None:
        """Read an endpoint's purge of dead letters, one that is done too."""
        at = keys.letter_purge(tenant, endpoint_id)
        record = self._tables.get([at]).get(at)
        return letter_purge_of(record) if record else None

    def count_letters(self, tenant: str, endpoint_id: str, before_ms: int, limit: int) -> tuple[int, bool]:
        """Count dead letters given up on before a moment, and say whether that is all there are."""
        partition, low = keys.endpoint_partition(tenant, endpoint_id), " "
        count = looked = 0
        while looked < limit:
            stretch = self._tables.query(keys.DEAD_LETTERS, partition, Span(low), _LETTERS)
            count += sum(each["at_ms"] < before_ms for each in stretch.records)
            looked += len(stretch.records)
            if not stretch.more:
                return count, True
            low = f"{stretch.records[-1]['sk']}~"
        return count, False

    def begin_letters(self, old: LetterPurge | None, new: LetterPurge, record: Record) -> bool:
        """Write a purge of dead letters over the one that was read; False when another was begun."""
        at = keys.letter_purge(new.tenant, new.endpoint_id)
        row = letter_purge_row(new)
        begun: Write = Put(at, row, _same(old)) if old else Insert(at, row)
        return not self._tables.together([begun, recorded(record)])

    def letters_waiting(self) -> Iterator[LetterPurge]:
        """Walk the purges of dead letters that are not done."""
        marks = (each for each in self._tables.walk(keys.PURGES) if each["sk"] != keys.WHOLE)
        return (letter_purge_of(each) for each in marks if not each["done"])

    def sweep_letters(self, purge: LetterPurge, limit: int) -> Swept:
        """Remove what is to go of about so many dead letters, from where it was left."""
        partition = keys.endpoint_partition(purge.tenant, purge.endpoint_id)
        span = Span(f"{purge.cursor}~" if purge.cursor else " ")
        stretch = self._tables.query(keys.DEAD_LETTERS, partition, span, limit)
        gone = [each for each in stretch.records if each["at_ms"] < purge.before_ms]
        removed = self._remove([Key.of(keys.DEAD_LETTERS, each) for each in gone])
        return Swept(removed, stretch.records[-1]["sk"] if stretch.more else "")

    def note_letters(self, old: LetterPurge, new: LetterPurge) -> bool:
        """Write how far one has come since it was read; False when another run has come further."""
        at = keys.letter_purge(new.tenant, new.endpoint_id)
        return not self._tables.together([Put(at, letter_purge_row(new), _same(old))])


_ALL = Span()


def purge_row(purge: Purge) -> dict[str, Any]:
    """Write a tenant's purge."""
    return {
        "begun_ms": purge.begun_ms,
        "due_ms": purge.due_ms,
        "stage": purge.stage.value,
        "cursor": purge.cursor,
        "found": purge.found,
        "removed": purge.rows,
        "payloads": purge.payloads,
        "version": purge.version,
    }


def purge_of(record: Row) -> Purge:
    """Read a tenant's purge."""
    return Purge(
        record["pk"],
        record["begun_ms"],
        record["due_ms"],
        Stage(record["stage"]),
        record["cursor"],
        record["found"],
        record["removed"],
        record["payloads"],
        record["version"],
    )


def letter_purge_row(purge: LetterPurge) -> dict[str, Any]:
    """Write a purge of dead letters; kept as long as history could bring one of them back."""
    return {
        "before_ms": purge.before_ms,
        "begun_ms": purge.begun_ms,
        "cursor": purge.cursor,
        "done": int(purge.done),
        "version": purge.version,
        "ttl": retention.history_until_s(purge.begun_ms),
    }


def letter_purge_of(record: Row) -> LetterPurge:
    """Read a purge of dead letters."""
    return LetterPurge(
        record["pk"],
        record["sk"],
        record["before_ms"],
        record["begun_ms"],
        record["cursor"],
        bool(record["done"]),
        record["version"],
    )


def _same(purge: Purge | LetterPurge) -> tuple[Test, ...]:
    return (Test("version", Op.EQ, purge.version),)
