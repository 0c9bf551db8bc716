"""The time and randomness of this machine: the only place that reads either.

A machine's clock may be wrong. Where the store's differs by more than a second, time is the store's, and goes
on by the machine's steady clock (DESIGN §3): leases and holds of several machines are then of one time.
"""

import random
import secrets
import time
from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime

SECOND_NS = 1_000_000_000
TOLERATED_NS = SECOND_NS
# Servers write a `Date` once a second, busy ones later, and an answer takes its time: it says what was.
STALE_NS = SECOND_NS


class SystemClock:
    """Reads the time of the machine, or of the store if the machine's is off."""

    def __init__(
        self, wall_ns: Callable[[], int] = time.time_ns, steady_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        """Read these clocks; both give nanoseconds, the first since the Unix epoch."""
        self._wall_ns = wall_ns
        self._steady_ns = steady_ns
        self._ahead_ns: int | None = None

    def now_ms(self) -> int:
        """Give Unix epoch milliseconds."""
        return self._now_ns() // 1_000_000

    def now_us(self) -> int:
        """Give Unix epoch microseconds."""
        return self._now_ns() // 1_000

    def hear(self, date: str) -> None:
        """Take note of the `Date` of an answer that the store gave just now; what is none says nothing."""
        try:
            told_ns = int(parsedate_to_datetime(date).replace(tzinfo=UTC).timestamp()) * SECOND_NS
        except (TypeError, ValueError, OverflowError):
            return
        if _agrees(self._wall_ns(), told_ns):
            self._ahead_ns = None
        elif self._ahead_ns is None or not _agrees(self._now_ns(), told_ns):
            self._ahead_ns = told_ns + SECOND_NS // 2 - self._steady_ns()

    def _now_ns(self) -> int:
        ahead_ns = self._ahead_ns
        return self._wall_ns() if ahead_ns is None else self._steady_ns() + ahead_ns


class SystemDice:
    """Makes randomness from the operating system; jitter alone comes from a plain generator."""

    def bits(self, count: int) -> int:
        """Give a random integer of that many bits, fit for identifiers."""
        return secrets.randbits(count)

    def key(self, size: int) -> bytes:
        """Give random bytes fit for a secret."""
        return secrets.token_bytes(size)

    def jitter(self) -> float:
        """Give a uniform number in [0, 1)."""
        return random.random()  # noqa: S311 - spreads retries, guards nothing


class SystemPatience:
    """Waits on the machine's clock."""

    def wait(self, ms: int) -> None:
        """Let so many milliseconds pass."""
        time.sleep(ms / 1000)


def _agrees(now_ns: int, told_ns: int) -> bool:
    """Say whether a time lies within the second that was told, one before it or two after it."""
    return told_ns - TOLERATED_NS <= now_ns <= told_ns + SECOND_NS + TOLERATED_NS + STALE_NS
