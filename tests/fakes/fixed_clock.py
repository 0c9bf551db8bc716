"""Time and chance as a test wants them."""

import random
from collections.abc import Callable, Iterable
from threading import Lock


class FixedClock:
    """Stands still until it is moved."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        """Start at a moment, Unix epoch milliseconds."""
        self._now_us = now_ms * 1000
        self._lock = Lock()

    def now_ms(self) -> int:
        """Give Unix epoch milliseconds."""
        return self._now_us // 1000

    def now_us(self) -> int:
        """Give Unix epoch microseconds."""
        return self._now_us

    def advance(self, *, ms: int = 0, us: int = 0) -> None:
        """Move forward."""
        with self._lock:
            self._now_us += ms * 1000 + us

    def advance_to(self, moment_ms: int) -> None:
        """Move forward to a moment, unless it is past already."""
        with self._lock:
            self._now_us = max(self._now_us, moment_ms * 1000)


class BusyPatience:
    """Waits by moving a clock, and lets others do something meanwhile; `waited` has each wait (ms)."""

    def __init__(self, clock: FixedClock, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Move this clock."""
        self._clock = clock
        self._meanwhile = meanwhile
        self.waited: list[int] = []

    def wait(self, ms: int) -> None:
        """Let so many milliseconds pass."""
        self.waited.append(ms)
        self._clock.advance(ms=ms)
        self._meanwhile()


class SeededDice:
    """Rolls the same in every run with the same seed."""

    def __init__(self, seed: int = 0) -> None:
        """Start from a seed."""
        self._random = random.Random(seed)
        self._lock = Lock()

    def bits(self, count: int) -> int:
        """Give a random integer of that many bits."""
        with self._lock:
            return self._random.getrandbits(count)

    def key(self, size: int) -> bytes:
        """Give random bytes."""
        with self._lock:
            return self._random.randbytes(size)

    def jitter(self) -> float:
        """Give a uniform number in [0, 1)."""
        with self._lock:
            return self._random.random()


class LoadedDice(SeededDice):
    """Rolls jitters that were given, the last one for ever; bits and keys as seeded."""

    def __init__(self, jitters: Iterable[float] = (0.5,), seed: int = 0) -> None:
        """Take the jitters to come, at least one."""
        super().__init__(seed)
        self._jitters = list(jitters)

    def jitter(self) -> float:
        """Give the next jitter."""
        return self._jitters.pop(0) if len(self._jitters) > 1 else self._jitters[0]
