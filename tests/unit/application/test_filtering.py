"""Filters at work: an event owes what its payload earns, at once or later, and nothing is filtered twice."""

import json
from typing import Any

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Delete
from chalicelib.application.fan_out import CHUNK
from chalicelib.application.ingest import LOOKED_AT_MAX, Accepted, IngestLimits, Post
from chalicelib.application.ports import Unavailable
from chalicelib.domain import ids
from chalicelib.domain.endpoint import Endpoint, Ordering
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.pattern import admitted
from chalicelib.domain.tenant import Quotas
from tests.unit.application.interruptions import deaths
from tests.unit.application.invariants import check
from tests.unit.application.process import Process
from tests.unit.application.world import BY, LARGE, MINUTE_MS, TENANT, World, posted

LARGE_SUM = admitted({"sum": [{"numeric": [">", 100]}]})
SMALL_SUM = admitted({"sum": [{"numeric": ["<=", 100]}]})
NOISY = admitted({"noise": [{"exists": True}]})
MUCH, LITTLE = b'{"sum":500}', b'{"sum":5}'


def takes(world: World, filter_: str, *event_types: str, **changes: Any) -> Endpoint:  # noqa: ANN401 - any field
    return world.endpoint(*event_types, filter=filter_, **changes)


def owes(world: World, said: Any) -> list[str]:  # noqa: ANN401 - the answer's JSON
    """Name the endpoints that an event owes a delivery to."""
    return [each.lane.endpoint_id for each in world.owed() if each.event_id == said["event_id"]]


def deliveries_to(said: Any, *endpoints: Endpoint) -> list[str]:  # noqa: ANN401 - the answer's JSON
    return [ids.delivery_id(said["event_id"], each.id) for each in endpoints]


def calls(process: Process) -> list[str]:
    made = [step.method for step in process.faults.steps]
    process.faults.steps.clear()
    return made


def unreadable(process: Process) -> None:
    """Let an event's subscriptions be read, and the filters of its takers not."""
    gets = 0

    def before(step: Any) -> None:  # noqa: ANN401 - a step
        nonlocal gets
        gets += step.method == "get"
        if gets == 2:
            process.faults.before = lambda _: None
            raise Unavailable("the filters cannot be read")

    process.faults.before = before


def few(world: World, inline: int) -> None:
    """Let that many deliveries be fanned out at once."""
    world.limits = IngestLimits(262_144, 4_096, inline)
    world.usual = Process(world)


def test_an_event_owes_those_whose_filter_it_passes_and_those_without_one(world: World) -> None:
    large, small, plain = takes(world, LARGE_SUM), takes(world, SMALL_SUM), world.endpoint()
    much, little = world.post(body=MUCH), world.post(body=LITTLE)
    assert much["delivery_ids"] == deliveries_to(much, large, plain)
    assert little["delivery_ids"] == deliveries_to(little, small, plain)
    assert (much["fan_out"], little["fan_out"]) == ("inline", "inline")
    assert owes(world, much) == [large.id, plain.id]
    check(world)


def test_an_event_that_passes_no_filter_owes_nothing_and_is_kept(world: World) -> None:
    takes(world, LARGE_SUM)
    said = world.post(body=LITTLE)
    assert (said["delivery_ids"], said["fan_out"]) == ([], "none")
    assert world.owed() == []
    assert said["event_id"] in [record["sk"] for record in world.records_of(keys.EVENTS)]


@pytest.mark.parametrize("content_type", ["text/plain", "application/octet-stream"])
def test_a_body_that_is_not_json_passes_no_filter(world: World, content_type: str) -> None:
    takes(world, admitted({"sum": [{"exists": False}]}))
    plain = world.endpoint()
    answer = world.usual.ingest.one(Post(TENANT, MUCH, content_type, "order.paid"))
    said = json.loads(answer.answer)
    assert said["delivery_ids"] == deliveries_to(said, plain)


def test_each_event_of_a_batch_is_filtered_for_itself(world: World) -> None:
    large, small = takes(world, LARGE_SUM), takes(world, SMALL_SUM)
    results = world.accept([posted(body=MUCH), posted(body=LITTLE), posted(body=MUCH)], world.usual)
    assert results is not None
    said = [json.loads(each.answer) for each in results if isinstance(each, Accepted)]
    assert [each["delivery_ids"] for each in said] == [
        deliveries_to(one, to) for one, to in zip(said, [large, small, large], strict=True)
    ]


def test_a_changed_filter_binds_the_very_next_event_also_in_a_process_that_knew_the_old_one(
    world: World,
) -> None:
    endpoint = takes(world, LARGE_SUM)
    assert owes(world, world.post(body=MUCH)) == [endpoint.id]
    world.change(endpoint, filter=SMALL_SUM)
    assert owes(world, world.post(body=MUCH)) == []
    assert owes(world, world.post(body=LITTLE)) == [endpoint.id]
    world.change(endpoint, filter="")
    assert owes(world, world.post(body=MUCH)) == [endpoint.id]


def test_a_repeat_gets_the_answer_of_the_first_whatever_the_filter_says_now(world: World) -> None:
    endpoint = takes(world, LARGE_SUM)
    first = world.post(body=MUCH, key="k")
    world.change(endpoint, filter=SMALL_SUM)
    assert world.post(body=MUCH, key="k") == first
    assert owes(world, first) == [endpoint.id]


def test_filters_that_are_known_cost_no_call_and_new_ones_cost_one(world: World) -> None:
    world.endpoint("plain")
    world.post("plain")
    calls(world.usual)
    world.post("plain")
    without = calls(world.usual)
    for _ in range(3):
        takes(world, LARGE_SUM, "filtered")
    world.post("filtered", body=MUCH)
    calls(world.usual)
    world.post("filtered", body=MUCH)
    assert calls(world.usual) == without
    new = Process(world)
    world.accept([posted("plain", MUCH)], new)
    plain = calls(new)
    new = Process(world)
    world.accept([posted("filtered", MUCH), posted("filtered", LITTLE)], new)
    assert sorted(calls(new)) == sorted([*plain, "get"])


def test_of_many_takers_those_that_want_the_event_are_owed_it_at_once(world: World) -> None:
    few(world, 2)
    others = [takes(world, LARGE_SUM) for _ in range(3)]
    wanted = [takes(world, SMALL_SUM) for _ in range(2)]
    said = world.post(body=LITTLE)
    assert (said["fan_out"], owes(world, said)) == ("inline", [each.id for each in wanted])
    said = world.post(body=MUCH)
    assert (said["fan_out"], owes(world, said)) == ("later", [])
    world.fan_out_called()
    assert owes(world, said) == [each.id for each in others]


def test_of_more_takers_than_are_looked_at_the_ordered_ones_get_the_event_at_once(world: World) -> None:
    line = takes(world, SMALL_SUM, ordering=Ordering.ENDPOINT)
    other = takes(world, LARGE_SUM, ordering=Ordering.ENDPOINT)
    many = [takes(world, LARGE_SUM) for _ in range(LOOKED_AT_MAX - 2)]
    last = takes(world, SMALL_SUM)
    said = world.post(body=LITTLE)
    assert (said["fan_out"], owes(world, said)) == ("later", [line.id])
    world.fan_out_called()
    assert sorted(owes(world, said)) == sorted([line.id, last.id])
    said = world.post(body=MUCH)
    world.fan_out_called()
    assert sorted(owes(world, said)) == sorted([other.id, *(each.id for each in many)])


def test_an_ordered_endpoint_numbers_what_passes_its_filter(world: World) -> None:
    line = takes(world, LARGE_SUM, ordering=Ordering.ENDPOINT)
    for body in (MUCH, LITTLE, MUCH):
        world.post(body=body)
    assert [each.sequence for each in world.owed() if each.lane.endpoint_id == line.id] == [1, 2]


def test_filters_that_cannot_be_read_let_the_event_be_fanned_out_later_and_only_then_decide(
    world: World,
) -> None:
    large, _, plain = takes(world, LARGE_SUM), takes(world, SMALL_SUM), world.endpoint()
    unreadable(world.usual)
    said = world.post(body=MUCH)
    assert (said["fan_out"], owes(world, said)) == ("later", [])
    world.fan_out_called()
    assert owes(world, said) == [large.id, plain.id]


def test_where_an_order_would_break_filters_that_cannot_be_read_are_an_error_to_the_producer(
    world: World,
) -> None:
    takes(world, LARGE_SUM, ordering=Ordering.ENDPOINT)
    unreadable(world.usual)
    with pytest.raises(Unavailable):
        world.post(body=MUCH)
    assert world.records_of(keys.EVENTS) == []


@pytest.mark.parametrize("body, filter_", [(MUCH, LARGE_SUM), (LARGE, NOISY)], ids=["inline", "kept apart"])
def test_a_later_fan_out_filters_whatever_dies(body: bytes, filter_: str) -> None:
    for death in deaths(at_least=3):
        world = World()
        few(world, 0)
        wanted = [takes(world, filter_) for _ in range(2)]
        takes(world, SMALL_SUM)
        said = world.post(body=body)
        world.fan_out(said["event_id"], death.process(world))
        world.fan_out(said["event_id"])
        check(world)
        assert owes(world, said) == [each.id for each in wanted]
        assert world.records_of(keys.FANOUTS) == []


def test_a_later_fan_out_reads_the_event_once_and_only_if_somebody_filters(world: World) -> None:
    few(world, 0)
    for _ in range(CHUNK + 1):
        world.endpoint("plain")
        takes(world, NOISY, "filtered")
    made = {}
    for event_type in ("plain", "filtered"):
        said = world.post(event_type, body=LARGE)
        process = Process(world)
        assert process.fan_out.run(TENANT, said["event_id"]) == CHUNK + 1
        made[event_type] = calls(process)
    # Of each chunk the filters, once the event's row, and once what is kept apart.
    assert len(made["filtered"]) - len(made["plain"]) == 4


def test_a_later_fan_out_of_an_event_that_is_gone_owes_nothing_that_is_filtered(world: World) -> None:
    few(world, 0)
    takes(world, NOISY)
    apart, lost = world.post(body=LARGE), world.post(body=LARGE)
    world.kept.pop(f"{TENANT}/{apart['event_id']}")
    world.usual.tables.together([Delete(keys.event(TENANT, lost["event_id"]))])
    world.fan_out_called()
    assert world.owed() == []
    assert world.records_of(keys.FANOUTS) == []


def test_a_later_fan_out_that_cannot_read_a_filter_waits_and_is_done_in_the_end(world: World) -> None:
    few(world, 0)
    endpoint = takes(world, LARGE_SUM)
    said = world.post(body=MUCH)
    unreadable(world.usual)
    with pytest.raises(Unavailable):
        world.usual.fan_out.run(TENANT, said["event_id"])
    assert world.usual.fan_out.run(TENANT, said["event_id"]) == 1
    assert owes(world, said) == [endpoint.id]


def test_a_replay_is_not_filtered_again(world: World) -> None:
    endpoint = takes(world, LARGE_SUM)
    (delivery,) = world.post(body=MUCH)["delivery_ids"]
    world.work_off(for_ms=MINUTE_MS)
    world.change(endpoint, filter=SMALL_SUM)
    world.run(lambda it: it.replay.run(TENANT, delivery, BY), world.usual)
    world.work_off(for_ms=MINUTE_MS)
    assert [each.delivery_id for each in world.sender.sent] == [delivery, delivery]


def test_what_is_owed_is_sent_whatever_the_filter_says_now(world: World) -> None:
    endpoint = takes(world, LARGE_SUM)
    (delivery,) = world.post(body=MUCH)["delivery_ids"]
    world.change(endpoint, filter=SMALL_SUM)
    world.work_off(for_ms=MINUTE_MS)
    assert [each.delivery_id for each in world.sender.sent] == [delivery]


def test_the_fan_out_budget_is_charged_for_what_passes_and_not_for_what_does_not() -> None:
    world = World(quotas=Quotas(endpoints=1_000, events_per_second=100_000, fan_out_per_second=10))
    wanted = []
    for number in range(LOOKED_AT_MAX + CHUNK):
        endpoint = takes(world, LARGE_SUM if number % 10 == 0 else SMALL_SUM)
        wanted += [endpoint.id] if number % 10 == 0 else []
    said = [world.post(body=MUCH) for _ in range(4)]
    began_ms = world.clock.now_ms()
    world.work_off(for_ms=30 * MINUTE_MS)
    assert world.records_of(keys.FANOUTS) == []
    assert {each["fan_out"] for each in said} == {"later"}
    assert len(world.sender.sent) == len({each.delivery_id for each in world.sender.sent}) == 4 * len(wanted)
    took_s = (max(each.at_ms for each in world.sender.sent) - began_ms) / 1_000
    assert 4 <= took_s <= 7


def test_an_idempotent_conflict_is_told_also_when_nothing_passed(world: World) -> None:
    takes(world, LARGE_SUM)
    world.post(body=LITTLE, key="k")
    (result,) = world.accept([posted(body=MUCH, key="k")], world.usual) or []
    assert isinstance(result, RelayError)
    assert result.code is ErrorCode.IDEMPOTENCY_CONFLICT
