"""What the use cases need of the world, as protocols.

An adapter implements each against AWS, a fake in memory; both pass one contract suite. A port
raises `Unavailable` when our own infrastructure fails, never anything of its library's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

from chalicelib.domain.change import Change
from chalicelib.domain.delivery import (
    Again,
    Attempt,
    Created,
    Dead,
    HistoryRow,
    Lane,
    Owed,
)
from chalicelib.domain.endpoint import Endpoint, WrappedSecret
from chalicelib.domain.event import Event
from chalicelib.domain.gate import Gate
from chalicelib.domain.outcome import Reply
from chalicelib.domain.request import Request


class Unavailable(Exception):  # noqa: N818 - named after what the caller is told
    """A store, queue or key service failed or was too busy; nothing is known to have been done."""


class Clock(Protocol):
    """Reads the time."""

    def now_ms(self) -> int:
        """Give Unix epoch milliseconds."""
        ...

    def now_us(self) -> int:
        """Give Unix epoch microseconds."""
        ...


class Dice(Protocol):
    """Makes randomness."""

    def bits(self, count: int) -> int:
        """Give a random integer of that many bits, fit for identifiers."""
        ...

    def key(self, size: int) -> bytes:
        """Give random bytes fit for a secret."""
        ...

    def jitter(self) -> float:
        """Give a uniform number in [0, 1)."""
        ...


@dataclass(frozen=True, slots=True)
class Subscriber:
    """What a packed subscription row says of an endpoint: its lanes and when it was created."""

    endpoint_id: str
    lanes: int
    created_ms: int


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
    """Everything one accepted event writes, all or nothing."""

    stored: StoredEvent
    owing: tuple[Owing, ...] = ()
    claim: Idempotency | None = None


@dataclass(frozen=True, slots=True)
class Fanout:
    """A fan-out still to be done; `cursor` is the last endpoint id already dealt with."""

    tenant: str
    event_id: str
    event_type: str
    cursor: str = ""


class Capturing(Protocol):
    """Where events are accepted."""

    def subscribers(self, tenant: str, event_types: Iterable[str]) -> dict[str, tuple[Subscriber, ...]]:
        """Read strongly consistent who takes each type, every endpoint once, ordered by id."""
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

    def pending(self, tenant: str, event_id: str) -> Fanout | None:
        """Read a fan-out still to be done."""
        ...

    def waiting(self, older_than_ms: int) -> Iterable[Fanout]:
        """Walk the fan-outs of events received before a moment."""
        ...

    def advance(self, fanout: Fanout, owing: Sequence[Owing], cursor: str, *, done: bool) -> bool:
        """Write a chunk's rows and the cursor in one transaction; False when another got there first."""
        ...


class Payloads(Protocol):
    """Where bodies over the inline limit are kept."""

    def put(self, key: str, body: bytes) -> None:
        """Keep a body."""
        ...

    def get(self, key: str) -> bytes | None:
        """Give a body back, or None when it is gone."""
        ...


@dataclass(frozen=True, slots=True)
class Hint:
    """A row a fresh bell names: the delivery, its event, and when it became ready (Unix ms)."""

    delivery_id: str
    event_id: str
    ready_ms: int


@dataclass(frozen=True, slots=True)
class Bell:
    """A message that says: look at this lane. `rung_ms` is when; `hints` name rows of a fresh bell.

    One that rings `apart` does not wait behind the lane's other bells: a function that died may
    hold one of those for minutes.
    """

    lane: Lane
    rung_ms: int
    hints: tuple[Hint, ...] = ()
    apart: bool = False


class Bells(Protocol):
    """Rings lanes. A bell that cannot be rung is no error: the count of those lost is the answer."""

    def ring(self, bells: Sequence[Bell]) -> int:
        """Ring each lane on its endpoint's queue."""
        ...

    def ring_later(self, lane: Lane, delay_s: int) -> int:
        """Ring a lane after a delay of 0 to 900 seconds."""
        ...

    def call_fan_out(self, tenant: str, event_id: str) -> int:
        """Tell the fan-out function that an event waits for it."""
        ...


@dataclass(frozen=True, slots=True)
class Reread:
    """What the store says under the lease; what is missing is gone.

    Owed rows and attempts by `Owed.key` of the row asked for, events by (tenant, event id),
    endpoints by (tenant, endpoint id).
    """

    owed: Mapping[str, Owed]
    attempts: Mapping[str, Attempt]
    events: Mapping[tuple[str, str], StoredEvent]
    endpoints: Mapping[tuple[str, str], Endpoint]


@dataclass(frozen=True, slots=True)
class Changed:
    """Whether a gate's change was made, and the gate as it is now (None: there is none)."""

    made: bool
    gate: Gate | None


class Gates(Protocol):
    """Reads and changes gates."""

    def read(self, endpoints: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Gate]:
        """Read the gates of (tenant, endpoint) pairs strongly consistent."""
        ...

    def change(self, changes: Sequence[tuple[tuple[str, str], Change]]) -> list[Changed]:
        """Make each change if its tests hold, in one call per 25; answers in the order asked."""
        ...


class Work(Protocol):
    """The work list and the record of what was tried."""

    def peek(self, lane: Lane, limit: int) -> list[Owed]:
        """Read a lane's first rows in the order of their ready times, strongly consistent."""
        ...

    def reread(self, owed: Sequence[Owed]) -> Reread:
        """Read the owed rows, next attempts, events and endpoints of deliveries, strongly consistent.

        A row without an event id gets its owed row and attempt read, nothing else.
        """
        ...

    def insert(self, attempts: Sequence[tuple[Owed, Attempt]]) -> list[bool]:
        """Add attempts to history; False for one that is there already."""
        ...

    def close(
        self, arrived: Sequence[Owed], changes: Sequence[tuple[tuple[str, str], Change]]
    ) -> list[Changed]:
        """Remove the owed rows of attempts that are in, and make gate changes, in one call per 25."""
        ...

    def move(self, moves: Sequence[tuple[Owed, Again | Dead]]) -> list[bool]:
        """Record a failure and move or end its owed row, each in one transaction; False: lost the race."""
        ...


@dataclass(frozen=True, slots=True)
class Finished:
    """A send that ended: its key, what came back, and when it began and ended (Unix ms)."""

    key: str
    reply: Reply
    began_ms: int
    ended_ms: int


class Outbox(Protocol):
    """Sends of one visit, running side by side; leaving it cancels what still runs."""

    def start(self, key: str, request: Request) -> None:
        """Begin a send."""
        ...

    def finished(self, timeout_s: float) -> list[Finished]:
        """Wait at most so long for one send to end and give all that have ended."""
        ...

    def __enter__(self) -> Self:
        """Open the outbox."""
        ...

    def __exit__(self, *exc: object) -> None:
        """Cancel what runs and wait until it has stopped."""
        ...


class Sender(Protocol):
    """Sends requests under the address policy and one total deadline each."""

    def outbox(self) -> Outbox:
        """Open a place for the sends of one visit."""
        ...


class Receipts(Protocol):
    """The received bells of one queue, by their receipts."""

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete bells; one that is gone already is no error."""
        ...

    def hide(self, receipts: Sequence[str], seconds: int) -> None:
        """Keep bells out of sight for that long from now."""
        ...


class Sealer(Protocol):
    """Wraps and unwraps secrets by the key service."""

    def seal(self, tenant: str, secret: str) -> bytes:
        """Encrypt a secret for storing."""
        ...

    def unseal(self, tenant: str, secret: WrappedSecret) -> str:
        """Decrypt a stored secret, through a short-lived cache."""
        ...


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A stretch of a list, newest first; `after` continues it and is empty at the end."""

    items: tuple[T, ...]
    after: str = ""


class Endpoints(Protocol):
    """Keeps endpoints with their subscriptions and gates, changed together."""

    def create(self, endpoint: Endpoint) -> None:
        """Write a new endpoint, its subscriptions and its gate in one transaction."""
        ...

    def get(self, tenant: str, endpoint_id: str) -> Endpoint | None:
        """Read an endpoint strongly consistent, a deleted one too."""
        ...

    def replace(self, old: Endpoint, new: Endpoint) -> bool:
        """Write a changed endpoint if nobody changed it since it was read; False when somebody did."""
        ...

    def page(self, tenant: str, after: str, limit: int) -> Page[Endpoint]:
        """List a tenant's endpoints that are not deleted, newest first."""
        ...

    def tagged(self, tenant: str, tag: str) -> list[str]:
        """List the endpoint ids whose deliveries carry a tag."""
        ...


@dataclass(frozen=True, slots=True)
class Generations:
    """All history rows of one delivery, oldest first, and whether a live lease names it."""

    endpoint_id: str
    delivery_id: str
    rows: tuple[HistoryRow, ...]
    leased: bool


class Reading(Protocol):
    """Answers questions about events and deliveries."""

    def event(self, tenant: str, event_id: str, now_ms: int) -> StoredEvent | None:
        """Read an event; one past its retention is absent."""
        ...

    def events(self, tenant: str, after: str, limit: int, now_ms: int) -> Page[StoredEvent]:
        """List a tenant's events, newest first."""
        ...

    def delivery(self, tenant: str, endpoint_id: str, delivery_id: str, now_us: int) -> Generations | None:
        """Read what history has of one delivery."""
        ...

    def deliveries(
        self, tenant: str, endpoint_id: str, after: str, limit: int, now_us: int
    ) -> Page[Generations]:
        """List an endpoint's deliveries, newest event first."""
        ...


@dataclass(frozen=True, slots=True)
class Watched:
    """An endpoint that reconcile looks at, and its gate's own marks (Unix ms and µs)."""

    tenant: str
    endpoint_id: str
    lanes: int
    armed_until_ms: int
    seen_us: int
    gate: Gate


class Watching(Protocol):
    """What reconcile walks."""

    def armed(self) -> Iterable[Watched]:
        """Walk every endpoint that may have work."""
        ...

    def disarm(self, watched: Watched, before_ms: int) -> bool:
        """Stop walking an endpoint whose mark is older than a moment; False when it was set again."""
        ...


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key as stored: its hash, whose it is and what it may do."""

    tenant: str
    id: str
    digest: str
    role: str


class Keys(Protocol):
    """Keeps API keys, hashed."""

    def find(self, tenant: str, key_id: str) -> ApiKey | None:
        """Read a key."""
        ...

    def put(self, key: ApiKey) -> None:
        """Write a key; a second time changes nothing."""
        ...
