"""Measure: once a minute, what the whole installation is like is read and kept; the one reporter of gauges.

It asks whether the queues are worked off, too, by a canary through each shard. Two runs at once are harmless:
each reads for itself, and the later reading stands.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from chalicelib.application.ports import Clock, Watched, Watching
from chalicelib.application.ports.gauging import Canaries, Gauging, Glancing, Glimpse
from chalicelib.domain import gate as gates
from chalicelib.domain import gauging, metrics
from chalicelib.domain.delivery import Lane
from chalicelib.domain.gate import Breaker, HoldReason
from chalicelib.domain.gauging import Seen

COUNT_MAX = 20_000
STOP_BEFORE_MS = 10_000
_TOGETHER = 200
_Each = TypeVar("_Each")


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run came to: every gauge, how many endpoints it saw, and whether it saw all of them.

    `lost` counts canaries that could not be sent, `uncounted` lanes with more rows than are counted.
    """

    at_ms: int
    gauges: Mapping[tuple[str, str], float]
    watched: int
    whole: bool
    lost: int
    uncounted: int


@dataclass(slots=True)
class _Tally:
    """What a walk has seen so far."""

    watched: int = 0
    oldest_ms: int | None = None
    depth: int = 0
    in_flight: int = 0
    uncounted: int = 0
    breakers: Counter[Breaker] = field(default_factory=Counter)
    held: Counter[HoldReason] = field(default_factory=Counter)

    def add(self, watched: Watched, lanes: Sequence[Glimpse], now_ms: int) -> None:
        """Add an endpoint by its gate and its lanes."""
        gate, now_us = watched.gate, now_ms * 1000
        size = sum(each.count for each in lanes)
        hold = gates.held_now(gate, now_us)
        self.watched += 1
        self.depth += size
        self.in_flight += sum(each.count for each in gate.leases.values() if each.until > now_us)
        self.uncounted += sum(not each.complete for each in lanes)
        self.breakers[gate.state] += 1
        if hold is not None:
            self.held[hold] += bool(size)
        else:
            self._age(gates.free_since(gate) // 1000, lanes, now_ms)

    def _age(self, free_ms: int, lanes: Sequence[Glimpse], now_ms: int) -> None:
        """Tell how long the first row of each lane has been due, counted from the end of the last hold."""
        for each in lanes:
            if each.ready_ms is not None and each.ready_ms <= now_ms:
                age_ms = max(0, now_ms - max(each.ready_ms, free_ms))
                self.oldest_ms = max(age_ms, self.oldest_ms or 0)

    def gauges(self) -> dict[tuple[str, str], float]:
        """Give what the walk found, as it is over."""
        counts = {metrics.DEPTH: self.depth, metrics.IN_FLIGHT: self.in_flight}
        told: dict[tuple[str, str], float] = {(of.name, ""): count for of, count in counts.items()}
        told |= {(metrics.BREAKERS.name, each): self.breakers[each] for each in Breaker}
        told |= {(metrics.HELD.name, each): self.held[each] for each in HoldReason}
        if self.oldest_ms is not None:
            told[metrics.OLDEST_PENDING.name, ""] = self.oldest_ms / 1000
        return told


@dataclass(frozen=True, slots=True)
class Measure:
    """Walks the endpoints that may have work, and keeps what it found if it came round."""

    watching: Watching
    glancing: Glancing
    gauging: Gauging
    canaries: Canaries
    clock: Clock

    def run(self, time_left_ms: Callable[[], int]) -> Measured:
        """Ring the canaries and read everything once; raises Unavailable when the store or a queue fails.

        A walk that finds no time to come round changes nothing: the last whole reading stands, and ages.
        """
        began_ms = self.clock.now_ms()
        lost = self.canaries.ring(began_ms)
        tally, whole = self._walk(time_left_ms)
        if whole:
            bells = {(metrics.BELLS.name, ""): self.canaries.most_in_flight()}
            self.gauging.keep(Seen(began_ms, tally.gauges() | bells))
        queues = self.canaries.queues
        now_ms = self.clock.now_ms()
        told = gauging.reading(self.gauging.signs(queues), now_ms, queues)
        return Measured(now_ms, told, tally.watched, whole, lost, tally.uncounted)

    def _walk(self, time_left_ms: Callable[[], int]) -> tuple[_Tally, bool]:
        tally = _Tally()
        for some in _together(self.watching.armed()):
            if time_left_ms() < STOP_BEFORE_MS:
                return tally, False
            lanes = [(each, _lanes(each)) for each in some]
            seen = iter(self.glancing.glance([lane for _, its in lanes for lane in its], COUNT_MAX))
            now_ms = self.clock.now_ms()
            for watched, its in lanes:
                tally.add(watched, list(islice(seen, len(its))), now_ms)
        return tally, True


def _lanes(of: Watched) -> list[Lane]:
    return [Lane(of.tenant, of.endpoint_id, number) for number in of.numbers]


def _together(every: Iterable[_Each]) -> Iterator[list[_Each]]:
    """Take so many at a time."""
    left = iter(every)
    while some := list(islice(left, _TOGETHER)):
        yield some
