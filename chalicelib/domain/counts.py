"""Counts: what was counted of the catalogue's metrics, as cells that only grow.

A counter has a cell for each value of its label; a histogram has one for each bucket, one for what is above
them, and one for the sum of the milliseconds.
"""

from bisect import bisect_left
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from chalicelib.domain import ids, metrics
from chalicelib.domain.delivery import Again, Attempt, Dead, Owed
from chalicelib.domain.metrics import BUCKETS_MS, CATALOGUE, Kind, Metric, Part, Reading, Spread
from chalicelib.domain.outcome import Fault, Outcome

Cell = tuple[str, str]
"""A metric's name, and a value of its label, or of a histogram: a bucket's bound in ms, `inf` or `sum`."""
Counts = Mapping[Cell, int]
NOTHING: Final[Counts] = MappingProxyType({})
ABOVE, SUM = "inf", "sum"
GROWING: Final = tuple(each for each in CATALOGUE if each.kind is not Kind.GAUGE)
"""The metrics that are counted; the others are what somebody last saw."""
PARTS: Final = tuple(part for part in Part if any(each.part is part for each in GROWING))
_BOUNDS: Final = (*(str(bound) for bound in BUCKETS_MS), ABOVE)
_PART_OF: Final = {each.name: each.part for each in GROWING}


def cells(of: Metric) -> tuple[Cell, ...]:
    """Give every cell of a metric."""
    named = (*_BOUNDS, SUM) if of.kind is Kind.HISTOGRAM else of.values
    return tuple((of.name, each) for each in named)


def counted(of: Metric, value: str = "", by: int = 1) -> Counts:
    """Count something so many times."""
    return {(of.name, value): by}


def lasted(of: Metric, duration_ms: int) -> Counts:
    """Count a duration, which may be no less than nothing."""
    spent_ms = max(0, duration_ms)
    return {(of.name, _BOUNDS[bisect_left(BUCKETS_MS, spent_ms)]): 1, (of.name, SUM): spent_ms}


def added(*some: Counts) -> Counts:
    """Add up what was counted here and there."""
    total: dict[Cell, int] = {}
    for each in some:
        for cell, count in each.items():
            total[cell] = total.get(cell, 0) + count
    return total


def of_part(counts: Counts) -> dict[Part, Counts]:
    """Part what was counted by who writes it."""
    parted: dict[Part, dict[Cell, int]] = {}
    for cell, count in counts.items():
        parted.setdefault(_PART_OF[cell[0]], {})[cell] = count
    return dict(parted)


def of_attempt(owed: Owed, attempt: Attempt) -> Counts:
    """Say what an attempt in history counts for, its owed row being as it was read before it was made."""
    outcome = counted(metrics.ATTEMPTS, attempt.outcome)
    if attempt.outcome is Outcome.UNKNOWN:
        return outcome
    waited_ms = attempt.queue_ms - attempt.held_ms
    took = (
        counted(metrics.REFUSED)
        if attempt.fault is Fault.REFUSED
        else lasted(metrics.CONSUMER, attempt.total_ms)
    )
    first = NOTHING
    if not owed.generation and attempt.number == 1:
        accepted_ms = ids.created_ms(owed.delivery_id)
        first = lasted(metrics.FIRST_ATTEMPT, attempt.at_ms - accepted_ms - attempt.held_ms)
    return {**outcome, **lasted(metrics.PLATFORM, waited_ms), **took, **first}


def of_move(owed: Owed, step: Again | Dead) -> Counts:
    """Say what a delivery that has not arrived counts for: the attempt, if one was made, and its end."""
    attempt = of_attempt(owed, step.attempt) if step.attempt else NOTHING
    return {**attempt, **of_end(step)} if isinstance(step, Dead) else attempt


def of_end(dead: Dead) -> Counts:
    """Say what the end of a delivery counts for; a quiet one is no dead letter."""
    return NOTHING if dead.quiet else counted(metrics.DEAD_LETTERS, dead.ended.reason)


def reading(counts: Counts) -> Reading:
    """Say of every metric that is counted how it stands; what was never counted is 0."""
    stands: dict[tuple[str, str], float | Spread] = {}
    for each in GROWING:
        found = [counts.get(cell, 0) for cell in cells(each)]
        if each.kind is Kind.HISTOGRAM:
            stands[each.name, ""] = Spread(tuple(found[:-1]), found[-1])
        else:
            stands |= {(each.name, value): count for value, count in zip(each.values, found, strict=True)}
    return stands
