"""Deliver: the lanes of a batch of bells are peeked, admitted, re-read, sent and settled.

One use case for every queue. A bell is a hint: what is owed is read from the store, and a lease at
the gate, not a message, is what allows a send. The steps: `batch` (the rounds), `admission`,
`sending`, `settlement`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chalicelib.application.admission import Admission
from chalicelib.application.batch import Batch
from chalicelib.application.ports import (
    Bell,
    Clock,
    Dice,
    Payloads,
    Receipts,
    Sender,
    Unavailable,
    Work,
)
from chalicelib.application.sending import Sending
from chalicelib.application.settlement import Settlement
from chalicelib.application.signing_keys import SigningKeys
from chalicelib.application.visit import Attempted, Call, Visit
from chalicelib.domain.chat.platform import OFFICIAL, Origins
from chalicelib.domain.delivery import Lane

HOLDER_BITS = 64


@dataclass(frozen=True, slots=True)
class Report:
    """What a batch came to: its attempts, the receipts of bells that stay, and failures of our own."""

    attempted: tuple[Attempted, ...]
    kept: frozenset[str]
    failures: tuple[Unavailable, ...] = ()


@dataclass(frozen=True, slots=True)
class Deliver:
    """Works off the lanes that bells name."""

    work: Work
    admission: Admission
    settlement: Settlement
    payloads: Payloads
    keys: SigningKeys
    sender: Sender
    clock: Clock
    dice: Dice
    request_timeout_ms: int
    payload_max: int
    origins: Origins = OFFICIAL
    cloud: bool = False

    def run(self, calls: Sequence[Call], receipts: Receipts, time_left_ms: Callable[[], int]) -> Report:
        """Work off a batch, a call per lane; a finished lane's bells are deleted while others work.

        The caller answers the queue with what is kept; the queue deletes the rest. A failure of our
        own ends only the lanes it concerns: one bell of each comes back, and their leases run out.
        """
        sending = Sending(
            self.work,
            self.settlement,
            self.payloads,
            self.keys,
            self.clock,
            self.request_timeout_ms,
            self.payload_max,
            self.origins,
            self.cloud,
        )
        batch = Batch(
            [self._visit(call) for call in calls],
            work=self.work,
            admission=self.admission,
            sending=sending,
            settlement=self.settlement,
            clock=self.clock,
            receipts=receipts,
            time_left_ms=time_left_ms,
        )
        with self.sender.outbox() as outbox:
            batch.work_off(outbox)
        return Report(tuple(batch.attempted), frozenset(batch.kept), tuple(batch.failures))

    def _visit(self, call: Call) -> Visit:
        return Visit(call, f"{self.dice.bits(HOLDER_BITS):016x}", held=call.came_back)


def calls_of(bells: Sequence[tuple[Bell, str]]) -> list[Call]:
    """Bring the bells of each lane together, newest first, each with its receipt."""
    by_lane: dict[Lane, list[tuple[Bell, str]]] = {}
    for bell, receipt in bells:
        by_lane.setdefault(bell.lane, []).append((bell, receipt))
    return [_call(lane, rung) for lane, rung in by_lane.items()]


def _call(lane: Lane, rung: Sequence[tuple[Bell, str]]) -> Call:
    hints = dict.fromkeys(hint for bell, _ in rung for hint in bell.hints)
    oldest = min(bell.rung_ms for bell, _ in rung)
    complete = all(bell.hints for bell, _ in rung)
    receipts = tuple(receipt for _, receipt in rung)
    came_back = any(bell.came_back for bell, _ in rung)
    rung_in = {hint.delivery_id: bell.rung_in for bell, _ in rung if bell.rung_in for hint in bell.hints}
    return Call(lane, oldest, tuple(hints) if complete else (), receipts, came_back, rung_in)
