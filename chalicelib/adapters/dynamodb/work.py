"""The work list, history and gates in DynamoDB, as the delivery plane uses them."""

from collections.abc import Iterator, Sequence

from chalicelib.adapters.dynamodb import keys, rows
from chalicelib.adapters.dynamodb.counting import DynamoCounters
from chalicelib.adapters.dynamodb.records import (
    Delete,
    Insert,
    Key,
    Made,
    Put,
    Span,
    Statement,
    Tables,
    Update,
    Write,
)
from chalicelib.adapters.dynamodb.tables import STATEMENTS_MAX
from chalicelib.application.ports import Changed, Note, Reread, Watched
from chalicelib.domain import gate as gates
from chalicelib.domain.change import Change, Op, Record, Test
from chalicelib.domain.counts import NOTHING, Counts, added, of_part
from chalicelib.domain.delivery import Again, Attempt, Dead, Lane, Owed
from chalicelib.domain.gate import Gate, Tally

_GATES_AT_ONCE = 100
_MOVES_TOGETHER = 10


class DynamoWork:
    """Owed rows, and the history of what was tried."""

    def __init__(self, tables: Tables, counters: DynamoCounters) -> None:
        """Read and write these tables, and count beside that."""
        self._tables = tables
        self._counters = counters

    def peek(self, lane: Lane, limit: int) -> list[Owed]:
        """Read a lane's first rows in the order of `Owed.position`, strongly consistent."""
        stretch = self._tables.query(keys.OWED, keys.lane(lane), Span(), limit)
        return [rows.owed_of(record) for record in stretch.records]

    def reread(self, owed: Sequence[Owed]) -> Reread:
        """Read the owed rows, next attempts, events and endpoints of deliveries, strongly consistent."""
        owed_at = {row.key: keys.owed(row) for row in owed}
        attempt_at = {row.key: _attempt_key(row, row.next_number) for row in owed}
        known = [row for row in owed if row.event_id]
        event_at = {
            (row.lane.tenant, row.event_id): keys.event(row.lane.tenant, row.event_id) for row in known
        }
        endpoint_at = {
            (row.lane.tenant, row.lane.endpoint_id): keys.endpoint(row.lane.tenant, row.lane.endpoint_id)
            for row in known
        }
        wanted = [*owed_at.values(), *attempt_at.values(), *event_at.values(), *endpoint_at.values()]
        found = self._tables.get(wanted)
        return Reread(
            {name: rows.owed_of(found[at]) for name, at in owed_at.items() if at in found},
            {name: rows.attempt_of(found[at]) for name, at in attempt_at.items() if at in found},
            {name: rows.event_of(found[at]) for name, at in event_at.items() if at in found},
            {name: rows.endpoint_of(found[at]) for name, at in endpoint_at.items() if at in found},
        )

    def insert(
        self, attempts: Sequence[tuple[Owed, Attempt]], notes: Sequence[tuple[tuple[str, str], Note]] = ()
    ) -> list[bool]:
        """Add attempts and holds to history, hours to statistics, in one call per 25."""
        writes = [
            Insert(_attempt_key(owed, attempt.number), rows.attempt_row(attempt))
            for owed, attempt in attempts
        ]
        noted = [_note(owner, note) for owner, note in notes]
        made = self._tables.each([*writes, *noted])
        return [each.done for each in made[: len(writes)]]

    def close(
        self,
        arrived: Sequence[tuple[Owed, Counts]],
        changes: Sequence[tuple[tuple[str, str], Change]],
        beside: Counts = NOTHING,
    ) -> tuple[list[Changed], Counts]:
        """Remove the owed rows of attempts that are in, and make gate changes, in one call per 24.

        What each attempt counts for is counted in the call that removes its row, and in the last call what
        else was. What could not be counted is given back; after a failure nothing of what is beside was.
        """
        removals = [(Delete(keys.owed(owed)), counts) for owed, counts in arrived]
        updates = [Update(keys.gate(*owner), change) for owner, change in changes]
        room = STATEMENTS_MAX - max(1, len(of_part(beside)))
        left: list[Counts] = []
        while len(removals) > room:
            left.append(self._close(removals[:room], [], NOTHING)[1])
            removals = removals[room:]
        made, last = self._close(removals, updates, beside)
        return [_changed(each.done, each.record) for each in made], added(*left, last)

    def _close(
        self, removals: Sequence[tuple[Delete, Counts]], updates: Sequence[Update], beside: Counts
    ) -> tuple[list[Made], Counts]:
        """Make these writes; their counts come right behind the removals, so always in the same call."""
        adding = self._counters.adding(added(*(counts for _, counts in removals), beside))
        head: list[Statement] = [
            *(removal for removal, _ in removals),
            *(each.write for each in adding),
        ]
        made = self._tables.each([*head, *updates])
        return made[len(head) :], self._counters.left(adding, made[len(removals) : len(head)])

    def move(self, moves: Sequence[tuple[Owed, Again | Dead]]) -> list[bool]:
        """Record failures and move or end their owed rows, several in a transaction; False: lost the race.

        One that has lost its race keeps none of the others from being recorded.
        """
        return [made for some in _together(moves) for made in self._moved(some)]

    def _moved(self, moves: Sequence[tuple[Owed, Again | Dead]]) -> list[bool]:
        writes = [(place, each) for place, move in enumerate(moves) for each in move_writes(*move)]
        lost: set[int] = set()
        while left := [(place, each) for place, each in writes if place not in lost]:
            refused = self._tables.together([each for _, each in left])
            if not refused:
                break
            lost |= {left[at][0] for at in refused}
        return [place not in lost for place in range(len(moves))]


class DynamoGates:
    """Gates, changed by conditional statements alone."""

    def __init__(self, tables: Tables) -> None:
        """Read and write this table."""
        self._tables = tables

    def read(self, endpoints: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Gate]:
        """Read the gates of (tenant, endpoint) pairs strongly consistent."""
        found = self._tables.get([keys.gate(*owner) for owner in endpoints])
        return {keys.gate_owner(key.pk): gates.read(record) for key, record in found.items()}

    def change(self, changes: Sequence[tuple[tuple[str, str], Change]]) -> list[Changed]:
        """Make each change if its tests hold, in one call per 25; answers in the order asked."""
        made = self._tables.each([Update(keys.gate(*owner), change) for owner, change in changes])
        return [_changed(each.done, each.record) for each in made]


class DynamoWatching:
    """What reconcile walks: the gates listed in the sparse `armed` index."""

    def __init__(self, tables: Tables) -> None:
        """Read these tables."""
        self._tables = tables

    def armed(self, begin: float = 0.0) -> Iterator[Watched]:
        """Walk every endpoint that may have work, a hundred gates at a call, from a part of the way round."""
        listed = [
            Key(keys.GATES, each["pk"])
            for shard in range(keys.ARMED_SHARDS)
            for each in self._tables.indexed(keys.GATES, keys.ARMED_INDEX, str(shard))
        ]
        first = int(begin * len(listed))
        for page in _pages([*listed[first:], *listed[:first]]):
            found = self._tables.get(page)
            yield from (_watched(at, found[at]) for at in page if "armed_until" in found.get(at, {}))

    def disarm(self, watched: Watched, before_ms: int) -> bool:
        """Stop walking an endpoint whose mark is older than a moment; False when it was set again."""
        old = Test("armed_until", Op.LT, before_ms)
        change = Change((old,), {}, {}, ("armed_shard", "armed_until", "replays"))
        (made,) = self._tables.each([Update(keys.gate(watched.tenant, watched.endpoint_id), change)])
        return made.done


def _together(moves: Sequence[tuple[Owed, Again | Dead]]) -> Iterator[list[tuple[Owed, Again | Dead]]]:
    """Bring moves together, a few at a time, never two of one row."""
    some: list[tuple[Owed, Again | Dead]] = []
    for move in moves:
        if len(some) == _MOVES_TOGETHER or any(keys.owed(move[0]) == keys.owed(owed) for owed, _ in some):
            yield some
            some = []
        some.append(move)
    if some:
        yield some


def _pages(at: Sequence[Key]) -> Iterator[Sequence[Key]]:
    for start in range(0, len(at), _GATES_AT_ONCE):
        yield at[start : start + _GATES_AT_ONCE]


def _watched(at: Key, record: Record) -> Watched:
    tenant, endpoint_id = keys.gate_owner(at.pk)
    gate = gates.read(record)
    ordered = "ordered" in record
    return Watched(tenant, endpoint_id, gate.lanes, record["armed_until"], record["seen"], gate, ordered)


def _attempt_key(owed: Owed, number: int) -> Key:
    return keys.attempt(owed.lane.tenant, owed.lane.endpoint_id, (owed.delivery_id, owed.generation, number))


def _note(owner: tuple[str, str], note: Note) -> Insert:
    if isinstance(note, Tally):
        return Insert(keys.stats(*owner, note.hour), rows.tally_row(note))
    return Insert(keys.hold(*owner, note.since), rows.hold_row(note))


def move_writes(owed: Owed, step: Again | Dead) -> Iterator[Write]:
    """Write what becomes of a delivery that did not arrive, its owed row being as it was read."""
    made = Test("made", Op.EQ, owed.made) if owed.made else Test("made", Op.MISSING)
    same = (Test("event", Op.EQ, owed.event_id), made)
    moves_in_place = isinstance(step, Again) and keys.owed(step.owed) == keys.owed(owed)
    if step.attempt is not None:
        yield Insert(_attempt_key(owed, step.attempt.number), rows.attempt_row(step.attempt))
    if isinstance(step, Again):
        if moves_in_place:
            yield Put(keys.owed(owed), rows.owed_row(step.owed), same)
        else:
            yield Delete(keys.owed(owed), same)
            yield Insert(keys.owed(step.owed), rows.owed_row(step.owed))
    else:
        tenant, endpoint_id = owed.lane.tenant, owed.lane.endpoint_id
        of = (owed.delivery_id, owed.generation)
        yield Delete(keys.owed(owed), same)
        yield Insert(keys.ended(tenant, endpoint_id, *of), rows.ended_row(step.ended))
        if not step.quiet:
            yield Insert(keys.dead_letter(tenant, endpoint_id, *of), rows.dead_letter_row(step.ended))


def _changed(done: bool, record: object) -> Changed:  # noqa: FBT001 - a store's answer
    return Changed(done, gates.read(record) if isinstance(record, dict) else None)
