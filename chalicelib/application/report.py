"""Report: what was counted since the last time, and the gauges, are told to CloudWatch.

What is to be told is written down before it is told, and marked when it has been: a run that dies in between
is made good by a later one, with the same numbers for the same moment. Of two runs at once one tells.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from chalicelib.application.ports import Clock, Counters
from chalicelib.application.ports.reporting import Reported, Reporting, Telling
from chalicelib.domain import reporting
from chalicelib.domain.counts import NOTHING, Counts

PATIENCE_MS = 120_000
"""Longer than a run can take: what was written down so long ago and not marked was not told."""


@dataclass(frozen=True, slots=True)
class Report:
    """Tells a minute of every series."""

    counters: Counters
    reporting: Reporting
    telling: Telling
    clock: Clock

    def run(self, gauges: Mapping[tuple[str, str], float]) -> int:
        """Tell once; the number of samples told. Raises Unavailable when the store fails."""
        now_ms = self.clock.now_ms()
        last = self.reporting.last()
        if last is not None and not last.told:
            if now_ms - last.at_ms < PATIENCE_MS:
                return 0
            self._tell(last, reporting.grown(last.totals, last.before), {})
            last = self.reporting.mark_told(last)
        before = last.totals if last else NOTHING
        totals = self.counters.read()
        counted = reporting.grown(totals, before)
        following = Reported(last.version + 1 if last else 1, now_ms, totals, before)
        if not any(counted.values()):
            return self._tell(following, NOTHING, gauges)
        if not self.reporting.write_down(following, last):
            return 0
        told = self._tell(following, counted, gauges)
        self.reporting.mark_told(following)
        return told

    def _tell(self, of: Reported, counted: Counts, gauges: Mapping[tuple[str, str], float]) -> int:
        some = reporting.samples(counted, gauges)
        self.telling.tell(some, of.at_ms)
        return len(some)
