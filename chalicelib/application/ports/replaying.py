"""What replays need of the world."""

from typing import Protocol

from chalicelib.application.ports.accepting import Owing


class Replaying(Protocol):
    """Where next generations are written."""

    def expect(self, tenant: str, endpoint_id: str, now_ms: int) -> None:
        """Make sure that reconcile looks at an endpoint and its line of replays for ten minutes and more."""
        ...

    def begin(self, owing: Owing, now_ms: int) -> bool:
        """Write a next generation in one transaction; False when it is there already, or the event is not.

        An event that would have gone soon is kept for another 90 days.
        """
        ...
