"""Rebuilding in DynamoDB: history read through to its end, what is derived written where it is missing."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from chalicelib.adapters.dynamodb import keys, rows
from chalicelib.adapters.dynamodb.capturing import ARM_AHEAD_MS
from chalicelib.adapters.dynamodb.records import Delete, Insert, Key, Put, Span, Tables, Update
from chalicelib.domain import gate as gates
from chalicelib.domain import ids
from chalicelib.domain.change import Change, Record
from chalicelib.domain.delivery import Attempt, Ended, HistoryRow, Owed
from chalicelib.domain.endpoint import Endpoint
from chalicelib.domain.gate import Gate, Spell

_PAGE = 500
_OWED_PAGE = 25
_LAST_DELIVERY = "g"  # beyond every delivery id, before the holds


class DynamoRebuilding:
    """The store of a rebuild."""

    def __init__(self, tables: Tables) -> None:
        """Read and write these tables."""
        self._tables = tables

    def endpoints(self) -> Iterator[Endpoint]:
        """Walk all endpoints, deleted ones too."""
        for record in self._tables.walk(keys.ENDPOINTS):
            if ids.is_id(record["sk"], "ep"):
                yield rows.endpoint_of(record)

    def purged_before_ms(self, endpoint: Endpoint) -> int:
        """Say before which moment dead letters of an endpoint were purged; 0: none were."""
        at = keys.letter_purge(endpoint.tenant, endpoint.id)
        record = self._tables.get([at]).get(at)
        return record["before_ms"] if record else 0

    def gate(self, endpoint: Endpoint) -> Gate | None:
        """Read an endpoint's gate, if it has one."""
        at = keys.gate(endpoint.tenant, endpoint.id)
        record = self._tables.get([at]).get(at)
        return gates.read(record) if record else None

    def holds(self, endpoint: Endpoint) -> list[Spell]:
        """Read the holds that history has of an endpoint, in order."""
        span = Span(keys.HOLDS, f"{keys.HOLDS}~")
        return [rows.hold_of(each) for each in self._history(endpoint, span)]

    def generations(self, endpoint: Endpoint) -> Iterator[tuple[HistoryRow, ...]]:
        """Walk what history has of an endpoint: the rows of each generation, in order."""
        told = map(rows.history_of, self._history(endpoint, Span("0", _LAST_DELIVERY)))
        for _, generation in groupby(told, lambda row: (row.delivery_id, row.generation)):
            yield tuple(generation)

    def restore_owed(self, owed: Sequence[Owed], *, anew: bool) -> tuple[int, int]:
        """Write the rows that are missing, and over those that differ; how many of each."""
        wanted = {keys.owed(each): each for each in owed}
        found = {at: rows.owed_of(each) for at, each in self._tables.get(list(wanted)).items()}
        missing = [at for at in wanted if at not in found]
        differing = [at for at, row in found.items() if not _same(row, wanted[at], anew=anew)]
        made = self._tables.each([Insert(at, rows.owed_row(wanted[at])) for at in missing]) if missing else []
        mended = [wanted[at] if anew else _keeping(wanted[at], found[at]) for at in differing]
        if mended:
            self._tables.together([Put(keys.owed(each), rows.owed_row(each)) for each in mended])
        return sum(each.done for each in made), len(mended)

    def restore_dead(self, endpoint: Endpoint, ends: Sequence[Ended]) -> int:
        """Write the dead letters that are missing; how many."""
        owner = (endpoint.tenant, endpoint.id)
        wanted = {keys.dead_letter(*owner, each.delivery_id, each.generation): each for each in ends}
        found = self._tables.get(list(wanted))
        missing = {at: each for at, each in wanted.items() if at not in found}
        if not missing:
            return 0
        made = self._tables.each([Insert(at, rows.dead_letter_row(each)) for at, each in missing.items()])
        return sum(each.done for each in made)

    def restore_gate(self, endpoint: Endpoint, gate: dict[str, Any], now_ms: int, *, replays: bool) -> bool:
        """Write a gate, unless there is one, such that reconcile looks at its endpoint."""
        row = {**gate, **_armed(endpoint, now_ms, replays=replays)}
        (made,) = self._tables.each([Insert(keys.gate(endpoint.tenant, endpoint.id), row)])
        return made.done

    def expect(self, endpoint: Endpoint, now_ms: int, *, replays: bool) -> None:
        """Make sure that reconcile looks at an endpoint, and at its line of replays."""
        armed = _armed(endpoint, now_ms, replays=replays)
        self._tables.each([Update(keys.gate(endpoint.tenant, endpoint.id), Change((), armed, {}))])

    def owed(self) -> Iterator[list[Owed]]:
        """Walk all that is owed, a page at once."""
        after: Key | None = None
        while True:
            page = self._tables.browse(keys.OWED, after, _OWED_PAGE)
            if page.records:
                yield [rows.owed_of(each) for each in page.records]
                after = Key(keys.OWED, page.records[-1]["pk"], page.records[-1]["sk"])
            if not page.more:
                return

    def settled(self, owed: Sequence[Owed]) -> list[bool | None]:
        """Say of each row whether history has gone on without it; None when it does not know the row."""
        bases = [_history_key(each, each.made) for each in owed]
        nexts = [_history_key(each, each.next_number) for each in owed]
        ends = [
            keys.ended(each.lane.tenant, each.lane.endpoint_id, each.delivery_id, each.generation)
            for each in owed
        ]
        found = self._tables.get([*bases, *nexts, *ends])
        return [
            following in found or end in found or (_misplaced(row, found[base]) if base in found else None)
            for row, base, following, end in zip(owed, bases, nexts, ends, strict=True)
        ]

    def remove_owed(self, owed: Sequence[Owed]) -> None:
        """Remove rows."""
        self._tables.each([Delete(keys.owed(each)) for each in owed])

    def _history(self, endpoint: Endpoint, span: Span) -> Iterator[Record]:
        partition = keys.endpoint_partition(endpoint.tenant, endpoint.id)
        low = span.low
        while True:
            stretch = self._tables.query(keys.HISTORY, partition, Span(low, span.high), _PAGE)
            yield from (each for each in stretch.records if each["sk"] != low)
            if not stretch.more:
                return
            low = stretch.records[-1]["sk"]


def _armed(endpoint: Endpoint, now_ms: int, *, replays: bool) -> dict[str, Any]:
    armed = {"armed_shard": keys.armed_shard(endpoint.id), "armed_until": now_ms + ARM_AHEAD_MS}
    return armed | ({"replays": 1} if replays else {})


def _history_key(owed: Owed, number: int) -> Key:
    """Name a row of a generation's history by its number; 0 is the first, which says that it was created."""
    return keys.attempt(owed.lane.tenant, owed.lane.endpoint_id, (owed.delivery_id, owed.generation, number))


def _misplaced(owed: Owed, record: Record) -> bool:
    """Say whether a row stands at another time than the history row it rests on says."""
    base = rows.history_of(record)
    ready_ms = base.next_ms if isinstance(base, Attempt) else base.at_ms
    return not owed.lane.ordered and owed.ready_ms != ready_ms


def _keeping(wanted: Owed, found: Owed) -> Owed:
    """Give a row as history tells it, but for what its endpoint was held before."""
    return replace(wanted, held_before_ms=found.held_before_ms)


def _same(found: Owed, wanted: Owed, *, anew: bool) -> bool:
    return found == (wanted if anew else _keeping(wanted, found))
