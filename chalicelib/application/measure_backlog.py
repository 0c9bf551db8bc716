"""How much waits for an endpoint: counted before its owner chooses what becomes of it."""

from dataclasses import dataclass

from chalicelib.application.endpoints import not_found
from chalicelib.application.ports import Clock, Endpoints, Gates, Work
from chalicelib.domain import ids
from chalicelib.domain.delivery import Lane, Owed
from chalicelib.domain.ending import ending_of, lanes_of
from chalicelib.domain.endpoint import Endpoint

COUNT_MAX = 20_000


@dataclass(frozen=True, slots=True)
class Measured:
    """What an endpoint is owed: how many deliveries, and when the oldest event came (Unix ms, 0: none).

    `complete` is False when there are more than were counted. `drain_s` is how many seconds they take at the
    endpoint's rate.
    """

    size: int
    complete: bool
    oldest_ms: int
    drain_s: int


@dataclass(frozen=True, slots=True)
class MeasureBacklog:
    """Counts what waits, up to a bound."""

    endpoints: Endpoints
    gates: Gates
    work: Work
    clock: Clock

    def of(self, tenant: str, endpoint_id: str, most: int = COUNT_MAX) -> Measured:
        """Measure what an endpoint is owed, less what is bound to end unsent; raises RelayError.

        At most so many are counted.
        """
        endpoint = self.endpoints.get(tenant, endpoint_id) if ids.is_id(endpoint_id, "ep") else None
        if endpoint is None:
            raise not_found("endpoint", endpoint_id)
        owner = (tenant, endpoint_id)
        gate = self.gates.read([owner]).get(owner)
        rows: list[Owed] = []
        for number in lanes_of(endpoint, gate):
            rows += self.work.peek(Lane(*owner, number), most + 1 - len(rows))
            if len(rows) > most:
                break
        waiting = [ids.created_ms(row.delivery_id) for row in rows[:most] if self._waits(endpoint, row)]
        size = len(waiting)
        drain_s = -(-size // endpoint.limits.rate_per_second)
        return Measured(size, len(rows) <= most, min(waiting, default=0), drain_s)

    def _waits(self, endpoint: Endpoint, row: Owed) -> bool:
        now_ms = self.clock.now_ms()
        return ending_of(endpoint, row.delivery_id, row.generation, row.waits_since_ms, now_ms) is None
