"""Rebuilding: what is owed, and how an endpoint's gate stands, told from history alone.

History is the record of both. What only a lost gate knew (that its breaker was open, a hold that went on,
what was spent of the rate) is not in it, so a gate that is made anew is closed, full and on its ramp.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from chalicelib.domain import gate as gates
from chalicelib.domain.cloud.address import queue_of
from chalicelib.domain.delivery import Attempt, Created, Ended, HistoryRow, Lane, Owed
from chalicelib.domain.endpoint import Endpoint, EndpointState
from chalicelib.domain.gate import Gate, HoldReason, Rules, Spell
from chalicelib.domain.gate.holds import PAST_MAX
from chalicelib.domain.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Holds:
    """How long an endpoint was held: each time in order, and in all (µs) until a moment."""

    spells: tuple[Spell, ...]
    total: int
    now: int

    def before_ms(self, moment_ms: int) -> int:
        """Say what the sum of all holds was at a moment, as the gate would have (ms)."""
        return max(0, self.total - _in_all(self.spells, moment_ms * 1000, self.now)) // 1000


def holds_of(noted: Iterable[Spell], gate: Gate | None, endpoint: Endpoint, now: int) -> Holds:
    """Add up what history and, if it is there, the gate know of an endpoint's holds.

    Times of several holds at once count once.
    """
    known = {each.since: each for each in noted}
    if gate is not None:
        known |= {each.since: each for each in gates.not_noted(gate, now, ending=True)}
    if endpoint.state is EndpointState.DISABLED:
        known[endpoint.state_ms * 1000] = Spell(HoldReason.DISABLED, endpoint.state_ms * 1000, now)
    spells = tuple(known[since] for since in sorted(known))
    return Holds(spells, gates.held_sum(gate, now) if gate else _in_all(spells, 0, now), now)


def owed_again(lane_of: tuple[str, str], rows: Sequence[HistoryRow], holds: Holds) -> Owed | None:
    """Tell from the rows of one generation, in order, what is owed of it; None: it has ended.

    `lane_of` is tenant and endpoint.
    """
    created, attempts = rows[0], [row for row in rows if isinstance(row, Attempt)]
    arrived = attempts and attempts[-1].outcome is Outcome.SUCCESS
    if not isinstance(created, Created) or isinstance(rows[-1], Ended) or arrived:
        return None
    unknown = [each.outcome is Outcome.UNKNOWN for each in attempts]
    first_ms = attempts[0].at_ms if attempts else 0
    return Owed(
        Lane(*lane_of, created.lane),
        created.delivery_id,
        created.event_id,
        attempts[-1].next_ms if attempts else created.at_ms,
        created.generation,
        attempts[-1].number if attempts else 0,
        unknown.count(False),
        len(list(takewhile(bool, reversed(unknown)))),
        first_ms,
        created.sequence,
        holds.before_ms(first_ms) if first_ms else 0,
    )


def gate_again(endpoint: Endpoint, lanes: Iterable[str], holds: Holds, rules: Rules) -> dict[str, Any]:
    """Write the gate of an endpoint anew: closed, full, on its ramp. `lanes` are those that history names."""
    limits = endpoint.limits
    record = gates.new_record(limits.rate_per_second, limits.burst, limits.max_concurrency, rules=rules)
    used = max((int(each) for each in lanes if each.isdigit()), default=-1) + 1
    off_from = endpoint.state_ms * 1000 if endpoint.state is EndpointState.DISABLED else None
    past = [each for each in holds.spells if each.since != off_from]
    return {
        **record,
        "lanes": max(limits.lanes, used),
        "queue": queue_of(endpoint.transport).value,
        "ramp_from": holds.now,
        **gates.perhaps_died(holds.now),  # what its owner had still to be told stood in the lost one
        "held_sum": holds.total,
        **({"ordered": 1} if endpoint.ordered else {}),
        **(_past(past) if past else {}),
        **(_off(off_from, holds) if off_from is not None else {}),
    }


def _past(spells: Sequence[Spell]) -> dict[str, Any]:
    return {
        "held_from": -spells[-1].until,
        "held_past": [each.record() for each in spells[-PAST_MAX:]],
        "held_noted": spells[-1].since,
    }


def _off(since: int, holds: Holds) -> dict[str, Any]:
    """Write that the owner's switch is off; what that adds to the sum is added when it is asked for."""
    return {"on": 0, "off_from": since, "held_sum": max(0, holds.total - (holds.now - since))}


def _in_all(spells: Iterable[Spell], since: int, until: int) -> int:
    """Add up how much of a time an endpoint was held, by spells in order, each moment once."""
    total, seen = 0, since
    for each in spells:
        begin, end = max(each.since, seen), min(each.until, until)
        if end > begin:
            total, seen = total + end - begin, end
    return total
