"""What retention needs of the world: what may expire, and where its own work stands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from chalicelib.application.ports.keeping import Page
from chalicelib.domain.delivery import Owed
from chalicelib.domain.endpoint import Endpoint


@dataclass(frozen=True, slots=True)
class Stand:
    """How far a chore has come: where it is (empty: it is not under way), and when it was begun.

    `before_ms` is when it was begun the last time that it came to its end.
    """

    cursor: str = ""
    began_ms: int = 0
    before_ms: int = 0


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter as retention sees it; `kept`: its event is known to be kept as long."""

    tenant: str
    endpoint_id: str
    delivery_id: str
    generation: int
    event_id: str
    at_ms: int
    kept: bool
    until_s: int


@dataclass(frozen=True, slots=True)
class Expired:
    """How many rows a stretch had that were removed, and where it ended (empty: everything was seen)."""

    removed: int
    after: str = ""


class Retaining(Protocol):
    """What may expire. Pages go through everything there is, in no order that matters."""

    def stands(self) -> dict[str, Stand]:
        """Read how far each chore has come."""
        ...

    def note(self, chore: str, stand: Stand) -> None:
        """Write how far a chore has come."""
        ...

    def owed(self, after: str, limit: int) -> Page[Owed]:
        """Page through all that is owed."""
        ...

    def dead(self, after: str, limit: int) -> Page[Letter]:
        """Page through all dead letters."""
        ...

    def endpoints(self, after: str, limit: int) -> Page[Endpoint]:
        """Page through all endpoints, deleted ones too; a page may be short."""
        ...

    def living(self, events: Sequence[tuple[str, str]], now_s: int) -> set[tuple[str, str]]:
        """Say which events (tenant, id) are there and not past their time."""
        ...

    def keep_events(self, until_s: Mapping[tuple[str, str], int]) -> int:
        """Keep events (tenant, id), and their place in lists, until a moment; how many were not."""
        ...

    def keep_history(self, owed: Sequence[Owed], until_s: int) -> int:
        """Make sure that history has these generations until a moment; how many rows it would not."""
        ...

    def mark_kept(self, letters: Sequence[Letter]) -> None:
        """Note of dead letters that their events are kept as long."""
        ...

    def oldest_until_s(self, endpoint: Endpoint) -> int | None:
        """Say when the oldest row of an endpoint's history is over; None when it has none."""
        ...

    def listed_until_s(self, tenant: str) -> int | None:
        """Say when the oldest hour is over in which a tenant has events; None when it has none."""
        ...

    def forget(self, endpoint: Endpoint) -> bool:
        """Remove a deleted endpoint and its gate, if nothing is left that leads to it."""
        ...

    def expire(self, after: str, limit: int, now_s: int) -> Expired:
        """Remove what is past its time from the next rows, `limit` at most, of all tables."""
        ...


class Shelf(Protocol):
    """Where payloads are kept, as those see it who forget them."""

    def listed(self, after: str, limit: int) -> list[str]:
        """Give the keys of at most `limit` bodies in order, the first one after a text."""
        ...

    def remove(self, keys: Sequence[str]) -> None:
        """Forget bodies, 1,000 at most; one that is gone already is no error."""
        ...
