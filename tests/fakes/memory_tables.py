"""Tables in a dictionary under one lock: DynamoDB's meaning without DynamoDB."""

import bisect
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, assert_never

from chalicelib.adapters.aws_limits.dynamodb_values import check_item
from chalicelib.adapters.dynamodb import render
from chalicelib.adapters.dynamodb.records import (
    Check,
    Count,
    Delete,
    Glance,
    Insert,
    Key,
    Made,
    Merge,
    Put,
    Span,
    Statement,
    Stretch,
    Update,
    Write,
)
from chalicelib.domain.change import Change, Op, Record, Test, applied, holds
from tests.fakes.faults import Faults, Step

GET_MAX, STATEMENTS_MAX, TRANSACTION_MAX = 100, 25, 100
SURELY_SMALL = 100_000


class Records:
    """What all processes over the same tables share: the records, each partition's order, the lock."""

    def __init__(self) -> None:
        """Hold nothing."""
        self.by_key: dict[Key, dict[str, Any]] = {}
        self.sorted: dict[tuple[str, str], list[str]] = {}
        self.lock = Lock()

    def copy(self) -> "Records":
        """Give a world of its own that begins as this one is now."""
        other = Records()
        with self.lock:
            other.by_key = dict(self.by_key)
            other.sorted = {partition: list(names) for partition, names in self.sorted.items()}
        return other


class MemoryTables:
    """Implements `Tables` exactly, also under threads; `faults` orders what goes wrong.

    Where AWS may answer either way the answer is the awkward one: a stretch that ends exactly at its limit
    says that there is more, and an insert that was refused does not say by what. As in PartiQL, a conditional
    delete of what is not there is made by `each`, while `together` refuses it.
    """

    def __init__(self, records: Records | None = None) -> None:
        """Start empty, or as another process over the same records: `MemoryTables(first.records)`."""
        self.records = records or Records()
        self.faults = Faults()

    def get(self, keys: Sequence[Key]) -> dict[Key, Record]:
        """Read records by key, in one call per hundred; missing ones are left out."""
        found: dict[Key, Record] = {}
        distinct = list(dict.fromkeys(keys))
        for start in range(0, len(distinct), GET_MAX):
            asked = distinct[start : start + GET_MAX]
            with self.faults.around(Step("get")), self.records.lock:
                found.update(
                    (key, _copy(self.records.by_key[key])) for key in asked if key in self.records.by_key
                )
        return found

    def query(self, table: str, pk: str, span: Span, limit: int) -> Stretch:
        """Read at most `limit` records of one partition."""
        with self.faults.around(Step("query")), self.records.lock:
            names = self.records.sorted.get((table, pk), [])
            within = names[bisect.bisect_left(names, span.low) : bisect.bisect_right(names, span.high)]
            chosen = (list(reversed(within)) if span.backwards else within)[:limit]
            records = tuple(_copy(self.records.by_key[Key(table, pk, sk)]) for sk in chosen)
        return Stretch(records, more=len(records) == limit)

    def glance(self, table: str, pk: str, names: Sequence[str], most: int) -> Glance:
        """Count at most so many records of one partition, and read some attributes of its first."""
        with self.faults.around(Step("glance")), self.records.lock:
            found = self.records.sorted.get((table, pk), [])
            record = self.records.by_key[Key(table, pk, found[0])] if found else {}
        first = {name: record[name] for name in ("sk", *names) if name in record}
        return Glance(first or None, min(len(found), most), more=len(found) >= most)

    def each(self, writes: Sequence[Statement]) -> list[Made]:
        """Make writes that have nothing to do with one another, in one call per 25."""
        made: list[Made] = []
        for batch in _batches(writes):
            with self.faults.around(Step("each", tuple(batch))):
                for write in batch:
                    with self.faults.write(), self.records.lock:
                        made.append(self._make(write))
        return made

    def together(self, writes: Sequence[Write]) -> list[int]:
        """Make at most 100 writes, all or none; the places of those that stood in the way."""
        _check_transaction(writes)
        with self.faults.around(Step("together", tuple(writes))), self.faults.write(), self.records.lock:
            refused = [place for place, write in enumerate(writes) if not self._fits(write)]
            if not refused:
                for write in writes:
                    self._store(write)
        return refused

    def walk(self, table: str) -> Iterator[Record]:
        """Read a whole table, page by page, in no order."""
        with self.faults.around(Step("walk")), self.records.lock:
            records = [_copy(record) for key, record in self.records.by_key.items() if key.table == table]
        yield from records

    def browse(self, table: str, after: Key | None, limit: int) -> Stretch:
        """Read at most `limit` records of a whole table after a key."""
        with self.faults.around(Step("browse")), self.records.lock:
            later = sorted(
                key for key in self.records.by_key if key.table == table and (after is None or key > after)
            )
            records = tuple(_copy(self.records.by_key[key]) for key in later[:limit])
        return Stretch(records, more=len(records) == limit)

    def indexed(self, table: str, index: str, value: str) -> Iterator[Record]:
        """Read the keys an index holds under a value, page by page; eventually consistent."""
        shard, until = f"{index}_shard", f"{index}_until"
        with self.faults.around(Step("indexed")), self.records.lock:
            listed = [
                {name: record[name] for name in ("pk", "sk", shard, until) if name in record}
                for key, record in self.records.by_key.items()
                if key.table == table and record.get(shard) == value and until in record
            ]
        yield from sorted(listed, key=lambda record: int(record[until]))

    def _make(self, write: Statement) -> Made:
        old = self.records.by_key.get(write.key)
        if old is None and isinstance(write, Delete):
            return Made(done=True)
        if not self._fits(write):
            shown = old is not None and not isinstance(write, Insert)
            return Made(done=False, record=_copy(old) if old and shown else None)
        self._store(write)
        changed = self.records.by_key[write.key] if isinstance(write, Update) else None
        return Made(done=True, record=_copy(changed) if changed else None)

    def _fits(self, write: Write | Count) -> bool:
        old = self.records.by_key.get(write.key)
        match write:
            case Insert():
                return old is None
            case Put(_, _, tests) | Delete(_, tests) | Check(_, tests):
                return _hold(tests, old)
            case Update(_, change) | Count(_, change):
                return old is not None and holds(change, old)
            case Merge():
                return True
            case _:
                assert_never(write)

    def _store(self, write: Write | Count) -> None:
        key = write.key
        old = self.records.by_key.get(key, dict(key.parts))
        match write:
            case Insert(_, record) | Put(_, record):
                self._keep(key, {**key.parts, **record})
            case Delete():
                self._forget(key)
            case Update(_, change) | Count(_, change):
                self._keep(key, applied(change, old))
            case Merge(_, sets, removes):
                self._keep(key, applied(Change((), sets, {}, removes), old))
            case Check():
                pass
            case _:
                assert_never(write)

    def _keep(self, key: Key, record: Record) -> None:
        if key not in self.records.by_key:
            bisect.insort(self.records.sorted.setdefault((key.table, key.pk), []), key.sk)
        self.records.by_key[key] = _as_stored(key, record)

    def _forget(self, key: Key) -> None:
        if self.records.by_key.pop(key, None) is not None:
            self.records.sorted[key.table, key.pk].remove(key.sk)


def _hold(tests: tuple[Test, ...], record: Record | None) -> bool:
    """Say whether tests hold; of a record that is not there every attribute is missing."""
    if record is None:
        return all(test.op is Op.MISSING for test in tests)
    return holds(Change(tests, {}, {}), record)


def _batches(writes: Sequence[Statement]) -> Iterator[list[Statement]]:
    """Split into calls of at most 25, none of them with two writes of one item."""
    batch: dict[Key, Statement] = {}
    for write in writes:
        if len(batch) == STATEMENTS_MAX or write.key in batch:
            yield list(batch.values())
            batch = {}
        batch[write.key] = write
    if batch:
        yield list(batch.values())


def _check_transaction(writes: Sequence[Write]) -> None:
    if not 1 <= len(writes) <= TRANSACTION_MAX:
        raise ValueError(f"a transaction holds 1 to {TRANSACTION_MAX} writes, not {len(writes)}")
    if len({write.key for write in writes}) < len(writes):
        raise ValueError("a transaction holds one write of an item at most")
    if any(isinstance(write, Merge) and not write.sets and not write.removes for write in writes):
        raise ValueError("a merge changes something")


def _as_stored(key: Key, record: Mapping[str, Any]) -> dict[str, Any]:
    """Give a record as it comes back: lists for tuples. AwsWouldRefuse for what cannot be stored."""
    attributes = render.attributes(record)
    if len(repr(attributes)) > SURELY_SMALL:
        check_item(attributes, key.table)
    return {name: _value_as_stored(value) for name, value in record.items()}


def _value_as_stored(value: object) -> object:
    match value:
        case Mapping():
            return {name: _value_as_stored(each) for name, each in value.items()}
        case list() | tuple():
            return [_value_as_stored(each) for each in value]
        case _:
            return value


def _copy(record: Mapping[str, Any]) -> dict[str, Any]:
    """Give a record away; what is inside is never changed in place, here as in the code under test."""
    return dict(record)
