"""Questions: what an owner is told of events and deliveries is what happened, and only to its owner."""

from collections.abc import Callable
from functools import partial

import pytest

from chalicelib.application.ports import Extent, Page
from chalicelib.application.questions import Delivery, Questions
from chalicelib.domain import ids
from chalicelib.domain.delivery import Status
from chalicelib.domain.endpoint import EndpointState
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.retention import DAY_S, PAYLOAD_DAYS
from tests.fakes.scripted_sender import DIES, in_turn, status
from tests.unit.application.interruptions import meanwhile, tells_of_attempts
from tests.unit.application.process import Process
from tests.unit.application.world import (
    FAILS,
    LARGE,
    MINUTE_MS,
    OK,
    TAKE_OVER_MS,
    TENANT,
    World,
)

NO_EVENT = ids.new_id("evt", 1_700_000_000_000, 1)
NO_ENDPOINT = ids.new_id("ep", 1_700_000_000_000, 1)
NO_DELIVERY = ids.delivery_id(NO_EVENT, NO_ENDPOINT)
NONSENSE = ["", "x", "evt_", "evt_1", "../..", "evt_" + "0" * 36, "é", "\n", "ep_" * 50]


@pytest.fixture
def asked(world: World) -> Questions:
    return world.usual.questions


def told(world: World, delivery: str) -> Delivery:
    return world.usual.questions.delivery(TENANT, delivery)


def walk(page_of: Callable[[str], Page[Delivery]]) -> list[str]:
    """Walk a list to its end and give the ids of its deliveries."""
    found: list[str] = []
    after = ""
    for _ in range(50):
        page = page_of(after)
        found += [each.delivery_id for each in page.items]
        after = page.after
        if not after:
            return found
    raise AssertionError("the list does not end")


def test_a_new_delivery_is_pending_and_due_at_once(world: World) -> None:
    endpoint = world.endpoint()
    answer = world.post()
    (delivery,) = answer["delivery_ids"]
    said = told(world, delivery)
    assert (said.delivery_id, said.endpoint_id) == (delivery, endpoint.id)
    assert (said.event_id, said.event_type) == (answer["event_id"], "order.paid")
    assert (said.status, said.attempts, said.ended) == (Status.PENDING, (), None)
    assert (said.generation, said.generations) == (0, (0,))
    assert said.created_ms == said.next_ms == world.clock.now_ms()


def test_a_delivery_is_in_flight_while_it_is_sent_and_no_longer(world: World) -> None:
    world.endpoint()
    (delivery,) = world.deliveries(1)
    seen: list[Status] = []
    process = Process(world)
    meanwhile(process, lambda: seen.append(told(world, delivery).status), tells_of_attempts)
    world.deliver(process)
    assert seen == [Status.INFLIGHT]
    assert told(world, delivery).status is Status.SUCCEEDED
    assert told(world, delivery).next_ms == 0


def test_a_dead_holder_s_delivery_is_in_flight_until_its_lease_may_be_taken_over(world: World) -> None:
    world.endpoint()
    (delivery,) = world.deliveries(1)
    world.sender.script = lambda _: DIES
    began_ms = world.clock.now_ms()
    world.deliver(Process(world))
    world.clock.advance_to(began_ms + TAKE_OVER_MS - 1)
    assert told(world, delivery).status is Status.INFLIGHT
    world.clock.advance(ms=1)
    assert told(world, delivery).status is Status.PENDING


def test_a_failed_delivery_says_what_was_tried_and_when_it_is_tried_again(world: World) -> None:
    world.endpoint()
    (delivery,) = world.deliveries(1)
    world.sender.script = lambda _: FAILS
    world.deliver()
    said = told(world, delivery)
    (owed,) = world.owed()
    assert (said.status, said.next_ms) == (Status.PENDING, owed.ready_ms)
    assert [(each.number, each.status) for each in said.attempts] == [(1, 500)]


def test_a_dead_delivery_says_why(world: World) -> None:
    world.endpoint()
    (delivery,) = world.deliveries(1)
    world.sender.script = in_turn([FAILS, status(404)])
    world.work_off(for_ms=MINUTE_MS)
    said = told(world, delivery)
    assert said.status is Status.DEAD
    assert said.ended is not None
    assert (said.ended.reason, said.ended.attempts) == ("permanent_failure", 2)
    assert len(said.attempts) == 2
    assert said.next_ms == 0


def lists_of(asked: Questions, tenant: str, endpoint_id: str) -> list[Callable[[], object]]:
    """Give every question about an endpoint."""
    whole = Extent("", 10)
    return [
        *(partial(asked.deliveries, tenant, endpoint_id, whole, each) for each in (None, *Status)),
        partial(asked.attempts, tenant, endpoint_id, whole),
        partial(asked.dead_letters, tenant, endpoint_id, whole),
        partial(asked.hours, tenant, endpoint_id, 9_999_999, 10),
        partial(asked.health, tenant, endpoint_id),
    ]


@pytest.mark.parametrize("name", [*NONSENSE, NO_EVENT, NO_ENDPOINT, NO_DELIVERY])
def test_what_is_not_there_is_not_found(world: World, asked: Questions, name: str) -> None:
    world.endpoint()
    world.deliveries(1)
    questions: list[Callable[[], object]] = [
        lambda: asked.event(TENANT, name),
        lambda: asked.payload(TENANT, name),
        lambda: asked.delivery(TENANT, name),
        *lists_of(asked, TENANT, name),
        lambda: asked.deliveries_of_event(TENANT, name, "", 10),
    ]
    for question in questions:
        with pytest.raises(RelayError) as refused:
            question()
        assert refused.value.code is ErrorCode.NOT_FOUND
        assert refused.value.detail.isascii()


def test_what_is_another_tenant_s_is_not_found(world: World, asked: Questions) -> None:
    endpoint = world.endpoint()
    answer = world.post()
    questions: list[Callable[[], object]] = [
        lambda: asked.event("other", answer["event_id"]),
        lambda: asked.payload("other", answer["event_id"]),
        lambda: asked.delivery("other", answer["delivery_ids"][0]),
        *lists_of(asked, "other", endpoint.id),
        lambda: asked.deliveries_of_event("other", answer["event_id"], "", 10),
    ]
    for question in questions:
        with pytest.raises(RelayError):
            question()
    assert asked.events("other", Extent("", 10)) == Page(())


@pytest.mark.parametrize("body", [b'{"n": 1.0,  "n2":"\\u2028"}\n', LARGE], ids=["inline", "kept apart"])
def test_a_payload_is_the_bytes_that_were_posted(world: World, asked: Questions, body: bytes) -> None:
    event = world.post(body=body)["event_id"]
    stored, shown = asked.payload(TENANT, event)
    assert shown == body
    assert (stored.size, stored.event.type) == (len(body), "order.paid")


def test_a_payload_that_is_gone_is_not_found_though_its_event_is(world: World, asked: Questions) -> None:
    event = world.post(body=LARGE)["event_id"]
    world.kept.clear()
    assert asked.event(TENANT, event).size == len(LARGE)
    with pytest.raises(RelayError):
        asked.payload(TENANT, event)


def test_an_event_past_its_retention_is_absent_though_its_row_is_there(
    world: World, asked: Questions
) -> None:
    old = world.post()["event_id"]
    world.clock.advance(ms=PAYLOAD_DAYS * DAY_S * 1000 - 1_000)
    assert asked.event(TENANT, old).event.id == old
    world.clock.advance(ms=1_000)
    new = world.post()["event_id"]
    with pytest.raises(RelayError):
        asked.event(TENANT, old)
    assert [each.event.id for each in asked.events(TENANT, Extent("", 10)).items] == [new]


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
def test_events_are_listed_newest_first_page_by_page(world: World, asked: Questions, limit: int) -> None:
    posted = []
    for _ in range(7):
        posted.append(world.post()["event_id"])
        world.clock.advance(ms=25 * MINUTE_MS)
    found: list[str] = []
    after = ""
    for _ in range(8):
        page = asked.events(TENANT, Extent(after, limit))
        found += [each.event.id for each in page.items]
        after = page.after
        if not after:
            break
    assert found == list(reversed(posted))


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
def test_an_endpoint_s_deliveries_are_listed_newest_first(world: World, asked: Questions, limit: int) -> None:
    endpoint, _ = world.endpoint("a.*"), world.endpoint("b")
    posted = []
    for number in range(7):
        posted += world.post(f"a.{number}")["delivery_ids"]
        world.post("b")
        world.clock.advance(ms=1)
    world.sender.script = in_turn([OK, FAILS, status(404), OK])
    world.work_off(for_ms=MINUTE_MS)
    listed = walk(lambda after: asked.deliveries(TENANT, endpoint.id, Extent(after, limit)))
    assert listed == list(reversed(posted))


def test_a_deleted_endpoint_s_deliveries_are_still_listed(world: World, asked: Questions) -> None:
    endpoint = world.endpoint()
    (delivery,) = world.deliveries(1)
    world.work_off()
    world.change(endpoint, state=EndpointState.DELETED)
    assert walk(lambda after: asked.deliveries(TENANT, endpoint.id, Extent(after, 10))) == [delivery]
    assert told(world, delivery).status is Status.SUCCEEDED


@pytest.mark.parametrize("fails", [False, True], ids=["inline", "later"])
@pytest.mark.parametrize("limit", [1, 2, 10])
def test_an_event_s_deliveries_are_listed(world: World, asked: Questions, limit: int, *, fails: bool) -> None:
    takes = [world.endpoint("a") for _ in range(3)]
    world.endpoint("b")
    if fails:
        world.usual.faults.fail_next(method="get")
    event = world.post("a")["event_id"]
    world.work_off()
    world.endpoint("a")
    found = walk(lambda after: asked.deliveries_of_event(TENANT, event, after, limit))
    assert found == [ids.delivery_id(event, each.id) for each in reversed(takes)]


@pytest.mark.parametrize("fails", [False, True], ids=["inline", "later"])
@pytest.mark.parametrize("limit", [1, 2, 10])
def test_an_event_s_deliveries_are_listed_though_their_endpoints_are_deleted(
    world: World, asked: Questions, limit: int, *, fails: bool
) -> None:
    takes = [world.endpoint("a") for _ in range(5)]
    if fails:
        world.usual.faults.fail_next(method="get")
    event = world.post("a")["event_id"]
    world.work_off()
    for place in (0, 2, 4):
        world.change(takes[place], state=EndpointState.DELETED)
    found = walk(lambda after: asked.deliveries_of_event(TENANT, event, after, limit))
    assert found == [ids.delivery_id(event, each.id) for each in reversed(takes)]


def test_an_event_that_nobody_took_has_no_deliveries(world: World, asked: Questions) -> None:
    event = world.post()["event_id"]
    assert asked.deliveries_of_event(TENANT, event, "", 10) == Page(())
