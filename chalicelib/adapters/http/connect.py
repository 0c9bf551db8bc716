"""Connecting under the address policy: resolve, check every answer, connect to what was checked.

Whom to ask for a name's addresses is given (`resolve`).
"""

import asyncio
import socket
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address

from chalicelib.adapters.http import own_tls, race, tls
from chalicelib.adapters.http.dial import Proxy, dial
from chalicelib.adapters.http.fault import TransportFault
from chalicelib.domain.auth import Tls
from chalicelib.domain.outcome import Fault
from chalicelib.domain.target import Policy, Target, address_allowed

READ_AHEAD = 4_096
_IN_TIME = "within the connect timeout"
Resolve = Callable[[str], Awaitable[list[str]]]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True)
class Opened:
    """An open connection, and how long its TLS handshake took."""

    streams: Streams
    tls_ms: int = 0


@dataclass(frozen=True, slots=True)
class Way:
    """How this installation connects: under which policy, asking whom for addresses, through which proxy."""

    policy: Policy
    ask: Resolve
    proxy: Proxy | None = None


async def open_checked(target: Target, way: Way, within_s: float, own: Tls | None = None) -> Opened:
    """Open a connection to a target; raises TransportFault. Nothing is sent to a refused address.

    A name with any refused answer is refused whole. Each phase that does not end in time has a fault of
    its own: resolving, connecting, the TLS handshake, for which the endpoint may have something of its own.
    """
    deadline = asyncio.get_running_loop().time() + within_s
    addresses = await _addresses(target, way.ask, deadline)
    if not all(address_allowed(address, way.policy) for address in addresses):
        raise TransportFault(Fault.REFUSED, "the host leads to an address that is not public")
    if not addresses:
        raise TransportFault(Fault.DNS_FAILED, "the host name has no address")
    dialled = partial(dial, port=target.port, deadline=deadline, proxy=way.proxy)
    sock = await race.connected(race.two_of(addresses), dialled)
    try:
        if target.scheme == "http":
            return Opened(await asyncio.open_connection(sock=sock, limit=READ_AHEAD))
        began = time.monotonic()
        streams = await _shake_hands(sock, target.host, deadline, own)
        return Opened(streams, int((time.monotonic() - began) * 1000))
    except BaseException:
        sock.close()
        raise


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


async def _shake_hands(sock: socket.socket, host: str, deadline: float, own: Tls | None) -> Streams:
    try:
        context = own_tls.context_for(own)
        async with asyncio.timeout_at(deadline):
            return await asyncio.open_connection(
                sock=sock, limit=READ_AHEAD, ssl=context, server_hostname=host
            )
    except TimeoutError as error:
        raise TransportFault(Fault.TLS_FAILED, f"the TLS handshake did not end {_IN_TIME}") from error
    except ssl.SSLError as error:
        raise TransportFault(*tls.what_failed(error)) from error
    except OSError as error:
        raise TransportFault(Fault.TLS_FAILED, "the connection broke off in the TLS handshake") from error
