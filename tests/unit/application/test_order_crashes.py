"""Order under misfortune: deaths, failures, lost bells and purged queues change no order of first receipt."""

from collections.abc import Callable, Sequence

import pytest

from chalicelib.domain.delivery import Attempt
from chalicelib.domain.endpoint import Endpoint, EndpointState
from chalicelib.domain.outcome import Outcome
from tests.fakes.scripted_sender import (
    DIES,
    HANGS,
    Answer,
    in_turn,
)
from tests.unit.application.interruptions import at_call, deaths, fail
from tests.unit.application.invariants import check_first_receipts, unknowns
from tests.unit.application.lines import (
    ASKS_FOR_TIME,
    GONE,
    REFUSES,
    answering,
    firsts,
    go_on,
    lane,
    ordered,
)
from tests.unit.application.process import Process
from tests.unit.application.world import (
    FAILS,
    HOUR_MS,
    MINUTE_MS,
    OK,
    TAKE_OVER_MS,
    World,
    number_of,
    posted,
)

SCENES: dict[str, Sequence[Answer]] = {
    "all arrive": [OK] * 4,
    "the head fails": [FAILS, OK],
    "one in the middle fails": [OK, FAILS, OK],
    "the head is refused": [REFUSES, OK],
    "one in the middle is refused": [OK, REFUSES, OK],
    "the head asks for time": [ASKS_FOR_TIME[429], OK],
    "the head is gone": [OK, GONE, OK],
}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("scene", SCENES)
def test_a_death_at_any_write_keeps_the_order_and_leaves_one_unknown_at_most(
    scene: str, *, after: bool
) -> None:
    for death in deaths(at_least=4, after=after):
        world = World()
        endpoint = ordered(world)
        deliveries = world.deliveries(4)
        answering(world, endpoint, in_turn(SCENES[scene]))
        world.deliver(death.process(world))
        if world.now(endpoint).state is EndpointState.DISABLED:
            world.change(endpoint, state=EndpointState.ENABLED)
        go_on(world, endpoint)
        assert firsts(world) == deliveries
        assert unknowns(world, endpoint) <= 1, "one death leaves one unknown attempt"
        for delivery in deliveries:
            numbers = [number_of(each) for each in world.sends(delivery)]
            assert numbers == sorted(set(numbers)), "an attempt number was used twice"


@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_holder_that_dies_while_sending_leaves_one_unknown_attempt_that_is_made_again_first(
    world: World, place: int
) -> None:
    endpoint = ordered(world)
    deliveries = world.deliveries(5)
    answering(world, endpoint, in_turn([OK] * place + [DIES, OK]))
    world.deliver(Process(world))
    assert unknowns(world, endpoint) == 0
    go_on(world, endpoint)
    assert firsts(world) == deliveries
    assert unknowns(world, endpoint) == 1
    assert world.outcomes(deliveries[place]) == ["unknown", "success"]


def test_each_dead_holder_in_a_row_leaves_one_unknown_and_the_fifth_ends_the_head(world: World) -> None:
    endpoint = ordered(world)
    head, *others = world.deliveries(4)
    answering(world, endpoint, in_turn([DIES] * 5 + [OK]))
    for died in range(1, 6):
        world.visit(lane(endpoint), Process(world))
        assert unknowns(world, endpoint) == died - 1
        world.clock.advance(ms=TAKE_OVER_MS)
    world.visit(lane(endpoint))
    assert world.outcomes(head) == ["unknown"] * 5 + ["poisoned"]
    go_on(world, endpoint)
    assert firsts(world) == [head, *others]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_death_at_any_write_of_the_successor_keeps_the_order_too(*, after: bool) -> None:
    for death in deaths(at_least=4, after=after):
        world = World()
        endpoint = ordered(world)
        deliveries = world.deliveries(3)
        answering(world, endpoint, in_turn([OK, DIES, OK]))
        world.deliver(Process(world))
        world.clock.advance(ms=TAKE_OVER_MS)
        world.visit(lane(endpoint), death.process(world))
        go_on(world, endpoint)
        assert firsts(world) == deliveries
        assert unknowns(world, endpoint) <= 2, "two deaths leave two unknown attempts at most"


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_store_that_fails_at_any_call_keeps_the_order(*, after: bool) -> None:
    for number in range(1, 60):
        world = World()
        endpoint = ordered(world)
        deliveries = world.deliveries(4)
        process = Process(world)
        answering(world, endpoint, in_turn([OK, FAILS, OK]))
        reached = at_call(process, number, fail, after=after)
        world.deliver(process)
        go_on(world, endpoint)
        assert firsts(world) == deliveries
        if not reached():
            assert number > 8, "there are fewer calls than thought"
            return
    raise AssertionError("there is no end of calls")


def test_a_holder_that_stands_still_beyond_its_lease_sends_nothing_out_of_turn() -> None:
    for number in range(1, 60):
        world = World()
        endpoint = ordered(world)
        deliveries = world.deliveries(4)
        answering(world, endpoint, lambda _: OK)
        process = Process(world)

        def others(world: World = world, endpoint: Endpoint = endpoint) -> None:
            standing, world.sender.in_flight[:] = list(world.sender.in_flight), []
            world.clock.advance(ms=TAKE_OVER_MS)
            world.visit(lane(endpoint), Process(world))
            world.sender.in_flight[:] = standing

        reached = at_call(process, number, others)
        world.deliver(process)
        go_on(world, endpoint)
        assert firsts(world) == deliveries
        if not reached():
            assert number > 8, "there are fewer calls than thought"
            return


def lose(world: World) -> None:
    world.losing = 2


MISHAPS: dict[str, Callable[[World], None]] = {"lost bells": lose, "a purge": World.purge}


@pytest.mark.parametrize("mishap", MISHAPS)
@pytest.mark.parametrize("place", range(5))
def test_lost_bells_and_purges_keep_the_order(world: World, mishap: str, place: int) -> None:
    endpoint = ordered(world)
    answering(world, endpoint, in_turn([OK, FAILS, OK, FAILS, OK]))
    deliveries = []
    for number in range(5):
        if number == place:
            MISHAPS[mishap](world)
        deliveries += world.deliveries(1)
        world.work_off(for_ms=100)
    MISHAPS[mishap](world)
    world.losing = 0
    for _ in range(4):
        world.clock.advance(ms=MINUTE_MS)
        world.sweep()
        world.work_off(for_ms=1_000)
    go_on(world, endpoint)
    assert firsts(world) == deliveries


def test_many_producers_and_misfortunes_leave_no_inversion(world: World) -> None:
    """Posts go on throughout, in batches as from several producers, while bells, holders and queues fail."""
    endpoint = ordered(world)
    turns: list[Answer] = [OK, OK, FAILS, OK, DIES, OK, ASKS_FOR_TIME[503], OK, HANGS, OK, REFUSES]
    answers = (each for _ in range(10_000) for each in turns)
    answering(world, endpoint, lambda _: next(answers))
    for number in range(120):
        world.losing = 1 if number % 7 == 3 else 0
        world.accept([posted()] * (1 + number % 3), Process(world))
        if number % 11 == 5:
            world.purge()
        world.deliver(Process(world))
        world.clock.advance(ms=700 * (1 + number % 9))
        if number % 13 == 0:
            world.sweep(Process(world))
        check_first_receipts(world, endpoint)
    world.losing = 0
    world.clock.advance(ms=HOUR_MS)
    world.sweep()
    go_on(world, endpoint, for_ms=2 * HOUR_MS)
    told = [row for row in world.all_history() if isinstance(row, Attempt) and row.outcome is Outcome.UNKNOWN]
    assert told, "some holders died"
