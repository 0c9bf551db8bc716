"""The registry of relay nodes in DynamoDB: one lease a node, one row an owned session.

An owner's row counts while its node's lease runs in the same epoch. A lease that has run out is never
prolonged: its node begins another epoch, in which it owns nothing. Times are Unix ms of who wrote them.
"""

from dataclasses import dataclass

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Check, Delete, Insert, Key, Put, Span, Tables, Update, Write
from chalicelib.application.ports import Clock, Elsewhere, Unavailable
from chalicelib.domain.change import Change, Op, Record, Test

_TRIES = 8
_NODES_MAX = 1_000
_KEPT_S = 3_600


@dataclass(frozen=True, slots=True)
class Node:
    """What a node says of itself: a name that no other has, and how others may send requests to it."""

    id: str
    target: str


class DynamoOwners:
    """The registry as one node sees it. Threads may share it."""

    def __init__(self, tables: Tables, clock: Clock, node: Node, lease_ms: int) -> None:
        """Be that node, without a lease yet."""
        self._tables = tables
        self._clock = clock
        self._node = node
        self._lease_ms = lease_ms
        self._epoch = 0

    def renew(self) -> int | None:
        """Prolong the lease; gives how many nodes are alive, or None: there is none to prolong.

        One that is written late, after another, changes nothing: a lease never gets shorter.
        """
        now_ms, epoch = self._clock.now_ms(), self._epoch
        until = self._until(now_ms)
        longer = (*self._alive(epoch, now_ms), Test("lease_until", Op.LT, until["lease_until"]))
        (made,) = self._tables.each([Update(self._at, Change(longer, until, {}))])
        row = made.record
        stands = row is not None and row["epoch"] == epoch and row["lease_until"] > now_ms
        return self._count(now_ms) if stands else None

    def begin(self) -> int:
        """Begin a new epoch, later than the one before even on a clock that went back."""
        now_ms = self._clock.now_ms()
        before = self._tables.get([self._at]).get(self._at)
        epoch = max(now_ms, (before["epoch"] if before else 0) + 1, self._epoch + 1)
        row = {"target": self._node.target, "epoch": epoch, **self._until(now_ms)}
        same = (Test("epoch", Op.EQ, before["epoch"]),) if before else ()
        if self._tables.together([Put(self._at, row, same) if before else Insert(self._at, row)]):
            raise Unavailable("another lease of this node was begun at the same time")
        self._epoch = epoch
        return self._count(now_ms)

    def find(self, server_id: str) -> Elsewhere | None:
        """Say which other node owns a session, if one does."""
        at = keys.owner(server_id)
        row = self._tables.get([at]).get(at)
        return self._elsewhere(row, self._holder(row), self._clock.now_ms())

    def claim(self, server_id: str) -> int | Elsewhere:
        """Own a session, or say who does; decided by one transaction that also tests the lease."""
        at = keys.owner(server_id)
        epoch = self._epoch
        for _ in range(_TRIES):
            now_ms = self._clock.now_ms()
            row = self._tables.get([at]).get(at)
            holder = self._holder(row)
            if (elsewhere := self._elsewhere(row, holder, now_ms)) is not None:
                return elsewhere
            generation = row["generation"] + 1 if row else 1
            own = {"node": self._node.id, "epoch": epoch, "generation": generation}
            writes: list[Write] = [Check(self._at, self._alive(epoch, now_ms))]
            writes.append(Put(at, own, _same(row)) if row else Insert(at, own))
            if row and holder and not self._is_mine(row):
                seen = (Test("lease_until", Op.EQ, holder["lease_until"]),)
                writes.append(Check(keys.relay_node(row["node"]), seen))
            if not self._tables.together(writes):
                return generation
        raise Unavailable("a session's owner changed too often, or this node has no lease")

    def release(self, server_id: str, generation: int) -> None:
        """Own a session no longer, unless it was claimed again since."""
        mine = (Test("node", Op.EQ, self._node.id), Test("generation", Op.EQ, generation))
        self._tables.each([Delete(keys.owner(server_id), mine)])

    def retire(self) -> None:
        """End the lease now, so that nobody has to wait for it."""
        self._tables.each([Delete(self._at, (Test("epoch", Op.EQ, self._epoch),))])

    @property
    def _at(self) -> Key:
        return keys.relay_node(self._node.id)

    def _alive(self, epoch: int, now_ms: int) -> tuple[Test, ...]:
        return Test("epoch", Op.EQ, epoch), Test("lease_until", Op.GT, now_ms)

    def _until(self, now_ms: int) -> Record:
        return {"lease_until": now_ms + self._lease_ms, "ttl": now_ms // 1000 + _KEPT_S}

    def _count(self, now_ms: int) -> int:
        nodes = self._tables.query(keys.REGISTRY, keys.NODES, Span(), _NODES_MAX).records
        return sum(each["lease_until"] > now_ms for each in nodes)

    def _holder(self, row: Record | None) -> Record | None:
        """Read the node that a row names, if it is still in the epoch in which it claimed."""
        if row is None:
            return None
        at = keys.relay_node(row["node"])
        node = self._tables.get([at]).get(at)
        return node if node and node["epoch"] == row["epoch"] else None

    def _elsewhere(self, row: Record | None, holder: Record | None, now_ms: int) -> Elsewhere | None:
        owned = row and holder and not self._is_mine(row) and holder["lease_until"] > now_ms
        return Elsewhere(holder["target"]) if holder and owned else None

    def _is_mine(self, row: Record) -> bool:
        return bool(row["node"] == self._node.id and row["epoch"] == self._epoch)


def _same(row: Record) -> tuple[Test, ...]:
    return tuple(Test(name, Op.EQ, row[name]) for name in ("node", "epoch", "generation"))
