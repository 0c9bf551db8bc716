"""The parts of the simulated world do what SQS and Lambda promise."""

from chalicelib.application.ports import Bell
from chalicelib.domain.delivery import Lane
from tests.simulation.figures import Figures, Waits
from tests.simulation.functions import Function
from tests.simulation.loop import Loop
from tests.simulation.numbers import SECOND, Platform
from tests.simulation.queues import FifoQueue

BEGAN = 1_800_000_000 * SECOND


def lane(number: int) -> Lane:
    return Lane("acme", f"ep_{number}", "0")


def queue_with(*lanes: int) -> tuple[Loop, FifoQueue]:
    loop = Loop(BEGAN)
    queue = FifoQueue("shard-0", loop, 120_000)
    for each in lanes:
        queue.put(Bell(lane(each), loop.now_ms()))
    return loop, queue


def test_activities_go_on_in_the_order_of_their_moments() -> None:
    loop, seen = Loop(BEGAN), list[str]()

    def activity(name: str, wait_us: int) -> None:
        loop.pause(wait_us)
        seen.append(f"{name} at {loop.now - BEGAN}")

    loop.start(activity, "slow", 30)
    loop.start(activity, "quick", 10)
    loop.run(BEGAN + 100)
    assert seen == ["quick at 10", "slow at 30"]
    assert loop.now == BEGAN + 100


def test_ten_bells_at_most_are_received_those_of_a_group_together() -> None:
    _, queue = queue_with(1, 2, 1, *range(3, 20))
    received = [each.bell.lane for each in queue.receive()]
    assert received[:3] == [lane(1), lane(1), lane(2)]
    assert len(received) == 10


def test_nothing_of_a_group_is_received_while_some_of_it_is_in_flight() -> None:
    _, queue = queue_with(1)
    (first,) = queue.receive()
    queue.put(Bell(lane(1), 0))
    assert queue.receive() == []
    queue.delete([first.receipt])
    assert [each.bell.lane for each in queue.receive()] == [lane(1)]


def test_a_hidden_bell_blocks_its_group_and_comes_back_without_its_hints() -> None:
    loop, queue = queue_with(1)
    (first,) = queue.receive()
    queue.hide([first.receipt], 5)
    queue.delete([first.receipt])
    queue.put(Bell(lane(1), 0))
    loop.run(BEGAN + 4 * SECOND)
    assert queue.receive() == []
    loop.run(BEGAN + 6 * SECOND)
    back, other = queue.receive()
    assert back.receipt == first.receipt
    assert back.as_received.came_back
    assert not other.as_received.came_back


def test_a_thousand_copies_start_at_once_and_then_a_hundred_a_second() -> None:
    loop = Loop(BEGAN)
    function = Function("deliver", loop, Figures(BEGAN), Platform(), 5_000, object)
    started = sum(function.take() is not None for _ in range(1_500))
    assert started == 1_000
    loop.run(BEGAN + SECOND)
    assert sum(function.take() is not None for _ in range(500)) == 100


def test_a_warm_copy_is_used_again_and_starts_at_once() -> None:
    function = Function("deliver", Loop(BEGAN), Figures(BEGAN), Platform(), 1, object)
    taken = function.take()
    assert taken is not None
    assert taken[1] == Platform().cold_start
    assert function.take() is None
    function.give_back(taken[0])
    assert function.take() == (taken[0], 0)


def test_a_percentile_is_off_by_two_hundredths_at_most() -> None:
    waits = Waits()
    for ms in range(1, 10_001):
        waits.add(ms)
    for percent in (50.0, 99.0, 99.9):
        assert abs(waits.percentile(percent) / (percent * 100) - 1) <= 0.021
