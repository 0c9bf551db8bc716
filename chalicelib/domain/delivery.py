"""A delivery: what is owed, each attempt at it, and what a history of rows says it is.

History is the record; an owed row is the work list entry that can be rebuilt from it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import assert_never

from chalicelib.domain import backoff, ids
from chalicelib.domain.backoff import RetryProfile
from chalicelib.domain.gate import HoldReason, of_replays
from chalicelib.domain.outcome import DeathReason, Fault, Outcome, Reply, Verdict
from chalicelib.domain.sent import Sent

UNKNOWN_MAX = 5
_NUMBER, _NUMBERS = re.compile(r"[0-9]{4}"), 2


class Status(StrEnum):
    """Where a delivery is: owed, being sent, arrived, or given up on."""

    PENDING = "pending"
    INFLIGHT = "inflight"
    SUCCEEDED = "succeeded"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Lane:
    """One line of work of an endpoint; its name is the message group of its bells."""

    tenant: str
    endpoint_id: str
    number: str

    @property
    def name(self) -> str:
        """Give the lane's name as queues and tables have it."""
        return f"{self.tenant}#{self.endpoint_id}#{self.number}"

    @property
    def ordered(self) -> bool:
        """Say whether its deliveries wait for one another: its number starts with "o"."""
        return self.number.startswith("o")

    @property
    def replay(self) -> bool:
        """Say whether it is the line of its endpoint's replays."""
        return of_replays(self.number)


@dataclass(frozen=True, slots=True)
class Owed:
    """A delivery that still has to be sent.

    `ready_ms` (Unix epoch) is when; `made` numbers the attempts already in history, `counted`
    those that count towards the profile's limit, `unknowns` the unknown ones in a row. `first_ms` is when
    the first attempt began, `held_before_ms` the endpoint's held sum by then. On an
    ordered lane `sequence` is its place in the line, which a later ready time does not change; a replay
    keeps it as what its request says.
    """

    lane: Lane
    delivery_id: str
    event_id: str
    ready_ms: int
    generation: int = 0
    made: int = 0
    counted: int = 0
    unknowns: int = 0
    first_ms: int = 0
    sequence: int = 0
    held_before_ms: int = 0

    @property
    def position(self) -> str:
        """Say where in its lane it stands, as text that sorts: by sequence if ordered, else by ready time."""
        return f"{self.sequence:016d}" if self.lane.ordered else f"{self.ready_ms:015d}"

    @property
    def waits_since_ms(self) -> int:
        """Say since when it is owed (Unix ms): since its event came, or since a replay was ready."""
        return self.ready_ms if self.generation else ids.created_ms(self.delivery_id)

    @property
    def place(self) -> str:
        """Name the row within its lane: position, delivery and generation."""
        return f"{self.position}#{self.delivery_id}#{self.generation:04d}"

    @property
    def key(self) -> str:
        """Name the row and the attempt it leads to: position, delivery, generation and number."""
        return f"{self.position}#{self.attempt_key}"

    @property
    def test(self) -> bool:
        """Say whether it is a test of its endpoint: it stands in the line of replays, and is none."""
        return self.lane.replay and not self.generation

    @property
    def next_number(self) -> int:
        """Number the attempt that comes next, from 1."""
        return self.made + 1

    @property
    def attempt_key(self) -> str:
        """Name the next attempt: delivery, generation and number."""
        return attempt_key(self.delivery_id, self.generation, self.next_number)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try as history keeps it; times in Unix milliseconds, durations in milliseconds.

    `response` is the start of the answer's body. `queue_ms` is all its wait, from when it was ready to when
    it was sent. `held_ms` is how much of that it spent because its endpoint was held or paced, `held_for` why
    it last was; `processing_ms` how much from its turn on: it was read again, signed and given a connection.
    `sent` is what is kept of the request, if one may have left.
    """

    delivery_id: str
    generation: int
    number: int
    event_id: str
    outcome: Outcome
    at_ms: int
    status: int | None = None
    fault: Fault | None = None
    detail: str = ""
    response: bytes = b""
    truncated: bool = False
    queue_ms: int = 0
    connect_ms: int = 0
    first_byte_ms: int = 0
    total_ms: int = 0
    next_ms: int = 0
    held_ms: int = 0
    held_for: HoldReason | None = None
    processing_ms: int = 0
    tls_ms: int = 0
    sent: Sent | None = None

    @property
    def key(self) -> str:
        """Name it, and its place in a list: delivery, generation and number."""
        return attempt_key(self.delivery_id, self.generation, self.number)

    @property
    def stood_ms(self) -> int:
        """Say how long it stood in line: its wait, less what it was held and what processing took."""
        return max(0, self.queue_ms - self.held_ms - self.processing_ms)


@dataclass(frozen=True, slots=True)
class Ended:
    """The last history row of a delivery that was given up on."""

    delivery_id: str
    generation: int
    event_id: str
    reason: DeathReason
    at_ms: int
    attempts: int


@dataclass(frozen=True, slots=True)
class Created:
    """The first history row of a delivery's generation; `sequence` is its place in an ordered lane."""

    delivery_id: str
    generation: int
    event_id: str
    event_type: str
    lane: str
    at_ms: int
    sequence: int = 0


HistoryRow = Created | Attempt | Ended


@dataclass(frozen=True, slots=True)
class Arrived:
    """The attempt succeeded: the owed row goes."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class Again:
    """The attempt failed and another is due: the owed row moves."""

    attempt: Attempt
    owed: Owed


@dataclass(frozen=True, slots=True)
class Dead:
    """The delivery is given up on; `attempt` is None when none was made for it.

    A `quiet` end is no dead letter, and nobody is told of it: that of a test, which its sender looks at.
    """

    attempt: Attempt | None
    ended: Ended
    quiet: bool = False


Step = Arrived | Again | Dead


@dataclass(frozen=True, slots=True)
class Held:
    """How much of its wait a delivery was held (ms), why, and the endpoint's held sum (ms) by then."""

    ms: int = 0
    reason: HoldReason | None = None
    sum_ms: int = 0


@dataclass(frozen=True, slots=True)
class Timing:
    """When a send began and ended (Unix ms), the jitter of its retry in [0, 1], and how it was held.

    `turn_ms` is when its turn came, 0 if that is not known; `sent` what is kept of the request.
    """

    began_ms: int
    ended_ms: int
    jitter: float
    held: Held = Held()
    turn_ms: int = 0
    sent: Sent | None = None

    @property
    def processing_ms(self) -> int:
        """Measure from its turn to its send."""
        return max(0, self.began_ms - self.turn_ms) if self.turn_ms else 0


def owed_of_key(lane: Lane, key: str) -> Owed:
    """Read back what `Owed.key` says of a row.

    Its event is not in there, nor, on an ordered lane, its ready time, which is then 0.
    """
    position, delivery, generation, number = key.split("#")
    ready_ms, sequence = placed(lane, position)
    return Owed(lane, delivery, "", ready_ms, int(generation), int(number) - 1, sequence=sequence)


def placed(lane: Lane, position: str) -> tuple[int, int]:
    """Read back `Owed.position`: the ready time (Unix ms) and the sequence, 0 where it does not say."""
    return (0, int(position)) if lane.ordered else (int(position), 0)


def attempt_key(delivery_id: str, generation: int, number: int) -> str:
    """Name one attempt; sorts by delivery, then generation, then number."""
    return f"{delivery_id}#{generation:04d}#{number:04d}"


def is_attempt_key(text: str) -> bool:
    """Say whether a text names an attempt, or the row before the first."""
    delivery, *numbers = text.split("#")
    fits = len(numbers) == _NUMBERS and all(_NUMBER.fullmatch(each) for each in numbers)
    return fits and ids.is_id(delivery)


def after_send(owed: Owed, reply: Reply, verdict: Verdict, profile: RetryProfile, timing: Timing) -> Step:
    """Say what becomes of a delivery after a send and its verdict."""
    attempt = Attempt(
        owed.delivery_id,
        owed.generation,
        owed.next_number,
        owed.event_id,
        verdict.outcome,
        timing.began_ms,
        reply.status,
        reply.fault,
        reply.detail,
        reply.body,
        reply.truncated,
        max(0, timing.began_ms - owed.ready_ms),
        reply.connect_ms,
        reply.first_byte_ms,
        reply.total_ms,
        held_ms=timing.held.ms,
        held_for=timing.held.reason,
        processing_ms=timing.processing_ms,
        tls_ms=reply.tls_ms,
        sent=None if reply.unsent else timing.sent,
    )
    if verdict.outcome is Outcome.SUCCESS:
        return Arrived(attempt)
    begun = _begun(owed, timing.began_ms, timing.held.sum_ms)
    moved = replace(begun, made=owed.made + 1, counted=owed.counted + 1, unknowns=0)
    if verdict.death is not None:
        return Dead(attempt, _ended(moved, verdict.death, timing.ended_ms))
    return _retried(moved, attempt, verdict, profile, timing)


def after_unknown(owed: Owed, now_ms: int, held_sum_ms: int = 0) -> Again | Dead:
    """Record that a holder died during an attempt: it may or may not have arrived."""
    attempt = Attempt(
        owed.delivery_id, owed.generation, owed.next_number, owed.event_id, Outcome.UNKNOWN, now_ms
    )
    begun = _begun(owed, now_ms, held_sum_ms)
    moved = replace(begun, made=owed.made + 1, unknowns=owed.unknowns + 1)
    if moved.unknowns >= UNKNOWN_MAX:
        return Dead(attempt, _ended(moved, DeathReason.POISONED, now_ms), quiet=owed.test)
    return Again(replace(attempt, next_ms=moved.ready_ms), moved)


def given_up(owed: Owed, reason: DeathReason, now_ms: int) -> Dead:
    """End a delivery without another attempt."""
    return Dead(None, _ended(owed, reason, now_ms), quiet=owed.test)


def tried_once(step: Step, ended_ms: int) -> Step:
    """Say what becomes of a test after a send: whatever came of it, it is not tried again."""
    match step:
        case Arrived():
            return step
        case Again(attempt, moved):
            ended = _ended(moved, DeathReason.ATTEMPTS_EXHAUSTED, ended_ms)
            return Dead(replace(attempt, next_ms=0), ended, quiet=True)
        case Dead():
            return replace(step, quiet=True)
        case _:
            assert_never(step)


def status_of(rows: Sequence[HistoryRow], *, leased: bool) -> Status:
    """Say what the rows of one generation, in order, and a live lease make of a delivery."""
    last = rows[-1]
    if isinstance(last, Ended):
        return Status.DEAD
    if isinstance(last, Attempt) and last.outcome is Outcome.SUCCESS:
        return Status.SUCCEEDED
    return Status.INFLIGHT if leased else Status.PENDING


def _retried(
    moved: Owed, attempt: Attempt, verdict: Verdict, profile: RetryProfile, timing: Timing
) -> Again | Dead:
    if moved.counted >= backoff.SCHEDULES[profile].attempts:
        return Dead(attempt, _ended(moved, DeathReason.ATTEMPTS_EXHAUSTED, timing.ended_ms))
    now = datetime.fromtimestamp(timing.ended_ms / 1000, UTC)
    wait = backoff.wait(profile, moved.counted - 1, timing.jitter)
    held = timedelta(milliseconds=max(0, timing.held.sum_ms - moved.held_before_ms))
    last_chance = datetime.fromtimestamp(moved.first_ms / 1000, UTC) + backoff.WINDOW + held
    if now >= last_chance:
        return Dead(attempt, _ended(moved, DeathReason.EXPIRED, timing.ended_ms))
    asked = min(verdict.retry_after or timedelta(), backoff.RETRY_AFTER_CEILING)
    due = min(now + max(wait, asked), max(last_chance, now + asked))
    ready_ms = _ceil_ms(due)
    return Again(replace(attempt, next_ms=ready_ms), replace(moved, ready_ms=ready_ms))


def _begun(owed: Owed, now_ms: int, held_sum_ms: int) -> Owed:
    """Begin a delivery's window with its first attempt: when, and what was held before."""
    return owed if owed.first_ms else replace(owed, first_ms=now_ms, held_before_ms=held_sum_ms)


def _ceil_ms(moment: datetime) -> int:
    return -((datetime.fromtimestamp(0, UTC) - moment) // timedelta(milliseconds=1))


def _ended(owed: Owed, reason: DeathReason, now_ms: int) -> Ended:
    return Ended(owed.delivery_id, owed.generation, owed.event_id, reason, now_ms, owed.made)
