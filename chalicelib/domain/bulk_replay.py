"""A bulk replay: which deliveries of an endpoint it takes, how far it has come, and when it goes on.

Times are Unix epoch milliseconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from chalicelib.domain.delivery import Attempt, Created, Ended, HistoryRow, Status
from chalicelib.domain.event import matching_patterns
from chalicelib.domain.outcome import Outcome

CONFIRM_ABOVE = 1_000
AHEAD_S = 10
AHEAD_LEAST, AHEAD_MOST = 50, 500
SOON_MS, LATE_MS = 5_000, 60_000
RUN_MS = 60_000


class BulkState(StrEnum):
    """Whether a bulk replay goes on, waits for its owner, or has ended; by itself or by its owner's word."""

    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    DONE = "done"


OPEN = frozenset({BulkState.RUNNING, BulkState.PAUSED})


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which deliveries: of events received in a time, ended so, of types that one of the patterns fits."""

    since_ms: int
    until_ms: int
    status: Status = Status.DEAD
    event_types: tuple[str, ...] = ("*",)


@dataclass(frozen=True, slots=True)
class BulkReplay:
    """A bulk replay. `cursor` is the last delivery that was dealt with, `due_ms` when the next run may begin.

    `matched` were counted when it was asked for, exactly if `exact`. `skipped` could not be sent when they
    came up. `wait_ms` is how long a run waits for the next while it finds the line full.
    """

    tenant: str
    id: str
    endpoint_id: str
    wanted: Wanted
    created_ms: int
    matched: int
    exact: bool = True
    state: BulkState = BulkState.RUNNING
    reason: str = ""
    cursor: str = ""
    replayed: int = 0
    skipped: int = 0
    due_ms: int = 0
    wait_ms: int = SOON_MS
    ended_ms: int = 0
    version: int = 1

    def next(self) -> "BulkReplay":
        """Give it as the version after this one."""
        return replace(self, version=self.version + 1)

    def begun(self, now_ms: int) -> "BulkReplay":
        """Take it for one run: until that is surely over, or says when the next is due, no other begins."""
        return replace(self.next(), due_ms=now_ms + RUN_MS)

    def rests(self, now_ms: int, *, came_on: bool) -> "BulkReplay":
        """Let the next run be soon, and later each time that the line had no room."""
        wait_ms = SOON_MS if came_on else min(2 * self.wait_ms, LATE_MS)
        return replace(self.next(), due_ms=now_ms + wait_ms, wait_ms=wait_ms)

    def over(self, state: BulkState, now_ms: int, reason: str = "") -> "BulkReplay":
        """End it."""
        return replace(self.next(), state=state, reason=reason, ended_ms=now_ms)


def matches(rows: Sequence[HistoryRow], wanted: Wanted, asked_ms: int) -> bool:
    """Say whether the rows of a newest generation are wanted: ended so when that was asked for."""
    last = rows[-1]
    status = _ended_as(last)
    event_type = next((row.event_type for row in rows if isinstance(row, Created)), "")
    fits = set(wanted.event_types).intersection(matching_patterns(event_type)) if event_type else ()
    return status is wanted.status and bool(fits) and last.at_ms <= asked_ms


def room(rate_per_second: int, waiting: int) -> int:
    """Say how many more replays may be owed: ten seconds of the rate, 50 at least and 500 at most.

    So a pause or a cancel is felt within seconds, however many are still to come.
    """
    return max(0, min(max(AHEAD_LEAST, rate_per_second * AHEAD_S), AHEAD_MOST) - waiting)


def _ended_as(last: HistoryRow) -> Status | None:
    if isinstance(last, Ended):
        return Status.DEAD
    arrived = isinstance(last, Attempt) and last.outcome is Outcome.SUCCESS
    return Status.SUCCEEDED if arrived else None
