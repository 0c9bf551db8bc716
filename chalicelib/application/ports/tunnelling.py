"""What tunnels need of the world."""

from typing import Protocol

from chalicelib.domain.tunnel import Ticket


class Tickets(Protocol):
    """Keeps tickets by the hashes of their texts, until they end."""

    def issue(self, digest: str, ticket: Ticket) -> None:
        """Keep a new one."""
        ...

    def find(self, digest: str) -> Ticket | None:
        """Give one that was issued, ended or not; strongly consistent."""
        ...
