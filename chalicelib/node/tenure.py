"""Tenure: what this node owns and for how long it may say so, by a steady clock that no pause stops.

The lease is counted from before its renewal was asked for, less a margin for clocks that differ: it is over
here before another node may think so. Renewals run on the event loop, so a loop that hangs loses its lease.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from chalicelib.application.ports import Elsewhere, Owners, Unavailable
from chalicelib.node.settings import NodeSettings

ANSWER_WITHIN_S = 1.0
T = TypeVar("T")
_RETRY_S = 0.5
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""The clock that also runs while the machine sleeps, where there is one."""


class Tenure:
    """The sessions of one node, as the registry knows them."""

    def __init__(self, owners: Owners, settings: NodeSettings, expired: Callable[[], None]) -> None:
        """Own nothing yet; `expired` is called as soon as a lease was found to be over."""
        self._owners = owners
        self._settings = settings
        self._expired = expired
        self._until = 0.0
        self._held = False
        self._term = 0
        self._renewing = ThreadPoolExecutor(4, "renewing")
        self._answers = False
        self._owned: dict[str, int] = {}
        self._idle: dict[str, float] = {}
        self._claims: dict[str, asyncio.Task[Elsewhere | None]] = {}
        self._releases: set[asyncio.Task[None]] = set()
        self.nodes = 0

    @property
    def answers(self) -> bool:
        """Say whether the registry answered the last time it was asked."""
        return self._answers and self.alive()

    def alive(self) -> bool:
        """Say whether the lease holds; the first to find that it does not ends all that rests on it."""
        if _now() < self._until:
            return True
        self._end()
        return False

    async def begin(self) -> None:
        """Ask for a lease once; without one the node is not ready."""
        await self._renew()

    async def keep(self) -> None:
        """Renew for ever."""
        every_s = self._settings.lease_renewal_ms / 1000
        while True:
            await asyncio.sleep(every_s if self._answers else min(_RETRY_S, every_s))
            await self._renew()
            self._let_go()

    async def find(self, server_id: str) -> Elsewhere | None:
        """Say which other node owns a session, if one does; raises Unavailable, TimeoutError."""
        if self.owns(server_id):
            return None
        return await self._in_time(asyncio.to_thread(self._owners.find, server_id))

    def owns(self, server_id: str) -> bool:
        """Say whether a session is this node's."""
        return server_id in self._owned

    async def claim(self, server_id: str) -> Elsewhere | None:
        """Own a session, or say who does; raises Unavailable."""
        if not self.alive():
            raise Unavailable("this node has no lease")
        if server_id in self._owned:
            return None
        task = self._claims.get(server_id)
        if task is None:
            task = self._claims[server_id] = asyncio.ensure_future(self._claim(server_id))
            task.add_done_callback(lambda _: self._claims.pop(server_id, None))
        return await asyncio.shield(task)

    def used(self, server_id: str) -> None:
        """Note that a session has sockets."""
        self._idle.pop(server_id, None)

    def idle(self, server_id: str) -> None:
        """Note that a session has no socket, from now on."""
        if server_id in self._owned:
            self._idle[server_id] = _now()

    async def end(self) -> None:
        """Give everything back."""
        self._held = False
        self._until = 0.0
        await self._quietly(self._apart(self._owners.retire))

    def _end(self) -> None:
        """End all that rests on a lease, if there is one."""
        self._until = 0.0
        if self._held:
            self._held = False
            self._owned.clear()
            self._idle.clear()
            self._expired()

    async def _renew(self) -> None:
        """Prolong the lease; where there is none, end what rested on it before another begins."""
        began = _now()
        try:
            nodes = await asyncio.wait_for(self._apart(self._owners.renew), ANSWER_WITHIN_S)
            if nodes is None:
                self._end()
                began = _now()
                nodes = await asyncio.wait_for(self._apart(self._owners.begin), ANSWER_WITHIN_S)
        except (Unavailable, TimeoutError):
            self._answers = False
            self.alive()
            return
        self.alive()
        self._term += not self._held
        self._answers = self._held = True
        self.nodes = nodes
        self._until = began + (self._settings.lease_ms - self._settings.clock_skew_ms) / 1000

    def _apart(self, work: Callable[[], T]) -> Awaitable[T]:
        """Do what the lease depends on in threads that no rush of claims can keep busy."""
        return asyncio.get_running_loop().run_in_executor(self._renewing, work)

    async def _claim(self, server_id: str) -> Elsewhere | None:
        term = self._term
        found = await self._in_time(asyncio.to_thread(self._owners.claim, server_id))
        if not self.alive() or term != self._term:
            raise Unavailable("the lease ended meanwhile")
        if isinstance(found, Elsewhere):
            return found
        self._owned[server_id] = found
        self.idle(server_id)
        return None

    def _let_go(self) -> None:
        """Release what has been idle for long."""
        before = _now() - self._settings.owner_idle_ms / 1000
        for server_id in [name for name, since in self._idle.items() if since <= before]:
            del self._idle[server_id]
            generation = self._owned.pop(server_id)
            release = asyncio.to_thread(self._owners.release, server_id, generation)
            task = asyncio.ensure_future(self._quietly(release))
            self._releases.add(task)
            task.add_done_callback(self._releases.discard)

    async def _in_time(self, asking: Awaitable[T]) -> T:
        return await asyncio.wait_for(asking, self._settings.capacity_mutation_timeout_ms / 1000)

    async def _quietly(self, work: Awaitable[None]) -> None:
        """Do what nothing depends on: a lease that ends by itself says the same later."""
        try:
            await asyncio.wait_for(work, ANSWER_WITHIN_S)
        except (Unavailable, TimeoutError):
            return


def _now() -> float:
    return time.clock_gettime(_STEADY)
