"""Tunnels: what passes between Relay and a listener on a developer's machine, as bytes.

A frame is a head, a JSON object with its length before it in four bytes, and a body. A delivery's head has
its number and the request's headers; that of an answer has the number, and status and headers or a fault.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

URL = "tunnel:"
"""The URL of every tunnel: where its listener is it says itself, by coming."""
TICKET_S = 300
"""How long a ticket opens a connection; what it has opened stays open."""
FRAME_MAX = 2 << 20
LOST = b"listener lost"
"""What a node says of a call whose listener went in the middle of it."""
_LENGTH = struct.Struct("!I")


class NotAFrameError(ValueError):
    """Bytes that are no frame."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a ticket opens: the tunnel of an endpoint, or with none named the way into all of them.

    `until_ms` is when it ends, Unix ms.
    """

    tenant: str
    endpoint_id: str
    until_ms: int

    @property
    def name(self) -> str:
        """Give the name of the tunnel that it opens for a listener."""
        return name_of(self.tenant, self.endpoint_id)


def name_of(tenant: str, endpoint_id: str) -> str:
    """Name the tunnel of an endpoint."""
    return f"{tenant}/{endpoint_id}"


def framed(head: Mapping[str, Any], body: bytes = b"") -> bytes:
    """Write a frame."""
    text = json.dumps(head, separators=(",", ":")).encode()
    return _LENGTH.pack(len(text)) + text + body


def unframed(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Read a frame, or raise NotAFrameError."""
    if len(data) < _LENGTH.size:
        raise NotAFrameError("shorter than its length")
    (size,) = _LENGTH.unpack_from(data)
    try:
        head = json.loads(data[_LENGTH.size : _LENGTH.size + size])
    except (ValueError, RecursionError) as error:
        raise NotAFrameError("its head is no JSON") from error
    if not isinstance(head, dict) or len(data) < _LENGTH.size + size:
        raise NotAFrameError("its head is no object, or not whole")
    return head, data[_LENGTH.size + size :]
