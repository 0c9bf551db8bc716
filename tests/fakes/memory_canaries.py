"""Canaries in a list, and queues as full as a test says."""

from tests.fakes.faults import Faults, Step


class MemoryCanaries:
    """Implements `Canaries`; loses what it is told to lose, as a failing queue does."""

    def __init__(self, queues: tuple[str, ...]) -> None:
        """Go through these queues."""
        self.queues = queues
        self.losing = 0
        self.in_flight = 0
        self.rung: list[tuple[str, int]] = []
        self.faults = Faults()

    def ring(self, now_ms: int) -> int:
        """Send one through each of these queues; the number of those lost."""
        with self.faults.around(Step("canaries")), self.faults.write():
            kept = self.queues[self.losing :]
            self.rung += [(queue, now_ms) for queue in kept]
        return len(self.queues) - len(kept)

    def most_in_flight(self) -> int:
        """Say how many messages the fullest queue of bells holds as being worked on."""
        with self.faults.around(Step("in_flight")):
            return self.in_flight
