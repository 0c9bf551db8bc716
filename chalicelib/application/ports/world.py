"""What is true of every port: time, randomness, and how failure of our own is told."""

from typing import Protocol


class Unavailable(Exception):  # noqa: N818 - named after what the caller is told
    """A store, queue or key service failed or was too busy; nothing is known to have been done."""


class Clock(Protocol):
    """Reads the time."""

    def now_ms(self) -> int:
        """Give Unix epoch milliseconds."""
        ...

    def now_us(self) -> int:
        """Give Unix epoch microseconds."""
        ...


class Dice(Protocol):
    """Makes randomness."""

    def bits(self, count: int) -> int:
        """Give a random integer of that many bits, fit for identifiers."""
        ...

    def key(self, size: int) -> bytes:
        """Give random bytes fit for a secret."""
        ...

    def jitter(self) -> float:
        """Give a uniform number in [0, 1)."""
        ...


class Patience(Protocol):
    """Waits for what somebody else is doing."""

    def wait(self, ms: int) -> None:
        """Let so many milliseconds pass."""
        ...
