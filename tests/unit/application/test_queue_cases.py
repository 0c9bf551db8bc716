"""Field cases of queues that only the whole of deliver and reconcile can answer."""

from chalicelib.domain.endpoint import Limits
from tests.fakes.scripted_sender import HANGS
from tests.unit.application.process import Process
from tests.unit.application.world import OK, World, lane_of, posted

LANES = 5
WIDE = Limits(100_000, 100_000, max_concurrency=10 * LANES)


def test_f106_a_held_lane_leaves_no_bell_behind_that_could_overtake_the_hidden_one(world: World) -> None:
    held = world.endpoint("held.*")
    world.endpoint("free.*")
    for number in range(4):
        world.post(f"held.n{number}")
    world.hold(held, 30_000)
    world.post("free.n")
    world.deliver()
    (hidden,) = world.waiting
    assert hidden.bell.lane == lane_of(held)
    assert world.deliver() is None, "nothing of the lane can be received while its bell is hidden"


def test_f110_a_hanging_endpoint_with_a_backlog_delays_no_other(world: World) -> None:
    hanging, healthy = world.endpoint("hanging"), world.endpoint("healthy")
    world.sender.script = lambda request: HANGS if request.url == hanging.url else OK
    world.accept([posted("hanging")] * 60)
    world.accept([posted("healthy")] * 20)
    began_ms = world.clock.now_ms()
    world.deliver(Process(world))
    arrived = [each.at_ms - began_ms for each in world.sender.sent if each.request.url == healthy.url]
    assert len(arrived) == 20
    assert max(arrived) < 1_000
    assert all(each.bell.lane != lane_of(healthy) for each in world.waiting)


def test_f115_one_sweep_rings_every_lane_that_was_forgotten(world: World) -> None:
    for number in range(250):
        world.endpoint(f"group.n{number // 40}", limits=WIDE)
    world.losing = 100_000
    for group in range(7):
        world.accept([posted(f"group.n{group}")] * 12)
    world.losing = 0
    forgotten = {each.lane for each in world.owed()}
    world.purge()
    world.clock.advance(ms=61_000)
    swept = world.sweep()
    assert len(forgotten) > 1_000
    assert swept.rung == len(forgotten)
    assert {each.bell.lane for each in world.waiting} == forgotten
