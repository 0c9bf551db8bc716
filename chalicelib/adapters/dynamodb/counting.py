"""Counters in DynamoDB: a record for each part and shard, an attribute for each cell.

A statement can add only to attributes that are there: a process makes its record before it first counts, and
`LAYOUT` says of one that it has all of them, or was made by older code. Source: docs/decisions/0026.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Count, Insert, Key, Made, Statement, Tables, Update
from chalicelib.application.ports import Unavailable
from chalicelib.domain import counts as counting
from chalicelib.domain import metrics
from chalicelib.domain.change import Change, Op, Record, Test
from chalicelib.domain.counts import Cell, Counts
from chalicelib.domain.metrics import Kind, Part

LAYOUT: Final = 3
"""Raised with every cell that the catalogue gets: a record of a lower one lacks some of them."""
_CODES: Final = {
    metrics.ATTEMPTS.name: "a",
    metrics.DEFERRED.name: "d",
    metrics.DEAD_LETTERS.name: "x",
    metrics.BREAKER_TRIPS.name: "t",
    metrics.PROBES.name: "p",
    metrics.REFUSED.name: "r",
    metrics.LEASES_LOST.name: "l",
    metrics.PAYLOADS_LOST.name: "b",
    metrics.FIRST_ATTEMPT.name: "F",
    metrics.PLATFORM.name: "P",
    metrics.CONSUMER.name: "C",
    metrics.INGESTED.name: "i",
    metrics.INGEST_TIME.name: "I",
    metrics.RESCUED.name: "s",
    metrics.NOTICES.name: "n",
    metrics.REMOVED.name: "m",
}
"""How the attributes of a metric begin; never another, or it would count from 0 again."""
_LETTERS = 3


def _short(value: str) -> str:
    """Shorten a value to the first letters of its words, or of its one word: records stay one write unit."""
    words = value.split("_")
    return "".join(word[0] for word in words) if len(words) > 1 else value[:_LETTERS]


def _attribute(cell: Cell, kind: Kind) -> str:
    metric, value = cell
    return _CODES[metric] + (value if kind is Kind.HISTOGRAM else _short(value))


ATTRIBUTES: Final[Mapping[Part, Mapping[Cell, str]]] = {
    part: {
        cell: _attribute(cell, each.kind)
        for each in counting.GROWING
        if each.part is part
        for cell in counting.cells(each)
    }
    for part in counting.PARTS
}
"""Where each cell stands in the records of its part."""


@dataclass(frozen=True, slots=True)
class Adding:
    """Counts of one part on their way, and the statement that adds them."""

    part: Part
    counts: Counts
    write: Count


class DynamoCounters:
    """The store of counters, as one process writes it: to one shard of each part."""

    def __init__(self, tables: Tables, identity: int) -> None:
        """Write as the process with a number, drawn once, which says to which shard."""
        self._tables = tables
        self._identity = identity
        self._turns = itertools.count(1)
        self._made: set[Part] = set()

    def add(self, counts: Counts) -> Counts:
        """Add to what was counted, in one call; give back what could not be added."""
        adding = self.adding(counts)
        return (
            self.left(adding, self._tables.each([each.write for each in adding]))
            if adding
            else counting.NOTHING
        )

    def adding(self, counts: Counts) -> list[Adding]:
        """Say what adds counts, for a call that is made anyway; `left` hears what became of it.

        Each carries a stamp of its own: the client asks again when an answer is lost, and finds its stamp.
        """
        parted = counting.of_part(counts)
        self._make([part for part in parted if part not in self._made])
        return [self._adding(part, each) for part, each in parted.items()]

    def left(self, adding: Sequence[Adding], made: Sequence[Made]) -> Counts:
        """Give back what was not added; a record of an older layout is made whole first."""
        return counting.added(
            *(each.counts for each, one in zip(adding, made, strict=True) if not self._arrived(each, one))
        )

    def read(self) -> Counts:
        """Read all that was counted, by everybody, in one call.

        The table is small, and asked for by its key a record that is not there costs as much as one that is.
        """
        found = ((keys.counted_part(each["pk"]), each) for each in self._tables.walk(keys.METRICS))
        return counting.added(*(_counts_of(Part(part), record) for part, record in found if part))

    def _key(self, part: Part) -> Key:
        return keys.counters(part, self._identity % keys.COUNTER_SHARDS)

    def _adding(self, part: Part, counts: Counts) -> Adding:
        tests = (Test("v", Op.GE, LAYOUT), Test("w", Op.NE, stamp := self._stamp()))
        # In one order, so that statements are few, whoever parses them.
        adds = dict(sorted((ATTRIBUTES[part][cell], count) for cell, count in counts.items()))
        return Adding(part, counts, Count(self._key(part), Change(tests, {"w": stamp}, adds)))

    def _stamp(self) -> str:
        return f"{self._identity:x}.{next(self._turns):x}"

    def _make(self, parts: Sequence[Part]) -> None:
        """Make the records that are not there yet; what cannot be made now is tried again."""
        zeros = [{**dict.fromkeys(ATTRIBUTES[part].values(), 0), "v": LAYOUT, "w": ""} for part in parts]
        inserts = [Insert(self._key(part), record) for part, record in zip(parts, zeros, strict=True)]
        if inserts and self._each(inserts):
            self._made.update(parts)

    def _arrived(self, adding: Adding, made: Made) -> bool:
        """Say whether counts are in the record: one that is there and refuses them lacks some attributes.

        Where none is brought, the store is busy, or somebody took it away: it is made next time.
        """
        if made.record is None:
            if not made.done:
                self._made.discard(adding.part)
            return made.done
        if made.record["w"] == adding.write.change.sets["w"]:
            return True
        lacking = {name: 0 for name in ATTRIBUTES[adding.part].values() if name not in made.record}
        as_read = Test("v", Op.EQ, made.record["v"])
        self._each([Update(adding.write.key, Change((as_read,), {**lacking, "v": LAYOUT}, {}))])
        return any(again.done for again in self._each([adding.write]))

    def _each(self, writes: Sequence[Statement]) -> list[Made]:
        """Make writes, or none of them where the store fails: whatever counts fails nothing else."""
        try:
            return self._tables.each(writes)
        except Unavailable:
            return []


def _counts_of(part: Part, record: Record) -> Counts:
    return {cell: record[name] for cell, name in ATTRIBUTES[part].items() if name in record}
