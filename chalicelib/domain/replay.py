"""A replay: the next generation of a delivery that has ended, under the same delivery id.

History stays as it was: what became of a generation is told by the first row of the next.
"""

from dataclasses import dataclass

from chalicelib.domain.delivery import Created, Lane, Owed
from chalicelib.domain.endpoint import REPLAY_LANE


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A generation that has ended, as far as the next one needs it; `sequence` is 0 unless it was ordered."""

    tenant: str
    endpoint_id: str
    delivery_id: str
    generation: int
    event_id: str
    event_type: str
    sequence: int = 0


def next_generation(of: Ancestor, now_ms: int) -> tuple[Owed, Created]:
    """Say what a replay writes: the owed row in its endpoint's line of replays, and history's first row.

    It keeps the event's place in an ordered endpoint's line as what its request says, and waits for nobody.
    """
    lane = Lane(of.tenant, of.endpoint_id, REPLAY_LANE)
    number = of.generation + 1
    owed = Owed(lane, of.delivery_id, of.event_id, now_ms, number, sequence=of.sequence)
    created = Created(of.delivery_id, number, of.event_id, of.event_type, lane.number, now_ms, of.sequence)
    return owed, created
