"""The world of a node that has no store: it owns every session, and knows of no tunnels."""

from chalicelib.application.ports import Elsewhere
from chalicelib.domain.tunnel import Ticket


class Alone:
    """Owns every session, and has nobody to tell."""

    def renew(self) -> int:
        """Be the only one."""
        return 1

    def begin(self) -> int:
        """Be the only one from now on."""
        return 1

    def find(self, _server_id: str) -> Elsewhere | None:
        """Know of no other."""
        return None

    def claim(self, _server_id: str) -> int | Elsewhere:
        """Own it."""
        return 0

    def release(self, _server_id: str, _generation: int) -> None:
        """Own it no longer."""

    def retire(self) -> None:
        """Leave."""


class NoTickets:
    """Knows of no tickets: tunnels need the store that gives them out."""

    def opened(self, _text: str) -> Ticket | None:
        """Open nothing."""
        return None

    def came(self, _ticket: Ticket) -> None:
        """Have nothing to set going."""
