"""An httpx transport that connects under the address policy and keeps connections open.

HTTP/1.1 by h11 over asyncio streams. It knows nothing of cookies, proxies, redirects or encodings.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from http import HTTPStatus

import h11
import httpx

from chalicelib.adapters.http.connect import Resolve, TransportFault, open_checked, resolve
from chalicelib.domain.errors import RelayError
from chalicelib.domain.outcome import Fault
from chalicelib.domain.target import Policy, Target, parse_target

HEAD_MAX = 65_536
IDLE_S = 30.0
IDLE_MAX = 64
SENT_AGAIN = "sent again: a kept connection was closed without an answer"
_CHUNK = 16_384
_INTERIM = frozenset({100, 102, 103})
_SWITCHED = "_SWITCH_UPGRADE"  # how h11 calls a 101 that nobody asked for


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds for connecting (DNS and TLS included) and for the head of the answer."""

    connect_s: float = 5.0
    read_s: float = 5.0


class Connection:
    """One HTTP/1.1 connection to a target."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Speak over an open stream."""
        self._reader = reader
        self._writer = writer
        self._protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_MAX)
        self.idle_since = 0.0
        self.answered = False
        self.last_word = 0
        self._ended = False

    @property
    def usable(self) -> bool:
        """Say whether the peer has left the idle connection open, and sent nothing unasked."""
        fresh = time.monotonic() - self.idle_since < IDLE_S
        return fresh and not self._reader.at_eof() and not self._writer.is_closing()

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
            raise TransportFault(Fault.NO_RESPONSE, "the connection broke before an answer") from error

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
        self.idle_since = time.monotonic()
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
                raise TransportFault(Fault.NO_RESPONSE, "the connection broke off") from error
            self.answered |= bool(received)
            self._ended = not received
            self._protocol.receive_data(received)


class _Body(httpx.AsyncByteStream):
    """An answer's body; closing it early drops the connection."""

    def __init__(self, pool: "GuardedTransport", key: tuple[str, str, int], connection: Connection) -> None:
        self._pool = pool
        self._key = key
        self._connection = connection
        self._whole = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._connection.body():
            yield piece
        self._whole = True

    async def aclose(self) -> None:
        self._pool.give_back(self._key, self._connection, whole=self._whole)


class GuardedTransport(httpx.AsyncBaseTransport):
    """Sends each request to an address that the policy allows, over a kept connection if there is one."""

    def __init__(self, policy: Policy, timeouts: Timeouts, ask: Resolve = resolve) -> None:
        """Apply a policy to what a resolver answers."""
        self._policy = policy
        self._timeouts = timeouts
        self._ask = ask
        self._idle: dict[tuple[str, str, int], list[Connection]] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; the answer's extensions say how long connecting took (`connect_ms`).

        A kept connection may have been closed by the peer meanwhile. Then the request goes out once more,
        which `detail` tells, since the peer may have taken it twice.
        """
        target = self._target(str(request.url))
        key = (target.scheme, target.host, target.port)
        body = await request.aread()
        kept = self._kept(key)
        if kept is not None:
            try:
                return await self._exchange(key, kept, request, target, body)
            except TransportFault as fault:
                if kept.answered or fault.fault is not Fault.NO_RESPONSE:
                    raise
        answer = self._exchange(key, None, request, target, body)
        return await (answer if kept is None else _told(answer))

    def give_back(self, key: tuple[str, str, int], connection: Connection, *, whole: bool) -> None:
        """Keep a connection for the next request, or drop it."""
        idle = self._idle.setdefault(key, [])
        if whole and len(idle) < IDLE_MAX and connection.recycle():
            idle.append(connection)
        else:
            connection.close()

    async def aclose(self) -> None:
        """Drop every idle connection."""
        for idle in self._idle.values():
            for connection in idle:
                connection.close()
        self._idle.clear()

    def _target(self, url: str) -> Target:
        try:
            return parse_target(url, self._policy)
        except RelayError as error:
            raise TransportFault(Fault.REFUSED, error.detail) from error

    def _kept(self, key: tuple[str, str, int]) -> Connection | None:
        idle = self._idle.get(key, [])
        while idle:
            connection = idle.pop()
            if connection.usable:
                return connection
            connection.close()
        return None

    async def _exchange(
        self,
        key: tuple[str, str, int],
        kept: Connection | None,
        request: httpx.Request,
        target: Target,
        body: bytes,
    ) -> httpx.Response:
        began = time.monotonic()
        connection = kept or await self._open(target)
        connect_ms = 0 if kept else int((time.monotonic() - began) * 1000)
        try:
            async with asyncio.timeout(self._timeouts.read_s):
                answer = await connection.send(_head(request, target), body)
        except (TimeoutError, TransportFault) as error:
            connection.close()
            if connection.last_word:
                return _bare(connection.last_word, connect_ms)
            if isinstance(error, TransportFault):
                raise
            raise TransportFault(Fault.TIMEOUT, "no answer within the read timeout") from error
        except BaseException:
            connection.close()
            raise
        stream = _Body(self, key, connection)
        return httpx.Response(
            answer.status_code,
            headers=answer.headers.raw_items(),
            stream=stream,
            extensions={"connect_ms": connect_ms, "detail": ""},
        )

    async def _open(self, target: Target) -> Connection:
        streams = await open_checked(target, self._policy, self._ask, self._timeouts.connect_s)
        return Connection(*streams)


def _bare(status: int, connect_ms: int) -> httpx.Response:
    return httpx.Response(
        status,
        extensions={"connect_ms": connect_ms, "detail": "no other answer followed this status"},
    )


async def _told(answer: Awaitable[httpx.Response]) -> httpx.Response:
    try:
        response = await answer
    except TransportFault as fault:
        raise TransportFault(fault.fault, f"{SENT_AGAIN}; {fault.detail}") from fault
    response.extensions["detail"] = SENT_AGAIN
    return response


def _fault(error: h11.RemoteProtocolError, *, ended: bool) -> TransportFault:
    if ended:
        return TransportFault(Fault.NO_RESPONSE, "the connection was closed before a whole answer")
    return TransportFault(Fault.PROTOCOL_ERROR, f"the answer is not valid HTTP: {error}")


def _head(request: httpx.Request, target: Target) -> h11.Request:
    given = [(name, value) for name, value in request.headers.raw if name.lower() != b"host"]
    headers = [(b"Host", target.authority.encode("ascii")), *given]
    return h11.Request(method=request.method, target=target.path.encode("ascii"), headers=headers)
