"""HTTP/1.1 requests out of bytes. No sockets, no clock and no opinion about routes may enter here."""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

MAX_HEAD_BYTES = 128 * 1024
MAX_BODY_BYTES = 32 * 1024 * 1024
MAX_CHUNK_LINE_BYTES = 1024
REQUEST_LINE_PARTS = 3
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,8}")


class MalformedRequestError(Exception):
    """The client sent what is not an HTTP/1.1 request; `status` is what to answer before closing."""

    def __init__(self, status: int, reason: str) -> None:
        """Keep the status to answer and the reason in plain words."""
        super().__init__(reason)
        self.status = status


class BadQueryError(Exception):
    """A query parameter of a route cannot be used; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Target:
    """A request target taken apart: `/slow/a?ms=5` has the family `slow`, the rest `a` and one parameter."""

    text: str
    path: str
    family: str
    rest: str
    query: dict[str, str] = field(hash=False)

    def number(self, name: str, default: float) -> float:
        """Give a parameter as a number that is not negative, or raise BadQueryError."""
        text = self.query.get(name, "")
        if not text:
            return default
        try:
            value = float(text)
        except ValueError:
            value = -1
        if not 0 <= value < float("inf"):
            raise BadQueryError(f"{name} must be a number from 0 up, not {text!r}")
        return value

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        """Give a parameter that must be one of `allowed`; the first of them is the default."""
        text = self.query.get(name) or allowed[0]
        if text not in allowed:
            raise BadQueryError(f"{name} must be one of {', '.join(allowed)}, not {text!r}")
        return text


@lru_cache(maxsize=4096)
def parse_target(text: str) -> Target:
    """Take a target apart, in origin form or in the absolute form that proxies are sent."""
    if text.startswith("/"):
        raw_path, _, query = text.partition("?")
    else:
        parts = urlsplit(text)
        raw_path, query = parts.path or "/", parts.query
    path = unquote(raw_path)
    family, _, rest = path[1:].partition("/")
    return Target(text, path, family, rest, dict(parse_qsl(query, keep_blank_values=True)))


class Request(NamedTuple):
    """One whole request. `head` is exactly what arrived, without the blank line that ends it."""

    method: str
    target: Target
    keep_alive: bool
    head: bytes
    headers: dict[str, str]
    body: bytes


class _Head(NamedTuple):
    method: str
    target: Target
    keep_alive: bool
    raw: bytes
    headers: dict[str, str]
    length: int | None


def parse_headers(lines: list[str]) -> dict[str, str]:
    """Give the headers under lower-case names; a repeated one is joined with a comma."""
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or " " in name:
            raise MalformedRequestError(400, f"not a header line: {line[:80]!r}")
        key = name.lower()
        value = value.strip()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return headers


def _body_length(headers: dict[str, str]) -> int | None:
    coding = headers.get("transfer-encoding")
    text = headers.get("content-length")
    if coding is not None:
        if coding.lower() != "chunked" or text is not None:
            raise MalformedRequestError(400, "the body must have either a Content-Length or chunked coding")
        return None
    if text is None:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise MalformedRequestError(400, f"not a Content-Length: {text[:40]!r}")
    if len(text) > len(str(MAX_BODY_BYTES)) or int(text) > MAX_BODY_BYTES:
        raise MalformedRequestError(413, f"a body may have at most {MAX_BODY_BYTES} bytes")
    return int(text)


def _parse_head(raw: bytes) -> _Head:
    lines = raw.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != REQUEST_LINE_PARTS or not words[2].startswith("HTTP/1."):
        raise MalformedRequestError(400, f"not an HTTP/1.1 request line: {lines[0][:80]!r}")
    method, target, version = words
    headers = parse_headers(lines[1:])
    wish = headers.get("connection", "").lower()
    keep_alive = wish != "close" and method != "HEAD" and (version != "HTTP/1.0" or wish == "keep-alive")
    return _Head(method, parse_target(target), keep_alive, raw, headers, _body_length(headers))


class RequestReader:
    """Collects bytes and gives whole requests, one at a time, in the order they came."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._buffer = bytearray()
        self._head: _Head | None = None
        self._chunks = bytearray()

    def feed(self, data: bytes | memoryview) -> None:
        """Take what the socket gave."""
        self._buffer += data

    def next(self) -> Request | None:
        """Give the next whole request, None while bytes are missing; MalformedRequestError ends it all."""
        head = self._head
        if head is None:
            head = self._head = self._take_head()
            if head is None:
                return None
        body = self._take_chunked() if head.length is None else self._take(head.length)
        if body is None:
            return None
        self._head = None
        return Request(head.method, head.target, head.keep_alive, head.raw, head.headers, body)

    @property
    def wants_continue(self) -> bool:
        """Say whether the client waits for `100 Continue` before it sends the body."""
        head = self._head
        return (
            head is not None
            and not self._buffer
            and not self._chunks
            and head.headers.get("expect", "").lower() == "100-continue"
        )

    def _take_head(self) -> _Head | None:
        end = self._buffer.find(b"\r\n\r\n")
        if max(end, 0 if end >= 0 else len(self._buffer)) > MAX_HEAD_BYTES:
            raise MalformedRequestError(431, f"a head may have at most {MAX_HEAD_BYTES} bytes")
        if end < 0:
            return None
        raw = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        return _parse_head(raw)

    def _take(self, length: int) -> bytes | None:
        if len(self._buffer) < length:
            return None
        taken = bytes(self._buffer[:length])
        del self._buffer[:length]
        return taken

    def _take_chunked(self) -> bytes | None:
        while True:
            end = self._buffer.find(b"\r\n")
            if end < 0 and len(self._buffer) < MAX_CHUNK_LINE_BYTES:
                return None
            size = _chunk_size(bytes(self._buffer[:end]))
            if size == 0:
                return self._end_chunks(end)
            if len(self._chunks) + size > MAX_BODY_BYTES:
                raise MalformedRequestError(413, f"a body may have at most {MAX_BODY_BYTES} bytes")
            if len(self._buffer) < end + 2 + size + 2:
                return None
            self._chunks += self._buffer[end + 2 : end + 2 + size]
            del self._buffer[: end + 2 + size + 2]

    def _end_chunks(self, line_end: int) -> bytes | None:
        end = self._buffer.find(b"\r\n\r\n", line_end)
        if end < 0:
            return None
        del self._buffer[: end + 4]
        body = bytes(self._chunks)
        self._chunks.clear()
        return body


def _chunk_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not _CHUNK_SIZE.fullmatch(digits):
        raise MalformedRequestError(400, f"not a chunk size: {line[:40]!r}")
    return int(digits, 16)
