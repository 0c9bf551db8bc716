"""Connections that wait for another request to the same target."""

from collections import OrderedDict
from typing import Generic, Protocol, TypeVar

Where = tuple[str, str, int]


class Kept(Protocol):
    """A connection that may be used again."""

    @property
    def usable(self) -> bool:
        """Say whether it is open and was used lately."""
        ...

    def close(self) -> None:
        """Drop it."""
        ...


K = TypeVar("K", bound=Kept)


class IdleConnections(Generic[K]):
    """Keeps so many connections in all; the one kept last is taken first, so that the others grow old.

    Whoever keeps one closes the oldest that nobody will use: most peers close first, and a socket that
    only they have closed stays open here until we do.
    """

    def __init__(self, limit: int) -> None:
        """Keep none yet."""
        self._limit = limit
        self._by_age: OrderedDict[K, Where] = OrderedDict()
        self._by_target: dict[Where, list[K]] = {}

    def take(self, target: Where) -> K | None:
        """Give a connection that can be used, or None."""
        while idle := self._by_target.get(target):
            newest = idle[-1]
            self._forget(newest)
            if newest.usable:
                return newest
            newest.close()
        return None

    def keep(self, target: Where, connection: K) -> None:
        """Keep a connection whose use has just ended."""
        self._by_age[connection] = target
        self._by_target.setdefault(target, []).append(connection)
        oldest = next(iter(self._by_age))
        while len(self._by_age) > self._limit or not oldest.usable:
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

    def _forget(self, connection: K) -> None:
        target = self._by_age.pop(connection)
        idle = self._by_target[target]
        idle.remove(connection)
        if not idle:
            del self._by_target[target]
