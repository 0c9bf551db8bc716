"""How many invocations may run at once: a pool shared by all sources, and one place of its own for each."""

import threading
import time
from collections import Counter


class Slots:
    """Counts running invocations per source.

    A source always has one slot of its own, so that none is starved by another; the further ones it takes
    come from the shared pool. A slot is claimed before messages are asked for: receiving never runs ahead.
    """

    def __init__(self, shared: int) -> None:
        """Take the size of the shared pool, 0 or more."""
        self._shared = shared
        self._running: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._closed = False

    def claim(self, source: str, cap: int | None = None) -> bool:
        """Wait for a slot and take it; False when the slots were closed meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._free_for(source, cap))
            if self._closed:
                return False
            self._running[source] += 1
            return True

    def claim_now(self, source: str, cap: int | None = None) -> bool:
        """Take a slot if one is free this moment."""
        with self._changed:
            if self._closed or not self._free_for(source, cap):
                return False
            self._running[source] += 1
            return True

    def release(self, source: str) -> None:
        """Give a slot back."""
        with self._changed:
            self._running[source] -= 1
            self._changed.notify_all()

    def close(self) -> None:
        """Refuse every further claim; what runs goes on."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def wait_idle(self, timeout_s: float) -> int:
        """Wait until nothing runs, at most so long; the number still running comes back."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            self._changed.wait_for(lambda: not self._total(), timeout=max(0.0, deadline - time.monotonic()))
            return self._total()

    def _total(self) -> int:
        return sum(self._running.values())

    def _free_for(self, source: str, cap: int | None) -> bool:
        running = self._running[source]
        if cap is not None and running >= cap:
            return False
        return running == 0 or sum(max(0, count - 1) for count in self._running.values()) < self._shared
