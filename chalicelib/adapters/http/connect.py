"""Connecting under the address policy: resolve, check every answer, connect to what was checked.

Whom to ask for a name's addresses is given (`resolve`).
"""

import asyncio
import socket
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from pathlib import Path

from chalicelib.domain.outcome import BEFORE_SENDING, Fault
from chalicelib.domain.target import Policy, Target, address_allowed

# Both bound what an answer over the cap costs on the wire: the socket may be emptied once before the cap is
# noticed, and fills once more.
RECEIVE_BUFFER = 32_768
READ_AHEAD = 4_096
ADDRESSES_TRIED = 2
_IN_TIME = "within the connect timeout"
Resolve = Callable[[str], Awaitable[list[str]]]


class TransportFault(Exception):  # noqa: N818 - a recorded outcome of the endpoint, not our error
    """What stood in the way of an answer: the fault, and plain words for the endpoint's owner.

    `left` says whether something of the request may have been sent by then.
    """

    def __init__(self, fault: Fault, detail: str, *, left: bool | None = None) -> None:
        """Keep the fault and the words; the fault says whether something has left, unless it was told."""
        super().__init__(detail)
        self.fault = fault
        self.detail = detail
        self.left = fault not in BEFORE_SENDING if left is None else left


@cache
def tls_context() -> ssl.SSLContext:
    """Make the one TLS context of the process: TLS 1.2 and up, names and certificates verified.

    Authorities are looked up one by one in a folder; where there is none, all are read, which takes long.
    """
    folder = _authorities()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if folder else ssl.create_default_context()
    if folder:
        context.load_verify_locations(capath=folder)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _authorities() -> str | None:
    """Find the folder of authorities that is shipped with a function, or the machine's own."""
    shipped = Path(__file__).with_name("authorities")
    if shipped.is_dir():
        return str(shipped)
    machine = ssl.get_default_verify_paths().capath
    return machine if machine and any(Path(machine).glob("*.0")) else None


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True)
class Opened:
    """An open connection, and how long its TLS handshake took."""

    streams: Streams
    tls_ms: int = 0


async def open_checked(target: Target, policy: Policy, ask: Resolve, within_s: float) -> Opened:
    """Open a connection to a target; raises TransportFault. Nothing is sent to a refused address.

    A name with any refused answer is refused whole. Each phase that does not end in time has a fault of
    its own: resolving, connecting, the TLS handshake.
    """
    deadline = asyncio.get_running_loop().time() + within_s
    addresses = await _addresses(target, ask, deadline)
    if not all(address_allowed(address, policy) for address in addresses):
        raise TransportFault(Fault.REFUSED, "the host leads to an address that is not public")
    fault = TransportFault(Fault.DNS_FAILED, "the host name has no address")
    for address in addresses[:ADDRESSES_TRIED]:
        try:
            return await _open(address, target, deadline)
        except TransportFault as error:
            fault = error
    raise fault


async def _addresses(target: Target, ask: Resolve, deadline: float) -> list[str]:
    try:
        return [str(ip_address(target.host))]
    except ValueError:
        pass
    try:
        async with asyncio.timeout_at(deadline):
            return await ask(target.host)
    except TimeoutError as error:
        raise TransportFault(Fault.DNS_FAILED, f"the host name was not resolved {_IN_TIME}") from error
    except (OSError, UnicodeError) as error:
        raise TransportFault(Fault.DNS_FAILED, "the host name could not be resolved") from error


async def _open(address: str, target: Target, deadline: float) -> Opened:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        await _connect(sock, (address, target.port), deadline)
        if target.scheme == "http":
            return Opened(await asyncio.open_connection(sock=sock, limit=READ_AHEAD))
        began = time.monotonic()
        streams = await _shake_hands(sock, target.host, deadline)
        return Opened(streams, int((time.monotonic() - began) * 1000))
    except BaseException:
        sock.close()
        raise


async def _connect(sock: socket.socket, where: tuple[str, int], deadline: float) -> None:
    sock.setblocking(False)  # noqa: FBT003 - the standard library's own form
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        async with asyncio.timeout_at(deadline):
            await asyncio.get_running_loop().sock_connect(sock, where)
    except TimeoutError as error:
        raise TransportFault(Fault.CONNECT_TIMEOUT, f"no connection {_IN_TIME}") from error
    except OSError as error:
        raise TransportFault(Fault.CONNECT_FAILED, "the connection was refused or broken off") from error


async def _shake_hands(sock: socket.socket, host: str, deadline: float) -> Streams:
    try:
        async with asyncio.timeout_at(deadline):
            return await asyncio.open_connection(
                sock=sock, limit=READ_AHEAD, ssl=tls_context(), server_hostname=host
            )
    except TimeoutError as error:
        raise TransportFault(Fault.TLS_FAILED, f"the TLS handshake did not end {_IN_TIME}") from error
    except ssl.SSLError as error:
        raise TransportFault(Fault.TLS_FAILED, _tls_words(error)) from error
    except OSError as error:
        raise TransportFault(Fault.TLS_FAILED, "the connection broke off in the TLS handshake") from error


def _tls_words(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not valid: {error.verify_message}"
    return f"the TLS handshake failed: {error.reason or 'no common protocol'}"
