"""The store as the delivery plane sees it: DynamoDB's meaning, calls, latencies and write units.

Gates are records that the real changes change. Owed rows stand as values in the order of their places; of
attempts only those under way are kept, since nothing else asks for one. What a statement does is done as its
call returns. Statements of one call are not held up by one another.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from chalicelib.adapters.aws_limits.dynamodb_values import item_size
from chalicelib.adapters.dynamodb import render
from chalicelib.application.ports import Changed, Note, Reread, StoredEvent, Watched
from chalicelib.domain import gate as gates
from chalicelib.domain.change import Change, holds
from chalicelib.domain.counts import NOTHING, Counts, added, of_part
from chalicelib.domain.delivery import Again, Attempt, Dead, Lane, Owed
from chalicelib.domain.endpoint import Endpoint
from chalicelib.domain.event import Event
from chalicelib.domain.gate import Gate
from tests.simulation.figures import Figures
from tests.simulation.loop import Loop
from tests.simulation.numbers import Latencies

Owner = tuple[str, str]
STATEMENTS_MAX, GET_MAX, TOGETHER_MAX = 25, 100, 10
KEYS_A_ROW = 4
"""Of each row: itself, its attempt, its event and its endpoint."""
UNIT_BYTES = 1_024
LEASE_BYTES, LEASED_KEY_BYTES = 70, 65
IN_TRANSACTION = 2


class Store:
    """Implements `Work` and `Gates`, for all processes of a run."""

    def __init__(self, loop: Loop, latencies: Latencies, figures: Figures) -> None:
        """Hold nothing."""
        self.records: dict[Owner, dict[str, Any]] = {}
        self.endpoints: dict[Owner, Endpoint] = {}
        self.watched: dict[Owner, str] = {}
        self.created = self.succeeded = self.dead = self.owed = 0
        self._loop = loop
        self._latencies = latencies
        self._figures = figures
        self._gates: dict[Owner, Gate] = {}
        self._lanes: dict[Lane, list[tuple[str, Owed]]] = {}
        self._attempts: dict[str, Attempt] = {}
        self._events = _OneForAll(StoredEvent(Event("", "", "load", "text/plain", b"", 0), 2_048))
        self._plain_bytes: dict[int, int] = {}

    def register(self, endpoint: Endpoint, record: dict[str, Any], watched_as: str = "") -> None:
        """Add an endpoint with its gate; with a name for it, its partitions are counted."""
        owner = endpoint.tenant, endpoint.id
        self.endpoints[owner] = endpoint
        self.records[owner] = record
        if watched_as:
            self.watched[owner] = watched_as

    def owe(self, rows: Iterable[Owed]) -> None:
        """Write what ingest owes."""
        for row in rows:
            self._keep(row)
            self.created += 1

    def written(self, row: Owed) -> None:
        """Count what ingest writes for a delivery: its owed row and its first row of history."""
        owner = (row.lane.tenant, row.lane.endpoint_id)
        self._spend("owed", owner, IN_TRANSACTION, row.lane)
        self._spend("history", owner, IN_TRANSACTION)

    def owing(self) -> list[Owed]:
        """Read all that is owed."""
        return [row for rows in self._lanes.values() for _, row in rows]

    # Work

    def peek(self, lane: Lane, limit: int) -> list[Owed]:
        """Read a lane's first rows."""
        self._call("query", self._latencies.query, min(limit, len(self._lanes.get(lane, ()))))
        return [row for _, row in self._lanes.get(lane, ())[:limit]]

    def reread(self, owed: Sequence[Owed]) -> Reread:
        """Read what sends need."""
        self._get(KEYS_A_ROW * len(owed))
        found = {row.key: kept for row in owed if (kept := self._kept(row)) is not None}
        names = {row.key: row.attempt_key for row in owed}
        attempts = {key: self._attempts[name] for key, name in names.items() if name in self._attempts}
        return Reread(found, attempts, self._events, self.endpoints)

    def insert(
        self, attempts: Sequence[tuple[Owed, Attempt]], notes: Sequence[tuple[Owner, Note]] = ()
    ) -> list[bool]:
        """Add attempts to history, and notes of endpoints."""
        self._statements(len(attempts) + len(notes))
        made = []
        for owed, attempt in attempts:
            made.append(attempt.key not in self._attempts)
            self._attempts[attempt.key] = attempt
            self._spend("history", (owed.lane.tenant, owed.lane.endpoint_id), 1)
        for owner, _ in notes:
            self._spend("history", owner, 1)
        return made

    def close(
        self,
        arrived: Sequence[tuple[Owed, Counts]],
        changes: Sequence[tuple[Owner, Change]],
        beside: Counts = NOTHING,
    ) -> tuple[list[Changed], Counts]:
        """Remove the rows of what has arrived, change gates, and count: a statement for each part."""
        counters = len(of_part(added(*(counts for _, counts in arrived), beside)))
        self._statements(len(arrived) + len(changes) + counters)
        self._figures.counts["waves"] += 1
        self._figures.counts["counter statements"] += counters
        self._figures.units["metrics"] += counters
        for row, _ in arrived:
            self._spend("owed", (row.lane.tenant, row.lane.endpoint_id), 1, row.lane)
            self._attempts.pop(row.attempt_key, None)
            self.succeeded += self._forget(row)
        return [self._change(owner, change) for owner, change in changes], NOTHING

    def move(self, moves: Sequence[tuple[Owed, Again | Dead]]) -> list[bool]:
        """Move or end rows, several in a transaction."""
        for start in range(0, len(moves), TOGETHER_MAX):
            self._call(
                "transaction", self._latencies.transaction, 3 * len(moves[start : start + TOGETHER_MAX])
            )
        return [self._move(*each) for each in moves]

    # Gates

    def read(self, endpoints: Sequence[Owner]) -> dict[Owner, Gate]:
        """Read gates."""
        self._get(len(endpoints))
        return {owner: self.gate(owner) for owner in endpoints}

    def change(self, changes: Sequence[tuple[Owner, Change]]) -> list[Changed]:
        """Change gates, each if its tests hold."""
        self._statements(len(changes))
        return [self._change(*each) for each in changes]

    # Ingest

    def gate(self, owner: Owner) -> Gate:
        """Read a gate as it is."""
        found = self._gates.get(owner)
        if found is None:
            found = self._gates[owner] = gates.read(self.records[owner])
        return found

    def arm(self, owner: Owner, until_ms: int) -> None:
        """Mark an endpoint as one that reconcile looks at: its gate and the index of such."""
        self.records[owner]["armed_until"] = until_ms
        self._spend("gates", owner, 2)

    # Watching

    def armed(self, begin: float = 0.0) -> Iterator[Watched]:
        """Walk every endpoint that is armed, a hundred gates at a call, from a part of the way round."""
        listed = [owner for owner, record in self.records.items() if "armed_until" in record]
        first = int(begin * len(listed))
        around = [*listed[first:], *listed[:first]]
        for start in range(0, len(around), GET_MAX):
            page = around[start : start + GET_MAX]
            self._get(len(page))
            for owner in page:
                gate = self.gate(owner)
                yield Watched(*owner, gate.lanes, self.records[owner]["armed_until"], gate.seen, gate)

    def disarm(self, watched: Watched, before_ms: int) -> bool:
        """Leave all armed: no run is that long."""
        return False

    # Inside

    def _get(self, count: int) -> None:
        for start in range(0, count, GET_MAX):
            self._call("get", self._latencies.get, min(GET_MAX, count - start))

    def _statements(self, count: int) -> None:
        for start in range(0, count, STATEMENTS_MAX):
            self._call("statements", self._latencies.statements, min(STATEMENTS_MAX, count - start))

    def _call(self, name: str, base: int, items: int) -> None:
        self._figures.counts[name] += 1
        self._loop.spend(base + items * self._latencies.per_item)

    def _spend(self, table: str, owner: Owner, units: int, lane: Lane | None = None) -> None:
        self._figures.units[table] += units
        if (name := self.watched.get(owner)) is not None:
            key = f"{name} lane {lane.number}" if lane else name
            self._figures.spent(table, key, units, self._loop.now)

    def _keep(self, row: Owed) -> None:
        rows = self._lanes.setdefault(row.lane, [])
        insort(rows, (row.place, row))
        self.owed += 1

    def _kept(self, row: Owed) -> Owed | None:
        rows, place = self._lanes.get(row.lane, []), row.place
        at = bisect_left(rows, (place,))
        return rows[at][1] if at < len(rows) and rows[at][0] == place else None

    def _forget(self, row: Owed) -> bool:
        rows, place = self._lanes.get(row.lane, []), row.place
        at = bisect_left(rows, (place,))
        if at == len(rows) or rows[at][0] != place:
            return False
        del rows[at]
        self.owed -= 1
        return True

    def _move(self, owed: Owed, step: Again | Dead) -> bool:
        kept = self._kept(owed)
        if kept is None or kept.made != owed.made:
            return False
        owner = (owed.lane.tenant, owed.lane.endpoint_id)
        self._forget(owed)
        self._spend("history", owner, IN_TRANSACTION * (1 if isinstance(step, Again) else 2))
        self._spend("owed", owner, IN_TRANSACTION * (2 if isinstance(step, Again) else 1), owed.lane)
        if isinstance(step, Again):
            self._keep(step.owed)
        else:
            self._spend("dead-letters", owner, IN_TRANSACTION)
            self.dead += 1
        return True

    def _change(self, owner: Owner, change: Change) -> Changed:
        record = self.records[owner]
        made = holds(change, record)
        if made:
            record.update(change.sets)
            for path, step in change.adds.items():
                record[path] += step
            for path in change.removes:
                record.pop(path, None)
            self._gates.pop(owner, None)
        self._spend("gates", owner, self._units_of(owner, record))
        return Changed(made, self.gate(owner))

    def _units_of(self, owner: Owner, record: dict[str, Any]) -> int:
        """Count the write units of a gate: its leases as they are, the rest by how many attributes it has."""
        leases = self.gate(owner).leases.values()
        size = sum(LEASE_BYTES + LEASED_KEY_BYTES * len(each.keys) for each in leases)
        others = len(record) - len(leases)
        if others not in self._plain_bytes:
            plain = {name: value for name, value in record.items() if name[0] != "L"}
            self._plain_bytes[others] = item_size(render.attributes(plain)) + LEASED_KEY_BYTES
        return -(-(size + self._plain_bytes[others]) // UNIT_BYTES)


class _OneForAll(dict[Owner, StoredEvent]):
    """Has one event under every key: what is sent does not matter here."""

    def __init__(self, event: StoredEvent) -> None:
        super().__init__()
        self._event = event

    def get(self, _: Owner, default: Any = None) -> Any:  # noqa: ANN401 - as a mapping's
        return self._event
