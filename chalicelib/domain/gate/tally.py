"""What an endpoint's requests came to: by the hour, lately, and since the last that succeeded.

All of it comes from two counters that only grow, `sent` and `failed`, and from what they stood at before: a
plain success writes nothing here but, once an hour and every ten minutes, where the counters stood.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any, Protocol

from chalicelib.domain.change import Change, Op, Test
from chalicelib.domain.gate.record import SECOND, Breaker, Gate, Rules, Standing, Tally

HOUR = 3_600 * SECOND
LATELY = 50
LATELY_FOR = HOUR
HEALTHY_PERCENT = 95
FAILING_IN_A_ROW = 20
_NOTE_EVERY = 600 * SECOND
_NOTE_EVERY_SENDS = 10
_STANDINGS_MAX = 8


class Health(StrEnum):
    """How an endpoint does, in a word."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    FAILING = "failing"
    DISABLED = "disabled"


class Said(Protocol):
    """What of a request counts here."""

    @property
    def failed(self) -> bool:
        """Say whether it did not succeed."""
        ...

    @property
    def timed_out(self) -> bool:
        """Say whether no answer came in time."""
        ...


def counted(told: Sequence[Said], now: int, gate: Gate | None) -> Change:
    """Count what requests came to, in the order of their completion, onto a gate as it was read."""
    failed = sum(each.failed for each in told)
    timed_out = sum(each.timed_out for each in told)
    adds = {name: count for name, count in (("failed", failed), ("timeouts", timed_out)) if count}
    over = hour_over(gate, now) if gate else Change((), {}, {})
    sets = {**over.sets, **(_stands(gate, now, failed) if gate else {})}
    if told and failed == len(told):
        adds["bad"] = failed
        sets |= {} if gate and gate.bad_from else {"bad_from": now}
    elif failed or (told and (gate is None or gate.bad)):
        trailing = next(n for n, each in enumerate(reversed(told)) if not each.failed)
        sets |= {"bad": trailing, "bad_from": now if trailing else 0}
    return Change(over.tests, sets, adds, over.removes)


def hour_over(gate: Gate, now: int) -> Change:
    """End the hour of a gate that time has passed: what it came to waits in the gate until history has it.

    What was waiting has been written by who calls this. Hours only go forward, whatever a clock says.
    """
    same = (Test("hour", Op.EQ, gate.hour),)
    hour = now // HOUR
    if hour <= gate.hour:
        return Change(same, {}, {}, ("hour_past",)) if gate.hour_past else Change((), {}, {})
    sets: dict[str, Any] = {"hour": hour, "hour_base": [gate.sent, gate.failed, gate.timeouts]}
    past = this_hour(gate)
    if past.attempts:
        return Change(same, {**sets, "hour_past": past.record()}, {})
    return Change(same, sets, {}, ("hour_past",) if gate.hour_past else ())


def this_hour(gate: Gate) -> Tally:
    """Add up the hour that goes on, or the last in which something was sent."""
    sent, failed, timeouts = gate.hour_base
    return Tally(gate.hour, gate.sent - sent, gate.failed - failed, gate.timeouts - timeouts)


def lately(gate: Gate, now: int) -> tuple[int, int]:
    """Count the attempts of the last hour, the last 50 at most, and how many of them failed.

    Where the 50 begin between two standings, what failed there is taken to be among them.
    """
    attempts = failures = 0
    for sent, failed in _stretches(gate, now - LATELY_FOR):
        taken = min(sent, LATELY - attempts)
        attempts, failures = attempts + taken, failures + min(failed, taken)
    return attempts, failures


def health_of(gate: Gate, now: int, *, enabled: bool) -> Health:
    """Say in a word how an endpoint does."""
    if not enabled:
        return Health.DISABLED
    if gate.state is not Breaker.CLOSED or gate.bad >= FAILING_IN_A_ROW:
        return Health.FAILING
    attempts, failures = lately(gate, now)
    well = (attempts - failures) * 100 >= attempts * HEALTHY_PERCENT
    return Health.HEALTHY if well else Health.DEGRADED


def hopeless(gate: Gate, now: int, rules: Rules) -> bool:
    """Say whether an endpoint has failed for so long, and so often, that it is to be disabled."""
    enough = gate.bad >= rules.auto_disable_attempts
    return rules.auto_disable and gate.enabled and enough and now - gate.bad_from >= rules.auto_disable_after


def _stretches(gate: Gate, since: int) -> Iterator[tuple[int, int]]:
    """Give how many were sent and failed between standings, newest stretch first, from a moment on."""
    sent, failed = gate.sent, gate.failed
    for then in reversed(gate.standings):
        if then.at < since:
            return
        yield sent - then.sent, failed - then.failed
        sent, failed = then.sent, then.failed


def _stands(gate: Gate, now: int, failed: int) -> dict[str, Any]:
    """Note where the counters stood before this: every ten minutes, every ten sends while some fail."""
    last = gate.standings[-1] if gate.standings else Standing(0, 0, 0)
    failing = failed > 0 or gate.failed > (gate.standings[0].failed if gate.standings else 0)
    due = last.at <= now - _NOTE_EVERY or (failing and gate.sent >= last.sent + _NOTE_EVERY_SENDS)
    if not due:
        return {}
    standings = (*gate.standings, Standing(now, gate.sent, gate.failed))[-_STANDINGS_MAX:]
    return {"standings": [each.record() for each in standings]}
