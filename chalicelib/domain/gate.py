"""The gate: may this lane send now, and how many.

Rate (`bucket`), breaker, recovery ramp, cap and leases of one endpoint, decided together from one
record by pure functions. Each answer is a `Change` that a store makes only if its tests hold, so
it is exact over any number of functions. All times are integer microseconds of the Unix epoch.
Source: DESIGN §3 and §5; the expressions: docs/decisions/0002.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, assert_never

from chalicelib.domain import bucket as buckets
from chalicelib.domain.change import Change, Op, Record, Test
from chalicelib.domain.endpoint import Limits
from chalicelib.domain.outcome import Evidence

SECOND = buckets.SECOND
GRANT_MAX = 10
TAKE_OVER_GRACE = 2 * SECOND
LANE_BUSY_WAIT = SECOND // 4
_FULL = buckets.FULL


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
class Gate:
    """An endpoint's gate as last read."""

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
    leases: Mapping[str, Lease] = field(default_factory=dict)

    @property
    def held_slots(self) -> int:
        """Count the slots that leases hold."""
        return sum(lease.count for lease in self.leases.values())


@dataclass(frozen=True, slots=True)
class Hold:
    """A wait of the whole endpoint; `until` is None for as long as its owner wants."""

    until: int | None
    reason: HoldReason


@dataclass(frozen=True, slots=True)
class Ask:
    """A lane's wish: the attempts it could make now, under the name of this visit."""

    lane: str
    holder: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """A lane's lease as its holder remembers it; a probe's is the one request of a half-open breaker."""

    lane: str
    lease: Lease
    cooldown: int
    probe: bool


@dataclass(frozen=True, slots=True)
class Grant:
    """A change that admits the claim if it can still be made, and the dead holder's lease it takes over."""

    change: Change
    claim: Claim
    takes_over: Lease | None


@dataclass(frozen=True, slots=True)
class Turn:
    """A change of the breaker that must come before anything is admitted."""

    change: Change


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
    }


def read(record: Record) -> Gate:
    """Read a gate from its record."""
    leases = {
        name[1:]: Lease(each["h"], each["u"], each["n"], tuple(each["k"]), each["e"])
        for name, each in record.items()
        if name.startswith("L")
    }
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
        leases=leases,
    )


def ask(gate: Gate, wish: Ask, now: int, rules: Rules) -> Grant | Turn | Hold:
    """Decide what a lane may do: send some, turn the breaker first, or wait.

    The answer rests on the gate as last read; its change has the tests that make it safe when
    the gate has moved on, and then the caller reads and asks again.
    """
    if not gate.enabled:
        return Hold(None, HoldReason.DISABLED)
    if gate.hold_until > now:
        return Hold(gate.hold_until, HoldReason.RATE_LIMIT)
    lease = gate.leases.get(wish.lane)
    if lease is not None and lease.until + TAKE_OVER_GRACE > now:
        return Hold(min(lease.until + TAKE_OVER_GRACE, now + LANE_BUSY_WAIT), HoldReason.ENDPOINT_CAP)
    return _past_breaker(gate, wish, now, rules) if rules.breaker else _admit(gate, wish, now, rules)


def _past_breaker(gate: Gate, wish: Ask, now: int, rules: Rules) -> Grant | Turn | Hold:
    match gate.state:
        case Breaker.CLOSED if gate.fails >= rules.threshold:
            return Turn(opening(gate, now, rules))
        case Breaker.CLOSED:
            return _admit(gate, wish, now, rules)
        case Breaker.OPEN if gate.open_until > now:
            return Hold(gate.open_until, HoldReason.BREAKER_OPEN)
        case Breaker.HALF_OPEN if gate.probe_until > now:
            return Hold(min(gate.probe_until, now + rules.request_timeout), HoldReason.BREAKER_OPEN)
        case Breaker.OPEN | Breaker.HALF_OPEN:
            return _probe(gate, wish, now, rules)
        case _:
            assert_never(gate.state)


def settle(claim: Claim, evidence: tuple[Evidence, ...], now: int, rules: Rules) -> Change:
    """Give a lease back, its slots with it, and count the evidence in its order of completion.

    The tests fail when the lease has been taken over (then nothing is owed) or when the breaker
    has turned since (then `release` is what remains).
    """
    if claim.probe:
        return _settle_probe(claim, evidence, now, rules)
    told = [each for each in evidence if each is not Evidence.NONE]
    trailing = next((n for n, each in enumerate(reversed(told)) if each is Evidence.ALIVE), len(told))
    sets = {"seen": now}
    adds = {"slots": claim.lease.count}
    if trailing < len(told):
        sets["fails"] = trailing
    elif told:
        adds["fails"] = len(told)
    return Change(_mine(claim), sets, adds, (f"L{claim.lane}",))


def release(lease: Lease, lane: str) -> Change:
    """Give a lease back without a word to the breaker: its epoch is over, or its holder is dead."""
    return Change(_still(lease, lane), {}, {"slots": lease.count}, (f"L{lane}",))


def reconfigured(limits: Limits, before: Limits, *, enabled: bool) -> Change:
    """Lay new limits and the owner's switch on a gate, so that no admission reckons with the old.

    A new rate or burst starts with a full bucket: what was spent at the old price could be hours
    ahead at the new one.
    """
    sets = {
        "rate": limits.rate_per_second,
        "burst": limits.burst,
        "cap": limits.max_concurrency,
        "on": int(enabled),
    }
    if (limits.rate_per_second, limits.burst) != (before.rate_per_second, before.burst):
        sets["tat"] = 0
    return Change((), sets, {"conf": 1, "slots": limits.max_concurrency - before.max_concurrency})


def hold_until(moment: int) -> Change:
    """Hold a whole endpoint until a moment, unless it is held longer already."""
    return Change((Test("hold_until", Op.LT, moment),), {"hold_until": moment}, {})


def overfull(gate: Gate, rules: Rules) -> bool:
    """Say whether a closed breaker has counted enough to open."""
    return rules.breaker and gate.state is Breaker.CLOSED and gate.fails >= rules.threshold


def opening(gate: Gate, now: int, rules: Rules) -> Change:
    """Open the breaker of an overfull gate: a new epoch, closed to all until the cooldown ends."""
    tests = (
        Test("st", Op.EQ, Breaker.CLOSED.value),
        Test("epoch", Op.EQ, gate.epoch),
        Test("fails", Op.GE, rules.threshold),
    )
    opened = {"st": Breaker.OPEN.value, "open_until": now + rules.cooldown, "cooldown": rules.cooldown}
    return Change(tests, opened, {"epoch": 1})


def _admit(gate: Gate, wish: Ask, now: int, rules: Rules) -> Grant | Hold:
    permille = _ramped(gate, now, rules)
    withheld = min(gate.cap * (_FULL - permille) // _FULL, gate.cap - 1)
    free = gate.slots - withheld + _freed(gate, wish.lane)
    if free < 1:
        return Hold(now + LANE_BUSY_WAIT, HoldReason.RAMP if withheld else HoldReason.ENDPOINT_CAP)
    bucket = buckets.bucket_of(gate.rate, gate.burst, permille)
    tokens = bucket.tokens(gate.tat, now)
    if tokens < 1:
        reason = HoldReason.RATE_LIMIT if permille == _FULL else HoldReason.RAMP
        return Hold(bucket.refilled(gate.tat), reason)
    count = min(GRANT_MAX, len(wish.keys), free, tokens)
    tests = (*_unturned(gate, rules), Test("hold_until", Op.LE, now))
    return _grant(gate, _Take(wish, count, withheld), bucket.spend(gate.tat, now, count), tests, now, rules)


@dataclass(frozen=True, slots=True)
class _Take:
    wish: Ask
    count: int
    withheld: int


def _grant(  # noqa: PLR0913 - the one place where a grant's parts meet
    gate: Gate, take: _Take, spend: Change, tests: tuple[Test, ...], now: int, rules: Rules
) -> Grant:
    lane = take.wish.lane
    old = gate.leases.get(lane)
    keys = take.wish.keys[: take.count]
    lease = Lease(take.wish.holder, now + rules.lease, take.count, keys, gate.epoch)
    taken = take.count - _freed(gate, lane)
    change = Change(
        (*tests, *spend.tests, Test("slots", Op.GE, taken + take.withheld), *_vacant(old, lane)),
        {**spend.sets, "seen": now, f"L{lane}": lease.record()},
        {**spend.adds, "slots": -taken},
    )
    return Grant(change, Claim(lane, lease, gate.cooldown, probe=False), old)


def _probe(gate: Gate, wish: Ask, now: int, rules: Rules) -> Grant | Hold:
    if gate.slots + _freed(gate, wish.lane) < 1:
        return Hold(now + LANE_BUSY_WAIT, HoldReason.BREAKER_OPEN)
    bucket = buckets.bucket_of(gate.rate, gate.burst, _ramped(gate, now, rules))
    if bucket.tokens(gate.tat, now) < 1:
        return Hold(bucket.refilled(gate.tat), HoldReason.RATE_LIMIT)
    over = "open_until" if gate.state is Breaker.OPEN else "probe_until"
    turned = {
        "st": Breaker.HALF_OPEN.value,
        "epoch": gate.epoch + 1,
        "probe_until": now + rules.request_timeout + TAKE_OVER_GRACE,
    }
    tests = (
        Test("epoch", Op.EQ, gate.epoch),
        Test("conf", Op.EQ, gate.conf),
        Test(over, Op.LE, now),
        Test("hold_until", Op.LE, now),
    )
    probing = replace(gate, epoch=gate.epoch + 1)
    spend = bucket.spend(gate.tat, now, 1)
    spend = replace(spend, sets={**spend.sets, **turned})
    grant = _grant(probing, _Take(wish, 1, 0), spend, tests, now, rules)
    return replace(grant, claim=replace(grant.claim, probe=True))


def _settle_probe(claim: Claim, evidence: tuple[Evidence, ...], now: int, rules: Rules) -> Change:
    tests = (*_mine(claim), Test("st", Op.EQ, Breaker.HALF_OPEN.value))
    if Evidence.ALIVE in evidence:
        cooldown = rules.cooldown
        turned = {"st": Breaker.CLOSED.value, "fails": 0, "ramp_from": now}
    else:
        longer = claim.cooldown * 2 if Evidence.FAILING in evidence else claim.cooldown
        cooldown = min(longer, rules.max_cooldown)
        turned = {"st": Breaker.OPEN.value, "open_until": now + cooldown}
    sets = {**turned, "cooldown": cooldown, "seen": now}
    return Change(tests, sets, {"slots": claim.lease.count, "epoch": 1}, (f"L{claim.lane}",))


def _mine(claim: Claim) -> tuple[Test, ...]:
    return (*_still(claim.lease, claim.lane), Test("epoch", Op.EQ, claim.lease.epoch))


def _still(lease: Lease, lane: str) -> tuple[Test, ...]:
    """Test that a lease is this very one: a holder may have had several, of other counts."""
    return (Test(f"L{lane}.h", Op.EQ, lease.holder), Test(f"L{lane}.u", Op.EQ, lease.until))


def _unturned(gate: Gate, rules: Rules) -> tuple[Test, ...]:
    """Test that breaker and ramp (`epoch`), limits and switch (`conf`) are as read."""
    same = (Test("epoch", Op.EQ, gate.epoch), Test("conf", Op.EQ, gate.conf))
    return (*same, Test("fails", Op.LT, rules.threshold)) if rules.breaker else same


def _vacant(old: Lease | None, lane: str) -> tuple[Test, ...]:
    return (Test(f"L{lane}", Op.MISSING),) if old is None else _still(old, lane)


def _freed(gate: Gate, lane: str) -> int:
    old = gate.leases.get(lane)
    return old.count if old else 0


def _ramped(gate: Gate, now: int, rules: Rules) -> int:
    if not gate.ramp_from or now >= gate.ramp_from + rules.ramp:
        return _FULL
    passed = max(0, now - gate.ramp_from)
    return _FULL // 10 + (_FULL - _FULL // 10) * passed // rules.ramp
