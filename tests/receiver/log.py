"""The witness: every delivery that arrived, counts per path, and whoever waits for more of them.

Belongs to one event loop and is touched by no other thread. Nothing is read from the wire here.
"""

import asyncio
import json
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TypedDict

from tests.receiver import clock
from tests.receiver.entry import Arrival, Entry, Outcome, Record, make_entry

DEFAULT_CAPACITY = 200_000


class Where(TypedDict, total=False):
    """Which deliveries are meant; what is absent matches all. `after` is the number of an entry."""

    path: str
    delivery_id: str
    event_id: str
    verified: bool
    outcome: str
    after: int


@dataclass(slots=True)
class PathStats:
    """Counts of one path since the last reset. `connections` are those that carried a delivery to it."""

    count: int = 0
    verified: int = 0
    connections: int = 0
    in_flight: int = 0
    max_in_flight: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)

    def view(self) -> Record:
        """Give the counts as JSON can carry them."""
        return {
            "count": self.count,
            "verified": self.verified,
            "connections": self.connections,
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "statuses": {str(status): count for status, count in sorted(self.statuses.items())},
            "outcomes": dict(self.outcomes),
        }


@dataclass(slots=True)
class _Life:
    """What a reset throws away as a whole; an exchange ends in the life it began in."""

    after: int
    entries: deque[Entry]
    paths: dict[str, PathStats] = field(default_factory=dict)
    carried: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))


class DeliveryLog:
    """A bounded log in memory, and a file that outlives the process if one is given."""

    def __init__(
        self, capacity: int = DEFAULT_CAPACITY, write: Callable[[bytes], object] | None = None
    ) -> None:
        """Keep the last `capacity` deliveries; `write` gets a JSON line of each before it is answered."""
        self._capacity = capacity
        self._write = write
        self._last = 0
        self._life = _Life(0, deque(maxlen=capacity))
        self._waiters: list[asyncio.Future[None]] = []

    def arrive(self, arrival: Arrival) -> Entry:
        """Record a delivery that has been read and count it as in flight."""
        life = self._life
        path = arrival.request.target.path
        stats = life.paths.get(path)
        if stats is None:
            stats = life.paths[path] = PathStats()
        stats.count += 1
        stats.in_flight += 1
        stats.max_in_flight = max(stats.max_in_flight, stats.in_flight)
        carried = life.carried[arrival.connection]
        if path not in carried:
            carried.add(path)
            stats.connections += 1
        if arrival.verdict is not None and arrival.verdict.verified:
            stats.verified += 1
        self._last += 1
        entry = make_entry(self._last, arrival, stats.in_flight)
        life.entries.append(entry)
        self._wake()
        return entry

    def persist(self, entry: Entry) -> None:
        """Append the delivery to the file, so that it stands there before the answer leaves."""
        if self._write is not None:
            self._write(json.dumps(entry.brief()).encode() + b"\n")

    def leave(self, connection: int) -> None:
        """Drop what is remembered of a connection that is gone."""
        self._life.carried.pop(connection, None)

    def end(self, entry: Entry, outcome: Outcome) -> None:
        """Say what became of a delivery; only the first call counts."""
        if entry.outcome is not Outcome.OPEN:
            return
        entry.outcome = outcome
        entry.ended = clock.now()
        if entry.number > self._life.after:
            stats = self._life.paths[entry.path]
            stats.in_flight -= 1
            stats.outcomes[outcome] += 1
            if entry.status is not None:
                stats.statuses[entry.status] += 1
        self._wake()

    def find(self, where: Where, limit: int | None = None) -> list[Entry]:
        """List what matches, oldest first: the last `limit` of them, or with `after` the next `limit`."""
        if "after" in where:
            return list(islice(self._matching(where), limit))
        matching: Iterable[Entry] = self._matching(where)
        return list(matching if limit is None else deque(matching, maxlen=limit))

    def count(self, where: Where) -> int:
        """Count what matches among what is kept."""
        if not where:
            return len(self._life.entries)
        return sum(1 for _ in self._matching(where))

    async def wait(self, where: Where, count: int, timeout_s: float) -> list[Entry]:
        """Give what matches as soon as there are `count` of it, or raise TimeoutError."""
        async with asyncio.timeout(timeout_s):
            while self.count(where) < count:
                waiter = asyncio.get_running_loop().create_future()
                self._waiters.append(waiter)
                await waiter
        return self.find(where)

    def stats(self) -> Record:
        """Give the counts per path and how many deliveries no longer fit into memory."""
        life = self._life
        return {
            "received": self._last - life.after,
            "forgotten": self._last - life.after - len(life.entries),
            "paths": {path: stats.view() for path, stats in life.paths.items()},
        }

    def clear(self) -> None:
        """Forget everything but the numbering; what is in flight ends unrecorded."""
        self._life = _Life(self._last, deque(maxlen=self._capacity))
        self._wake()

    def _matching(self, where: Where) -> Iterator[Entry]:
        entries = self._life.entries
        seen = max(0, where.get("after", 0) - entries[0].number + 1) if entries else 0
        wanted = [(name, value) for name, value in where.items() if name != "after"]
        for entry in islice(entries, seen, None):
            if all(getattr(entry, name) == value for name, value in wanted):
                yield entry

    def _wake(self) -> None:
        if not self._waiters:
            return
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
