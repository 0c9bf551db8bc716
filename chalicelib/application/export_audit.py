"""Exporting the audit: every settled hour of every tenant becomes objects of records, for a SIEM to read.

How far it has come is noted after each tenant: killed anywhere it goes on there, and what it writes again is
what it wrote. Of two at once the slower stops.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from chalicelib.application.ports import Clock, ExportingAudit, Exports
from chalicelib.domain import audit_export
from chalicelib.domain.audit_export import AGAIN_HOURS, PART, Exported

STOP_BEFORE_MS = 10_000


@dataclass(frozen=True, slots=True)
class Wrote:
    """What one run did. `behind` counts settled hours that are still to be written."""

    objects: int = 0
    records: int = 0
    behind: int = 0


@dataclass(frozen=True, slots=True)
class ExportAudit:
    """Writes the audit to where a SIEM reads it."""

    store: ExportingAudit
    exports: Exports
    clock: Clock

    def run(self, left_ms: Callable[[], int]) -> Wrote:
        """Write all settled hours that were not written yet, as far as there is time."""
        last = audit_export.settled_hour(self.clock.now_ms())
        noted = self.store.exported()
        at = noted or Exported(last - AGAIN_HOURS)
        wrote = Wrote()
        while at.hour <= last:
            for hour, tenant in self._still_to_write(at):
                if left_ms() < STOP_BEFORE_MS:
                    return replace(wrote, behind=last - at.hour + 1)
                wrote = self._hour_of(tenant, hour, wrote)
                at = replace(at, after=_place(hour, tenant))
                if not self.store.move(noted, at):
                    return replace(wrote, behind=last - at.hour + 1)
                noted = at
            at = Exported(at.hour + 1)
            if not self.store.move(noted, at):
                return replace(wrote, behind=last - at.hour + 1)
            noted = at
        return wrote

    def _still_to_write(self, at: Exported) -> list[tuple[int, str]]:
        """List the hours of tenants that belong to a step: one new hour, and one of a day before."""
        hours = (at.hour - AGAIN_HOURS, at.hour)
        listed = [(hour, tenant) for hour in hours for tenant in self.store.tenants(hour)]
        return [each for each in listed if _place(*each) > at.after]

    def _hour_of(self, tenant: str, hour: int, wrote: Wrote) -> Wrote:
        after, part = "", 1
        while records := self.store.records(tenant, hour, after, PART):
            self.exports.write(audit_export.object_name(tenant, hour, part), records)
            wrote = Wrote(wrote.objects + 1, wrote.records + len(records))
            after, part = records[-1].id, part + 1
        return wrote


def _place(hour: int, tenant: str) -> str:
    return f"{hour:07d}#{tenant}"
