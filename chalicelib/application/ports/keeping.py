"""What owners keep and ask: endpoints, keys, and questions about what happened."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from chalicelib.application.ports.accepting import StoredEvent
from chalicelib.domain import audit, ids
from chalicelib.domain.delivery import Attempt, Ended, HistoryRow
from chalicelib.domain.endpoint import Endpoint
from chalicelib.domain.gate import Gate, Spell, Tally
from chalicelib.domain.tenant import QUOTAS_MAX

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A stretch of a list, newest first; `after` continues it and is empty at the end."""

    items: tuple[T, ...]
    after: str = ""


@dataclass(frozen=True, slots=True)
class Extent:
    """Which part of a list: from below a place on (empty: from its newest), so many at most, of which time.

    `since_ms` belongs to the time, `until_ms` does not any more (Unix ms).
    """

    after: str
    limit: int
    since_ms: int = 0
    until_ms: int = ids.END_MS


class Endpoints(Protocol):
    """Keeps endpoints with their subscriptions and gates, changed together."""

    def create(self, endpoint: Endpoint, record: audit.Record, at_most: int = QUOTAS_MAX.endpoints) -> bool:
        """Write a new endpoint, its subscriptions, its gate and the audit's record in one transaction.

        False when its tenant has so many already, or it is ordered and there are `ORDERED_MAX` such.
        """
        ...

    def count(self, tenant: str) -> int:
        """Count a tenant's endpoints, disabled ones too, deleted ones not."""
        ...

    def get(self, tenant: str, endpoint_id: str) -> Endpoint | None:
        """Read an endpoint strongly consistent, a deleted one too."""
        ...

    def replace(self, old: Endpoint, new: Endpoint, record: audit.Record) -> bool:
        """Write a changed endpoint if nobody changed it since it was read; False when somebody did.

        The audit's record of it is written with it, or not at all.
        """
        ...

    def page(self, tenant: str, after: str, limit: int) -> Page[Endpoint]:
        """List a tenant's endpoints that are not deleted, newest first."""
        ...

    def tagged(self, tenant: str, tag: str) -> list[str]:
        """List the endpoint ids whose deliveries carry a tag."""
        ...


@dataclass(frozen=True, slots=True)
class Generations:
    """All history rows of one delivery, oldest first, whether a live lease names it, and how it is held."""

    endpoint_id: str
    delivery_id: str
    rows: tuple[HistoryRow, ...]
    leased: bool
    hold: Spell | None = None


@dataclass(frozen=True, slots=True)
class Health:
    """How an endpoint does: its gate, and its last holds."""

    gate: Gate
    holds: tuple[Spell, ...]


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A generation that was given up on, and whether it has been replayed."""

    ended: Ended
    replayed: bool = False


class Reading(Protocol):
    """Answers questions about events and deliveries."""

    def event(self, tenant: str, event_id: str, now_ms: int) -> StoredEvent | None:
        """Read an event; one past its retention is absent."""
        ...

    def events_named(self, tenant: str, event_ids: Sequence[str], now_ms: int) -> dict[str, StoredEvent]:
        """Read events by id; those past their retention are absent."""
        ...

    def events(self, tenant: str, extent: Extent, now_ms: int) -> Page[StoredEvent]:
        """List a tenant's events of a time, newest first; `after` is an event's id."""
        ...

    def delivery(self, tenant: str, endpoint_id: str, delivery_id: str, now_us: int) -> Generations | None:
        """Read what history has of one delivery."""
        ...

    def takers(self, tenant: str, event_id: str, after: str) -> Iterator[str]:
        """Walk the endpoints that have a delivery of an event, deleted ones too, newest first.

        From below the endpoint `after`, if there is one; asks the store as far as it is walked.
        """
        ...

    def deliveries(self, tenant: str, endpoint_id: str, extent: Extent, now_us: int) -> Page[Generations]:
        """List an endpoint's deliveries of events of a time, newest event first; `after` is a delivery's id.

        A page of many rows ends before its limit, so that none costs much more than another.
        """
        ...

    def named(
        self, tenant: str, endpoint_id: str, delivery_ids: Sequence[str], now_us: int
    ) -> list[Generations]:
        """Read what history has of some of an endpoint's deliveries, in the order asked."""
        ...

    def owed(self, endpoint: Endpoint, fewer_than: int) -> frozenset[str] | None:
        """Name all deliveries that an endpoint is owed; None if they are not fewer than that."""
        ...

    def leased(self, tenant: str, endpoint_id: str, now_us: int) -> frozenset[str]:
        """Name the deliveries of an endpoint that live leases name."""
        ...

    def attempts(self, tenant: str, endpoint_id: str, extent: Extent, now_us: int) -> Page[Attempt]:
        """List an endpoint's attempts: newest event first, and of a delivery the newest attempt first.

        The time is that of the attempts, which may be long after that of their event. `after` is an
        `attempt_key`. A page ends early where few attempts are of the time that is asked for.
        """
        ...

    def dead_letters(self, tenant: str, endpoint_id: str, extent: Extent, now_ms: int) -> Page[GivenUp]:
        """List an endpoint's dead letters of events of a time, newest event first.

        Those of one delivery are never parted, so a page may hold a few more than its limit. `after` is a
        delivery's id.
        """
        ...

    def hours(self, tenant: str, endpoint_id: str, before: int, limit: int, now_ms: int) -> list[Tally]:
        """Read what an endpoint's hours came to, newest first, from below an hour on, less expired ones.

        An hour that the gate still counts, or has not handed on yet, is among them.
        """
        ...

    def health(self, tenant: str, endpoint_id: str, holds: int, now_ms: int) -> Health | None:
        """Read an endpoint's gate and its last few holds, newest first."""
        ...
