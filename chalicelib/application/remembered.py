"""What one process remembers of something that others may change: for a bounded time, so much at most."""

from collections.abc import Callable
from typing import Generic, TypeVar

KNOWN_MAX = 10_000

K = TypeVar("K")
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """Remembers what was read; what is not there is never remembered.

    When it knows too much it forgets all: what is asked for is read again.
    """

    def __init__(self, keep_ms: int) -> None:
        """Remember nothing yet, and nothing for longer than this."""
        self._keep_ms = keep_ms
        self._read: dict[K, tuple[int, V]] = {}

    def get(self, name: K, now_ms: int, read: Callable[[K], V | None]) -> V | None:
        """Give what is known of a name, read if it is not known, or no longer."""
        read_ms, known = self._read.get(name, (0, None))
        if known is not None and read_ms <= now_ms < read_ms + self._keep_ms:
            return known
        found = read(name)
        if found is None:
            self.forget(name)
        else:
            if len(self._read) >= KNOWN_MAX:
                self._read.clear()
            self._read[name] = (now_ms, found)
        return found

    def change(self, name: K, value: V) -> None:
        """Remember something that is known otherwise, for no longer than it was to be."""
        if name in self._read:
            self._read[name] = (self._read[name][0], value)

    def forget(self, name: K) -> None:
        """Forget something at once."""
        self._read.pop(name, None)
