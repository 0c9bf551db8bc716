"""What the reporter of the gauges needs of the world."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from chalicelib.domain.delivery import Lane
from chalicelib.domain.gauging import Run, Seen, Signs
from chalicelib.domain.metrics import Schedule


@dataclass(frozen=True, slots=True)
class Glimpse:
    """What a lane is owed, seen in passing: how many rows, and when the first is ready (Unix ms).

    `ready_ms` is None where nothing is owed. `complete` is False when there are more rows than were counted.
    """

    count: int = 0
    ready_ms: int | None = None
    complete: bool = True


class Glancing(Protocol):
    """Looks at many lanes in passing: eventually consistent, and little of each row."""

    def glance(self, lanes: Sequence[Lane], most: int) -> list[Glimpse]:
        """Look at lanes, several at a time, counting at most so many rows of each; in the order asked."""
        ...


class Gauging(Protocol):
    """What was last read of the installation, where everybody who asks for it finds it."""

    def keep(self, seen: Seen) -> None:
        """Keep what was seen, in place of what was seen before."""
        ...

    def came_through(self, queue: str, rung_ms: int) -> None:
        """Note that a canary came through a queue, and when it was rung; an older one changes nothing."""
        ...

    def finished(self, schedule: Schedule, run: Run) -> None:
        """Note that a scheduled function has done all that it had to."""
        ...

    def signs(self, queues: Sequence[str]) -> Signs:
        """Read all of it, of canaries those of some queues."""
        ...


class Canaries(Protocol):
    """Messages that ask whether a queue is worked off, and how full queues are."""

    @property
    def queues(self) -> tuple[str, ...]:
        """Name the queues that canaries go through."""
        ...

    def ring(self, now_ms: int) -> int:
        """Send one through each of these queues; the number of those lost."""
        ...

    def most_in_flight(self) -> int:
        """Say how many messages the fullest queue of bells holds as being worked on."""
        ...
