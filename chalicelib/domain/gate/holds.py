"""Holds: how long an endpoint was held, why, and how much of that a delivery spent waiting.

A spell begins when somebody is refused, or when a lane gets less than it has, and ends when nothing is
left waiting; what goes out at the endpoint's pace meanwhile does not end it. The owner's switch is apart
(`off_from`, `off_past`): it is changed by those who have not read the gate.
"""

from collections.abc import Iterator
from typing import Any

from chalicelib.domain.change import Change, Op, Test
from chalicelib.domain.gate.record import SECOND, Breaker, Gate, HoldReason, Spell

PAST_MAX = 4
QUIET_FOR = 120 * SECOND
"""How long after a lane was last looked at, or its bell was due, nobody else rings it."""


def hold_begun(gate: Gate, reason: HoldReason, now: int, *, lane: str = "", due: int = 0) -> Change | None:
    """Begin a spell, and note when the one bell of a lane is due; None when all of that is known.

    A spell of another reason ends with it.
    """
    known = gate.quiet.get(lane, 0) + QUIET_FOR // 2 >= due
    sets: dict[str, Any] = {} if known or not lane else {f"Q{lane}": due}
    if reason is HoldReason.DISABLED or gate.held_for is reason:
        return Change((), sets, {}) if sets else None
    begun = begin(gate, reason, now)
    return Change(begun.tests, {**begun.sets, **sets}, begun.adds)


def expects_bell(gate: Gate, lane: str, now: int) -> bool:
    """Say whether a lane needs no bell: its own will come, or its endpoint is switched off."""
    return not gate.enabled or gate.quiet.get(lane, 0) + QUIET_FOR > now


def begin(gate: Gate, reason: HoldReason, now: int) -> Change:
    """Begin a spell of a reason in place of whatever there is."""
    over = end(gate, now)
    return Change(over.tests, {**over.sets, "held_from": now, "held_for": reason.value}, over.adds)


def end(gate: Gate, now: int) -> Change:
    """End the spell that goes on, if there is one."""
    same = (Test("held_from", Op.EQ, gate.held_from),)
    over = spell_over(gate, now)
    if over is None:
        return Change(same, {}, {})
    past = [each.record() for each in (*gate.held_past, over)][-PAST_MAX:]
    sets = {"held_from": 0, "held_past": past}
    return Change(same, sets, {"held_sum": _alone(gate, over)})


def spell_over(gate: Gate, now: int) -> Spell | None:
    """Give the spell that would end now."""
    if gate.held_for is None:
        return None
    return Spell(gate.held_for, gate.held_from, max(now, gate.held_from + 1))


def not_noted(gate: Gate, now: int, *, ending: bool = False) -> tuple[Spell, ...]:
    """Give the spells that history does not have yet, with the one that ends now if one does."""
    past = tuple(each for each in gate.held_past if each.since > gate.held_noted)
    over = spell_over(gate, now) if ending else None
    return (*past, over) if over else past


def current_hold(gate: Gate, now: int) -> Spell | None:
    """Say whether, why and since when an endpoint is held; until when as far as that is known, else 0."""
    if not gate.enabled:
        return Spell(HoldReason.DISABLED, gate.off_from, 0)
    if gate.held_for is None:
        return None
    until = 0
    if gate.state is Breaker.OPEN:
        until = gate.open_until
    elif gate.held_for is HoldReason.RATE_LIMIT and gate.hold_until > now:
        until = gate.hold_until
    return Spell(gate.held_for, gate.held_from, until)


def held_sum(gate: Gate, now: int) -> int:
    """Add up how long an endpoint was held until now."""
    over = spell_over(gate, now)
    going_on = _alone(gate, over) if over else 0
    return gate.held_sum + going_on + (0 if gate.enabled else max(0, now - gate.off_from))


def held_between(gate: Gate, since: int, until: int) -> tuple[int, HoldReason | None]:
    """Say how much of a time an endpoint was held, as far back as is known, and why it last was."""
    parts = [
        (min(spell.until, until), min(spell.until, until) - max(spell.since, since), spell.reason)
        for spell in _spells(gate, until)
    ]
    held = sorted(part for part in parts if part[1] > 0)
    total = min(sum(length for _, length, _ in held), max(0, until - since))
    return total, held[-1][2] if held else None


def _spells(gate: Gate, now: int) -> Iterator[Spell]:
    yield from gate.held_past
    if gate.off_past:
        yield Spell(HoldReason.DISABLED, *gate.off_past)
    if (over := spell_over(gate, now)) is not None:
        yield over


def _alone(gate: Gate, spell: Spell) -> int:
    """Measure a spell, without what the owner's switch is charged for already."""
    both = 0
    if gate.off_past:
        since, until = gate.off_past
        both = max(0, min(until, spell.until) - max(since, spell.since))
    return spell.until - spell.since - both
