"""What tunnels need of the world."""

from typing import Protocol

from chalicelib.domain.audit import Record
from chalicelib.domain.tunnel import Ticket


class Tickets(Protocol):
    """Keeps tickets by the hashes of their texts, until they end."""

    def issue(self, digest: str, ticket: Ticket, record: Record | None = None) -> None:
        """Keep a new one, with the record of who made it where somebody did."""
        ...

    def find(self, digest: str) -> Ticket | None:
        """Give one that was issued, ended or not; strongly consistent."""
        ...
