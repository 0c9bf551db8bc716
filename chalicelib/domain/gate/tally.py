"""What an endpoint's requests came to: by the hour, lately, and since the last that succeeded.

All of it comes from two counters that only grow, `sent` and `failed`, and from what they stood at before: a
plain success writes nothing here but, once an hour and every ten minutes, where the counters stood.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any, Protocol

from chalicelib.domain.change import Change, Op, Test
from chalicelib.domain.gate.holds import held_until
from chalicelib.domain.gate.record import (
    MS,
    SECOND,
    TOOK,
    WAITED,
    Breaker,
    Gate,
    Rules,
    Standing,
    Tally,
    written,
)
from chalicelib.domain.histogram import bucket_of

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

    @property
    def times_ms(self) -> tuple[int, int] | None:
        """Say how long it took, and how long it had waited before, if that is known."""
        ...


def counted(told: Sequence[Said], now: int, gate: Gate | None) -> Change:
    """Count what requests came to, in the order of their completion, onto a gate as it was read."""
    failed = sum(each.failed for each in told)
    timed_out = sum(each.timed_out for each in told)
    adds = {name: count for name, count in (("failed", failed), ("timeouts", timed_out)) if count}
    over = _and_times(gate, hour_over(gate, now), told) if gate else Change((), {}, {})
    adds |= over.adds
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
    if held := held_until(gate, hour * HOUR, now):
        sets["hour_held"] = written(held)
    past = this_hour(gate, now)
    buckets = _bucket_counts(gate)
    taken = {name: -count for name, count in buckets.items() if count}
    unused = tuple(name for name, count in buckets.items() if not count)
    tests = (*same, *(Test(name, Op.EQ, 0) for name in unused))
    if past.attempts:
        return Change(tests, {**sets, "hour_past": past.record()}, taken, unused)
    return Change(tests, sets, taken, (*unused, "hour_past") if gate.hour_past else unused)


def this_hour(gate: Gate, now: int) -> Tally:
    """Add up the hour that goes on, or the last in which something was sent."""
    sent, failed, timeouts = gate.hour_base
    counts = (gate.hour, gate.sent - sent, gate.failed - failed, gate.timeouts - timeouts)
    held = held_until(gate, min(now, (gate.hour + 1) * HOUR), now)
    held_ms = {reason: min(each - gate.hour_held.get(reason, 0), HOUR // MS) for reason, each in held.items()}
    took, waited = ({each: n for each, n in of.items() if n} for of in (gate.took, gate.waited))
    return Tally(*counts, took, waited, {reason: each for reason, each in held_ms.items() if each > 0})


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


def _and_times(gate: Gate, over: Change, told: Sequence[Said]) -> Change:
    """Count durations too, a bucket an attribute: what is there grows, what is not there yet begins.

    The tests fail when another has begun, or taken away, a bucket meanwhile. What an hour that is over came
    to is taken out again as it was read, so that whatever is added beside this stays for the next.
    """
    here = _bucket_counts(gate)
    fallen = Counter(name for each in told if each.times_ms for name in _names(*each.times_ms))
    begun = {name: count for name, count in fallen.items() if name not in here}
    grown = {name: over.adds.get(name, 0) + count for name, count in fallen.items() if name in here}
    tests = (
        *(each for each in over.tests if each.path not in grown),
        *(Test(name, Op.MISSING) for name in begun),
        *(Test(name, Op.GE, 0) for name in grown),
    )
    adds = {name: step for name, step in {**over.adds, **grown}.items() if step}
    removes = tuple(name for name in over.removes if name not in grown)
    return Change(tests, {**over.sets, **begun}, adds, removes)


def _bucket_counts(gate: Gate) -> dict[str, int]:
    buckets = ((TOOK, gate.took), (WAITED, gate.waited))
    return {f"{prefix}{bucket}": count for prefix, of in buckets for bucket, count in of.items()}


def _names(took_ms: int, waited_ms: int) -> tuple[str, str]:
    return f"{TOOK}{bucket_of(took_ms)}", f"{WAITED}{bucket_of(waited_ms)}"


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
