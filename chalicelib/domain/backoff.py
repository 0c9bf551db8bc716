"""When a failed delivery is tried again: the retry profiles and their one rule.

Source of the numbers: docs/decisions/0001. Jitter is given, never rolled here.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class RetryProfile(StrEnum):
    """The named schedules an endpoint may choose from; nobody sets free numbers."""

    DEFAULT = "default"
    QUICK = "quick"
    PATIENT = "patient"


@dataclass(frozen=True, slots=True)
class Schedule:
    """One profile's numbers. A wait lies between `floor` and 1 times its ceiling."""

    attempts: int
    base: timedelta
    factor: int
    cap: timedelta
    floor: float

    def ceiling(self, n: int) -> timedelta:
        """Give the longest wait after failed attempt n, counted from 0."""
        growth = self.base
        for _ in range(n):
            if growth >= self.cap:
                break
            growth *= self.factor
        return min(self.cap, growth)

    def shortest(self) -> timedelta:
        """Add up the shortest waits from the first attempt to the last."""
        return sum((self.ceiling(n) * self.floor for n in range(self.attempts - 1)), timedelta())

    def longest(self) -> timedelta:
        """Add up the longest waits from the first attempt to the last."""
        return sum((self.ceiling(n) for n in range(self.attempts - 1)), timedelta())


_BASE = timedelta(seconds=5)
SCHEDULES = {
    RetryProfile.DEFAULT: Schedule(12, _BASE, 4, timedelta(hours=6), 0.0),
    RetryProfile.QUICK: Schedule(6, _BASE, 2, timedelta(seconds=150), 0.0),
    RetryProfile.PATIENT: Schedule(12, _BASE, 4, timedelta(seconds=80_000), 0.5),
}
WINDOW = timedelta(hours=72)
RETRY_AFTER_CEILING = timedelta(hours=1)


def wait(profile: RetryProfile, n: int, jitter: float) -> timedelta:
    """Give the wait after failed attempt n (from 0); jitter is uniform in [0, 1].

    Never negative and never above the profile's cap, whatever n is.
    """
    schedule = SCHEDULES[profile]
    return schedule.ceiling(n) * (schedule.floor + (1 - schedule.floor) * jitter)
