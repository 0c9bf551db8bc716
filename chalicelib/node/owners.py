"""The registry of a node that shares its sessions with no other."""

from chalicelib.application.ports import Elsewhere


class Alone:
    """Owns every session, and has nobody to tell."""

    def renew(self) -> int:
        """Be the only one."""
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
