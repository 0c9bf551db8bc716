"""What ending an endpoint's deliveries in pages needs of the world."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Protocol

from chalicelib.domain.delivery import Dead, Lane, Owed
from chalicelib.domain.ending import Ending
from chalicelib.domain.endpoint import Endpoint


class Advanced(StrEnum):
    """What became of a page: made, not made as something of it had changed, or another got there first."""

    MADE = "made"
    CHANGED = "changed"
    OVERTAKEN = "overtaken"


class Endings(Protocol):
    """Where what is being ended is kept."""

    def of(self, tenant: str, endpoint_id: str) -> list[Ending]:
        """Read what is being ended of an endpoint, strongly consistent."""
        ...

    def waiting(self) -> Iterable[Ending]:
        """Walk all that is being ended, due or not."""
        ...

    def page(self, lane: Lane, after: str, limit: int) -> list[Owed]:
        """Read a lane's rows behind a place (`Owed.place`; empty: from the start), strongly consistent."""
        ...

    def fitting(self, ends: Sequence[tuple[Owed, Dead]]) -> int:
        """Count how many ends, from the first, one transaction can take."""
        ...

    def advance(
        self, ending: Ending, then: Ending | None, ends: Sequence[tuple[Owed, Dead]], of: Endpoint
    ) -> Advanced:
        """End deliveries and move the ending on (None: it is done), in one transaction.

        Not when the endpoint is another by now than the one read, or a delivery has moved.
        """
        ...

    def drop(self, ending: Ending) -> None:
        """Forget an ending that concerns nothing any more, unless it was begun anew."""
        ...
