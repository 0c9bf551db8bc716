"""The transport: connects under the address policy, keeps connections open, and nothing besides.

HTTP/1.1 by h11 over asyncio streams. It knows nothing of cookies, proxies, redirects or encodings.
"""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass, replace
from functools import lru_cache
from http import HTTPStatus

import h11

from chalicelib.adapters.http.connect import Resolve, Way, open_checked
from chalicelib.adapters.http.dial import Proxy
from chalicelib.adapters.http.fault import TransportFault
from chalicelib.adapters.http.idle import REST_S, IdleConnections, Where
from chalicelib.adapters.http.resolve import Resolver
from chalicelib.adapters.http.tls import what_failed
from chalicelib.domain.auth import tls_of
from chalicelib.domain.errors import RelayError
from chalicelib.domain.outcome import Fault
from chalicelib.domain.request import Request
from chalicelib.domain.target import Policy, Target, parse_target

HEAD_MAX = 65_536
IDLE_MAX = 256
PAUSE_S = 0.1
"""Who paused no longer was hardly frozen, and is spared a turn of the loop: an eighth of a send's cost."""
_NOTHING_FOLLOWED = "no other answer followed this status"
SENT_AGAIN = "sent again: a kept connection was closed without an answer"
_CHUNK = 16_384
_TARGETS = 1_024
_INTERIM = frozenset({100, 102, 103})
_SWITCHED = "_SWITCH_UPGRADE"  # how h11 calls a 101 that nobody asked for


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds for connecting (DNS and TLS included), for the head of the answer, and between two requests."""

    connect_s: float = 5.0
    read_s: float = 5.0
    rest_s: float = REST_S


_parsed = lru_cache(_TARGETS)(parse_target)


class Connection:
    """One HTTP/1.1 connection to a target."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Speak over an open stream."""
        self._reader = reader
        self._writer = writer
        self._protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_MAX)
        self.answered = False
        self.last_word = 0
        self._ended = False

    @property
    def usable(self) -> bool:
        """Say whether the peer has left the idle connection open, and sent nothing unasked."""
        return not self._reader.at_eof() and not self._writer.is_closing()

    async def send(self, request: h11.Request, body: bytes) -> h11.Response:
        """Write a request and read the head of its answer.

        `last_word` is a 1xx status that announces no answer: when none follows, it was the answer.
        """
        self.answered, self.last_word = False, 0
        protocol = self._protocol
        head = protocol.send(request) or b""
        data = protocol.send(h11.Data(data=body)) or b""
        tail = protocol.send(h11.EndOfMessage()) or b""
        try:
            self._writer.write(head + data + tail)
            await self._writer.drain()
            while True:
                event = await self._event()
                if isinstance(event, h11.Response):
                    return event
                if isinstance(event, h11.InformationalResponse) and event.status_code not in _INTERIM:
                    self.last_word = event.status_code
        except OSError as error:
            raise _broken(error, "the connection broke before an answer") from error

    async def body(self) -> AsyncIterator[bytes]:
        """Read the answer's body piece by piece; a broken one raises TransportFault."""
        while True:
            event = await self._event()
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return

    def recycle(self) -> bool:
        """Make ready for another request; False when the connection cannot be used again."""
        try:
            self._protocol.start_next_cycle()
        except h11.ProtocolError:
            return False
        return not self._protocol.trailing_data[0]

    def close(self) -> None:
        """Drop the connection without waiting for the peer."""
        self._writer.transport.abort()

    async def _event(self) -> h11.Event | type[h11.NEED_DATA]:
        while True:
            try:
                event = self._protocol.next_event()
            except h11.RemoteProtocolError as error:
                if _SWITCHED in str(error):
                    self.last_word = HTTPStatus.SWITCHING_PROTOCOLS
                raise _fault(error, ended=self._ended) from error
            if event is not h11.NEED_DATA:
                return event  # type: ignore[return-value]  # PAUSED cannot follow a request of ours
            try:
                received = await self._reader.read(_CHUNK)
            except OSError as error:
                raise _broken(error, "the connection broke off") from error
            self.answered |= bool(received)
            self._ended = not received
            self._protocol.receive_data(received)


class Body:
    """An answer's body, read piece by piece; closing it early drops the connection."""

    def __init__(self, pool: "GuardedTransport", key: Where, connection: Connection) -> None:
        """Read from a connection that belongs to a pool."""
        self._pool = pool
        self._key = key
        self._connection = connection
        self._whole = False

    async def pieces(self) -> AsyncIterator[bytes]:
        """Read to the end; a broken body raises TransportFault."""
        async for piece in self._connection.body():
            yield piece
        self._whole = True

    def close(self) -> None:
        """Keep the connection if all was read, else drop it."""
        self._pool.give_back(self._key, self._connection, whole=self._whole)


@dataclass(frozen=True, slots=True)
class Answer:
    """The head of an answer, its header names in lower case, and how long connecting and TLS took.

    Both are 0 on a kept connection. Without a body there is nothing to read. `detail` is what its owner
    should know of how it came.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: Body | None
    connect_ms: int
    tls_ms: int = 0
    detail: str = ""


class GuardedTransport:
    """Sends each request to an address that the policy allows, over a kept connection if there is one."""

    def __init__(
        self, policy: Policy, timeouts: Timeouts, ask: Resolve | None = None, proxy: Proxy | None = None
    ) -> None:
        """Apply a policy to what a resolver answers, the system's unless one is given; perhaps by a proxy."""
        self._way = Way(policy, ask or Resolver().addresses, proxy)
        self._timeouts = timeouts
        self._idle = IdleConnections[Connection](IDLE_MAX, timeouts.rest_s)

    async def send(self, request: Request) -> Answer:
        """Send one request and read the head of its answer; raises TransportFault.

        A kept connection may have been closed by the peer meanwhile. Then the request goes out once more,
        which `detail` tells, since the peer may have taken it twice.
        """
        target = self._target(request.url)
        key = (target.scheme, target.host, target.port, tls_of(request.auth))
        if self._idle.rested_s(key) > PAUSE_S:
            await asyncio.sleep(0)  # a function that was frozen hears now what its peers closed meanwhile
        kept = self._idle.take(key)
        if kept is not None:
            try:
                return await self._exchange(key, kept, request, target)
            except TransportFault as fault:
                if kept.answered or fault.fault is not Fault.NO_RESPONSE:
                    raise
        answer = self._exchange(key, None, request, target)
        return await (answer if kept is None else _told(answer))

    def give_back(self, key: Where, connection: Connection, *, whole: bool) -> None:
        """Keep a connection for the next request, or drop it."""
        if whole and connection.recycle():
            self._idle.keep(key, connection)
        else:
            connection.close()

    async def aclose(self) -> None:
        """Drop every idle connection, and give the loop its turn to do so."""
        self._idle.close()
        await asyncio.sleep(0)

    def _target(self, url: str) -> Target:
        try:
            return _parsed(url, self._way.policy)
        except RelayError as error:
            raise TransportFault(Fault.REFUSED, error.detail) from error

    async def _exchange(
        self,
        key: Where,
        kept: Connection | None,
        request: Request,
        target: Target,
    ) -> Answer:
        connection, connect_ms, tls_ms = (kept, 0, 0) if kept else await self._open(target, request)
        try:
            async with asyncio.timeout(self._timeouts.read_s):
                head = await connection.send(_head(request, target), request.body)
        except (TimeoutError, TransportFault) as error:
            connection.close()
            if connection.last_word:
                return Answer(connection.last_word, (), None, connect_ms, tls_ms, _NOTHING_FOLLOWED)
            if isinstance(error, TransportFault):
                raise
            raise TransportFault(Fault.TIMEOUT, "no answer within the read timeout") from error
        except BaseException:
            connection.close()
            raise
        headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers)
        return Answer(head.status_code, headers, Body(self, key, connection), connect_ms, tls_ms)

    async def _open(self, target: Target, request: Request) -> tuple[Connection, int, int]:
        """Open a connection; it, and the milliseconds of resolving and connecting, and of TLS."""
        began = time.monotonic()
        opened = await open_checked(target, self._way, self._timeouts.connect_s, tls_of(request.auth))
        all_ms = int((time.monotonic() - began) * 1000)
        return Connection(*opened.streams), max(0, all_ms - opened.tls_ms), opened.tls_ms


async def _told(answer: Awaitable[Answer]) -> Answer:
    try:
        return replace(await answer, detail=SENT_AGAIN)
    except TransportFault as fault:
        raise TransportFault(fault.fault, f"{SENT_AGAIN}; {fault.detail}", left=True) from fault


def _broken(error: OSError, words: str) -> TransportFault:
    """Say what broke a connection; in TLS 1.3 a client certificate is refused after the handshake only."""
    if isinstance(error, ssl.SSLError):
        fault, told = what_failed(error)
        return TransportFault(fault, told, left=True)
    return TransportFault(Fault.NO_RESPONSE, words)


def _fault(error: h11.RemoteProtocolError, *, ended: bool) -> TransportFault:
    if ended:
        return TransportFault(Fault.NO_RESPONSE, "the connection was closed before a whole answer")
    return TransportFault(Fault.PROTOCOL_ERROR, f"the answer is not valid HTTP: {error}")


def _head(request: Request, target: Target) -> h11.Request:
    given = [(name, value) for name, value in request.all_headers if name.lower() != "host"]
    return h11.Request(
        method=request.method, target=target.path, headers=[("Host", target.authority), *given]
    )
