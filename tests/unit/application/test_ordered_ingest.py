"""Ordered endpoints at ingest: numbered before anything is written, and never fanned out later."""

import json
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Delete
from chalicelib.application.fan_out import bells_for, plan
from chalicelib.application.ingest import Accepted, Post
from chalicelib.application.ports import Subscriber, Unavailable
from chalicelib.domain import ids
from chalicelib.domain.delivery import Created, Owed
from chalicelib.domain.endpoint import (
    ORDERED_LANE,
    ORDERED_MAX,
    Endpoint,
    EndpointState,
    Limits,
    Ordering,
)
from chalicelib.domain.errors import ErrorCode, RelayError
from tests.fakes.fixed_clock import FixedClock
from tests.unit.application.interruptions import deaths
from tests.unit.application.invariants import check
from tests.unit.application.world import BY, LIMITS, MINUTE_MS, TENANT, World, posted

EVENT = ids.new_id("evt", 1_700_000_000_000, 7)


def ordered(world: World, *event_types: str, **changes: Any) -> Endpoint:  # noqa: ANN401 - any field
    """Register an ordered endpoint."""
    return world.endpoint(*event_types, ordering=Ordering.ENDPOINT, **changes)


def line(world: World, endpoint: Endpoint) -> list[Owed]:
    """Read what an endpoint is owed, in the order of its lane."""
    return [each for each in world.owed() if each.lane.endpoint_id == endpoint.id]


def numbers(world: World, endpoint: Endpoint) -> list[int]:
    return [each.sequence for each in line(world, endpoint)]


def events(world: World, endpoint: Endpoint) -> list[str]:
    return [each.event_id for each in line(world, endpoint)]


def event_ids(results: Any) -> list[str]:  # noqa: ANN401 - answers of a batch
    assert all(isinstance(each, Accepted) for each in results)
    return [json.loads(each.answer)["event_id"] for each in results]


def calls(world: World, *posts: Post) -> tuple[list[str], list[str]]:
    """Post to a warm process; the events' ids, and the calls it made."""
    world.usual.faults.steps.clear()
    results = event_ids(world.accept(posts, world.usual))
    return results, [step.method for step in world.usual.faults.steps]


def lose_counter(world: World, endpoint: Endpoint) -> None:
    world.usual.tables.each([Delete(keys.sequence(TENANT, endpoint.id))])


def test_f132_events_line_up_in_the_order_they_were_acknowledged(world: World) -> None:
    one, other = ordered(world), ordered(world, "order.*", limits=Limits(10, 20, 100))
    mixed = world.endpoint()
    order = [world.post(body=b'{"n":%d}' % n)["event_id"] for n in range(4)]
    for each in (one, other):
        assert {row.lane.number for row in line(world, each)} == {ORDERED_LANE}
        assert events(world, each) == order
        assert numbers(world, each) == [1, 2, 3, 4]
    assert numbers(world, mixed) == [0] * 4


def test_f132_the_clock_decides_nothing(world: World) -> None:
    """The machine that takes the later event in has a clock that is behind."""
    one, behind = ordered(world), FixedClock(world.clock.now_ms())
    world.clock.advance(ms=MINUTE_MS)
    first = world.post()["event_id"]
    answer = replace(world.usual.ingest, clock=behind).one(posted()).answer
    second = json.loads(answer)["event_id"]
    assert second < first
    assert events(world, one) == [first, second]


def test_a_batch_lines_up_in_its_order_for_one_call_more(world: World) -> None:
    both, rest = [ordered(world) for _ in range(2)], ordered(world, "invoice.*")
    calls(world, posted("invoice.sent"))
    order, made = calls(world, posted(), posted("invoice.sent"), posted())
    assert [events(world, each)[1:] for each in both] == [order, order]
    assert events(world, rest)[1:] == [order[1]]
    assert made == ["get", "each", "together", "ring"], "subscriptions, numbers, the events, the bells"


def test_what_no_ordered_endpoint_takes_costs_what_it_did(world: World) -> None:
    world.endpoint()
    calls(world, posted())
    _, before = calls(world, posted())
    ordered(world, "invoice.*")
    _, after = calls(world, posted())
    assert after == before


def test_a_new_counter_starts_at_one_and_a_lost_one_goes_on_above_whatever_it_gave(world: World) -> None:
    one = ordered(world)
    for _ in range(2):
        world.post()
    for _ in range(2):
        world.clock.advance(ms=1)
        lose_counter(world, one)
        world.post()
        world.post()
    given = numbers(world, one)
    assert given[:2] == [1, 2]
    assert given == sorted(set(given))
    assert len(given) == 6
    assert given[-1] < 2**53, "every language can hold it"


def test_f132_a_death_at_any_write_turns_no_order_around() -> None:
    for death in deaths(at_least=3):
        world = World()
        one = ordered(world)
        first = world.post()["event_id"]
        world.accept([posted(), posted()], death.process(world))
        check(world)
        last = world.post()["event_id"]
        order = events(world, one)
        assert (order[0], order[-1]) == (first, last)
        assert numbers(world, one) == sorted(set(numbers(world, one)))


def test_nothing_is_accepted_that_could_not_be_numbered(world: World) -> None:
    one = ordered(world)
    world.post()
    world.usual.faults.fail_next(method="each")
    with pytest.raises(Unavailable):
        world.usual.ingest.one(posted())
    assert len(line(world, one)) == len(world.all_history()) == 1


@pytest.mark.parametrize("plain, how", [(38, "inline"), (39, "later")])
def test_ordered_ones_are_fanned_out_at_once_however_many_match(world: World, plain: int, how: str) -> None:
    both = [ordered(world)]
    for _ in range(plain):
        world.endpoint()
    both.append(ordered(world))
    answer = world.post()
    assert answer["fan_out"] == how
    at_once = [ids.delivery_id(answer["event_id"], each.id) for each in both]
    if how == "later":
        assert answer["delivery_ids"] == at_once
        assert [each.bell.lane.endpoint_id for each in world.waiting] == [each.id for each in both]
        assert world.fan_out(answer["event_id"]) == plain
    created = [each.delivery_id for each in world.all_history() if isinstance(each, Created)]
    assert len(created) == len(set(created)) == plain + 2
    assert [numbers(world, each) for each in both] == [[1], [1]]
    assert world.records_of(keys.FANOUTS) == []
    check(world)


def test_as_many_ordered_ones_as_there_may_be_fit_whatever_the_setting() -> None:
    world = World(limits=replace(LIMITS, inline_fan_out_max=0))
    for _ in range(ORDERED_MAX):
        ordered(world)
    answer = json.loads(world.usual.ingest.one(posted(key="a key")).answer)
    assert (answer["fan_out"], len(answer["delivery_ids"])) == ("inline", ORDERED_MAX)
    world.endpoint()
    answer = json.loads(world.usual.ingest.one(posted(key="another")).answer)
    assert (answer["fan_out"], len(answer["delivery_ids"])) == ("later", ORDERED_MAX)
    check(world)


def test_an_event_is_refused_rather_than_fanned_out_late_to_an_ordered_endpoint(world: World) -> None:
    one = ordered(world, "invoice.*")
    world.usual.faults.fail_next(method="get")
    with pytest.raises(Unavailable):
        world.usual.ingest.many([posted(), posted()])
    assert (world.records_of(keys.EVENTS), world.records_of(keys.FANOUTS), world.owed()) == ([], [], [])
    world.usual.manage.delete(one, BY)
    world.usual.faults.fail_next(method="get")
    assert world.post()["fan_out"] == "later"


def test_who_cannot_tell_whether_there_is_an_ordered_endpoint_refuses(world: World) -> None:
    world.endpoint()
    world.usual.faults.fail_next(2, method="get")
    with pytest.raises(Unavailable):
        world.usual.ingest.one(posted())
    assert world.records_of(keys.EVENTS) == []


def test_a_later_fan_out_leaves_an_ordered_endpoint_alone(world: World) -> None:
    """It came between the producer's request and the fan-out: the event is not its own to have."""
    world.endpoint()
    world.usual.faults.fail_next(method="get")
    answer = world.post()
    one = ordered(world)
    record = world.records.by_key[keys.subscription(TENANT, "*")]
    record[one.id] = [1, 0, 1]
    assert world.fan_out(answer["event_id"]) == 1
    assert line(world, one) == []


def test_no_bell_names_rows_of_an_ordered_lane(world: World) -> None:
    created_ms = ids.created_ms(EVENT)
    one = Subscriber(ids.new_id("ep", created_ms, 1), 8, created_ms, ordered=True)
    (owing,) = plan(TENANT, EVENT, "t", [one], {one.endpoint_id: 9})
    assert (owing.owed.lane.number, owing.created.lane) == (ORDERED_LANE, ORDERED_LANE)
    assert owing.owed.sequence == owing.created.sequence == 9
    (bell,) = bells_for([owing], 5)
    assert (bell.lane, bell.hints) == (owing.owed.lane, ())


def test_a_tenant_has_at_most_forty_until_it_deletes_one(world: World) -> None:
    made = [ordered(world, "order.*") for _ in range(ORDERED_MAX)]
    world.change(made[0], state=EndpointState.DISABLED)
    for _ in range(2):
        with pytest.raises(RelayError) as refused:
            ordered(world)
        assert refused.value.code is ErrorCode.TOO_MANY_ORDERED_ENDPOINTS
        assert refused.value.field == "ordering"
    world.endpoint("order.*")
    assert len(world.usual.manage.page(TENANT, "", 200).items) == ORDERED_MAX + 1
    world.usual.manage.delete(made[1], BY)
    with pytest.raises(RelayError):
        world.usual.manage.delete(made[1], BY)
    ordered(world)
    with pytest.raises(RelayError):
        ordered(world)
