"""A Paseo peer for tests: one WebSocket, written from the specification and RFC 6455, over a blocking socket.

It shares nothing with the node: no library, no code. Every wait has a deadline.
"""

import base64
import hashlib
import os
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import cycle
from types import TracebackType
from typing import Self
from urllib.parse import urlencode

TEXT, BINARY, CONTINUATION, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
WITHIN_S = 10.0
_MASK = b"\x37\xfa\x21\x3d"


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: str


class RefusedError(Exception):
    """The upgrade was answered with something else than 101."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"{answer.status} {answer.body}")
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Closed:
    """How a WebSocket ended; code 0 when there was no close frame."""

    code: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One whole message."""

    opcode: int
    data: bytes

    @property
    def text(self) -> str:
        assert self.opcode == TEXT
        return self.data.decode()


def ws_path(server_id: str, role: str, version: str | None = "2", connection_id: str | None = None) -> str:
    """Write the path of an upgrade."""
    given = {"serverId": server_id, "role": role, "v": version, "connectionId": connection_id}
    return "/ws?" + urlencode({name: value for name, value in given.items() if value is not None})


def request(port: int, path: str, headers: Mapping[str, str] | None = None) -> Answer:
    """Make one HTTP request."""
    with socket.create_connection(("127.0.0.1", port), WITHIN_S) as sock:
        lines = [f"GET {path} HTTP/1.1", "Host: relay.test"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        return _answer(sock, bytearray())


@dataclass(slots=True)
class Peer:
    """An open WebSocket."""

    sock: socket.socket
    received: bytearray = field(default_factory=bytearray)
    pongs: list[bytes] = field(default_factory=list)

    @classmethod
    def open(
        cls, port: int, path: str, *, receive_buffer: int = 0, headers: Mapping[str, str] | None = None
    ) -> Self:
        """Connect and upgrade; raises RefusedError."""
        sock = socket.socket()
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.settimeout(WITHIN_S)
        sock.connect(("127.0.0.1", port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {path} HTTP/1.1", "Host: relay.test", "Upgrade: websocket", "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Extensions: permessage-deflate",
            *(f"{name}: {value}" for name, value in (headers or {}).items()), "", "",
        ]  # fmt: skip
        sock.sendall("\r\n".join(lines).encode())
        peer = cls(sock)
        answer = _answer(sock, peer.received)
        if answer.status != 101:
            sock.close()
            raise RefusedError(answer)
        wanted = base64.b64encode(
            hashlib.sha1((key + GUID).encode(), usedforsecurity=False).digest()
        ).decode()
        assert answer.headers["sec-websocket-accept"] == wanted
        assert "sec-websocket-extensions" not in answer.headers
        assert "sec-websocket-protocol" not in answer.headers
        return peer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.sock.close()

    def send(self, message: str | bytes, *, pieces: int = 1) -> None:
        """Send a message, in so many frames."""
        data = message.encode() if isinstance(message, str) else message
        size = -(-len(data) // pieces) if data else 0
        for at in range(pieces):
            first = TEXT if isinstance(message, str) else BINARY
            opcode = CONTINUATION if at else first
            self.frame(opcode, data[at * size : (at + 1) * size], last=at == pieces - 1)

    def frame(self, opcode: int, data: bytes, *, last: bool = True) -> None:
        """Send one masked frame."""
        self.sock.sendall(framed(opcode, data, last=last))

    def receive(self, within_s: float = WITHIN_S) -> Message | Closed:
        """Give the next message, or how it ended; pings are answered, pongs noted."""
        self.sock.settimeout(within_s)
        parts: list[bytes] = []
        kind = 0
        while True:
            try:
                last, opcode, data = self._next_frame()
            except (EOFError, ConnectionError):
                return Closed(0)
            match opcode:
                case 8:
                    code = struct.unpack("!H", data[:2])[0] if data else 1005
                    return Closed(code, data[2:].decode())
                case 9:
                    self.frame(PONG, data)
                case 10:
                    self.pongs.append(data)
                case _:
                    kind = opcode or kind
                    parts.append(data)
                    if last:
                        return Message(kind, b"".join(parts))

    def message(self, within_s: float = WITHIN_S) -> Message:
        """Give the next message, which there has to be."""
        found = self.receive(within_s)
        assert isinstance(found, Message), found
        return found

    def closed(self, within_s: float = WITHIN_S) -> Closed:
        """Read to the end, and say how it ended; nothing else may come."""
        found = self.receive(within_s)
        assert isinstance(found, Closed), found
        return found

    def close(self, code: int = 1000, reason: str = "") -> Closed:
        """Close, and give the other end's echo."""
        self.frame(CLOSE, struct.pack("!H", code) + reason.encode())
        while True:
            found = self.receive()
            if isinstance(found, Closed):
                self.sock.close()
                return found

    def silent(self, for_s: float) -> bool:
        """Say whether nothing comes for so long."""
        if self.received:
            return False
        self.sock.settimeout(for_s)
        try:
            self.received += self.sock.recv(1)
        except TimeoutError:
            return True
        return False

    def _next_frame(self) -> tuple[bool, int, bytes]:
        head = self._exactly(2)
        size = head[1] & 0x7F
        assert not head[1] & 0x80, "a server's frame may not be masked"
        if size == 126:
            (size,) = struct.unpack("!H", self._exactly(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", self._exactly(8))
        return bool(head[0] & 0x80), head[0] & 0x0F, self._exactly(size)

    def _exactly(self, count: int) -> bytes:
        while len(self.received) < count:
            data = self.sock.recv(1 << 20)
            if not data:
                raise EOFError
            self.received += data
        found = bytes(self.received[:count])
        del self.received[:count]
        return found


def framed(opcode: int, data: bytes, *, last: bool = True) -> bytes:
    """Write a client's frame."""
    size = len(data)
    head = bytes([(0x80 if last else 0) | opcode])
    if size < 126:
        head += bytes([0x80 | size])
    elif size < 1 << 16:
        head += struct.pack("!BH", 0x80 | 126, size)
    else:
        head += struct.pack("!BQ", 0x80 | 127, size)
    return head + _MASK + _masked(data)


def _masked(data: bytes) -> bytes:
    if len(data) < 4096:
        return bytes(byte ^ key for byte, key in zip(data, cycle(_MASK), strict=False))
    key = int.from_bytes((_MASK * (len(data) // 4 + 1))[: len(data)], "big")
    return (int.from_bytes(data, "big") ^ key).to_bytes(len(data), "big")


def _answer(sock: socket.socket, rest: bytearray) -> Answer:
    """Read an HTTP answer; what follows a 101 goes into `rest`."""
    data = bytearray()
    while b"\r\n\r\n" not in data:
        more = sock.recv(65_536)
        assert more, bytes(data)
        data += more
    head, _, body = bytes(data).partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    status = int(first.split(" ")[1])
    if status == 101:
        rest += body
        return Answer(status, headers, "")
    while len(body) < int(headers.get("content-length", 0)):
        body += sock.recv(65_536)
    return Answer(status, headers, body.decode())
