"""What rebuilding needs of the world: history to read, and places for what is told from it."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from chalicelib.domain.delivery import Ended, HistoryRow, Owed
from chalicelib.domain.endpoint import Endpoint
from chalicelib.domain.gate import Gate, Spell


class Rebuilding(Protocol):
    """Reads what is on record, and writes what is derived from it. Nobody sends meanwhile."""

    def endpoints(self) -> Iterator[Endpoint]:
        """Walk all endpoints, deleted ones too."""
        ...

    def purged_before_ms(self, endpoint: Endpoint) -> int:
        """Say before which moment dead letters of an endpoint were purged; 0: none were."""
        ...

    def gate(self, endpoint: Endpoint) -> Gate | None:
        """Read an endpoint's gate, if it has one."""
        ...

    def holds(self, endpoint: Endpoint) -> list[Spell]:
        """Read the holds that history has of an endpoint, in order."""
        ...

    def generations(self, endpoint: Endpoint) -> Iterator[tuple[HistoryRow, ...]]:
        """Walk what history has of an endpoint: the rows of each generation, in order."""
        ...

    def restore_owed(self, owed: Sequence[Owed], *, anew: bool) -> tuple[int, int]:
        """Write the rows that are missing, and over those that differ; how many of each.

        What the endpoint was held before is told from history only `anew`; else a row's own word stands.
        """
        ...

    def restore_dead(self, endpoint: Endpoint, ends: Sequence[Ended]) -> int:
        """Write the dead letters that are missing; how many."""
        ...

    def restore_gate(self, endpoint: Endpoint, gate: dict[str, Any], now_ms: int, *, replays: bool) -> bool:
        """Write a gate, unless there is one, such that reconcile looks at its endpoint.

        Also where nothing is owed: ingest may remember for an hour that it has seen to that.
        """
        ...

    def expect(self, endpoint: Endpoint, now_ms: int, *, replays: bool) -> None:
        """Make sure that reconcile looks at an endpoint, and at its line of replays."""
        ...

    def owed(self) -> Iterator[list[Owed]]:
        """Walk all that is owed, a page at once."""
        ...

    def settled(self, owed: Sequence[Owed]) -> list[bool | None]:
        """Say of each row whether history has gone on without it: an end, or the attempt it leads to.

        None when history does not know what the row rests on.
        """
        ...

    def remove_owed(self, owed: Sequence[Owed]) -> None:
        """Remove rows."""
        ...
