"""What relay nodes need of one another: a registry of who owns which session."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Another node owns the session; `target` is what it says of how to reach it."""

    target: str


class Owners(Protocol):
    """The registry, as one node sees it. Calls block; each raises `Unavailable` when it cannot be asked."""

    def renew(self) -> int | None:
        """Prolong this node's lease; gives how many nodes are alive, or None: there is none to prolong."""
        ...

    def begin(self) -> int:
        """Begin a new lease, in which this node owns nothing; gives how many nodes are alive."""
        ...

    def find(self, server_id: str) -> Elsewhere | None:
        """Say which other node owns a session, if one does."""
        ...

    def claim(self, server_id: str) -> int | Elsewhere:
        """Own a session, as which generation, or say who does; owned already, it gets a new one."""
        ...

    def release(self, server_id: str, generation: int) -> None:
        """Own a session no longer, unless it was claimed again since."""
        ...

    def retire(self) -> None:
        """Leave: the lease ends now."""
        ...
