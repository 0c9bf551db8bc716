"""Audit records in the making: each use case that changes something makes one and hands it to its store."""

from dataclasses import dataclass

from chalicelib.application.ports import Clock, Dice
from chalicelib.domain import audit, ids
from chalicelib.domain.audit import NOTHING, Action, Actor, Difference, Record


@dataclass(frozen=True, slots=True)
class Recorder:
    """Makes audit records of this moment."""

    clock: Clock
    dice: Dice

    def record(self, by: Actor, action: Action, of: tuple[str, str], change: Difference = NOTHING) -> Record:
        """Say who does what to which thing, by (tenant, id), and what that changes."""
        tenant, subject = of
        now_ms = self.clock.now_ms()
        name = ids.new_id(audit.PREFIX, now_ms, self.dice.bits(ids.ENTROPY_BITS))
        return Record(tenant, name, now_ms, action, subject, by, change)
