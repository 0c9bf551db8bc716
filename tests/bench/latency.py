"""What was measured of healthy deliveries, and how it is told: quantiles, and where their time went."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SHARE_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Timed:
    """One healthy delivery in ms: in all, until its 202, until its send began, and from there to arrival."""

    total: float
    accepted: float
    queue: float
    wire: float


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its healthy deliveries, how many never came, how late the load was, and what else was seen."""

    phase: str
    timed: Sequence[Timed]
    missing: int
    late_ms: float
    cpu_s: Mapping[str, float]
    neighbours: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def told(self) -> dict[str, Any]:
        """Tell of the run in a few figures."""
        return {
            "phase": self.phase,
            **summary(self.timed),
            "missing": self.missing,
            "posted_late_p99_ms": round(self.late_ms, 1),
            "cpu_s": {name: round(used, 1) for name, used in self.cpu_s.items()},
            "neighbours": self.neighbours,
        }


def quantile(values: Sequence[float], share: float) -> float:
    """Give the value that so large a share of them does not exceed; NaN of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)] if ordered else math.nan


def summary(timed: Sequence[Timed]) -> dict[str, Any]:
    """Tell how many there are, their quantiles, and where the time of all and of the slowest went."""
    totals = [each.total for each in timed]
    slowest = sorted(timed, key=lambda each: each.total)[-max(1, len(timed) // SHARE_SHOWN) :]
    return {
        "samples": len(timed),
        "p50_ms": round(quantile(totals, 0.5), 1),
        "p99_ms": round(quantile(totals, 0.99), 1),
        "max_ms": round(quantile(totals, 1), 1),
        "mean_ms": _means(timed),
        "mean_ms_of_slowest_percent": _means(slowest),
    }


def _means(timed: Sequence[Timed]) -> dict[str, float]:
    """Until the 202, from there to the send, and from the send to its arrival; they overlap at times."""
    if not timed:
        return {}
    return {
        "until_202": round(statistics.fmean(each.accepted for each in timed), 1),
        "from_202_to_send": round(statistics.fmean(each.queue - each.accepted for each in timed), 1),
        "from_send_to_arrival": round(statistics.fmean(each.wire for each in timed), 1),
    }
