"""Settling: a lease comes back, its slots with it, and what was learnt turns the breaker."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chalicelib.domain.change import Change, Op, Test
from chalicelib.domain.gate import holds
from chalicelib.domain.gate.alerts import alerted
from chalicelib.domain.gate.queues import minute_over
from chalicelib.domain.gate.record import Breaker, Claim, Gate, HoldReason, Lease, Rules, of_replays
from chalicelib.domain.gate.tally import counted
from chalicelib.domain.outcome import Evidence


@dataclass(frozen=True, slots=True)
class Told:
    """What one request said of its endpoint; `quick`: it answered within a second; `failed`: no success.

    `times_ms` is how long it took, and how long it had waited before.
    """

    evidence: Evidence
    timed_out: bool = False
    quick: bool = False
    failed: bool = False
    times_ms: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Leaving:
    """The gate as its holder last read it, and whether the lane has nothing left that waits."""

    gate: Gate
    last: bool = False


def settle(
    claim: Claim, told: Sequence[Told], now: int, rules: Rules, leaving: Leaving | None = None
) -> Change:
    """Give a lease back, its slots with it, and count what was told in its order of completion.

    The tests fail when the lease has been taken over (then nothing is owed), when the breaker has
    turned since (then `release` is what remains), or when the hold that would end, or the owner's
    switch, is another than was read, or the hour has ended (then read and settle again).
    """
    tests = (*mine(claim.lease, claim.lane), Test("epoch", Op.EQ, claim.lease.epoch))
    heard = _heard_probe(claim, told, now, rules) if claim.probe else _heard(told)
    streaks = (
        _in_a_row("streak", [each.timed_out for each in told]),
        _in_a_row("answers", [each.quick for each in told]),
    )
    spell = _spell_after(leaving, claim, told, now) if leaving else Change((), {}, {})
    tally = counted(told, now, leaving.gate if leaving else None)
    sets: dict[str, Any] = {**heard.sets, **spell.sets, **tally.sets, "seen": now}
    adds = {**heard.adds, **spell.adds, **tally.adds, "slots": claim.lease.count}
    for each in streaks:
        sets |= each.sets
        adds |= each.adds
    if told:
        adds["sent"] = len(told)
    every = (*tests, *heard.tests, *spell.tests, *tally.tests)
    return Change(every, sets, adds, (f"L{claim.lane}", *tally.removes))


def ends_hold(leaving: Leaving, claim: Claim, told: Sequence[Told]) -> bool:
    """Say whether settling a claim ends the hold that goes on."""
    if claim.probe:
        return any(each.evidence is Evidence.ALIVE for each in told)
    if of_replays(claim.lane):
        return False
    return leaving.last and nobody_else_waits(leaving.gate, claim.lane)


def release(lease: Lease, lane: str) -> Change:
    """Give a lease back without a word to the breaker: its epoch is over, or its holder is dead."""
    return Change(mine(lease, lane), {}, {"slots": lease.count}, (f"L{lane}",))


def drained(gate: Gate, lane: str, now: int) -> Change | None:
    """Let a quiet lane with nothing left be rung again, and end the hold with it; None: it is not quiet."""
    if lane not in gate.quiet:
        return None
    same = Test(f"Q{lane}", Op.EQ, gate.quiet[lane])
    waits = of_replays(lane) or not nobody_else_waits(gate, lane)
    if waits or gate.state is not Breaker.CLOSED:
        return Change((same,), {}, {}, (f"Q{lane}",))
    over = holds.end(gate, now)
    noting = holds.not_noted(gate, now, ending=True)
    noted = {"held_noted": noting[-1].since} if noting else {}
    return Change((same, *over.tests), {**over.sets, **noted}, over.adds, (f"Q{lane}",))


def overfull(gate: Gate, rules: Rules) -> bool:
    """Say whether a closed breaker has counted enough to open."""
    return rules.breaker and gate.state is Breaker.CLOSED and gate.fails >= rules.threshold


def opening(gate: Gate, now: int, rules: Rules) -> Change:
    """Open the breaker of an overfull gate: a new epoch, closed to all until the cooldown ends."""
    spell = holds.begin(gate, HoldReason.BREAKER_OPEN, now)
    tests = (
        Test("st", Op.EQ, Breaker.CLOSED.value),
        Test("epoch", Op.EQ, gate.epoch),
        Test("fails", Op.GE, rules.threshold),
        *spell.tests,
    )
    opened = {"st": Breaker.OPEN.value, "open_until": now + rules.cooldown, "cooldown": rules.cooldown}
    return Change(tests, {**opened, **spell.sets, **alerted(now)}, {"epoch": 1, **spell.adds})


def mine(lease: Lease, lane: str) -> tuple[Test, ...]:
    """Test that a lease is this very one: a holder may have had several, of other counts."""
    return (Test(f"L{lane}.h", Op.EQ, lease.holder), Test(f"L{lane}.u", Op.EQ, lease.until))


def _heard(told: Sequence[Told]) -> Change:
    evidence = [each.evidence for each in told if each.evidence is not Evidence.NONE]
    return _in_a_row("fails", [each is Evidence.FAILING for each in evidence])


def _heard_probe(claim: Claim, told: Sequence[Told], now: int, rules: Rules) -> Change:
    evidence = {each.evidence for each in told}
    if Evidence.ALIVE in evidence:
        cooldown = rules.cooldown
        closed = {"st": Breaker.CLOSED.value, "fails": 0, "ramp_from": now}
        turned: dict[str, Any] = {**closed, **alerted(now)}
    else:
        longer = claim.cooldown * 2 if Evidence.FAILING in evidence else claim.cooldown
        cooldown = min(longer, rules.max_cooldown)
        turned = {"st": Breaker.OPEN.value, "open_until": now + cooldown}
    half_open = (Test("st", Op.EQ, Breaker.HALF_OPEN.value),)
    return Change(half_open, {**turned, "cooldown": cooldown}, {"epoch": 1})


def _in_a_row(name: str, said: Sequence[bool]) -> Change:
    """Count on, or begin anew after the last that did not."""
    trailing = next((n for n, each in enumerate(reversed(said)) if not each), len(said))
    if trailing < len(said):
        return Change((), {name: trailing}, {})
    return Change((), {}, {name: len(said)} if said else {})


def _spell_after(leaving: Leaving, claim: Claim, told: Sequence[Told], now: int) -> Change:
    """Note the holds that are in history by now, end the one that goes on if it is over; and the minute."""
    gate = leaving.gate
    ends = ends_hold(leaving, claim, told)
    noting = holds.not_noted(gate, now, ending=ends)
    noted = minute_over(gate) | ({"held_noted": noting[-1].since} if noting else {})
    if not ends or gate.held_for is None:
        return Change((), noted, {})
    over = holds.end(gate, now)
    return Change(over.tests, {**over.sets, **noted}, over.adds)


def nobody_else_waits(gate: Gate, lane: str) -> bool:
    """Say whether no other lane waits for a bell of its own; while one does, a hold goes on.

    That of replays does not count: it waits for what others leave as much as for its endpoint.
    """
    return not any(other != lane and not of_replays(other) for other in gate.quiet)
