"""Reporting: what CloudWatch is told of a minute: counts since the last time, gauges, and two quantiles.

What is told twice carries the same moment and the same number: the maximum of a minute is then right, and
alarms read nothing else of a count.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from chalicelib.domain.counts import GROWING, Counts, cells
from chalicelib.domain.metrics import BUCKETS_MS, CATALOGUE, Kind, Metric

NAMESPACE: Final = "Relay"
PREFIX: Final = "prefix"
"""The dimension that tells one installation's series from another's."""
QUANTILE: Final = "quantile"
QUANTILES: Final = {"p50": 50, "p99": 99}
"""What is told of durations, as values of the dimension `quantile`, with their percents."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A number of a series; `label` and `value` are its dimension beside the prefix, empty without one."""

    metric: Metric
    number: float
    label: str = ""
    value: str = ""

    @property
    def unit(self) -> str:
        """Name the unit as CloudWatch does."""
        return "Seconds" if self.metric.name.endswith("_seconds") else "Count"


def series_of(metric: Metric) -> tuple[tuple[str, str], ...]:
    """Give the dimension beside the prefix, and its value, of each series that CloudWatch has of a metric."""
    if metric.kind is Kind.HISTOGRAM:
        return tuple((QUANTILE, each) for each in QUANTILES)
    return tuple((metric.label, each) for each in metric.values)


SERIES: Final = sum(len(series_of(each)) for each in CATALOGUE)
"""How many metrics CloudWatch bills for."""


def grown(totals: Counts, before: Counts) -> Counts:
    """Say what was counted since; where less is counted than before, the counters have begun anew."""
    return {cell: since(count, before.get(cell, 0)) for cell, count in totals.items()}


def since(count: int, before: int) -> int:
    """Say how much a counter has grown."""
    return count - before if count >= before else count


def samples(counted: Counts, gauges: Mapping[tuple[str, str], float]) -> list[Sample]:
    """Give a sample of every series that has a number; a count that did not grow is 0.

    A gauge without a value and a duration that nothing took have none: CloudWatch knows no NaN.
    """
    return [each for metric in CATALOGUE for each in _samples(metric, counted, gauges)]


def _samples(metric: Metric, counted: Counts, gauges: Mapping[tuple[str, str], float]) -> Iterator[Sample]:
    if metric.kind is Kind.HISTOGRAM:
        yield from _quantiles(metric, counted)
        return
    for label, value in series_of(metric):
        number = gauges.get((metric.name, value)) if metric.kind is Kind.GAUGE else None
        if metric in GROWING:
            number = counted.get((metric.name, value), 0)
        if number is not None:
            yield Sample(metric, number, label, value)


def _quantiles(metric: Metric, counted: Counts) -> Iterator[Sample]:
    *buckets, _ = (counted.get(cell, 0) for cell in cells(metric))
    if any(buckets):
        for value, percent in QUANTILES.items():
            yield Sample(metric, quantile_s(buckets, percent), QUANTILE, value)


def quantile_s(buckets: Sequence[int], percent: int) -> float:
    """Give the seconds that so many percent of durations did not exceed, as if each bucket were even.

    What is above all bounds counts as long as the last of them.
    """
    wanted = sum(buckets) * percent / 100
    bounds = (0, *BUCKETS_MS)
    for place, seen in enumerate(accumulate(buckets)):
        if seen >= wanted and buckets[place]:
            if place == len(BUCKETS_MS):
                break
            share = 1 - (seen - wanted) / buckets[place]
            return (bounds[place] + (bounds[place + 1] - bounds[place]) * share) / 1000
    return BUCKETS_MS[-1] / 1000
