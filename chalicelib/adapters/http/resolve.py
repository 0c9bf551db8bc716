"""Asking the system's resolver, whose calls block and cannot be broken off.

A name that nobody answers for holds a thread for as long as the resolver is patient, often half a
minute. So those who ask for a name at the same time share one call, and the calls have threads of
their own: as few as the loop has by itself would be taken by one such endpoint's sends.
"""

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial

THREADS = 64
LookUp = Callable[[str], list[str]]


def look_up(host: str) -> list[str]:
    """Ask for a host's addresses, in the resolver's order; raises OSError or UnicodeError."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


class Resolver:
    """Looks names up for one event loop."""

    def __init__(self, look_up: LookUp = look_up, threads: int = THREADS) -> None:
        """Ask by a function that blocks; threads start as they are needed."""
        self._look_up = look_up
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="relay-resolver")
        self._asked: dict[str, asyncio.Future[list[str]]] = {}

    async def addresses(self, host: str) -> list[str]:
        """Give a host's addresses, asked for now or by somebody who still waits for them.

        Raises what the look-up raised. Who gives up waiting leaves it to the others.
        """
        asked = self._asked.get(host)
        if asked is None:
            ask = partial(copy_context().run, self._look_up, host)
            asked = asyncio.get_running_loop().run_in_executor(self._threads, ask)
            self._asked[host] = asked
            asked.add_done_callback(lambda done: self._forget(host, done))
        return await asyncio.shield(asked)

    def _forget(self, host: str, done: "asyncio.Future[list[str]]") -> None:
        del self._asked[host]
        if not done.cancelled():
            done.exception()  # perhaps nobody waits any more, and asyncio would complain of that
