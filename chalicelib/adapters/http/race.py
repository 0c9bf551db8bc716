"""Connecting to whichever of a host's addresses answers first (RFC 8305, with two addresses)."""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Sequence

HEAD_START_S = 0.25
Racer = asyncio.Task[socket.socket]
Dial = Callable[[str], Coroutine[None, None, socket.socket]]


def two_of(addresses: Sequence[str]) -> tuple[str, ...]:
    """Choose whom to try: the resolver's first, and the first of the other family, else its second."""
    first, rest = addresses[0], addresses[1:]
    other_family = [each for each in rest if (":" in each) is not (":" in first)]
    return (first, *(other_family or rest)[:1])


async def connected(addresses: Sequence[str], dial: Dial) -> socket.socket:
    """Dial the first address, and beside it the second when that fails or takes long.

    Raises what dialling the first address raised.
    """
    if len(addresses) == 1:
        return await dial(addresses[0])
    racers: list[Racer] = []
    won: Racer | None = None
    try:
        for address, patience_s in zip(addresses, (HEAD_START_S, None), strict=True):
            racers.append(asyncio.create_task(dial(address)))
            won = await _winner(racers, patience_s)
            if won is not None:
                return won.result()
        return racers[0].result()
    finally:
        for each in racers:
            if each is not won:
                each.add_done_callback(_hang_up)
                each.cancel()


async def _winner(racers: Sequence[Racer], patience_s: float | None) -> Racer | None:
    """Wait for one that is connected, as long as one may be and there is patience."""
    while True:
        for each in racers:
            if each.done() and each.exception() is None:
                return each
        running = [each for each in racers if not each.done()]
        if not running:
            return None
        done, _ = await asyncio.wait(running, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            return None


def _hang_up(racer: Racer) -> None:
    """Close what was connected too late; nobody waits for a failure any more."""
    if not racer.cancelled() and racer.exception() is None:
        racer.result().close()
