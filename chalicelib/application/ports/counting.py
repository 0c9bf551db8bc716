"""Where what functions count is kept, and what the reporter of the gauges saw."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from chalicelib.domain.counts import Cell, Counts


@dataclass(frozen=True, slots=True)
class Seen:
    """What the reporter saw of the gauges, and when (Unix ms); a gauge that is not there had no value."""

    at_ms: int
    gauges: Mapping[Cell, float]


class Counters(Protocol):
    """Adds up what all processes count."""

    def add(self, counts: Counts) -> Counts:
        """Add to what was counted, in one call; give back what could not be added."""
        ...

    def read(self) -> tuple[Counts, Seen | None]:
        """Read all that was counted, by everybody, and what the reporter of the gauges last saw."""
        ...


class Gauges(Protocol):
    """Keeps what the one reporter of the gauges saw."""

    def keep(self, seen: Seen) -> None:
        """Keep what was seen, in place of what was seen before."""
        ...
