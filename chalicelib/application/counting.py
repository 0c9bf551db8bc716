"""Counting: what a process has counted waits here for the next statements that go out, or for a flush.

No use case fails because something could not be counted: it waits for the next time.
"""

from collections.abc import Callable
from threading import Lock
from typing import TypeVar

from chalicelib.application.ports import Clock, Counters, Unavailable
from chalicelib.domain import counts as counting
from chalicelib.domain.counts import Cell, Counts
from chalicelib.domain.metrics import Metric

Answer = TypeVar("Answer")
SOON_MS = 100
"""So long counts may wait for others of their process, where every request would cost a call of its own."""


class Counting:
    """What one process has counted and no store knows of yet; threads may share it."""

    def __init__(self, store: Counters, clock: Clock) -> None:
        """Have counted nothing."""
        self._store = store
        self._clock = clock
        self._pending: dict[Cell, int] = {}
        self._flushed_ms = 0
        self._lock = Lock()

    @property
    def waits(self) -> bool:
        """Say whether something waits."""
        return bool(self._pending)

    def count(self, of: Metric, value: str = "", by: int = 1) -> None:
        """Count something so many times."""
        self.add(counting.counted(of, value, by))

    def lasted(self, of: Metric, duration_ms: int) -> None:
        """Count a duration."""
        self.add(counting.lasted(of, duration_ms))

    def add(self, counts: Counts) -> None:
        """Count what has been counted elsewhere, or was taken and could not be stored."""
        with self._lock:
            for cell, count in counts.items():
                if count:
                    self._pending[cell] = self._pending.get(cell, 0) + count

    def take(self) -> Counts:
        """Take all that waits, for whoever stores it."""
        with self._lock:
            taken, self._pending = self._pending, {}
        return taken

    def along(self, store: Callable[[Counts], tuple[Answer, Counts]]) -> Answer:
        """Let what waits go along with a call, which says with its answer what it could not store."""
        taken = self.take()
        try:
            answer, left = store(taken)
        except Unavailable:
            self.add(taken)
            raise
        self.add(left)
        return answer

    def flush(self) -> bool:
        """Store what waits, in one call if there is something; False when it has to wait on."""
        self._flushed_ms = self._clock.now_ms()
        taken = self.take()
        if not taken:
            return True
        try:
            left = self._store.add(taken)
        except Unavailable:
            left = taken
        self.add(left)
        return not left

    def flush_soon(self) -> bool:
        """Store what waits unless that was done a moment ago: then it waits for the next to come."""
        if self._clock.now_ms() - self._flushed_ms < SOON_MS:
            return True
        return self.flush()
