"""Reading the metrics: what all functions have counted, and what the reporter of the gauges last saw."""

from dataclasses import dataclass, replace

from chalicelib.application.ports import Clock, Counters
from chalicelib.application.ports.gauging import Gauging
from chalicelib.domain import counts, gauging
from chalicelib.domain.gauging import STALE_MS
from chalicelib.domain.metrics import Reading


@dataclass(frozen=True, slots=True)
class ReadMetrics:
    """Reads the whole catalogue; raises Unavailable."""

    counters: Counters
    gauging: Gauging
    queues: tuple[str, ...]
    clock: Clock

    def run(self) -> Reading:
        """Read every counter, and every gauge that has a value: what was seen long ago is none."""
        counted = self.counters.read()
        signs = self.gauging.signs(self.queues)
        now_ms = self.clock.now_ms()
        if signs.seen is not None and now_ms - signs.seen.at_ms > STALE_MS:
            signs = replace(signs, seen=replace(signs.seen, gauges={}))
        return {**counts.reading(counted), **gauging.reading(signs, now_ms, self.queues)}
