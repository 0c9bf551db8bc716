"""Asking at the gate: a lane is let in for some of what it has, turns the breaker first, or holds.

The order of the questions is here and nowhere else: switch, 429, lease, breaker, cap, rate.
"""

from dataclasses import dataclass, replace
from typing import Any, assert_never

from chalicelib.domain import bucket as buckets
from chalicelib.domain.bucket import Bucket
from chalicelib.domain.change import Change, Op, Test
from chalicelib.domain.gate import holds
from chalicelib.domain.gate.alerts import perhaps_died
from chalicelib.domain.gate.record import (
    SECOND,
    TAKE_OVER_GRACE,
    Breaker,
    Claim,
    Gate,
    HoldReason,
    Lease,
    Rules,
)
from chalicelib.domain.gate.settle import mine, nobody_else_waits, opening

GRANT_MAX = 10
LANE_BUSY_WAIT = SECOND // 4
REPLAY_WAIT = SECOND
_FULL = buckets.FULL
_PACED = (HoldReason.RATE_LIMIT, HoldReason.RAMP)


@dataclass(frozen=True, slots=True)
class Hold:
    """A wait of the whole endpoint; `until` is None for as long as its owner wants.

    `alone`: only this lane waits, one of replays, for what first attempts leave.
    """

    until: int | None
    reason: HoldReason
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """A lane's wish: the attempts it could make now, under the name of this visit.

    `more`: it has further ones. `quiet`: it needs no further bell from now on, as this visit leaves one.
    `in_turn`: it makes its attempts one after another, so that one slot is enough for all.
    `waited`: it was held and has come back; it takes what there is as soon as there is any, or a lane that
    always comes at the right moment for a full batch would be first for ever. `replay`: it takes only what
    first attempts leave: half of the bucket and of the slots stay free, and a single slot goes in turns.
    """

    lane: str
    holder: str
    keys: tuple[str, ...]
    more: bool = False
    quiet: bool = False
    in_turn: bool = False
    waited: bool = False
    replay: bool = False


@dataclass(frozen=True, slots=True)
class Grant:
    """A change that admits the claim if it can still be made, and the dead holder's lease it takes over."""

    change: Change
    claim: Claim
    takes_over: Lease | None


@dataclass(frozen=True, slots=True)
class Turn:
    """A change that must come before anything is admitted; `opens`: it opens the breaker."""

    change: Change
    opens: bool = True


def ask(gate: Gate, wish: Ask, now: int, rules: Rules) -> Grant | Turn | Hold:
    """Decide what a lane may do: send some, turn the breaker first, or wait.

    The answer rests on the gate as last read; its change has the tests that make it safe when
    the gate has moved on, and then the caller reads and asks again.
    """
    if not gate.enabled:
        return Hold(None, HoldReason.DISABLED)
    if gate.hold_until > now:
        return Hold(gate.hold_until, holds.held_by_word(gate))
    lease = gate.leases.get(wish.lane)
    if lease is not None and lease.until + TAKE_OVER_GRACE > now:
        return Hold(min(lease.until + TAKE_OVER_GRACE, now + LANE_BUSY_WAIT), HoldReason.ENDPOINT_CAP)
    return _past_breaker(gate, wish, now, rules) if rules.breaker else _admit(gate, wish, now, rules)


def moments(claim: Claim, gate: Gate, now: int) -> tuple[int, ...]:
    """Say when each request of a claim may go, the gate being as the claim's own change left it."""
    when = claim.bucket.moments(gate.tat, len(claim.lease.keys))
    return tuple(max(now, each) for each in when)


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


def _admit(gate: Gate, wish: Ask, now: int, rules: Rules) -> Grant | Turn | Hold:
    permille = _ramped(gate, now, rules)
    withheld = min(gate.cap * (_FULL - permille) // _FULL, gate.cap - 1)
    bucket = buckets.bucket_of(gate.rate, gate.burst, permille)
    if gate.cap - withheld == 1 and (wait := _in_turns(gate, wish, now)) is not None:
        return wait
    if wish.replay:
        return _admit_replay(gate, wish, _Room(withheld, bucket), now, rules)
    free = gate.slots - withheld + _freed(gate, wish.lane)
    if free < 1:
        return Hold(now + LANE_BUSY_WAIT, HoldReason.RAMP if withheld else HoldReason.ENDPOINT_CAP)
    wanted = min(GRANT_MAX, len(wish.keys), GRANT_MAX if wish.in_turn else free)
    at_once, soon = bucket.tokens(gate.tat, now), bucket.tokens(gate.tat, now, rules.reserve)
    slow = HoldReason.RATE_LIMIT if permille == _FULL else HoldReason.RAMP
    if at_once < 1 and soon < (1 if wish.waited else wanted):
        soonest = bucket.refilled(gate.tat) - rules.reserve
        worth = _worth_coming(bucket, gate, wish, wanted, rules.reserve)
        return Hold(soonest if wish.waited else worth, slow)
    count = min(wanted, soon)
    take = _Take(wish, count, withheld, bucket, slow if at_once < wanted else None)
    tests = (*_unturned(gate, rules), Test("hold_until", Op.LE, now))
    return _grant(gate, take, bucket.spend(gate.tat, now, count, rules.reserve), tests, now, rules)


@dataclass(frozen=True, slots=True)
class _Room:
    """What the recovery ramp leaves of an endpoint: slots withheld from all, and its bucket."""

    withheld: int
    bucket: Bucket


def _admit_replay(gate: Gate, wish: Ask, room: _Room, now: int, rules: Rules) -> Grant | Hold:
    """Let replays in for what leaves half of the slots and of the bucket free, and reserve nothing ahead."""
    withheld = room.withheld + (gate.cap - room.withheld) // 2
    free = gate.slots - withheld + _freed(gate, wish.lane)
    if free < 1:
        return Hold(now + REPLAY_WAIT, HoldReason.ENDPOINT_CAP, alone=True)
    bucket = replace(room.bucket, ahead=max(room.bucket.cost, room.bucket.ahead // 2))
    wanted = min(GRANT_MAX, len(wish.keys), free)
    count = min(wanted, bucket.tokens(gate.tat, now))
    if count < 1:
        return Hold(_worth_coming(bucket, gate, wish, wanted, 0), HoldReason.RATE_LIMIT, alone=True)
    tests = (*_unturned(gate, rules), Test("hold_until", Op.LE, now))
    take = _Take(wish, count, withheld, bucket)
    return _grant(gate, take, bucket.spend(gate.tat, now, count), tests, now, rules)


def _in_turns(gate: Gate, wish: Ask, now: int) -> Turn | Hold | None:
    """Let first attempts and replays alternate where one request at a time may go; None: it may ask.

    A replay that finds the slot taken says so, and the first attempt after the next leaves it to it; after
    a replay, first attempts have a moment to come.
    """
    if not wish.replay:
        yields = not gate.replayed and gate.replay_asks + SECOND > now
        return Hold(now + LANE_BUSY_WAIT, HoldReason.ENDPOINT_CAP) if yields else None
    if gate.slots + _freed(gate, wish.lane) < gate.cap:
        if gate.replay_asks + SECOND // 2 < now:
            return Turn(Change((), {"replay_asks": now}, {}), opens=False)
        return Hold(now + LANE_BUSY_WAIT, HoldReason.ENDPOINT_CAP, alone=True)
    if gate.replayed and gate.seen + LANE_BUSY_WAIT > now:
        return Hold(gate.seen + LANE_BUSY_WAIT, HoldReason.ENDPOINT_CAP, alone=True)
    return None


def _worth_coming(bucket: Bucket, gate: Gate, wish: Ask, wanted: int, reserve: int) -> int:
    """Say when a full batch can go: all that is wanted, two of the largest grants when there is more.

    Not so late that the bucket overflows meanwhile.
    """
    batch = 2 * GRANT_MAX if wish.more else wanted
    most = bucket.ahead // bucket.cost * 9 // 10
    return bucket.refilled(gate.tat, max(1, min(batch - reserve // bucket.cost, most)))


@dataclass(frozen=True, slots=True)
class _Take:
    """What a grant takes; `slow` is why those left over, or paced, have to wait."""

    wish: Ask
    count: int
    withheld: int
    bucket: Bucket
    slow: HoldReason | None = None


def _grant(  # noqa: PLR0913 - the one place where a grant's parts meet
    gate: Gate, take: _Take, spend: Change, tests: tuple[Test, ...], now: int, rules: Rules
) -> Grant:
    wish = take.wish
    old = gate.leases.get(wish.lane)
    slots = 1 if wish.in_turn else take.count
    lease = Lease(wish.holder, now + rules.lease, slots, wish.keys[: take.count], gate.epoch)
    taken = slots - _freed(gate, wish.lane)
    spell = _spell_after(gate, take, now) if gate.state is Breaker.CLOSED else Change((), {}, {})
    fits = Test("slots", Op.GE, taken + take.withheld)
    told = perhaps_died(now) if old else {}
    change = Change(
        tuple(dict.fromkeys((*tests, *spend.tests, *spell.tests, fits, *_vacant(old, wish.lane)))),
        {**spend.sets, **spell.sets, **_noticed(gate, wish, now), **told, f"L{wish.lane}": lease.record()},
        {**spend.adds, **spell.adds, "slots": -taken},
    )
    claim = Claim(wish.lane, lease, gate.cooldown, probe=False, bucket=take.bucket, queue=gate.queue)
    return Grant(change, claim, old)


def _noticed(gate: Gate, wish: Ask, now: int) -> dict[str, Any]:
    """Note when the gate, and a lane that rings no more, were last looked at."""
    quiet = wish.quiet or wish.lane in gate.quiet
    noticed: dict[str, Any] = {"seen": now} | ({f"Q{wish.lane}": now} if quiet else {})
    if wish.replay and (gate.cap == 1 or gate.ramp_from):
        return noticed | {"replayed": now, "replay_asks": 0}
    return noticed | ({"replayed": 0} if gate.replayed else {})


def _spell_after(gate: Gate, take: _Take, now: int) -> Change:
    """Begin a hold when not all can go at once, end one when nothing is left waiting."""
    if take.wish.replay:
        return Change((), {}, {})
    left = take.wish.more or take.count < len(take.wish.keys) or not nobody_else_waits(gate, take.wish.lane)
    if holds.crowded(gate) or gate.held_for is take.slow:
        return Change((), {}, {})
    if take.slow is not None:
        return holds.begin(gate, take.slow, now)
    return Change((), {}, {}) if left and gate.held_for in _PACED else holds.end(gate, now)


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
    grant = _grant(probing, _Take(wish, 1, 0, bucket), spend, tests, now, rules)
    return replace(grant, claim=replace(grant.claim, probe=True))


def _unturned(gate: Gate, rules: Rules) -> tuple[Test, ...]:
    """Test that breaker and ramp (`epoch`), limits and switch (`conf`) are as read."""
    same = (Test("epoch", Op.EQ, gate.epoch), Test("conf", Op.EQ, gate.conf))
    return (*same, Test("fails", Op.LT, rules.threshold)) if rules.breaker else same


def _vacant(old: Lease | None, lane: str) -> tuple[Test, ...]:
    return (Test(f"L{lane}", Op.MISSING),) if old is None else mine(old, lane)


def _freed(gate: Gate, lane: str) -> int:
    old = gate.leases.get(lane)
    return old.count if old else 0


def _ramped(gate: Gate, now: int, rules: Rules) -> int:
    if not gate.ramp_from or now >= gate.ramp_from + rules.ramp:
        return _FULL
    passed = max(0, now - gate.ramp_from)
    return _FULL // 10 + (_FULL - _FULL // 10) * passed // rules.ramp
