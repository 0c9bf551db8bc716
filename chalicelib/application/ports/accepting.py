"""What accepting an event and fanning it out need of the world."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from chalicelib.application.ports.world import Unavailable
from chalicelib.domain.allowance import UNPACED, Pace
from chalicelib.domain.delivery import Created, Owed
from chalicelib.domain.event import Event
from chalicelib.domain.gate import Gate
from chalicelib.domain.pattern import Pattern


@dataclass(frozen=True, slots=True)
class Subscriber:
    """What a packed subscription row says of an endpoint: its lanes, its age, and whether it is ordered.

    `filter` is the mark of its payload filter, empty for none.
    """

    endpoint_id: str
    lanes: int
    created_ms: int
    ordered: bool = False
    filter: str = ""


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event as its row has it: the body inline, or the key its bytes are kept under.

    `fan_out` is inline, later or none; `matched` names the endpoints fanned out inline.
    """

    event: Event
    size: int
    payload_key: str = ""
    fan_out: str = "inline"
    matched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Idempotency:
    """A key as its first request claimed it, with the exact answer for every repeat."""

    key: str
    fingerprint: str
    answer: str
    expires_s: int


@dataclass(frozen=True, slots=True)
class Owing:
    """A new delivery: its owed row, and the history row that says it was created."""

    owed: Owed
    created: Created


@dataclass(frozen=True, slots=True)
class Capture:
    """Everything one accepted event writes, all or nothing; `pace` is that of a later fan-out."""

    stored: StoredEvent
    owing: tuple[Owing, ...] = ()
    claim: Idempotency | None = None
    pace: Pace = UNPACED


@dataclass(frozen=True, slots=True)
class Fanout:
    """A fan-out still to be done; `cursor` is the last endpoint id already dealt with.

    `pace` says how many deliveries its tenant's budget has been charged for already, and when they may go.
    """

    tenant: str
    event_id: str
    event_type: str
    cursor: str = ""
    pace: Pace = UNPACED


class Capturing(Protocol):
    """Where events are accepted."""

    def subscribers(
        self, tenant: str, event_types: Iterable[str], now_ms: int = 0
    ) -> dict[str, tuple[Subscriber, ...]]:
        """Read strongly consistent who takes each type, every endpoint once, ordered by id."""
        ...

    def filters(self, tenant: str, subscribers: Iterable[Subscriber]) -> dict[str, Pattern]:
        """Give the filters of those subscribers that have one, by endpoint id.

        Known ones cost no call; the others are read as they are now. Left out are endpoints whose filter,
        or which themselves, are gone.
        """
        ...

    def gates_seen(self, endpoints: Iterable[tuple[str, str]], now_ms: int) -> dict[tuple[str, str], Gate]:
        """Give the gates of (tenant, endpoint) pairs that were seen in the last moments; asks nobody."""
        ...

    def any_ordered(self, tenant: str) -> bool:
        """Say whether a tenant has ordered endpoints, without its subscriptions."""
        ...

    def take_numbers(self, tenant: str, counts: Mapping[str, int], now_us: int) -> dict[str, int]:
        """Take so many numbers in a row for each ordered endpoint, and give the first of each.

        In one call per 25 endpoints. A number is larger than each that was ever given before for the
        endpoint; the numbers between may be missing.
        """
        ...

    def arm(self, endpoints: Iterable[tuple[str, str]], now_ms: int) -> None:
        """Make sure that reconcile looks at each (tenant, endpoint) for ten minutes and more."""
        ...

    def commit(self, captures: Sequence[Capture], now_s: int) -> list[Idempotency | Unavailable | None]:
        """Write each capture, all or nothing.

        An answer is the earlier claim that stood in its way, or the failure that did; raises
        Unavailable only when nothing at all was written.
        """
        ...

    def claimed(self, tenant: str, key: str, now_s: int) -> Idempotency | None:
        """Read an unexpired claim."""
        ...


class FanningOut(Protocol):
    """Where later fan-outs are worked off."""

    def event(self, tenant: str, event_id: str) -> StoredEvent | None:
        """Read an event; None when it is gone."""
        ...

    def pending(self, tenant: str, event_id: str) -> Fanout | None:
        """Read a fan-out still to be done."""
        ...

    def waiting(self, older_than_ms: int) -> Iterable[Fanout]:
        """Walk the fan-outs of events received before a moment."""
        ...

    def advance(self, fanout: Fanout, owing: Sequence[Owing], after: Fanout | None) -> bool:
        """Write a chunk's rows and how the fan-out is after it (None: done) in one transaction.

        False when another got there first.
        """
        ...


class Payloads(Protocol):
    """Where bodies over the inline limit are kept."""

    def put(self, key: str, body: bytes) -> None:
        """Keep a body."""
        ...

    def get(self, key: str) -> bytes | None:
        """Give a body back, or None when it is gone."""
        ...
