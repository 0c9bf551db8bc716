"""Admission: the lanes of a batch ask at their gates together, and those refused hold.

One conditional statement per lane, all lanes of a batch in one call; a refusal brings the gate
as it is, and the second question rests on that.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from chalicelib.application.gatekeeper import KnownGates
from chalicelib.application.ports import Gates
from chalicelib.application.visit import Visit
from chalicelib.domain import gate as gates
from chalicelib.domain.gate import Ask, Gate, Grant, Hold, HoldReason, Lease, Rules, Turn

TRIES = 4
LATE_BELL_MS = 5_000
FULL_LOOKS = 3


@dataclass(frozen=True, slots=True)
class Admitted:
    """A lane that may send."""

    visit: Visit


@dataclass(slots=True)
class Decisions:
    """What became of the lanes that asked.

    `dead` are lanes whose last holder died: what it had in flight is to be told before its lease,
    which names it, is taken over. `opened` are visits that opened a breaker just now, `fresh` the
    gates seen while deciding.
    """

    admitted: list[Admitted] = field(default_factory=list)
    held: list[tuple[Visit, Hold]] = field(default_factory=list)
    gone: list[Visit] = field(default_factory=list)
    dead: list[tuple[Visit, Lease]] = field(default_factory=list)
    opened: list[Visit] = field(default_factory=list)
    fresh: set[tuple[str, str]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Admission:
    """Asks at the gates."""

    gates: Gates
    known: KnownGates
    rules: Rules

    def decide(self, visits: Sequence[Visit], now_us: int) -> Decisions:
        """Let each visit ask for its wanted rows, and say which may send, which hold, which are gone."""
        decisions = Decisions()
        asking = list(visits)
        self._read({each.gate_key for each in visits if self.known.get(each.gate_key) is None}, decisions)
        for _ in range(TRIES):
            asking = self._ask(asking, now_us, decisions)
            if not asking:
                return decisions
        wait = Hold(now_us + gates.LANE_BUSY_WAIT, HoldReason.ENDPOINT_CAP)
        decisions.held += [(visit, wait) for visit in asking]
        return decisions

    def foresee(self, visit: Visit, now_us: int) -> Hold | None:
        """Say whether a lane that has just settled and has more would be refused; asks nobody."""
        gate = self.known.get(visit.gate_key)
        if gate is None or not visit.more:
            return None
        lane = visit.lane
        wish = Ask(lane.number, visit.holder, ("",) * gates.GRANT_MAX, more=True, in_turn=lane.ordered)
        wish = replace(wish, replay=lane.replay)
        answer = gates.ask(gate, wish, now_us, self.rules)
        return answer if isinstance(answer, Hold) else None

    def _read(self, keys: set[tuple[str, str]], decisions: Decisions) -> None:
        if keys:
            found = self.gates.read(sorted(keys))
            for key in keys:
                self.known.put(key, found.get(key))
            decisions.fresh |= keys

    def _ask(self, visits: Sequence[Visit], now_us: int, decisions: Decisions) -> list[Visit]:
        asked: list[tuple[Visit, Grant | Turn]] = []
        for visit, answer in self._answers(visits, now_us, decisions):
            match answer:
                case None:
                    decisions.gone.append(visit)
                case Hold():
                    decisions.held.append((visit, answer))
                case Grant(takes_over=Lease() as dead) if dead.holder != visit.buried:
                    decisions.dead.append((visit, dead))
                case Grant() | Turn():
                    asked.append((visit, answer))
                case _:
                    assert_never(answer)
        return self._change(asked, now_us, decisions)

    def _answers(
        self, visits: Sequence[Visit], now_us: int, decisions: Decisions
    ) -> list[tuple[Visit, Grant | Turn | Hold | None]]:
        """Ask by what is known; a gate is read before it holds or buries, for it may have moved on."""
        answers = [(visit, self._answer(visit, now_us)) for visit in visits]
        stale = {visit.gate_key for visit, answer in answers if _rests_on_gate(answer)} - decisions.fresh
        self._read(stale, decisions)
        return [
            (visit, self._answer(visit, now_us) if visit.gate_key in stale else answer)
            for visit, answer in answers
        ]

    def _answer(self, visit: Visit, now_us: int) -> Grant | Turn | Hold | None:
        gate = self.known.get(visit.gate_key)
        if gate is None:
            return None
        return gates.ask(gate, _wish(visit, now_us), now_us, self.rules)

    def _change(
        self, asked: Sequence[tuple[Visit, Grant | Turn]], now_us: int, decisions: Decisions
    ) -> list[Visit]:
        changes = [(visit.gate_key, each.change) for visit, each in asked]
        again = []
        for (visit, answer), result in zip(asked, self.gates.change(changes), strict=True):
            gate = result.gate
            self.known.put(visit.gate_key, gate)
            decisions.fresh.add(visit.gate_key)
            match answer:
                case Grant() if gate is not None and (lease := _lease_of(visit, gate)) is not None:
                    claim = replace(answer.claim, lease=lease)
                    visit.admit(claim, gates.moments(claim, gate, now_us), now_us)
                    decisions.admitted.append(Admitted(visit))
                case Turn(opens=True) if result.made:
                    decisions.opened.append(visit)
                    again.append(visit)
                case _:
                    again.append(visit)
        return again


def _rests_on_gate(answer: Grant | Turn | Hold | None) -> bool:
    """Say whether an answer is acted on without a change whose tests would find it stale."""
    return isinstance(answer, Hold) or (isinstance(answer, Grant) and answer.takes_over is not None)


def _wish(visit: Visit, now_us: int) -> Ask:
    keys = tuple(row.key for row in visit.wanted)
    late = not visit.round and now_us // 1000 - visit.call.rung_ms > LATE_BELL_MS
    quiet = late or visit.full >= FULL_LOOKS
    lane = visit.lane
    return Ask(
        lane.number,
        visit.holder,
        keys,
        more=visit.more,
        quiet=quiet,
        in_turn=lane.ordered,
        waited=visit.held,
        replay=lane.replay,
    )


def _lease_of(visit: Visit, gate: Gate) -> Lease | None:
    """Find the visit's own lease; also a refusal shows it, when the change was made and its answer lost."""
    lease = gate.leases.get(visit.lane.number)
    return lease if lease is not None and lease.holder == visit.holder else None
