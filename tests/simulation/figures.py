"""What a run counts: waits by class of endpoint, calls and write units, and what goes on second by second."""

from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from math import sqrt

from tests.simulation.numbers import SECOND

_GROWTH = 1.04
_BOUNDS = [_GROWTH**number for number in range(420)]


Tally = defaultdict[int, int]


def nothing() -> Tally:
    """Begin to count by number."""
    return defaultdict(int)


class Waits:
    """Durations in buckets that grow by a twenty-fifth: a percentile of them is off by two hundredths."""

    def __init__(self) -> None:
        """Count nothing yet."""
        self.counts = nothing()

    def add(self, ms: int) -> None:
        """Count one."""
        self.counts[bisect_right(_BOUNDS, ms)] += 1

    @property
    def total(self) -> int:
        """Give how many were counted."""
        return sum(self.counts.values())

    def merge(self, other: "Waits") -> None:
        """Count those of another too."""
        for bucket, count in other.counts.items():
            self.counts[bucket] += count

    def percentile(self, percent: float) -> float:
        """Give the milliseconds that so many percent did not exceed, 0 when there were none."""
        wanted, seen = sum(self.counts.values()) * percent / 100, 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen >= wanted:
                return round(sqrt(_BOUNDS[bucket - 1] * _BOUNDS[bucket]), 1) if bucket else 0.0
        return 0.0


@dataclass(slots=True)
class Figures:
    """All that is counted; `began` is the run's first microsecond."""

    began: int
    counts: Counter[str] = field(default_factory=Counter)
    units: Counter[str] = field(default_factory=Counter)
    first_waits: defaultdict[str, Waits] = field(default_factory=lambda: defaultdict(Waits))
    retry_waits: defaultdict[str, Waits] = field(default_factory=lambda: defaultdict(Waits))
    by_endpoint: defaultdict[int, Waits] = field(default_factory=lambda: defaultdict(Waits))
    seconds: defaultdict[str, Tally] = field(default_factory=lambda: defaultdict(nothing))
    tops: defaultdict[str, Tally] = field(default_factory=lambda: defaultdict(nothing))
    keys: defaultdict[tuple[str, str], Tally] = field(default_factory=lambda: defaultdict(nothing))

    def count(self, name: str, now: int, many: int = 1) -> None:
        """Count something in its second too."""
        self.counts[name] += many
        self.seconds[name][(now - self.began) // SECOND] += many

    def most(self, name: str, now: int, value: int) -> None:
        """Note a value if it is its second's highest."""
        top, second = self.tops[name], (now - self.began) // SECOND
        top[second] = max(top[second], value)

    def spent(self, table: str, key: str, units: int, now: int) -> None:
        """Count write units of a partition that may be hot."""
        self.keys[table, key][(now - self.began) // SECOND] += units

    def waited(self, kind: str, ms: int, *, first: bool) -> None:
        """Count how long an attempt of a kind of endpoint waited until it began."""
        (self.first_waits if first else self.retry_waits)[kind].add(ms)
