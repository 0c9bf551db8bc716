"""A gate's record: what an endpoint's gate is, as stored and as read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from chalicelib.domain import bucket as buckets
from chalicelib.domain.bucket import Bucket
from chalicelib.domain.change import Record
from chalicelib.domain.histogram import Histogram

SECOND = buckets.SECOND
MS = SECOND // 1_000
TAKE_OVER_GRACE = 2 * SECOND
TOOK, WAITED = "C", "P"
"""How the attributes begin that count the hour's durations by bucket: the consumer's, and the platform's."""


class Breaker(StrEnum):
    """The breaker's states."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class HoldReason(StrEnum):
    """Why an endpoint waits as a whole."""

    RATE_LIMIT = "rate_limit"
    BREAKER_OPEN = "breaker_open"
    ENDPOINT_CAP = "endpoint_cap"
    DISABLED = "disabled"
    RAMP = "ramp"
    NO_LISTENER = "no_listener"


class Queue(StrEnum):
    """Where an endpoint's lanes ring: on its shard, or apart for how it behaves or what sends to it."""

    SHARD = ""
    SLOW = "slow"
    HOT = "hot-0"
    CLOUD = "cloud"


@dataclass(frozen=True, slots=True)
class Rules:
    """The installation's numbers for every gate; durations in microseconds."""

    breaker: bool = True
    threshold: int = 20
    cooldown: int = 30 * SECOND
    max_cooldown: int = 300 * SECOND
    ramp: int = 300 * SECOND
    lease: int = 45 * SECOND
    request_timeout: int = 10 * SECOND
    reserve: int = 2 * SECOND
    auto_disable: bool = True
    auto_disable_after: int = 72 * 3_600 * SECOND
    auto_disable_attempts: int = 12


@dataclass(frozen=True, slots=True)
class Spell:
    """A time during which an endpoint was held: why, from when, until when."""

    reason: HoldReason
    since: int
    until: int

    def record(self) -> list[Any]:
        """Write the spell as the list it is stored as."""
        return [self.reason.value, self.since, self.until]


@dataclass(frozen=True, slots=True)
class Tally:
    """What an endpoint's requests of an hour came to; the hour is counted from the epoch.

    `took` says how long the endpoint took to answer, `waited` how long what was sent had waited for it: both
    in buckets. `held_ms` is how long the endpoint was held in that hour, by reason.
    """

    hour: int
    attempts: int
    failed: int
    timed_out: int
    took: Histogram = field(default_factory=dict)
    waited: Histogram = field(default_factory=dict)
    held_ms: Mapping[HoldReason, int] = field(default_factory=dict)

    def record(self) -> list[Any]:
        """Write the tally as the list it is stored as."""
        counts = [self.hour, self.attempts, self.failed, self.timed_out]
        return [*counts, written(self.took), written(self.waited), written(self.held_ms)]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the counters of what was sent and of what failed stood at a moment; stored in whole seconds."""

    at: int
    sent: int
    failed: int

    def record(self) -> list[int]:
        """Write the standing as the list it is stored as."""
        return [self.at // SECOND, self.sent, self.failed]


@dataclass(frozen=True, slots=True)
class Lease:
    """A lane's claim on its endpoint: who, until when, how many slots, and which attempts it may make."""

    holder: str
    until: int
    count: int
    keys: tuple[str, ...]
    epoch: int

    def record(self) -> dict[str, Any]:
        """Write the lease as the map it is stored as."""
        return {"h": self.holder, "u": self.until, "n": self.count, "k": list(self.keys), "e": self.epoch}


@dataclass(frozen=True, slots=True)
class Claim:
    """A lane's lease as its holder remembers it; a probe's is the one request of a half-open breaker.

    `bucket` is what its requests were taken from, `queue` where its endpoint rang.
    """

    lane: str
    lease: Lease
    cooldown: int
    probe: bool
    bucket: Bucket
    queue: Queue = Queue.SHARD


@dataclass(frozen=True, slots=True)
class Gate:
    """An endpoint's gate as last read.

    `died` is when a delivery was last given up on, `refused` when its address was last refused.
    `held_for` and `held_from` are the hold that goes on, and `held_before` how long it had been held in all
    by then; when none does, `held_from` is 0 or, negative, when the last one ended, and `held_sum` what all
    took. `held_past` are the last few; history has those up to `held_noted`. `off_from` and `off_past` are
    when the owner's switch was off. `quiet` says of each lane that needs no further bell when it was last
    looked at, or when its one bell is due. `streak` counts timeouts in a row, `answers` quick answers in a
    row; `sent` all sends until `seen`, `sent_before` those until `minute_from`, `per_s` the rate of the
    minute before. `replays`: it may have a line of replays. While one request at a time may go, `replayed` is
    when a replay was last let in (0: since then a first attempt was), `replay_asks` when one asked in vain.
    `failed` and `timeouts` count all that did so, `bad` those that failed in a row, the first of them at
    `bad_from`. `hour_base` is what `sent`, `failed` and `timeouts` were as `hour` began, `hour_past` an hour
    that the statistics lack, `standings` where the counters lately stood. `took` and `waited` count durations
    of the hour in buckets. `held_by` is how long (ms) each reason held it but for the hold that goes on,
    `held_off` how long its switch was off, `hour_held` what both came to as the hour began (ms).
    """

    tat: int
    slots: int
    cap: int
    rate: int
    burst: int
    enabled: bool
    conf: int
    state: Breaker
    epoch: int
    fails: int
    open_until: int
    cooldown: int
    probe_until: int
    hold_until: int
    ramp_from: int
    lanes: int = 1
    off_from: int = 0
    off_past: tuple[int, ...] = ()
    held_for: HoldReason | None = None
    held_from: int = 0
    held_before: int = 0
    held_sum: int = 0
    held_past: tuple[Spell, ...] = ()
    held_noted: int = 0
    queue: Queue = Queue.SHARD
    streak: int = 0
    answers: int = 0
    seen: int = 0
    sent: int = 0
    sent_before: int = 0
    minute_from: int = 0
    per_s: int = 0
    died: int = 0
    refused: int = 0
    ordered: bool = False
    replays: bool = False
    replayed: int = 0
    replay_asks: int = 0
    failed: int = 0
    timeouts: int = 0
    bad: int = 0
    bad_from: int = 0
    hour: int = 0
    hour_base: tuple[int, int, int] = (0, 0, 0)
    hour_past: Tally | None = None
    took: Histogram = field(default_factory=dict)
    waited: Histogram = field(default_factory=dict)
    held_by: Mapping[HoldReason, int] = field(default_factory=dict)
    held_off: int = 0
    hour_held: Mapping[HoldReason, int] = field(default_factory=dict)
    standings: tuple[Standing, ...] = ()
    leases: Mapping[str, Lease] = field(default_factory=dict)
    quiet: Mapping[str, int] = field(default_factory=dict)

    @property
    def held_slots(self) -> int:
        """Count the slots that leases hold."""
        return sum(lease.count for lease in self.leases.values())


def new_record(rate: int, burst: int, cap: int, *, rules: Rules) -> dict[str, Any]:
    """Write the gate of a new endpoint: closed, full, with all slots free."""
    return {
        "tat": 0,
        "slots": cap,
        "cap": cap,
        "rate": rate,
        "burst": burst,
        "on": 1,
        "conf": 0,
        "st": Breaker.CLOSED.value,
        "epoch": 0,
        "fails": 0,
        "open_until": 0,
        "cooldown": rules.cooldown,
        "probe_until": 0,
        "hold_until": 0,
        "ramp_from": 0,
        "seen": 0,
        "held_from": 0,
        "held_sum": 0,
        "queue": Queue.SHARD.value,
        "streak": 0,
        "answers": 0,
        "sent": 0,
        "minute_from": 0,
        "failed": 0,
        "timeouts": 0,
        "bad": 0,
        "hour": 0,
        "held_off": 0,
    }


def written(counts: Mapping[Any, int]) -> dict[str, int]:
    """Write counts as the map they are stored as, without those of nothing."""
    return {str(each): count for each, count in counts.items() if count}


def durations_of(stored: Mapping[str, int]) -> Histogram:
    """Read durations in buckets from the map they are stored as."""
    return {int(bucket): count for bucket, count in stored.items()}


def held_of(stored: Mapping[str, int]) -> dict[HoldReason, int]:
    """Read how long each reason held from the map it is stored as."""
    return {HoldReason(reason): held_ms for reason, held_ms in stored.items()}


def of_replays(lane: str) -> bool:
    """Say whether a lane's number is that of a line of replays."""
    return lane.startswith("r")


def read(record: Record) -> Gate:
    """Read a gate from its record."""
    of = _families(record)
    return Gate(
        tat=record["tat"],
        slots=record["slots"],
        cap=record["cap"],
        rate=record["rate"],
        burst=record["burst"],
        enabled=record["on"] == 1,
        conf=record["conf"],
        state=Breaker(record["st"]),
        epoch=record["epoch"],
        fails=record["fails"],
        open_until=record["open_until"],
        cooldown=record["cooldown"],
        probe_until=record["probe_until"],
        hold_until=record["hold_until"],
        ramp_from=record["ramp_from"],
        lanes=record.get("lanes", 1),
        off_from=record.get("off_from", 0),
        off_past=tuple(record.get("off_past", ())),
        held_for=HoldReason(record["held_for"]) if record["held_from"] > 0 else None,
        held_from=record["held_from"],
        held_before=record.get("held_before", 0),
        held_sum=record["held_sum"],
        held_past=tuple(_spell(each) for each in record.get("held_past", ())),
        held_noted=record.get("held_noted", 0),
        queue=Queue(record["queue"]),
        streak=record["streak"],
        answers=record["answers"],
        seen=record["seen"],
        sent=record["sent"],
        sent_before=record.get("sent_before", 0),
        minute_from=record["minute_from"],
        per_s=record.get("per_s", 0),
        died=record.get("died", 0),
        refused=record.get("refused", 0),
        ordered="ordered" in record,
        replays="replays" in record,
        replayed=record.get("replayed", 0),
        replay_asks=record.get("replay_asks", 0),
        failed=record["failed"],
        timeouts=record["timeouts"],
        bad=record["bad"],
        bad_from=record.get("bad_from", 0),
        hour=record["hour"],
        hour_base=_three(record.get("hour_base", (0, 0, 0))),
        hour_past=_tally(record["hour_past"]) if "hour_past" in record else None,
        took=durations_of(of[TOOK]),
        waited=durations_of(of[WAITED]),
        held_by=held_of(record.get("held_by", {})),
        held_off=record["held_off"],
        hour_held=held_of(record.get("hour_held", {})),
        standings=tuple(Standing(at * SECOND, *rest) for at, *rest in record.get("standings", ())),
        leases={lane: _lease(each) for lane, each in of["L"].items()},
        quiet=of["Q"],
    )


def _lease(stored: Mapping[str, Any]) -> Lease:
    return Lease(stored["h"], stored["u"], stored["n"], tuple(stored["k"]), stored["e"])


def _families(record: Record) -> dict[str, dict[str, Any]]:
    """Gather the attributes of which there are many, each by what stands after its family's letter."""
    found: dict[str, dict[str, Any]] = {"L": {}, "Q": {}, TOOK: {}, WAITED: {}}
    for name, value in record.items():
        family = found.get(name[0])
        if family is not None:
            family[name[1:]] = value
    return found


def _tally(stored: Sequence[Any]) -> Tally:
    hour, attempts, failed, timed_out, *more = stored
    took, waited, held_ms = more or ({}, {}, {})
    durations = (durations_of(took), durations_of(waited))
    return Tally(hour, attempts, failed, timed_out, *durations, held_of(held_ms))


def _three(stored: Sequence[int]) -> tuple[int, int, int]:
    first, second, third = stored
    return first, second, third


def _spell(stored: list[Any]) -> Spell:
    reason, since, until = stored
    return Spell(HoldReason(reason), since, until)
