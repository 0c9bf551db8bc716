"""Bells: what rings a lane, and how received bells are let go."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from chalicelib.domain.delivery import Lane
from chalicelib.domain.gate import Queue


@dataclass(frozen=True, slots=True)
class Hint:
    """A row a fresh bell names: the delivery, its event, and when it became ready (Unix ms)."""

    delivery_id: str
    event_id: str
    ready_ms: int


@dataclass(frozen=True, slots=True)
class Bell:
    """A message that says: look at this lane. `rung_ms` is when; `hints` name rows of a fresh bell.

    One that rings `apart` does not wait behind the lane's other bells: a function that died may
    hold one of those for minutes. `queue` is where its endpoint rings, as far as the ringer knows.
    One that `came_back` was given back by a visit and stands for its whole lane. `rung_in` is the trace
    header of whoever rang it, if that was traced.
    """

    lane: Lane
    rung_ms: int
    hints: tuple[Hint, ...] = ()
    apart: bool = False
    queue: Queue = Queue.SHARD
    came_back: bool = False
    rung_in: str = ""


class Bells(Protocol):
    """Rings lanes. A bell that cannot be rung is no error: the count of those lost is the answer."""

    def ring(self, bells: Sequence[Bell]) -> int:
        """Ring each lane on its endpoint's queue."""
        ...

    def ring_later(self, lane: Lane, delay_s: int, queue: Queue = Queue.SHARD) -> int:
        """Ring a lane after a delay of 0 to 900 seconds."""
        ...

    def call_fan_out(self, tenant: str, event_id: str, due_ms: int = 0, delay_s: int = 0) -> int:
        """Tell the fan-out function, after so long, that an event waits for it, and for which moment this is.

        A delay of more than 900 seconds is one of 900.
        """
        ...

    def call_ending(self, tenant: str, endpoint_id: str) -> int:
        """Tell the function that ends deliveries in pages that an endpoint waits for it."""
        ...

    def call_replay(self, tenant: str, replay_id: str, delay_s: int = 0) -> int:
        """Tell the function of bulk replays, at once or after 0 to 900 seconds, that one waits for it."""
        ...


class Receipts(Protocol):
    """The received bells of one queue, by their receipts."""

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete bells; one that is gone already is no error."""
        ...

    def hide(self, receipts: Sequence[str], seconds: int) -> None:
        """Keep bells out of sight for that long from now."""
        ...
