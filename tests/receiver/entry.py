"""One delivery as the log keeps it, and as it is shown. No counting and no I/O may enter here."""

import base64
import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from tests.receiver.request import Request, parse_headers
from tests.receiver.verify import Verdict

KEPT_BODY_BYTES = 4096
NS_PER_MS = 1_000_000
Record: TypeAlias = dict[str, Any]


class Outcome(StrEnum):
    """How the exchange stands: not answered in full yet, answered, left by the client, or cut off by us."""

    OPEN = "open"
    ANSWERED = "answered"
    LEFT = "left"
    CUT = "cut"


class Moment(NamedTuple):
    """The same instant on two clocks, in nanoseconds: since the epoch, and monotonic."""

    epoch_ns: int
    monotonic_ns: int


@dataclass(slots=True)
class Entry:
    """What arrived, when, and what became of it. Heads stay bytes: they are taken apart when shown."""

    number: int
    connection: int
    path: str
    target: str
    method: str
    head: bytes
    body: bytes | None
    body_length: int
    body_sha256: str | None
    delivery_id: str | None
    event_id: str | None
    verdict: Verdict | None
    in_flight: int
    arrived: Moment
    ended: Moment | None = None
    status: int | None = None
    outcome: Outcome = Outcome.OPEN
    bytes_written: int = 0

    @property
    def verified(self) -> bool | None:
        """Say whether the signature held; None where it was not looked at."""
        return None if self.verdict is None else self.verdict.verified

    def brief(self) -> Record:
        """Give everything but headers and body."""
        headers = self.headers()
        return {
            "number": self.number,
            "connection": self.connection,
            "method": self.method,
            "path": self.path,
            "target": self.target,
            "received_at": self.arrived.epoch_ns / NS_PER_MS,
            "received_mono_ms": self.arrived.monotonic_ns / NS_PER_MS,
            "answered_at": self.ended and self.ended.epoch_ns / NS_PER_MS,
            "answered_mono_ms": self.ended and self.ended.monotonic_ns / NS_PER_MS,
            "in_flight": self.in_flight,
            "status": self.status,
            "outcome": self.outcome.value,
            "bytes_written": self.bytes_written,
            "verified": self.verified,
            "unverified_because": self.verdict and self.verdict.reason,
            "delivery_id": self.delivery_id,
            "event_id": self.event_id,
            "event_type": headers.get("relay-event-type"),
            "attempt": _number(headers.get("relay-attempt")),
            "generation": _number(headers.get("relay-generation")),
            "timestamp": _number(headers.get("relay-timestamp", headers.get("webhook-timestamp"))),
            "body_length": self.body_length,
            "body_sha256": self.sha256(),
        }

    def full(self) -> Record:
        """Give everything. `header_lines` are as they came, `headers` have lower-case names."""
        body = self.body
        return self.brief() | {
            "headers": self.headers(),
            "header_lines": self.head.decode("latin-1").split("\r\n")[1:],
            "body_base64": None if body is None else base64.b64encode(body).decode(),
            "body_text": None if body is None else _text(body),
        }

    def headers(self) -> dict[str, str]:
        """Give the headers under lower-case names."""
        return parse_headers(self.head.decode("latin-1").split("\r\n")[1:])

    def sha256(self) -> str:
        """Give the digest of the body, kept or not."""
        return self.body_sha256 or hashlib.sha256(self.body or b"").hexdigest()


class Arrival(NamedTuple):
    """A delivery that was read in full and not answered yet."""

    request: Request
    connection: int
    verdict: Verdict | None
    at: Moment


def make_entry(number: int, arrival: Arrival, in_flight: int) -> Entry:
    """Make the log's entry; a body over 4 KiB is kept as its length and digest unless `?keep` asks for it."""
    request = arrival.request
    headers, body = request.headers, request.body
    kept = len(body) <= KEPT_BODY_BYTES or "keep" in request.target.query
    return Entry(
        number=number,
        connection=arrival.connection,
        path=request.target.path,
        target=request.target.text,
        method=request.method,
        head=request.head,
        body=body if kept else None,
        body_length=len(body),
        body_sha256=None if kept else hashlib.sha256(body).hexdigest(),
        delivery_id=headers.get("relay-delivery-id") or headers.get("webhook-id"),
        event_id=headers.get("relay-event-id"),
        verdict=arrival.verdict,
        in_flight=in_flight,
        arrived=arrival.at,
    )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


def _text(body: bytes) -> str | None:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None
