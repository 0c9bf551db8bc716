"""Ordered endpoints as the tests of order use them: each request is held to its turn as it leaves."""

from chalicelib.domain.delivery import Lane
from chalicelib.domain.endpoint import ORDERED_LANE, Endpoint, Limits, Ordering
from chalicelib.domain.request import Request
from tests.fakes.scripted_sender import (
    Answer,
    Script,
    status,
)
from tests.unit.application.invariants import check, check_first_receipts, check_turn
from tests.unit.application.world import (
    MINUTE_MS,
    OK,
    World,
    lane_of,
)

FAST = Limits(rate_per_second=100_000, burst=100_000, max_concurrency=10)
REFUSES, GONE = status(404), status(410)
ASKS_FOR_TIME = {code: status(code, headers=(("Retry-After", "30"),)) for code in (429, 503)}


def ordered(world: World, limits: Limits = FAST) -> Endpoint:
    """Register an ordered endpoint."""
    return world.endpoint(limits=limits, ordering=Ordering.ENDPOINT)


def lane(endpoint: Endpoint) -> Lane:
    return lane_of(endpoint, ORDERED_LANE)


def answering(world: World, endpoint: Endpoint, script: Script) -> None:
    """Let an endpoint answer as a script does, and hold each request to its turn."""

    def answer(request: Request) -> Answer:
        assert len(world.sender.in_flight) == 1, "two of an ordered lane in flight"
        check_turn(world, endpoint)
        return script(request)

    world.sender.script = answer


def firsts(world: World) -> list[str]:
    """Give the deliveries in the order in which they were first received."""
    return list(dict.fromkeys(each.delivery_id for each in world.sender.sent))


def go_on(world: World, endpoint: Endpoint, for_ms: int = 10 * MINUTE_MS) -> None:
    """Let all go well from now on; nothing is left, and order was kept."""
    check(world)
    answering(world, endpoint, lambda _: OK)
    world.work_off(for_ms=for_ms)
    check(world)
    check_first_receipts(world, endpoint)
    assert world.owed() == []
