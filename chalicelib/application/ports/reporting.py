"""What telling CloudWatch needs of the world."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from chalicelib.domain.counts import Counts
from chalicelib.domain.reporting import Sample


@dataclass(frozen=True, slots=True)
class Reported:
    """A report as it is written down: when (Unix ms), the counters by then, and those of the one before.

    `told` says that it is known to have been told.
    """

    version: int
    at_ms: int
    totals: Counts
    before: Counts
    told: bool = False


class Reporting(Protocol):
    """Keeps the last report."""

    def last(self) -> Reported | None:
        """Read it; None before the first."""
        ...

    def write_down(self, report: Reported, after: Reported | None) -> bool:
        """Put a report in the place of the one before; False when another was first."""
        ...

    def mark_told(self, report: Reported) -> Reported:
        """Note that a report was told, unless a later one stands there, and give it as it is then."""
        ...


class Telling(Protocol):
    """Tells series to whoever keeps them."""

    def tell(self, samples: Sequence[Sample], at_ms: int) -> None:
        """Tell numbers of a moment (Unix ms), all of them or, should the process die, none."""
        ...
