"""Connections that wait for another request to the same target."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

REST_S = 30.0
"""Nobody in between forgets a connection as fast as that: NAT gateways of AWS do after 350 s."""
Where = Hashable
Clocks = tuple[Callable[[], float], ...]


class Kept(Protocol):
    """A connection that may be used again."""

    @property
    def usable(self) -> bool:
        """Say whether it is open."""
        ...

    def close(self) -> None:
        """Drop it."""
        ...


K = TypeVar("K", bound=Kept)


class IdleConnections(Generic[K]):
    """Keeps so many connections in all; the one kept last is taken first, so that the others grow old.

    Whoever keeps one closes the oldest that nobody will use: most peers close first, and a socket that
    only they have closed stays open here until we do. One that has rested too long is not given: a function
    may have been frozen meanwhile, and what is in between may have forgotten it.
    """

    def __init__(
        self, limit: int, rest_s: float = REST_S, clocks: Clocks = (time.monotonic, time.time)
    ) -> None:
        """Keep none yet. While a function is frozen some clock may stand still; then the others count."""
        self._limit = limit
        self._rest_s = rest_s
        self._clocks = clocks
        self._by_age: OrderedDict[K, tuple[Where, list[float]]] = OrderedDict()
        self._by_target: dict[Where, list[K]] = {}

    def take(self, target: Where) -> K | None:
        """Give a connection that can be used, or None."""
        while idle := self._by_target.get(target):
            newest = idle[-1]
            good = self._good(newest)
            self._forget(newest)
            if good:
                return newest
            newest.close()
        return None

    def rested_s(self, target: Where) -> float:
        """Say for how long the connection has rested that would be taken; 0 when there is none."""
        idle = self._by_target.get(target)
        return self._rested_s(idle[-1]) if idle else 0.0

    def keep(self, target: Where, connection: K) -> None:
        """Keep a connection whose use has just ended."""
        self._by_age[connection] = (target, [clock() for clock in self._clocks])
        self._by_target.setdefault(target, []).append(connection)
        oldest = next(iter(self._by_age))
        while len(self._by_age) > self._limit or not self._good(oldest):
            self._forget(oldest)
            oldest.close()
            if not self._by_age:
                return
            oldest = next(iter(self._by_age))

    def close(self) -> None:
        """Close all of them."""
        for connection in self._by_age:
            connection.close()
        self._by_age.clear()
        self._by_target.clear()

    def _good(self, connection: K) -> bool:
        return self._rested_s(connection) < self._rest_s and connection.usable

    def _rested_s(self, connection: K) -> float:
        _, since = self._by_age[connection]
        return max(clock() - then for clock, then in zip(self._clocks, since, strict=True))

    def _forget(self, connection: K) -> None:
        target, _ = self._by_age.pop(connection)
        idle = self._by_target[target]
        idle.remove(connection)
        if not idle:
            del self._by_target[target]
