"""Bells and receipts in lists: what was rung, delayed, called, deleted and hidden."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from chalicelib.application.ports import Bell, Clock
from chalicelib.domain.delivery import Lane
from chalicelib.domain.gate import Queue
from tests.fakes.faults import Faults, Step


@dataclass(frozen=True, slots=True)
class Delayed:
    """A bell that rings later: how long after it was sent, and when by the clock (0 without one)."""

    lane: Lane
    delay_s: int
    due_ms: int = 0
    queue: Queue = Queue.SHARD


@dataclass(frozen=True, slots=True)
class FanOutCall:
    """A call for a fan-out: for which moment, and when it arrives by the clock (0 without one)."""

    tenant: str
    event_id: str
    due_ms: int = 0
    arrives_ms: int = 0


Kept = TypeVar("Kept", Bell, Delayed, FanOutCall, tuple[str, str], tuple[str, str, int])
DELAY_MAX_S = 900


class MemoryBells:
    """Implements `Bells`; loses what it is told to lose, as a failing queue does."""

    def __init__(self, clock: Clock | None = None) -> None:
        """Take the clock by which delayed bells are due, if a test needs that."""
        self._clock = clock
        self._losing = 0
        self.rung: list[Bell] = []
        self.delayed: list[Delayed] = []
        self.fan_outs: list[FanOutCall] = []
        self.endings: list[tuple[str, str]] = []
        self.replays: list[tuple[str, str, int]] = []
        self.lost: list[Bell | Delayed | FanOutCall | tuple[str, str] | tuple[str, str, int]] = []
        self.faults = Faults()

    def lose_next(self, count: int) -> None:
        """Lose the next bells and calls instead of keeping them."""
        self._losing = count

    def ring(self, bells: Sequence[Bell]) -> int:
        """Ring each lane on its endpoint's queue."""
        with self.faults.around(Step("ring", tuple(bells))), self.faults.write():
            return sum(self._put(self.rung, each) for each in bells)

    def ring_later(self, lane: Lane, delay_s: int, queue: Queue = Queue.SHARD) -> int:
        """Ring a lane after a delay of 0 to 900 seconds."""
        due_ms = self._clock.now_ms() + delay_s * 1000 if self._clock else 0
        bell = Delayed(lane, delay_s, due_ms, queue)
        with self.faults.around(Step("ring_later", (bell,))), self.faults.write():
            return self._put(self.delayed, bell)

    def call_fan_out(self, tenant: str, event_id: str, due_ms: int = 0, delay_s: int = 0) -> int:
        """Tell the fan-out function, after so long, that an event waits for it."""
        delay_ms = min(DELAY_MAX_S, max(0, delay_s)) * 1000
        arrives_ms = self._clock.now_ms() + delay_ms if self._clock else 0
        call = FanOutCall(tenant, event_id, due_ms, arrives_ms)
        with self.faults.around(Step("call_fan_out", (call,))), self.faults.write():
            return self._put(self.fan_outs, call)

    def call_ending(self, tenant: str, endpoint_id: str) -> int:
        """Tell the function that ends deliveries in pages that an endpoint waits for it."""
        call = (tenant, endpoint_id)
        with self.faults.around(Step("call_ending", (call,))), self.faults.write():
            return self._put(self.endings, call)

    def call_replay(self, tenant: str, replay_id: str, delay_s: int = 0) -> int:
        """Tell the function of bulk replays that one waits for it, and note when that is due."""
        due_ms = self._clock.now_ms() + delay_s * 1000 if self._clock else 0
        call = (tenant, replay_id, due_ms)
        with self.faults.around(Step("call_replay", (call,))), self.faults.write():
            return self._put(self.replays, call)

    def take_rung(self) -> list[Bell]:
        """Take away all that was rung, as a queue's reader does."""
        taken, self.rung[:] = list(self.rung), []
        return taken

    def take_due(self, now_ms: int) -> list[Delayed]:
        """Take away the delayed bells that are due."""
        due = [each for each in self.delayed if each.due_ms <= now_ms]
        self.delayed[:] = [each for each in self.delayed if each.due_ms > now_ms]
        return due

    def _put(self, where: list[Kept], what: Kept) -> int:
        if self._losing:
            self._losing -= 1
            self.lost.append(what)
            return 1
        where.append(what)
        return 0


class MemoryReceipts:
    """Implements `Receipts` of one queue."""

    def __init__(self) -> None:
        """Know of nothing deleted or hidden."""
        self.deleted: list[str] = []
        self.hidden: dict[str, int] = {}
        self.faults = Faults()

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete bells; one that is gone already is no error."""
        with self.faults.around(Step("delete", tuple(receipts))), self.faults.write():
            self.deleted += receipts

    def hide(self, receipts: Sequence[str], seconds: int) -> None:
        """Keep bells out of sight for that long from now."""
        with self.faults.around(Step("hide", tuple(receipts))), self.faults.write():
            self.hidden.update(dict.fromkeys(receipts, seconds))
