"""Holding: what the delivery plane notes of holds, in the gate and in history, and reads of them.

History gets a hold before the gate says that it is there: killed between, it is written again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from chalicelib.application.gatekeeper import Gatekeeper
from chalicelib.application.ports import Clock, Note, Work
from chalicelib.application.visit import Underway, Visit
from chalicelib.domain import gate as gates
from chalicelib.domain.delivery import Held
from chalicelib.domain.gate import Hold, HoldReason, Leaving

Noted = tuple[tuple[str, str], Note]
_PACED_US = 1_000


@dataclass(frozen=True, slots=True)
class Holding:
    """Keeps account of holds."""

    work: Work
    keeper: Gatekeeper
    clock: Clock

    def begun(self, visit: Visit, hold: Hold, until_ms: int) -> None:
        """Note that an endpoint is held, and when the bell comes that this lane is left with."""
        gate = self.keeper.of(visit)
        if gate is None:
            return
        number, due = visit.lane.number, until_ms * 1000
        if hold.alone:
            change = gates.bell_due(gate, number, due)
        else:
            change = gates.hold_begun(gate, hold.reason, self.clock.now_us(), lane=number, due=due)
        if change is not None:
            self.keeper.change(visit, change)

    def asked(self, visit: Visit, until_us: int, reason: HoldReason = HoldReason.RATE_LIMIT) -> None:
        """Hold an endpoint until the moment that it asked for, or until which nobody listens."""
        gate = self.keeper.of(visit)
        if gate is not None:
            gate = self.keeper.change(visit, gates.hold_asked(gate, until_us, self.clock.now_us(), reason))
        if gate is None or gate.hold_until < until_us:
            self.keeper.change(visit, gates.hold_until(until_us))

    def of(self, visit: Visit, sent: Underway, began_ms: int) -> Held:
        """Say how much of its wait a delivery was held, as far as this process knows.

        Until it was let in, by the endpoint's holds; from then on, by the pace at which it was.
        """
        gate = self.keeper.of(visit)
        if gate is None:
            return Held()
        ready_us = sent.owed.ready_ms * 1000
        let_in_us = max(ready_us, visit.admitted_us)
        waited_us, reason = gates.held_between(gate, ready_us, let_in_us)
        paced_us = max(0, min(sent.paced_us, began_ms * 1000) - let_in_us)
        if paced_us >= _PACED_US:
            reason = reason or HoldReason.RATE_LIMIT
            waited_us += paced_us
        return Held(waited_us // 1000, reason, gates.held_sum(gate, began_ms * 1000) // 1000)

    def sum_ms(self, visit: Visit) -> int:
        """Say how long the endpoint of a visit was held in all, as far as this process knows."""
        gate = self.keeper.of(visit)
        return gates.held_sum(gate, self.clock.now_us()) // 1000 if gate else 0

    def is_quiet(self, visit: Visit) -> bool:
        """Say whether nobody rings the lane of a visit, so that it has to leave a bell or end that."""
        gate = self.keeper.of(visit)
        return gate is not None and visit.lane.number in gate.quiet

    def drained(self, visit: Visit, *, known: bool) -> bool:
        """Let a lane with nothing left be rung again; False when it was not quiet.

        `known`: the gate has been read in this visit, or the visit was rung by ingest.
        """
        gate = self.keeper.of(visit) if known else self.keeper.read(visit)
        now_us = self.clock.now_us()
        change = gates.drained(gate, visit.lane.number, now_us) if gate else None
        if gate is None or change is None:
            return False
        if "held_past" in change.sets:
            self.note([(visit.gate_key, each) for each in gates.not_noted(gate, now_us, ending=True)])
        self.keeper.change(visit, change)
        return True

    def leaving(self, visit: Visit) -> Leaving | None:
        """Give what a visit knows of its gate as it settles.

        What stands behind a first that failed waits for that, not for its endpoint's pace.
        """
        gate = self.keeper.of(visit)
        return Leaving(gate, last=visit.blocked or not visit.more) if gate else None

    def not_noted(self, visit: Visit, leaving: Leaving | None, now_us: int) -> list[Noted]:
        """Give the holds that history must have before a visit settles, and the hour that statistics must."""
        if leaving is None or visit.claim is None:
            return []
        ending = gates.ends_hold(leaving, visit.claim, visit.told)
        holds = gates.not_noted(leaving.gate, now_us, ending=ending)
        hours = (leaving.gate.hour_past,) if leaving.gate.hour_past else ()
        return [(visit.gate_key, each) for each in (*holds, *hours)]

    def note(self, notes: Sequence[Noted]) -> None:
        """Write holds to history, and hours to statistics."""
        if notes:
            self.work.insert([], notes)
