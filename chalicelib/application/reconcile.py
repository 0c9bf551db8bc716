"""Reconcile: rings what nobody looked at. A watchdog: nothing normal waits for it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass
from itertools import islice, takewhile
from operator import add

from chalicelib.application.fan_out import FanOutLater
from chalicelib.application.ports import Bell, Bells, Clock, Gates, Unavailable, Watched, Watching, Work
from chalicelib.domain import gate as gates
from chalicelib.domain.delivery import Lane, Owed
from chalicelib.domain.gate import Gate

PEEK = 11
LATE_MS = 60_000
OVERLOOKED_MS = 120_000
SOON_MS = 15 * 60_000
SWEEP_MS = 90_000
DISARM_AFTER_MS = 10 * 60_000
FAN_OUT_AFTER_MS = 60_000
SWEEPS_EVERY_MS = 60_000
LOOKED_AT_ONCE = 16
_READ_AHEAD = 4 * LOOKED_AT_ONCE
# Multiples of it, less their whole part, are spread evenly however many of them there are.
_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, slots=True)
class Swept:
    """What one run of reconcile did."""

    watched: int = 0
    rung: int = 0
    delayed: int = 0
    released: int = 0
    disarmed: int = 0
    fanned_out: int = 0
    failed: int = 0

    def __add__(self, other: "Swept") -> "Swept":
        return Swept(*map(add, astuple(self), astuple(other)))


Together = Callable[[Callable[[Watched], Swept], Sequence[Watched]], Iterable[Swept]]


@dataclass(frozen=True, slots=True)
class Reconcile:
    """Walks the endpoints that may have work; two at once are harmless.

    `together` looks at several side by side: one after the other, a minute is enough for eleven thousand.
    """

    watching: Watching
    work: Work
    gates: Gates
    bells: Bells
    fan_out: FanOutLater
    clock: Clock
    together: Together = map

    def run(self) -> Swept:
        """Look once at every armed endpoint and at every waiting fan-out.

        What fails is counted and left to the next sweep: it keeps nobody else from being looked at.
        """
        total = self._fan_outs()
        armed = iter(self.watching.armed(_begin(self.clock.now_ms())))
        while some := list(islice(armed, _READ_AHEAD)):
            for swept in self.together(self._look, some):
                total += swept
        return total

    def _look(self, watched: Watched) -> Swept:
        try:
            return self._endpoint(watched)
        except Unavailable:
            return Swept(1, failed=1)

    def _fan_outs(self) -> Swept:
        try:
            done = self.fan_out.run_waiting(self.clock.now_ms() - FAN_OUT_AFTER_MS)
        except Unavailable:
            return Swept(failed=1)
        return Swept(fanned_out=done.written, failed=done.failed)

    def _endpoint(self, watched: Watched) -> Swept:
        now_ms = self.clock.now_ms()
        rung = delayed = released = owing = 0
        for number in watched.numbers:
            lane = Lane(watched.tenant, watched.endpoint_id, number)
            if self._rests(watched, number, now_ms):
                owing += 1
                continue
            rows = self.work.peek(lane, PEEK)
            # In an ordered lane nothing may pass a first row that waits.
            ready = list(takewhile(lambda row: row.ready_ms <= now_ms, rows))
            owing += bool(rows)
            rung += self._late(watched, ready[0], now_ms) if ready else 0
            released += 0 if ready else self._release(watched, lane)
            delayed += self._soon(watched, rows[len(ready)], now_ms) if len(rows) > len(ready) else 0
        disarmed = 0
        if not owing and watched.armed_until_ms < now_ms - DISARM_AFTER_MS:
            disarmed = int(self.watching.disarm(watched, now_ms - DISARM_AFTER_MS))
        return Swept(1, rung, delayed, released, disarmed)

    def _late(self, watched: Watched, first: Owed, now_ms: int) -> int:
        if first.ready_ms > now_ms - LATE_MS or self._waits(watched, first, now_ms):
            return 0
        return 1 - self.bells.ring([Bell(first.lane, now_ms, apart=True, queue=watched.gate.queue)])

    def _soon(self, watched: Watched, first: Owed, now_ms: int) -> int:
        wait_ms = first.ready_ms - now_ms
        if not SOON_MS - SWEEP_MS < wait_ms <= SOON_MS:
            return 0
        return 1 - self.bells.ring_later(first.lane, -(-wait_ms // 1000), watched.gate.queue)

    def _waits(self, watched: Watched, first: Owed, now_ms: int) -> bool:
        """Say whether a late row is held, being sent, or in a lane that somebody has just looked at.

        A visit for fresh bells sees the rows that they name and no other: one that is overlooked
        for long is rung for all the same.
        """
        gate = watched.gate
        if _held(gate, now_ms * 1000):
            return True
        lease = gate.leases.get(first.lane.number)
        sending = lease is not None and first.key in lease.keys and lease.until > now_ms * 1000
        visited = watched.seen_us // 1000 > now_ms - LATE_MS
        return sending or (visited and first.ready_ms > now_ms - OVERLOOKED_MS)

    def _rests(self, watched: Watched, number: str, now_ms: int) -> bool:
        """Say whether a lane can be left alone unseen: it is held, or its one bell is on its way.

        Not once its endpoint is due to be let go, as what is held may have gone too.
        """
        gate, now_us = watched.gate, now_ms * 1000
        waits = _held(gate, now_us) or gates.expects_bell(gate, number, now_us)
        return waits and watched.armed_until_ms >= now_ms - DISARM_AFTER_MS

    def _release(self, watched: Watched, lane: Lane) -> int:
        """Give back a dead holder's lease of a lane where nothing is ready: what it named has moved on."""
        lease = watched.gate.leases.get(lane.number)
        if lease is None or lease.until + gates.TAKE_OVER_GRACE > self.clock.now_us():
            return 0
        owner = (watched.tenant, watched.endpoint_id)
        # The dead holder may have given up on a delivery and told nobody.
        released = gates.and_alert(gates.release(lease, lane.number), self.clock.now_us(), refused=True)
        (answer,) = self.gates.change([(owner, released)])
        return int(answer.made)


def _begin(now_ms: int) -> float:
    """Say where a sweep begins, as a part of the way round: sweeps that break off begin all over in turn."""
    return (now_ms // SWEEPS_EVERY_MS) * _GOLDEN % 1


def _held(gate: Gate, now_us: int) -> bool:
    opens = gate.open_until if gate.state is gates.Breaker.OPEN else 0
    return not gate.enabled or max(gate.hold_until, opens) > now_us
