"""Holds: how long an endpoint was held, why, and how much of that a delivery spent waiting.

A spell begins when somebody is refused, or when a lane gets less than it has, and ends when nothing is
left waiting; what goes out at the endpoint's pace meanwhile does not end it. The owner's switch is apart
(`off_from`, `off_past`): it is changed by those who have not read the gate. Spells follow one another and
never overlap, however much clocks differ: one begins when its predecessor ended, if the clock says earlier.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from chalicelib.domain.change import Change, Op, Test
from chalicelib.domain.gate.record import MS, SECOND, Breaker, Gate, HoldReason, Spell, written

PAST_MAX = 4
_BY_WORD = frozenset({HoldReason.RATE_LIMIT, HoldReason.NO_LISTENER})
QUIET_FOR = 60 * SECOND
"""How long after a lane was last looked at, or its bell was due, nobody else rings it."""
BELIEVED_FOR = 120 * SECOND
"""How long a spell holds after its endpoint's gate was last asked: visits come a minute apart at most."""


def hold_begun(gate: Gate, reason: HoldReason, now: int, *, lane: str = "", due: int = 0) -> Change | None:
    """Begin a spell, and note when the one bell of a lane is due; None when all of that is known.

    A spell of another reason ends with it; but an outage is one spell, whatever a lane is told meanwhile,
    and none ends this way while history lacks many.
    """
    known = gate.quiet.get(lane, 0) + QUIET_FOR // 2 >= due
    sets: dict[str, Any] = {} if known or not lane else {f"Q{lane}": due}
    goes_on = gate.held_for is reason or _outage(gate) or crowded(gate)
    if reason is HoldReason.DISABLED or goes_on:
        return Change((), sets, {}) if sets else None
    begun = begin(gate, reason, now)
    return Change(begun.tests, {**begun.sets, **sets}, begun.adds)


def hold_asked(gate: Gate, until: int, now: int, reason: HoldReason = HoldReason.RATE_LIMIT) -> Change:
    """Hold an endpoint until the moment that it asked for, and begin that hold, unless it is held longer."""
    begun = hold_begun(gate, reason, now) or Change((), {}, {})
    tests = (*begun.tests, Test("hold_until", Op.LT, until))
    return Change(tests, {**begun.sets, "hold_until": until}, begun.adds)


def held_by_word(gate: Gate) -> HoldReason:
    """Say why an endpoint is held until a moment that was named: it asked for it, or nobody listened."""
    return HoldReason.NO_LISTENER if gate.held_for is HoldReason.NO_LISTENER else HoldReason.RATE_LIMIT


def listener_came(gate: Gate) -> Change | None:
    """Let an endpoint go that was held because nobody listened; None: that does not hold it."""
    if gate.held_for is not HoldReason.NO_LISTENER or not gate.hold_until:
        return None
    return Change((Test("hold_until", Op.EQ, gate.hold_until),), {"hold_until": 0}, {})


def bell_due(gate: Gate, lane: str, due: int) -> Change | None:
    """Note when the one bell of a lane is due that waits alone, its endpoint not being held; None: known."""
    if gate.quiet.get(lane, 0) + QUIET_FOR // 2 >= due:
        return None
    return Change((), {f"Q{lane}": due}, {})


def expects_bell(gate: Gate, lane: str, now: int) -> bool:
    """Say whether a lane needs no bell: its own will come, or its endpoint is switched off."""
    return not gate.enabled or gate.quiet.get(lane, 0) + QUIET_FOR > now


def crowded(gate: Gate) -> bool:
    """Say whether the hold that goes on must go on: history lacks almost as many as a gate remembers.

    Whoever settles next writes them; until then there is room for one more, that of a breaker that opens.
    """
    return gate.held_for is not None and len(_unwritten(gate)) >= PAST_MAX - 1


def begin(gate: Gate, reason: HoldReason, now: int) -> Change:
    """Begin a spell of a reason in place of whatever there is."""
    over = end(gate, now)
    past = spell_over(gate, now) or (gate.held_past[-1] if gate.held_past else None)
    since = max(now, past.until) if past else now
    begun = {"held_from": since, "held_for": reason.value, "held_before": held_sum(gate, since)}
    return Change(over.tests, {**over.sets, **begun}, {})


def end(gate: Gate, now: int) -> Change:
    """End the spell that goes on, if there is one.

    What the owner's switch is charged for, or will be, is taken out: while both held it, time counts once.
    """
    same = (Test("held_from", Op.EQ, gate.held_from), Test("conf", Op.EQ, gate.conf))
    over = spell_over(gate, now)
    if over is None:
        return Change(same, {}, {})
    past = [each.record() for each in (*gate.held_past, over)][-PAST_MAX:]
    total = held_sum(gate, over.until) - _off(gate, over.until)
    ended = {"held_from": -over.until, "held_past": past, "held_sum": total}
    return Change(same, {**ended, "held_by": written(_with(gate.held_by, over))}, {})


def spell_over(gate: Gate, now: int) -> Spell | None:
    """Give the spell that would end now."""
    if gate.held_for is None:
        return None
    return Spell(gate.held_for, gate.held_from, max(now, gate.held_from + 1))


def not_noted(gate: Gate, now: int, *, ending: bool = False) -> tuple[Spell, ...]:
    """Give the spells that history does not have yet, with the one that ends now if one does."""
    over = spell_over(gate, now) if ending else None
    return (*_unwritten(gate), over) if over else _unwritten(gate)


def current_hold(gate: Gate, now: int) -> Spell | None:
    """Say whether, why and since when an endpoint is held; until when as far as that is known, else 0."""
    if not gate.enabled:
        return Spell(HoldReason.DISABLED, gate.off_from, 0)
    if gate.held_for is None:
        return None
    until = 0
    if gate.held_for is HoldReason.BREAKER_OPEN:
        if gate.state is Breaker.CLOSED:
            return None
        until = gate.open_until if gate.state is Breaker.OPEN else 0
    elif gate.held_for in _BY_WORD and gate.hold_until > now:
        until = gate.hold_until
    return Spell(gate.held_for, gate.held_from, until)


def held_now(gate: Gate, now: int) -> HoldReason | None:
    """Say what holds an endpoint back now; None: whatever is due of it is late.

    A spell is believed for as long as its lanes are visited: one that nobody looks after hides nothing.
    """
    if not gate.enabled:
        return HoldReason.DISABLED
    until, reason = max(_ends(gate))
    return reason if until > now else None


def free_since(gate: Gate) -> int:
    """Say since when nothing has held an endpoint back that nothing holds back now; 0: nothing ever did."""
    return max(until for until, _ in _ends(gate))


def held_sum(gate: Gate, now: int) -> int:
    """Add up how long an endpoint was held until now."""
    if gate.held_for is not None:
        return gate.held_before + max(0, now - gate.held_from)
    return gate.held_sum + _off(gate, now)


def held_between(gate: Gate, since: int, until: int) -> tuple[int, HoldReason | None]:
    """Say how much of a time an endpoint was held, as far back as is known, and why it last was."""
    parts = [
        (min(spell.until, until), min(spell.until, until) - max(spell.since, since), spell.reason)
        for spell in _spells(gate, until)
    ]
    held = sorted(part for part in parts if part[1] > 0)
    total = min(sum(length for _, length, _ in held), max(0, until - since))
    return total, held[-1][2] if held else None


def held_until(gate: Gate, moment: int, now: int) -> dict[HoldReason, int]:
    """Add up how many ms each reason had held an endpoint by a moment that is not long past."""
    held = {**gate.held_by, HoldReason.DISABLED: (gate.held_off + _off(gate, now)) // MS}
    if (over := spell_over(gate, now)) is not None:
        held = _with(held, over)
    for spell in _spells(gate, now):
        since = max(0, spell.until - max(spell.since, moment))
        held[spell.reason] = held.get(spell.reason, 0) - since // MS
    return {reason: held_ms for reason, held_ms in held.items() if held_ms > 0}


def _with(held: Mapping[HoldReason, int], over: Spell) -> dict[HoldReason, int]:
    return {**held, over.reason: held.get(over.reason, 0) + (over.until - over.since) // MS}


def _spells(gate: Gate, now: int) -> Iterator[Spell]:
    yield from gate.held_past
    if gate.off_past:
        yield Spell(HoldReason.DISABLED, *gate.off_past)
    if not gate.enabled:
        yield Spell(HoldReason.DISABLED, gate.off_from, now)
    if (over := spell_over(gate, now)) is not None:
        yield over


def _ends(gate: Gate) -> Iterator[tuple[int, HoldReason]]:
    """Say of everything that may hold an endpoint until when it does, or did."""
    yield gate.hold_until, held_by_word(gate)
    waits = {Breaker.OPEN: gate.open_until, Breaker.HALF_OPEN: gate.probe_until}
    yield waits.get(gate.state, 0), HoldReason.BREAKER_OPEN
    if gate.held_for is None:
        yield -gate.held_from, HoldReason.RATE_LIMIT
    else:
        yield gate.seen + BELIEVED_FOR, gate.held_for
    if gate.off_past:
        yield gate.off_past[1], HoldReason.DISABLED


def _off(gate: Gate, now: int) -> int:
    """Measure how long the owner's switch has been off this time."""
    return 0 if gate.enabled else max(0, now - gate.off_from)


def _unwritten(gate: Gate) -> tuple[Spell, ...]:
    return tuple(each for each in gate.held_past if each.since > gate.held_noted)


def _outage(gate: Gate) -> bool:
    return gate.held_for is HoldReason.BREAKER_OPEN and gate.state is not Breaker.CLOSED
