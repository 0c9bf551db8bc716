"""Field cases of operations: what waits fills no queue, and what was not delivered for hours is delivered."""

from itertools import count

import pytest

from chalicelib.domain.gate import Rules
from tests.unit.application.invariants import check
from tests.unit.application.world import FAILS, HOUR_MS, MINUTE_MS, OK, World, posted

FAILING = 500


def in_flight(world: World) -> int:
    """Count the bells that a queue holds back as being worked on."""
    return sum(each.visible_ms > world.clock.now_ms() for each in world.waiting)


@pytest.mark.parametrize("breaker", [True, False], ids=["with breaker", "without"])
def test_f141_deliveries_that_wait_are_in_no_queue_and_new_events_flow(breaker: bool) -> None:  # noqa: FBT001 - a parameter
    world = World(Rules(breaker=breaker))
    world.endpoint("failing")
    world.sender.script = lambda _: FAILS
    for _ in range(FAILING // 100):
        world.accept([posted("failing")] * 100, world.usual)
        world.deliver()
    world.pass_time(2 * MINUTE_MS)
    assert len(world.owed()) == FAILING
    assert in_flight(world) + len(world.delayed) + len(world.waiting) <= 20
    world.endpoint("new")
    world.sender.script = lambda _: OK
    (delivery,) = world.post("new")["delivery_ids"]
    world.deliver()
    assert world.outcomes(delivery) == ["success"]


def test_f142_two_hours_without_a_delivering_function_lose_nothing(world: World) -> None:
    """The API takes events and reconcile runs, but nobody receives the bells; then somebody does again."""
    world.endpoint()
    numbers = count()
    delivered: list[str] = []
    until_ms = world.clock.now_ms() + 2 * HOUR_MS
    while world.clock.now_ms() < until_ms:
        if next(numbers) % 10 == 0:
            delivered += world.deliveries(1)
        world.sweep()
        world.clock.advance(ms=MINUTE_MS)
    assert len(world.owed()) == len(delivered) == 12
    world.work_off(for_ms=10 * MINUTE_MS)
    assert world.owed() == []
    assert all(world.outcomes(each) == ["success"] for each in delivered)
    assert [len(world.sends(each)) for each in delivered] == [1] * len(delivered)
    check(world)
