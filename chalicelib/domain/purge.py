"""Purges: of all that is a tenant's, and of an endpoint's dead letters.

A tenant's goes in rounds. Each begins by deleting endpoints and waits until whoever had read them, or a key,
has surely ended; a round that finds nothing is the last. Times are Unix epoch milliseconds.
"""

from dataclasses import dataclass, replace
from enum import StrEnum


class Stage(StrEnum):
    """What a purge is at, in this order: what names other things goes after them, who may ask last."""

    CLOSING = "closing"
    OWN = "own"
    ENDPOINTS = "endpoints"
    EVENTS = "events"
    PAYLOADS = "payloads"
    SCANS = "scans"
    LAST = "last"


_NEXT = {
    Stage.CLOSING: Stage.OWN,
    Stage.OWN: Stage.ENDPOINTS,
    Stage.ENDPOINTS: Stage.EVENTS,
    Stage.EVENTS: Stage.PAYLOADS,
    Stage.PAYLOADS: Stage.SCANS,
}


@dataclass(frozen=True, slots=True)
class Swept:
    """What one step removed, and where its stage goes on (empty: it is over)."""

    removed: int
    after: str = ""


@dataclass(frozen=True, slots=True)
class Purge:
    """A tenant's purge: where it is, not before when it goes on, and what it has removed.

    `found` counts what this round has met.
    """

    tenant: str
    begun_ms: int
    due_ms: int
    stage: Stage = Stage.CLOSING
    cursor: str = ""
    found: int = 0
    rows: int = 0
    payloads: int = 0
    version: int = 1

    def after(self, step: Swept, now_ms: int, quiet_ms: int) -> "Purge | None":
        """Say where it goes on after a step; None: all is gone.

        `quiet_ms` is how long nobody who had read an endpoint or a key before can still write.
        """
        payloads = step.removed if self.stage is Stage.PAYLOADS else 0
        counted = replace(
            self,
            cursor=step.after,
            found=self.found + step.removed,
            rows=self.rows + (0 if payloads or self.stage is Stage.CLOSING else step.removed),
            payloads=self.payloads + payloads,
            version=self.version + 1,
        )
        return counted if step.after else _behind_stage(counted, now_ms, quiet_ms)


@dataclass(frozen=True, slots=True)
class LetterPurge:
    """A purge of an endpoint's dead letters: those given up on before a moment.

    It stays as a mark once it is `done`, so that a rebuild brings none of them back. `cursor` is the last
    delivery it has seen.
    """

    tenant: str
    endpoint_id: str
    before_ms: int
    begun_ms: int
    cursor: str = ""
    done: bool = False
    version: int = 1

    def after(self, step: Swept) -> "LetterPurge":
        """Say where it goes on after a step."""
        return replace(self, cursor=step.after, done=not step.after, version=self.version + 1)

    def again(self, before_ms: int, now_ms: int) -> "LetterPurge":
        """Begin it anew, for later ones too: it never takes less than it did."""
        later_ms = max(before_ms, self.before_ms)
        return LetterPurge(self.tenant, self.endpoint_id, later_ms, now_ms, version=self.version + 1)


def _behind_stage(purge: Purge, now_ms: int, quiet_ms: int) -> Purge | None:
    if purge.stage is Stage.CLOSING:
        return replace(purge, stage=Stage.OWN, due_ms=now_ms + quiet_ms)
    if purge.stage is Stage.SCANS:
        again = replace(purge, stage=Stage.CLOSING, found=0)
        return again if purge.found else replace(purge, stage=Stage.LAST)
    return replace(purge, stage=_NEXT[purge.stage]) if purge.stage in _NEXT else None
