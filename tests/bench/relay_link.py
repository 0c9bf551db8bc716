"""One WebSocket of the load client: numbered frames out, and what came of another's in."""

import asyncio
import struct
import time
from collections.abc import Sequence
from typing import Self, cast

from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import State
from websockets.uri import parse_uri

OPEN_WITHIN_S = 20.0
_HEAD = struct.Struct("!QQ")


class RefusedError(Exception):
    """The relay gave no WebSocket."""


class Link(asyncio.Protocol):
    """A socket; frames begin with their number and the moment they were sent."""

    def __init__(self, url: str) -> None:
        self.wire = ClientProtocol(parse_uri(url), max_size=None)
        self.sent = self.received = self.misordered = 0
        self.waits_ns: list[int] = []
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._writable = asyncio.Event()
        self._writable.set()
        self._pinging: asyncio.TimerHandle | None = None

    @classmethod
    async def open(cls, url: str, *, keepalive_s: float) -> Self:
        """Connect and upgrade; raises RefusedError, OSError, TimeoutError."""
        made = cls(url)
        uri = made.wire.uri
        async with asyncio.timeout(OPEN_WITHIN_S):
            await asyncio.get_running_loop().create_connection(lambda: made, uri.host, uri.port)
            await made._opened
        if keepalive_s:
            made._ping_every(keepalive_s)
        return made

    def expect(self, source: "Link") -> None:
        """Begin to count what comes from another, whose numbers begin anew."""
        source.sent = 0
        self.forget()

    def forget(self) -> None:
        """Begin to count anew."""
        self.received = self.misordered = 0
        self.waits_ns = []

    async def send_numbered(self, size: int) -> None:
        """Send a frame of so many bytes, as soon as there is room."""
        if not self._writable.is_set():
            await self._writable.wait()
        self.wire.send_binary(_HEAD.pack(self.sent, time.monotonic_ns()) + b"\0" * (size - _HEAD.size))
        self.sent += 1
        self._flush()

    async def close(self, within_s: float) -> bool:
        """Close; False when that did not end in time."""
        if self._pinging is not None:
            self._pinging.cancel()
        if self.wire.state is State.OPEN:
            self.wire.send_close(1000)
            self._flush()
        try:
            async with asyncio.timeout(within_s):
                await asyncio.shield(self._gone)
        except TimeoutError:
            self._transport.abort()
            return False
        return True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.wire.send_request(self.wire.connect())
        self._flush()

    def data_received(self, data: bytes) -> None:
        self.wire.receive_data(data)
        self._flush()
        for event in self.wire.events_received():
            if isinstance(event, Response):
                self._answered(event)
            elif isinstance(event, Frame) and event.opcode is Opcode.BINARY:
                self._came(bytes(event.data[: _HEAD.size]))

    def eof_received(self) -> None:
        self.wire.receive_eof()
        self._flush()

    def connection_lost(self, error: Exception | None) -> None:
        self.wire.receive_eof()
        if not self._opened.done():
            self._opened.set_exception(RefusedError(f"the connection ended: {error}"))
        self._writable.set()
        if not self._gone.done():
            self._gone.set_result(None)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _answered(self, response: Response) -> None:
        if self.wire.state is State.OPEN:
            self._opened.set_result(None)
        elif not self._opened.done():
            words = bytes(response.body or b"").decode()
            self._opened.set_exception(RefusedError(f"{response.status_code} {words}"))

    def _came(self, head: bytes) -> None:
        number, sent_ns = _HEAD.unpack(head)
        self.misordered += number != self.received
        self.received += 1
        self.waits_ns.append(time.monotonic_ns() - sent_ns)

    def _flush(self) -> None:
        for data in self.wire.data_to_send():
            if self._transport.is_closing():
                return
            if data:
                self._transport.write(data)
            else:
                self._transport.close()

    def _ping_every(self, seconds: float) -> None:
        if self.wire.state is State.OPEN:
            self.wire.send_ping(b"")
            self._flush()
            self._pinging = asyncio.get_running_loop().call_later(seconds, self._ping_every, seconds)


def percentiles(waits_ns: Sequence[int], *percents: int) -> list[float]:
    """Give the waits that so many percent did not exceed, in ms; 0 when there are none."""
    ordered = sorted(waits_ns)
    if not ordered:
        return [0.0] * len(percents)
    return [round(ordered[min(len(ordered) - 1, len(ordered) * each // 100)] / 1e6, 3) for each in percents]
