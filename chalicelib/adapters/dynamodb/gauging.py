"""The gauges of the installation in DynamoDB: what was last read, when canaries came through, what ran.

A few rows of the table of metrics.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any, Final

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.gauge_rows import seen_of, seen_row
from chalicelib.adapters.dynamodb.records import Insert, Key, Tables, Update
from chalicelib.application.ports.gauging import Glimpse
from chalicelib.domain.change import Change, Op, Record, Test
from chalicelib.domain.delivery import Lane, placed
from chalicelib.domain.gauging import Run, Seen, Signs
from chalicelib.domain.metrics import Schedule

_THREADS = 16
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class DynamoGlancing:
    """Looks at lanes, several at a time."""

    def __init__(self, tables: Tables, threads: int = _THREADS) -> None:
        """Read this table."""
        self._tables = tables
        self._pool = ThreadPoolExecutor(threads, "glance")

    def glance(self, lanes: Sequence[Lane], most: int) -> list[Glimpse]:
        """Look at lanes, several at a time, counting at most so many rows of each; in the order asked."""
        return list(self._pool.map(lambda lane: self._one(lane, most), lanes))

    def _one(self, lane: Lane, most: int) -> Glimpse:
        seen = self._tables.glance(keys.OWED, keys.lane(lane), ("ready_ms",), most)
        ready_ms = _ready_ms(lane, seen.first) if seen.first else None
        return Glimpse(seen.count, ready_ms, complete=not seen.more)


class DynamoGauging:
    """What was last read of the installation."""

    def __init__(self, tables: Tables) -> None:
        """Read and write this table."""
        self._tables = tables

    def keep(self, seen: Seen) -> None:
        """Keep what was seen, in place of what was seen before."""
        self._set(keys.gauges(), seen_row(seen), {"since_ms": seen.at_ms})

    def came_through(self, queue: str, rung_ms: int) -> None:
        """Note that a canary came through a queue, and when it was rung; an older one changes nothing."""
        self._set(keys.canary(queue), {"at_ms": rung_ms}, tests=(Test("at_ms", Op.LT, rung_ms),))

    def finished(self, schedule: Schedule, run: Run) -> None:
        """Note that a scheduled function has done all that it had to."""
        self._set(keys.run(schedule), {"at_ms": run.at_ms, "overdue": run.overdue})

    def signs(self, queues: Sequence[str]) -> Signs:
        """Read all of it, of canaries those of some queues."""
        canaries = {queue: keys.canary(queue) for queue in queues}
        runs = {schedule: keys.run(schedule) for schedule in Schedule}
        found = self._tables.get([keys.gauges(), *canaries.values(), *runs.values()])
        row = found.get(keys.gauges())
        return Signs(
            row["since_ms"] if row else 0,
            seen_of(row) if row else None,
            {queue: found[at]["at_ms"] for queue, at in canaries.items() if at in found},
            {
                schedule: Run(found[at]["at_ms"], found[at]["overdue"])
                for schedule, at in runs.items()
                if at in found
            },
        )

    def _set(
        self,
        at: Key,
        sets: Mapping[str, Any],
        at_first: Mapping[str, Any] = NOTHING,
        tests: tuple[Test, ...] = (),
    ) -> None:
        """Change a row if the tests hold, or make it; each is one write unit, where a transaction is two."""
        (made,) = self._tables.each([Update(at, Change(tests, sets, {}))])
        if not made.done and made.record is None:
            self._tables.each([Insert(at, {**sets, **at_first})])


def _ready_ms(lane: Lane, first: Record) -> int:
    position, _, _ = first["sk"].partition("#")
    return int(first.get("ready_ms", placed(lane, position)[0]))
