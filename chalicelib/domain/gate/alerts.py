"""Alerts: a gate's mark that its endpoint's owner may have to be told something; it costs no write.

The mark goes with a change that is made anyway: a lease that comes back after a death or is taken from a dead
holder, a breaker that turns, a switch. It says "look", never what there is to see; who looks reads the rest.
"""

from dataclasses import replace
from typing import Any

from chalicelib.domain.change import Change, Op, Test
from chalicelib.domain.gate.record import SECOND

ALERT_SHARDS = 8
"""Under so many values of the index the marks are spread; which one does not matter."""
FRESH = 2 * SECOND
"""A younger mark is not taken away: another change may have set it anew in the same microsecond."""


def alerted(now: int) -> dict[str, Any]:
    """Give what marks a gate to be looked at from a moment on (Unix µs)."""
    return {"alert_shard": str(now % ALERT_SHARDS), "alert_until": now}


def perhaps_died(now: int) -> dict[str, Any]:
    """Give what marks a gate for a dead holder: whatever it did, it may have given up on a delivery."""
    return {**alerted(now), "died": now, "refused": now}


def and_alert(change: Change, now: int, *, refused: bool) -> Change:
    """Let a change of a gate mark it for a dead letter too; `refused`: or for one of a refused address."""
    deaths = {"died": now, **({"refused": now} if refused else {})}
    return replace(change, sets={**change.sets, **alerted(now), **deaths})


def looked(alert_until: int, now: int, again: int | None) -> Change:
    """Take that very mark away which was looked at, or move it to when there is more to see."""
    same = (Test("alert_until", Op.EQ, alert_until),)
    if again is None and alert_until <= now - FRESH:
        return Change(same, {}, {}, ("alert_shard", "alert_until"))
    return Change(same, alerted(max(now if again is None else again, now) + 1), {})
