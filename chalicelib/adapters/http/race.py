"""Connecting to whichever of a host's addresses answers first (RFC 8305, with two addresses)."""

import asyncio
import socket
from collections.abc import Sequence

from chalicelib.adapters.http.fault import TransportFault
from chalicelib.domain.outcome import Fault

HEAD_START_S = 0.25
# It bounds what an answer over the cap costs on the wire, with the stream's own read-ahead: the socket may be
# emptied once before the cap is noticed, and fills once more.
RECEIVE_BUFFER = 32_768

Racer = asyncio.Task[socket.socket]


def two_of(addresses: Sequence[str]) -> tuple[str, ...]:
    """Choose whom to try: the resolver's first, and the first of the other family, else its second."""
    first, rest = addresses[0], addresses[1:]
    other_family = [each for each in rest if (":" in each) is not (":" in first)]
    return (first, *(other_family or rest)[:1])


async def connected(addresses: Sequence[str], port: int, deadline: float) -> socket.socket:
    """Connect to the first address, and beside it to the second when that fails or takes long.

    `deadline` is in the loop's seconds. Raises TransportFault, that of the first address.
    """
    if len(addresses) == 1:
        return await _connect(addresses[0], port, deadline)
    racers: list[Racer] = []
    won: Racer | None = None
    try:
        for address, patience_s in zip(addresses, (HEAD_START_S, None), strict=True):
            racers.append(asyncio.create_task(_connect(address, port, deadline)))
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


async def _connect(address: str, port: int, deadline: float) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)  # noqa: FBT003 - the standard library's own form
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        async with asyncio.timeout_at(deadline):
            await asyncio.get_running_loop().sock_connect(sock, (address, port))
    except BaseException as error:
        sock.close()
        if isinstance(error, TimeoutError):
            raise TransportFault(Fault.CONNECT_TIMEOUT, "no connection within the connect timeout") from error
        if isinstance(error, OSError):
            raise TransportFault(Fault.CONNECT_FAILED, "the connection was refused or broken off") from error
        raise
    return sock
