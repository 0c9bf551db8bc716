"""The machine's time and randomness: the only place that reads either."""

import random
import secrets
import time


class SystemClock:
    """Reads the time of the machine."""

    def now_ms(self) -> int:
        """Give Unix epoch milliseconds."""
        return time.time_ns() // 1_000_000

    def now_us(self) -> int:
        """Give Unix epoch microseconds."""
        return time.time_ns() // 1_000


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
