"""Counters in DynamoDB: a record for each part and shard, an attribute for each cell.

A statement can add only to attributes that are there. `LAYOUT` says of a record that all are: one that was
written by older code, or not yet at all, is made whole by a transaction. Source: docs/decisions/0026.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Count, Grow, Key, Made, Tables
from chalicelib.application.ports import Unavailable
from chalicelib.domain import counts as counting
from chalicelib.domain import metrics
from chalicelib.domain.change import Change, Op, Record, Test
from chalicelib.domain.counts import Cell, Counts
from chalicelib.domain.metrics import Kind, Part

LAYOUT: Final = 2
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
        self._there: set[Part] = set()

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
        return [self._adding(part, each) for part, each in counting.of_part(counts).items()]

    def left(self, adding: Sequence[Adding], made: Sequence[Made]) -> Counts:
        """Give back what was not added; where the record lacks something, it is made first, in one call."""
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
        adds = {ATTRIBUTES[part][cell]: count for cell, count in counts.items()}
        return Adding(part, counts, Count(self._key(part), Change(tests, {"w": stamp}, adds)))

    def _stamp(self) -> str:
        return f"{self._identity:x}.{next(self._turns):x}"

    def _arrived(self, adding: Adding, made: Made) -> bool:
        """Say whether counts are in the record; without one, only a process that saw it knows why not."""
        stamp = adding.write.change.sets["w"]
        known = adding.part in self._there
        if made.done or (made.record is not None and made.record.get("w") == stamp):
            self._there.add(adding.part)
            return True
        return (made.record is not None or not known) and self._made_whole(adding, stamp)

    def _made_whole(self, adding: Adding, stamp: str) -> bool:
        """Add to a record that lacks some of its attributes, or is not there."""
        adds = {name: adding.counts.get(cell, 0) for cell, name in ATTRIBUTES[adding.part].items()}
        try:
            self._tables.together([Grow(adding.write.key, adds, {"v": LAYOUT, "w": stamp})])
        except Unavailable:
            return False
        self._there.add(adding.part)
        return True


def _counts_of(part: Part, record: Record) -> Counts:
    return {cell: record[name] for cell, name in ATTRIBUTES[part].items() if name in record}
