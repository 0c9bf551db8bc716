"""The reporter over a world in memory, as its function runs it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from chalicelib.adapters.dynamodb.gauging import DynamoGauging, DynamoGlancing
from chalicelib.adapters.dynamodb.work import DynamoWatching
from chalicelib.application.measure import Measure, Measured
from chalicelib.domain.gauging import Signs
from chalicelib.domain.metrics import Metric
from tests.fakes.memory_canaries import MemoryCanaries
from tests.fakes.memory_tables import MemoryTables
from tests.unit.application.world import FUNCTION_MS, World

QUEUES = ("shard-0.fifo", "shard-1.fifo")


@dataclass(slots=True)
class Reporter:
    """A process of the function that measures, and what it asks of the world."""

    world: World
    canaries: MemoryCanaries = field(default_factory=lambda: MemoryCanaries(QUEUES))

    @property
    def gauging(self) -> DynamoGauging:
        """Give what the other functions note their canaries and runs in."""
        return DynamoGauging(MemoryTables(self.world.records))

    def measure(self, time_left_ms: Callable[[], int] = lambda: FUNCTION_MS) -> Measured:
        """Run it once."""
        tables = MemoryTables(self.world.records)
        watching, glancing = DynamoWatching(tables), DynamoGlancing(tables, threads=2)
        use = Measure(watching, glancing, DynamoGauging(tables), self.canaries, self.world.clock)
        return use.run(time_left_ms)

    def hear_canaries(self) -> None:
        """Do what the deliver functions do with what waits in their queues."""
        for queue, rung_ms in self.canaries.rung:
            self.gauging.came_through(queue, rung_ms)
        self.canaries.rung.clear()

    def signs(self) -> Signs:
        """Read what was left."""
        return self.gauging.signs(QUEUES)


def gauge(of: Measured, metric: Metric, value: str = "") -> float | None:
    """Give what was told of a gauge."""
    return of.gauges.get((metric.name, value))
