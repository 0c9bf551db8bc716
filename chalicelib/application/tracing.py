"""Tracing: an attempt that is wanted becomes one span, after it was settled; so many a second at most."""

from dataclasses import dataclass, field
from threading import Lock

from chalicelib.application.ports import Clock, Dice, Spans
from chalicelib.application.visit import Attempted
from chalicelib.domain import trace
from chalicelib.domain.outcome import Outcome
from chalicelib.domain.trace import SPAN_BITS, Origin, Told

_PARTS = 4
_SECOND_MS = 1_000


@dataclass(slots=True)
class Tracer:
    """Writes spans, at most `per_second` in each second of this process."""

    spans: Spans
    clock: Clock
    dice: Dice
    per_second: int
    _second: int = 0
    _written: int = 0
    _lock: Lock = field(default_factory=Lock)

    def tell(self, attempted: Attempted, called_in: str = "") -> str:
        """Write the span of an attempt and give the id of its trace; nothing without steps, or if not wanted.

        The trace goes on from the one in which its bell was rung, else from that of the function's call
        (`called_in`, AWS's trace header); else it is the delivery's own.
        """
        given = Origin.of_header(attempted.rung_in) or Origin.of_header(called_in)
        origin = given or Origin.of_delivery(attempted.delivery_id)
        if attempted.steps is None or origin.wanted is False or not self._may_write():
            return ""
        one, two, three, four = (trace.span_id(self.dice.bits(SPAN_BITS)) for _ in range(_PARTS))
        self.spans.write(trace.document(origin, (one, two, three, four), attempted.steps, told(attempted)))
        return origin.trace_id

    def _may_write(self) -> bool:
        second = self.clock.now_ms() // _SECOND_MS
        with self._lock:
            if second != self._second:
                self._second, self._written = second, 0
            self._written += 1
            return self._written <= self.per_second


def told(attempted: Attempted) -> Told:
    """Say what the span of an attempt says of it."""
    said: dict[str, str | int] = {
        "tenant": attempted.tenant,
        "endpoint_id": attempted.endpoint_id,
        "lane": attempted.lane,
        "delivery_id": attempted.delivery_id,
        "event_id": attempted.event_id,
        "generation": attempted.generation,
        "attempt": attempted.attempt,
        "outcome": attempted.outcome,
        "became": attempted.became.value,
        "fault": attempted.fault or "",
        "reason": attempted.reason,
    }
    held: dict[str, str | int] = {}
    if attempted.held_ms:
        held = {"held_ms": attempted.held_ms, "held_for": attempted.held_for}
    failed = attempted.outcome != Outcome.SUCCESS
    return Told({name: each for name, each in said.items() if each != ""}, held, attempted.status, failed)
