"""What an attempt says of its time: in line, held, at work on it; the parts add up to its wait."""

from collections.abc import Sequence

import pytest

from chalicelib.domain.delivery import Attempt
from chalicelib.domain.endpoint import Limits, Ordering
from chalicelib.domain.gate import HoldReason
from tests.fakes.scripted_sender import status
from tests.unit.application.world import World, posted

QUICK = status(200, took_ms=20)


def attempts(world: World) -> Sequence[Attempt]:
    """Give all attempts in the order in which they were made."""
    return sorted((row for row in world.all_history() if isinstance(row, Attempt)), key=lambda row: row.at_ms)


@pytest.mark.parametrize("ordering", Ordering)
def test_the_parts_of_a_wait_add_up(world: World, ordering: Ordering) -> None:
    world.endpoint(limits=Limits(10, 5, 8), ordering=ordering)
    world.sender.script = lambda _: QUICK
    world.accept([posted()] * 40, world.usual)
    world.pass_time(10_000)
    told = attempts(world)
    assert len(told) == 40
    for each in told:
        assert each.stood_ms + each.held_ms + each.processing_ms == each.queue_ms
        assert (each.held_for is None) == (each.held_ms == 0)


def test_what_is_paced_in_place_was_held_by_its_rate(world: World) -> None:
    """No hold begins when all that waits is let in; yet the last goes most of a second late."""
    world.endpoint(limits=Limits(10, 1, 8))
    world.sender.script = lambda _: QUICK
    world.accept([posted()] * 8, world.usual)
    world.deliver()
    first, *_, last = attempts(world)
    assert (first.held_ms, first.held_for) == (0, None)
    assert last.held_ms > 500
    assert last.held_for is HoldReason.RATE_LIMIT
    assert last.stood_ms < 50


def test_a_function_with_no_room_for_a_send_is_at_work_on_it(world: World) -> None:
    world.sender.max_in_flight = 1
    world.endpoint(limits=Limits(100, 100, 8))
    world.sender.script = lambda _: status(200, took_ms=200)
    world.accept([posted()] * 4, world.usual)
    world.deliver()
    told = attempts(world)
    assert [each.processing_ms // 200 for each in told] == [0, 1, 2, 3]
    assert {each.held_ms for each in told} == {0}
