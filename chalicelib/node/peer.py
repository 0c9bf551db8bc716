"""A peer: one TCP connection of the node, from its HTTP request to the last byte of its WebSocket.

Bytes become messages by websockets' sans-I/O protocol, and messages go out with backpressure: while a peer
has an outstanding write it is `blocked`, and what else is for it stands in its queue. Whoever owns the peer
is told of requests, messages, drained writes and the end, always in order.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

from websockets.exceptions import InvalidState
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol

from chalicelib.node.settings import MESSAGE_MAX_BYTES, NodeSettings

if TYPE_CHECKING:
    from chalicelib.node.door import Asked
    from chalicelib.node.parcel import Parcel

WRITE_HIGH_BYTES = 32_768
LINGER_S = 5.0
_DISCARDED_MAX_BYTES = 1 << 20
_HEAD_MAX_BYTES = 65_536
_HEAD_END = b"\r\n\r\n"
_POST = b"POST "
_SWITCHING = 101


class Owner(Protocol):
    """What a peer tells of itself."""

    settings: NodeSettings

    def requested(self, peer: "Peer", request: Request) -> None:
        """Answer the peer's request, at once or later."""

    def called(self, peer: "Peer") -> Callable[[bytes], None]:
        """Give what takes the bytes of a peer that brings calls."""

    def arrived(self, peer: "Peer") -> None:
        """Take what stands in the peer's inbox."""

    def drained(self, peer: "Peer") -> None:
        """Send what waits for the peer, which is not blocked any more."""

    def lost(self, peer: "Peer") -> None:
        """Forget the peer: its connection is gone."""


Message = tuple[Opcode, bytes]


class Peer(asyncio.Protocol):
    """One connection. `inbox` holds messages in order, and None for the end."""

    __slots__ = (
        "_early",
        "_fragmented",
        "_fragments",
        "_held_back",
        "_linger",
        "_opcode",
        "_owner",
        "_pong",
        "_request_timer",
        "asked",
        "blocked",
        "charged",
        "inbox",
        "left",
        "outgoing",
        "parcel",
        "taker",
        "transport",
        "tunnel",
        "waiters",
        "wire",
        "writing",
    )  # fmt: skip

    def __init__(self, owner: Owner) -> None:
        """Belong to the node that accepted it."""
        self._owner = owner
        self.wire = ServerProtocol(max_size=MESSAGE_MAX_BYTES)
        self.transport: asyncio.Transport = cast("asyncio.Transport", None)
        self.asked: Asked | None = None
        self.inbox: deque[Message | None] = deque()
        self.outgoing: deque[Parcel] = deque()
        self.waiters: list[Peer] = []
        self.writing: Parcel | None = None
        self.parcel: Parcel | None = None
        self.blocked = False
        self.left = False
        self.charged = 0
        self.tunnel = ""
        self.taker: Callable[[bytes], None] | None = None
        self._early = bytearray()
        self._fragmented = False
        self._fragments = bytearray()
        self._opcode = Opcode.BINARY
        self._held_back = False
        self._pong = b""
        self._linger: asyncio.TimerHandle | None = None
        self._request_timer: asyncio.TimerHandle | None = None

    @property
    def held_bytes(self) -> int:
        """Count the bytes that came from this peer and have not gone on."""
        inside = sum(len(each[1]) for each in self.inbox if each)
        return (
            len(self.wire.reader.buffer)
            + len(self._fragments)
            + inside
            + (self.parcel.size if self.parcel else 0)
        )

    @property
    def open(self) -> bool:
        """Say whether messages may still be sent to it."""
        return self.wire.state is State.OPEN and not self.transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a request."""
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(WRITE_HIGH_BYTES, 0)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            buffer = self._owner.settings.tcp_receive_buffer_bytes
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.expect_request()

    def data_received(self, data: bytes) -> None:
        """Read what came; messages go to the inbox in order."""
        if self.taker is not None:
            self.taker(data)
            return
        wire = self.wire
        if wire.state is State.CONNECTING:
            self._ask(data)
            return
        wire.receive_data(data)
        if wire.writes:
            self._reply()
        for event in wire.events_received():
            self._frame(cast("Frame", event))
        if self.left:
            self._discard()
            return
        if wire.state is State.CLOSING:
            self.end()
        self._owner.arrived(self)

    def eof_received(self) -> bool:
        """Note the end of what comes."""
        self.wire.receive_eof()
        self.flush()
        return False

    def connection_lost(self, _error: Exception | None) -> None:
        """Give everything back."""
        self.wire.receive_eof()
        # The protocol and its parser hold each other: what is in there would stay until it is collected.
        self.wire.reader.buffer.clear()
        self._fragments = bytearray()
        for timer in (self._linger, self._request_timer):
            if timer is not None:
                timer.cancel()
        self.blocked = False
        self._owner.lost(self)

    def end(self) -> None:
        """Note in the inbox that nothing comes any more; twice is once."""
        if not self.inbox or self.inbox[-1] is not None:
            self.inbox.append(None)

    def pause_writing(self) -> None:
        """Have an outstanding write from now on."""
        self.blocked = True

    def resume_writing(self) -> None:
        """Have none any more."""
        self.blocked = False
        if self._pong:
            pong, self._pong = self._pong, b""
            self.write(pong)
        self._owner.drained(self)

    def expect_request(self) -> None:
        """Wait for the rest of a request, but not for ever."""
        if self._request_timer is None:
            wait_s = self._owner.settings.http_idle_timeout_ms / 1000
            self._request_timer = asyncio.get_running_loop().call_later(wait_s, self.transport.abort)

    def begun(self) -> None:
        """Stop waiting for a request: all of it is there."""
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None

    def begin(self) -> None:
        """Read what was sent after the request, before it was answered."""
        early = bytes(self._early)
        self._early.clear()
        if early:
            self.data_received(early)

    def answer(self, response: Response) -> None:
        """Answer the request: with 101 the WebSocket is open, else the connection ends."""
        self.begun()
        if self.wire.state is State.CONNECTING and not self.transport.is_closing():
            self.wire.send_response(response)
            self.flush()
            if response.status_code != _SWITCHING:
                self._linger_on()

    def write(self, raw: bytes) -> None:
        """Send a frame as it is; a no-op once closing."""
        if self.open:
            self.transport.write(raw)

    def close(self, code: int, reason: str, *, within_s: float = LINGER_S) -> None:
        """Begin to close; what has not ended within some seconds is cut off."""
        try:
            self.wire.send_close(code, reason)
        except InvalidState:
            return
        self.flush()
        self._linger_on(within_s)
        self.read_on()

    def ping(self) -> None:
        """Ask whether anybody is there."""
        if self.open:
            self.wire.send_ping(b"")
            self.flush()

    def hold_back(self) -> None:
        """Stop reading."""
        if not self._held_back and not self.transport.is_closing():
            self._held_back = True
            self.transport.pause_reading()

    def read_on(self) -> None:
        """Read again."""
        if self._held_back and not self.transport.is_closing():
            self._held_back = False
            self.transport.resume_reading()

    def flush(self) -> None:
        """Send what the protocol has to say."""
        for data in self.wire.data_to_send():
            if self.transport.is_closing():
                return
            if data:
                self.transport.write(data)
                continue
            # A half-close, so that what the other end still sends cannot take the close frame away from it.
            if self.transport.can_write_eof():
                self.transport.write_eof()
            self._linger_on()

    def _reply(self) -> None:
        """Send what the protocol answers; of pongs that cannot go yet the latest speaks for all before it."""
        if self.blocked and self.wire.state is State.OPEN:
            self._pong = self.wire.data_to_send()[-1]
            return
        if self._pong and self.wire.state is not State.OPEN and not self.transport.is_closing():
            self.transport.write(self._pong)
            self._pong = b""
        self.flush()

    def _ask(self, data: bytes) -> None:
        """Read a request to its end; what comes after it has to wait for the answer."""
        early = self._early
        early += data
        if self._request_timer is None:
            return
        if _POST.startswith(early[: len(_POST)]):
            if len(early) >= len(_POST):
                self.taker = self._owner.called(self)
                self.begin()
            return
        end = early.find(_HEAD_END) + len(_HEAD_END)
        if end < len(_HEAD_END):
            if len(early) <= _HEAD_MAX_BYTES:
                return
            end = len(early)
        head = bytes(early[:end])
        del early[:end]
        self._requested(head)

    def _requested(self, head: bytes) -> None:
        self.begun()
        self.wire.receive_data(head)
        self.flush()
        for event in self.wire.events_received():
            self._owner.requested(self, cast("Request", event))
            return
        self._linger_on()

    def _frame(self, frame: Frame) -> None:
        if frame.opcode is Opcode.CLOSE:
            self.end()
        elif frame.opcode is Opcode.TEXT or frame.opcode is Opcode.BINARY:
            self._opcode = frame.opcode
            self._part(frame)
        elif frame.opcode is Opcode.CONT:
            self._part(frame)

    def _part(self, frame: Frame) -> None:
        if self.left:
            return
        # The parser holds the frame until its next one.
        data, frame.data = bytes(frame.data), b""
        if not frame.fin or self._fragmented:
            self._fragments += data
            self._fragmented = not frame.fin
            if not frame.fin:
                return
            data = bytes(self._fragments)
            self._fragments = bytearray()
        if self._opcode is Opcode.TEXT and not _is_text(data):
            self.wire.fail(CloseCode.INVALID_DATA, "invalid UTF-8")
            self.flush()
            return
        self.inbox.append((self._opcode, data))

    def _discard(self) -> None:
        self._fragments = bytearray()
        self.inbox.clear()
        if len(self.wire.reader.buffer) > _DISCARDED_MAX_BYTES:
            self.transport.abort()

    def _linger_on(self, within_s: float = LINGER_S) -> None:
        if self._linger is None and not self.transport.is_closing():
            self._linger = asyncio.get_running_loop().call_later(within_s, self.transport.abort)


def framed(opcode: Opcode, data: bytes) -> bytes:
    """Write a message as one frame of the server's."""
    return Frame(opcode, data).serialize(mask=False)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
