"""What replays need of the world."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from chalicelib.application.ports.accepting import Owing, StoredEvent
from chalicelib.application.ports.keeping import Generations
from chalicelib.domain import audit
from chalicelib.domain.bulk_replay import BulkReplay


class Replaying(Protocol):
    """Where next generations are written."""

    def expect(self, tenant: str, endpoint_id: str, now_ms: int) -> None:
        """Make sure that reconcile looks at an endpoint and its line of replays for ten minutes and more."""
        ...

    def begin(self, owing: Owing, now_ms: int, record: audit.Record) -> bool:
        """Write a next generation in one transaction; False when it is there already, or the event is not.

        An event that would have gone soon is kept for another 90 days. The audit's record is written with it.
        """
        ...


@dataclass(frozen=True, slots=True)
class Walked:
    """Deliveries of a time range in the order of their events, and whether there are more behind the last."""

    deliveries: tuple[Generations, ...]
    more: bool


class BulkReplaying(Protocol):
    """Where bulk replays are kept and worked off."""

    def start(self, replay: BulkReplay, record: audit.Record) -> None:
        """Write a new one, and the audit's record of it."""
        ...

    def get(self, tenant: str, replay_id: str) -> BulkReplay | None:
        """Read one strongly consistent."""
        ...

    def running(self) -> Iterable[tuple[str, str, int]]:
        """Walk those that run: tenant, id, and when the next run may begin (Unix ms); a moment late."""
        ...

    def walk(self, replay: BulkReplay, limit: int) -> Walked:
        """Read on from a replay's cursor, about so many rows of history."""
        ...

    def events(self, tenant: str, event_ids: Sequence[str], now_ms: int) -> dict[str, StoredEvent]:
        """Read events by id; those past their retention are absent."""
        ...

    def replace(self, old: BulkReplay, new: BulkReplay) -> bool:
        """Write one over what was read; False when somebody else has changed it."""
        ...

    def turn(self, old: BulkReplay, new: BulkReplay, record: audit.Record) -> bool:
        """Write one that its owner has turned, and the audit's record of that; False as for `replace`."""
        ...

    def advance(
        self, old: BulkReplay, new: BulkReplay, owing: Sequence[Owing], now_ms: int
    ) -> frozenset[str] | None:
        """Write next generations and how far their replay is, in one transaction.

        Empty: done. Else nothing was written: the ids of deliveries that cannot be begun as they are, or None
        when somebody else has changed the replay.
        """
        ...
