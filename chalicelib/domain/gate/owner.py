"""What an owner's changes, and an endpoint's own word, do to its gate; made without having read it."""

from dataclasses import dataclass
from typing import Any

from chalicelib.domain.change import Change, Op, Test
from chalicelib.domain.endpoint import Limits
from chalicelib.domain.gate.alerts import alerted
from chalicelib.domain.gate.record import Breaker


@dataclass(frozen=True, slots=True)
class Occasion:
    """What else goes with an owner's change: when it is, and since when an endpoint is, or was, disabled.

    `moved`: it has a new URL, so its breaker closes and its ramp begins.
    """

    now: int = 0
    off_since: int | None = None
    moved: bool = False


def reconfigured(limits: Limits, before: Limits, *, enabled: bool, occasion: Occasion = Occasion()) -> Change:
    """Lay new limits and the owner's switch on a gate, so that no admission reckons with the old.

    A new rate or burst starts with a full bucket: what was spent at the old price could be hours
    ahead at the new one.
    """
    now = occasion.now
    sets: dict[str, Any] = {
        "rate": limits.rate_per_second,
        "burst": limits.burst,
        "cap": limits.max_concurrency,
        "on": int(enabled),
    }
    adds = {"conf": 1, "slots": limits.max_concurrency - before.max_concurrency}
    if (limits.rate_per_second, limits.burst) != (before.rate_per_second, before.burst):
        sets["tat"] = 0
    since = occasion.off_since
    if not enabled:
        sets["off_from"] = now if since is None else since
    elif since is not None:
        sets["off_past"] = [since, max(since, now)]
        adds |= {"held_sum": max(0, now - since), "held_off": max(0, now - since)}
    if occasion.moved or since is not None or not enabled:
        sets |= alerted(now)
    if occasion.moved or (enabled and since is not None):
        sets |= {"bad": 0, "bad_from": 0}
    if occasion.moved:
        sets |= {"st": Breaker.CLOSED.value, "fails": 0, "streak": 0, "ramp_from": now}
        adds["epoch"] = 1
    return Change((), sets, adds)


def hold_until(moment: int) -> Change:
    """Hold a whole endpoint until a moment, unless it is held longer already."""
    return Change((Test("hold_until", Op.LT, moment),), {"hold_until": moment}, {})
