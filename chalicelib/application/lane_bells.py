"""Bells of the delivery plane: what a visit leaves behind so that somebody looks at its lane again."""

from dataclasses import dataclass, field, replace

from chalicelib.application.gatekeeper import Gatekeeper
from chalicelib.application.ports import Bell, Bells, Clock
from chalicelib.application.visit import Visit
from chalicelib.domain.delivery import Lane
from chalicelib.domain.endpoint import lane_numbers
from chalicelib.domain.gate import Breaker, Gate, Queue

BELL_DELAY_MAX_S = 900
# Ingest may have seen a lane quiet just before it was not; by then whatever it did so for is written.
AFTER_QUIET_S = 61
# What ingest has seen of a gate it trusts for two seconds, and goes by once the event is written.
WRITTEN_MS = 5_000
_COMING_MAX = 10_000


@dataclass(frozen=True, slots=True)
class LaneBells:
    """Rings the lanes of visits, on the queue of their endpoint.

    `coming_ms` is when the delayed bell is due that this process last sent to a lane: whoever
    comes for it sees what is due later.
    """

    bells: Bells
    keeper: Gatekeeper
    clock: Clock
    coming_ms: dict[Lane, int] = field(default_factory=dict)

    def ring_at(self, visit: Visit, moment_ms: int) -> None:
        """Send a bell for a later moment, unless this process has sent one that comes no later.

        Not before an open breaker may be asked again. Beyond the delay queue's reach reconcile will.
        """
        now_ms = self.clock.now_ms()
        gate = self.keeper.of(visit)
        if gate is not None and gate.state is Breaker.OPEN:
            moment_ms = max(moment_ms, gate.open_until // 1000)
        delay_s = max(0, -(-(moment_ms - now_ms) // 1000))
        due_ms = now_ms + delay_s * 1000
        on_its_way = now_ms < self.coming_ms.get(visit.lane, 0) <= due_ms
        if delay_s > BELL_DELAY_MAX_S or on_its_way:
            return
        self._send_later(visit, delay_s, now_ms)

    def ring_after_quiet(self, visit: Visit) -> None:
        """Send the late bell of a lane that is rung again from now on.

        None that comes within moments stands for it: some who saw the lane quiet have yet to write.
        """
        now_ms = self.clock.now_ms()
        coming_ms = self.coming_ms.get(visit.lane, 0)
        if now_ms + WRITTEN_MS <= coming_ms <= now_ms + AFTER_QUIET_S * 1000:
            return
        self._send_later(visit, AFTER_QUIET_S, now_ms)

    def ring_when_it_cools(self, visit: Visit) -> None:
        """Send the one delayed bell of a breaker that has just opened."""
        gate = self.keeper.of(visit)
        if gate is not None:
            self.ring_at(visit, min(gate.open_until // 1000, self.clock.now_ms() + BELL_DELAY_MAX_S * 1000))

    def ring_again(self, visit: Visit) -> int:
        """Ring a lane that goes on later; the number of bells lost."""
        return self.bells.ring([Bell(visit.lane, self.clock.now_ms(), queue=self._queue(visit))])

    def ring_all(self, visit: Visit, gate: Gate) -> None:
        """Ring every lane of an endpoint that has recovered, but for the one that goes on by itself."""
        now_ms = self.clock.now_ms()
        lane = visit.lane
        names = lane_numbers(gate.lanes, ordered=gate.ordered, replays=gate.replays)
        lanes = [replace(lane, number=each) for each in names]
        going_on = {lane} if visit.more else set()
        self.bells.ring([Bell(each, now_ms, queue=gate.queue) for each in lanes if each not in going_on])

    def _send_later(self, visit: Visit, delay_s: int, now_ms: int) -> None:
        if len(self.coming_ms) >= _COMING_MAX:
            self.coming_ms.clear()
        if not self.bells.ring_later(visit.lane, delay_s, self._queue(visit)):
            self.coming_ms[visit.lane] = now_ms + delay_s * 1000

    def _queue(self, visit: Visit) -> Queue:
        gate = self.keeper.of(visit)
        return gate.queue if gate else Queue.SHARD
