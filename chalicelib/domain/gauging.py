"""Gauging: what is read of the whole installation as it is now, and whether that means that Relay is ready.

Ages are told as of the moment they are asked for: a reporter that has stopped shows as an age that grows,
never as a good reading that stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from chalicelib.domain import metrics
from chalicelib.domain.metrics import Schedule

STALE_MS: Final = 180_000
"""So old a canary or a reading says nothing any more."""
LATE_MS: Final = 60_000
"""A delivery that is due for longer is late."""

_OLDEST: Final = (metrics.OLDEST_PENDING.name, "")


class Failing(StrEnum):
    """What keeps Relay from being ready."""

    STORE = "store"
    CANARY = "canary"
    LATENESS = "lateness"


@dataclass(frozen=True, slots=True)
class Seen:
    """What the reporter saw of the gauges, and when (Unix ms); a gauge that is not there had no value."""

    at_ms: int
    gauges: Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True)
class Run:
    """When a scheduled function last did all that it had to, and what it found overdue then."""

    at_ms: int
    overdue: int = 0


@dataclass(frozen=True, slots=True)
class Signs:
    """What the store says of the installation.

    `since_ms` is when it was first measured (0: never yet). Of each queue's last canary that came through it
    has when that was rung.
    """

    since_ms: int = 0
    seen: Seen | None = None
    canaries: Mapping[str, int] = field(default_factory=dict)
    runs: Mapping[Schedule, Run] = field(default_factory=dict)


def reading(signs: Signs, now_ms: int, queues: Sequence[str]) -> dict[tuple[str, str], float]:
    """Give every gauge of the catalogue as it stands now; one that nothing is known of is left out.

    What never happened is as old as the installation: it is missed from then on.
    """
    told: dict[tuple[str, str], float] = {}
    if signs.seen is not None:
        told |= signs.seen.gauges
        told[metrics.READING_AGE.name, ""] = _age_s(signs.seen.at_ms, now_ms)
    if signs.since_ms:
        rung = min((signs.canaries.get(each, signs.since_ms) for each in queues), default=now_ms)
        told[metrics.CANARY_AGE.name, ""] = _age_s(rung, now_ms)
        for schedule in Schedule:
            last = signs.runs.get(schedule, Run(signs.since_ms))
            told[metrics.SCHEDULE_AGE.name, schedule] = _age_s(last.at_ms, now_ms)
        told[metrics.OVERDUE.name, ""] = sum(run.overdue for run in signs.runs.values())
    return told


def failing(signs: Signs, now_ms: int, queues: Sequence[str]) -> tuple[Failing, ...]:
    """Say what of a store that answers keeps Relay from being ready.

    What was never seen is not there: a new installation is ready once its first canaries came through.
    """
    fresh_ms = now_ms - STALE_MS
    found = []
    if any(signs.canaries.get(each, 0) < fresh_ms for each in queues):
        found.append(Failing.CANARY)
    seen = signs.seen
    if seen is None or seen.at_ms < fresh_ms or seen.gauges.get(_OLDEST, 0) > LATE_MS / 1000:
        found.append(Failing.LATENESS)
    return tuple(found)


def _age_s(then_ms: int, now_ms: int) -> float:
    return max(0, now_ms - then_ms) / 1000
