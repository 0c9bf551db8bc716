"""Holding a backlog costs what holding one delivery does; `make bench-hold` shows it for 10,000."""

import pytest

from tests.unit.application.holding import HOLDS, OK, Cost, HoldingWorld, hold
from tests.unit.application.world import MINUTE_MS

DELIVERIES, MINUTES = 1_000, 10
CALLS_AN_HOUR = 500


@pytest.mark.parametrize("name", HOLDS)
def test_holding_a_backlog_costs_few_calls(name: str) -> None:
    bill = hold(HOLDS[name], DELIVERIES, MINUTES)
    assert bill.left > DELIVERIES // 3, "the backlog stands"
    assert bill.aws_calls <= CALLS_AN_HOUR * MINUTES // 60
    assert bill.bells_at_most <= 1, "a lane keeps one bell"


def test_every_call_is_counted_once_and_for_one_thing() -> None:
    world = HoldingWorld()
    world.sender.script = lambda _: OK
    world.endpoint(limits=HOLDS["rate"].limits)
    world.deliveries(60)
    world.pass_time(MINUTE_MS)
    calls = [each for process in world.processes for each in process.faults.steps if each.method != "unseal"]
    assert world.costs[Cost.ADMITTED] > 0
    assert sum(world.costs.values()) - world.costs[Cost.EVENT_SOURCE] == len(calls)
