"""The crowd: idle endpoints of which only what they take of queues, pollers and copies is simulated.

An endpoint that is offered less than two deliveries a second, of ten that it may be sent, has a gate that
lets all in and a breaker that stays closed. So its visits run through no code of Relay's here: what is owed,
the retry's schedule, and the time a visit takes is all. Others as idle are run in full beside them, and the
two are held against each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chalicelib.application.visit import TOGETHER_US
from chalicelib.domain import backoff
from chalicelib.domain.backoff import RetryProfile
from chalicelib.domain.delivery import Lane
from chalicelib.domain.endpoint import LANE_ROWS
from chalicelib.domain.gate import SECOND, Queue
from chalicelib.domain.outcome import Reply
from tests.simulation.queues import FifoQueue, Message
from tests.simulation.receivers import Receiver

if TYPE_CHECKING:
    from tests.simulation.relay import Relay

PROFILE = RetryProfile.DEFAULT
MS = 1_000


@dataclass(frozen=True, slots=True)
class _Row:
    """A delivery that is owed: from when on (µs), and how often it was tried."""

    ready: int
    made: int = 0


class Crowd:
    """All idle endpoints that are not run in full, and what they are owed."""

    def __init__(self, relay: "Relay", members: Sequence[Receiver]) -> None:
        """Owe nothing."""
        self._relay = relay
        self._members = {each.endpoint.id: each for each in members}
        self._rows: dict[str, list[_Row]] = {}
        self.created = self.succeeded = self.dead = self.owed = 0

    def __contains__(self, endpoint_id: str) -> bool:
        """Say whether an endpoint is one of the crowd."""
        return endpoint_id in self._members

    def owe(self, receiver: Receiver, received_ms: int) -> None:
        """Owe an endpoint one delivery more."""
        self.created += 1
        self._keep(receiver.endpoint.id, _Row(received_ms * MS))

    def visit(self, queue: FifoQueue, batch: Sequence[Message]) -> int:
        """Send what the lanes of these bells are owed; the moment at which the last of them is done with."""
        relay, costs = self._relay, self._relay.numbers.latencies
        lanes: dict[Lane, list[str]] = {}
        for each in batch:
            lanes.setdefault(each.bell.lane, []).append(each.receipt)
        taken = [(lane, self._take(lane.endpoint_id), receipts) for lane, receipts in lanes.items()]
        sending = sum(len(rows) for _, rows, _ in taken)
        began = relay.loop.now + costs.statements + costs.get + len(lanes) * costs.per_item
        began += sending * (4 * costs.per_item + relay.numbers.cost.attempt)
        last = began
        for lane, rows, receipts in taken:
            done = began
            for row in rows:
                done = max(done, self._send(lane, row, began))
            done += 2 * costs.statements + (TOGETHER_US if sending > 1 else 0)
            relay.loop.at(done, queue.delete, receipts)
            last = max(last, done)
        return last

    def _take(self, endpoint_id: str) -> list[_Row]:
        rows, now = self._rows.get(endpoint_id, []), self._relay.loop.now
        taken = [row for row in rows if row.ready <= now][:LANE_ROWS]
        self._rows[endpoint_id] = [row for row in rows if row not in taken]
        return taken

    def _send(self, lane: Lane, row: _Row, began: int) -> int:
        relay, member = self._relay, self._members[lane.endpoint_id]
        relay.count_attempt(member, began, row.ready, first=not row.made)
        relay.figures.counts["attempts of the crowd"] += 1
        reply, took_ms = member.answer(relay.dice.random, relay.numbers.receivers)
        ended = began + took_ms * MS
        self.owed -= 1
        if reply.status is not None and reply.status < 300:
            self.succeeded += 1
        else:
            self._again(lane, row, reply, ended)
        return ended

    def _again(self, lane: Lane, row: _Row, reply: Reply, ended: int) -> None:
        relay = self._relay
        if row.made + 1 >= backoff.SCHEDULES[PROFILE].attempts:
            self.dead += 1
            return
        wait_us = int(backoff.wait(PROFILE, row.made, relay.dice.jitter()).total_seconds() * SECOND)
        self._keep(lane.endpoint_id, _Row(ended + wait_us, row.made + 1))
        relay.ring_later(lane, -(-wait_us // SECOND), Queue.SHARD)

    def _keep(self, endpoint_id: str, row: _Row) -> None:
        self._rows.setdefault(endpoint_id, []).append(row)
        self.owed += 1
