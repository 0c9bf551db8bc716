"""The pipeline's state machine once more, for a tenant whose fan-outs hardly ever fit into its budget."""

from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis.stateful import initialize, invariant

from chalicelib.adapters.dynamodb import keys
from chalicelib.domain.tenant import QUOTAS_MAX
from tests.unit.application.test_pipeline import ENDPOINTS, RULES, Pipeline
from tests.unit.application.world import LIMITS, MINUTE_MS, World

PER_SECOND = 2
BUSY_MINUTES = 60


class PacedPipeline(Pipeline):
    """Whatever happens to functions, queues and store, what waits for the budget is fanned out in the end."""

    @initialize()
    def begin(self) -> None:
        quotas = replace(QUOTAS_MAX, fan_out_per_second=PER_SECOND)
        self.world = World(RULES, LIMITS, quotas=quotas)
        self.endpoints = [
            self.world.endpoint(*types, limits=limits, ordering=ordering)
            for types, limits, ordering in ENDPOINTS
        ]
        self.accepted = []
        self.troubles = 0

    @invariant()
    def nothing_is_paid_for_twice(self) -> None:
        """What waits is paid for at most as far as one second's budget goes."""
        assert all(row.get("paid", 0) <= PER_SECOND for row in self.world.records_of(keys.FANOUTS))

    def teardown(self) -> None:
        self.world.losing = 0
        for _ in range(BUSY_MINUTES):
            if not self.world.records_of(keys.FANOUTS):
                break
            self.world.clock.advance(ms=MINUTE_MS)
            self.world.fan_out_called()
            self.world.sweep()
        assert self.world.records_of(keys.FANOUTS) == [], "a fan-out waits for ever"
        super().teardown()


TestPacedPipeline = PacedPipeline.TestCase
TestPacedPipeline.settings = settings(
    max_examples=25,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
