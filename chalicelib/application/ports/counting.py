"""Where what functions count is kept."""

from typing import Protocol

from chalicelib.domain.counts import Counts


class Counters(Protocol):
    """Adds up what all processes count."""

    def add(self, counts: Counts) -> Counts:
        """Add to what was counted, in one call; give back what could not be added."""
        ...

    def read(self) -> Counts:
        """Read all that was counted, by everybody."""
        ...
