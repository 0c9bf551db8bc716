"""A parcel: one message on its way from a socket to those it is for, until each has it or is gone.

While it is under way its source is not read. All of it has one deadline.
"""

from asyncio import TimerHandle
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.node.peer import Peer


@dataclass(slots=True, eq=False)
class Parcel:
    """One message; `raw` is its frame, empty where everybody's write has begun already."""

    source: "Peer"
    raw: bytes
    size: int
    began: float
    ended: Callable[["Parcel"], None]
    waiting: set["Peer"] = field(default_factory=set)
    timer: TimerHandle | None = None
    delivered: int = 0

    def hand_out(self, to: Iterable["Peer"]) -> None:
        """Give it to each destination, at once where nothing is outstanding."""
        for peer in to:
            if peer.blocked or peer.outgoing:
                peer.outgoing.append(self)
                self.waiting.add(peer)
            else:
                self.write_to(peer)

    def write_to(self, peer: "Peer") -> None:
        """Begin the one write to a destination that has none outstanding."""
        peer.write(self.raw)
        if peer.blocked:
            peer.writing = self
            self.waiting.add(peer)
        else:
            self.delivered += 1
            self.waiting.discard(peer)

    def done(self, peer: "Peer") -> None:
        """Note that a destination has it."""
        if peer in self.waiting:
            self.waiting.discard(peer)
            self.delivered += 1
            self.check()

    def failed(self, peer: "Peer") -> None:
        """Note that a destination will never have it."""
        if peer in self.waiting:
            self.waiting.discard(peer)
            self.check()

    def check(self) -> None:
        """End when nobody is waited for any more."""
        if not self.waiting:
            self.ended(self)
