"""Where what functions count is kept, and what the reporter of the gauges saw."""

from typing import Protocol

from chalicelib.domain.counts import Counts
from chalicelib.domain.gauging import Seen


class Counters(Protocol):
    """Adds up what all processes count."""

    def add(self, counts: Counts) -> Counts:
        """Add to what was counted, in one call; give back what could not be added."""
        ...

    def read(self) -> tuple[Counts, Seen | None]:
        """Read all that was counted, by everybody, and what the reporter of the gauges last saw."""
        ...
