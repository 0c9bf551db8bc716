"""One connection to one checked address: straight, or by an outbound proxy that is told the address alone."""

import asyncio
import re
import socket
from dataclasses import dataclass
from http import HTTPStatus

from chalicelib.adapters.http.fault import TransportFault
from chalicelib.domain.outcome import Fault

# It bounds what an answer over the cap costs on the wire, with the stream's own read-ahead: the socket may be
# emptied once before the cap is noticed, and fills once more.
RECEIVE_BUFFER = 32_768
_HEAD_MAX = 8_192
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")


@dataclass(frozen=True, slots=True)
class Proxy:
    """Where the outbound proxy listens: an address and a port."""

    address: str
    port: int


async def dial(address: str, port: int, deadline: float, proxy: Proxy | None = None) -> socket.socket:
    """Connect to an address, in the loop's seconds; raises TransportFault."""
    first = proxy or Proxy(address, port)
    sock = socket.socket(socket.AF_INET6 if ":" in first.address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)  # noqa: FBT003 - the standard library's own form
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        async with asyncio.timeout_at(deadline):
            await asyncio.get_running_loop().sock_connect(sock, (first.address, first.port))
            if proxy is not None:
                await _tunnel(sock, address, port)
    except BaseException as error:
        sock.close()
        fault = _fault(error)
        if fault is None:
            raise
        raise fault from error
    return sock


def _fault(error: BaseException) -> TransportFault | None:
    if isinstance(error, TimeoutError):
        return TransportFault(Fault.CONNECT_TIMEOUT, "no connection within the connect timeout")
    if isinstance(error, OSError):
        return TransportFault(Fault.CONNECT_FAILED, "the connection was refused or broken off")
    return None


async def _tunnel(sock: socket.socket, address: str, port: int) -> None:
    """Ask the proxy for a tunnel; what comes after its head is the other end's."""
    where = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(sock, f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode("ascii"))
    head = b""
    while not head.endswith(b"\r\n\r\n") and len(head) < _HEAD_MAX:
        piece = await loop.sock_recv(sock, 1)
        if not piece:
            break
        head += piece
    status = _STATUS.match(head)
    if not head.endswith(b"\r\n\r\n") or status is None or int(status[1]) != HTTPStatus.OK:
        raise TransportFault(Fault.CONNECT_FAILED, "the outbound proxy would not connect to the host")
