"""Admission: a lost answer is no refusal, and what a process remembers of a gate holds nobody up."""

from collections.abc import Sequence

from chalicelib.adapters.dynamodb.records import Made, Statement
from chalicelib.domain.endpoint import EndpointState
from tests.fakes.memory_tables import MemoryTables
from tests.unit.application.interruptions import meanwhile, tells_of_attempts
from tests.unit.application.invariants import check
from tests.unit.application.process import Process
from tests.unit.application.world import World, lane_of


class RepeatingTables(MemoryTables):
    """Makes every statement twice and gives the second answer, as a client does whose first was lost."""

    def each(self, writes: Sequence[Statement]) -> list[Made]:
        super().each(writes)
        return super().each(writes)


def process_that_repeats(world: World) -> Process:
    return Process(world, RepeatingTables(world.records))


def test_an_admission_whose_answer_was_lost_is_still_one(world: World) -> None:
    endpoint = world.endpoint()
    delivery, *_ = world.deliveries(3)
    world.deliver(process_that_repeats(world))
    assert world.outcomes(delivery) == ["success"]
    assert len(world.sender.sent) == 3
    assert world.owed() == []
    assert world.gate(endpoint).leases == {}
    check(world)


def test_a_process_that_saw_an_endpoint_disabled_sees_it_enabled(world: World) -> None:
    endpoint = world.endpoint()
    one = Process(world)
    (delivery,) = world.deliveries(1)
    world.change(endpoint, state=EndpointState.DISABLED)
    world.deliver(one)
    assert world.waiting == []
    world.change(endpoint, state=EndpointState.ENABLED)
    world.ring(lane_of(endpoint))
    world.deliver(one)
    assert world.outcomes(delivery) == ["success"]


def test_a_process_that_saw_a_lane_busy_sees_it_free(world: World) -> None:
    lane = lane_of(world.endpoint())
    one, other = Process(world), Process(world)
    world.deliveries(1)
    meanwhile(other, lambda: world.visit(lane, one), tells_of_attempts)
    world.deliver(other)
    (delivery,) = world.deliveries(1)
    posted_ms = world.clock.now_ms()
    world.deliver(one)
    assert [each.at_ms for each in world.sends(delivery)] == [posted_ms]


def test_a_gate_that_is_known_costs_no_read(world: World) -> None:
    world.endpoint()
    one = Process(world)
    world.deliveries(1)
    world.deliver(one)
    world.deliveries(1)
    one.faults.steps.clear()
    world.deliver(one)
    calls = [step.method for step in one.faults.steps if step.method != "unseal"]
    assert calls == ["each", "get", "each", "each"]
