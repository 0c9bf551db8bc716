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

    def renew(self) -> int:
        """Prolong the lease, or begin a new one; gives how many nodes are alive."""
        now_ms = self._clock.now_ms()
        until = {"lease_until": now_ms + self._lease_ms, "ttl": now_ms // 1000 + _KEPT_S}
        (made,) = self._tables.each([Update(self._at, Change(self._alive(now_ms), until, {}))])
        if not made.done:
            self._begin(now_ms, until)
        nodes = self._tables.query(keys.REGISTRY, keys.NODES, Span(), _NODES_MAX).records
        return sum(each["lease_until"] > now_ms for each in nodes)

    def find(self, server_id: str) -> Elsewhere | None:
        """Say which other node owns a session, if one does."""
        at = keys.owner(server_id)
        row = self._tables.get([at]).get(at)
        return self._elsewhere(row, self._holder(row), self._clock.now_ms())

    def claim(self, server_id: str) -> int | Elsewhere:
        """Own a session, or say who does; decided by one transaction that also tests the lease."""
        at = keys.owner(server_id)
        for _ in range(_TRIES):
            now_ms = self._clock.now_ms()
            row = self._tables.get([at]).get(at)
            holder = self._holder(row)
            if (elsewhere := self._elsewhere(row, holder, now_ms)) is not None:
                return elsewhere
            generation = row["generation"] + 1 if row else 1
            own = {"node": self._node.id, "epoch": self._epoch, "generation": generation}
            writes: list[Write] = [Check(self._at, self._alive(now_ms))]
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

    def _alive(self, now_ms: int) -> tuple[Test, ...]:
        return Test("epoch", Op.EQ, self._epoch), Test("lease_until", Op.GT, now_ms)

    def _begin(self, now_ms: int, until: Record) -> None:
        """Begin a new epoch, later than the one before even on a clock that went back."""
        epoch = max(now_ms, self._epoch + 1)
        row = {"target": self._node.target, "epoch": epoch, **until}
        self._tables.together([Put(self._at, row)])
        self._epoch = epoch

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
