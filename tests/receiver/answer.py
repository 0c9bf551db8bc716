"""The bytes of an answer, built once. Nothing here writes them."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus

FIRST_FINAL_STATUS = 200
WITHOUT_LENGTH = frozenset({204, 304})
_REASONS = {status.value: status.phrase for status in HTTPStatus}


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes onto the wire, byte for byte, and what the log says about it."""

    status: int | None
    data: bytes
    close: bool = False


def head(status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    """Give a status line and headers with the blank line that ends them."""
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Odd')}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def build(
    status: int, body: bytes = b"", headers: Iterable[tuple[str, str]] = (), *, close: bool = False
) -> Answer:
    """Give a well-formed answer; statuses that carry no body get none."""
    bare = status in WITHOUT_LENGTH or status < FIRST_FINAL_STATUS
    lines = list(headers)
    if not bare:
        lines.append(("Content-Length", str(len(body))))
    if close:
        lines.append(("Connection", "close"))
    return Answer(status, head(status, lines) + (b"" if bare else body), close)


def plain(status: int, text: str, headers: Iterable[tuple[str, str]] = (), *, close: bool = False) -> Answer:
    """Give an answer of one line of text."""
    typed = [("Content-Type", "text/plain; charset=utf-8"), *headers]
    return build(status, f"{text}\n".encode(), typed, close=close)


def as_json(status: int, value: object) -> Answer:
    """Give an answer whose body is JSON."""
    return build(status, json.dumps(value).encode(), [("Content-Type", "application/json")])
