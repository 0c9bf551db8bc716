"""The fan-out budget over a whole Relay in memory: paced, in order, resumable, and never dropped."""

from dataclasses import replace

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.domain.endpoint import Endpoint, Limits, Ordering
from chalicelib.domain.pattern import admitted
from chalicelib.domain.tenant import Quotas
from tests.unit.application.interruptions import deaths
from tests.unit.application.process import Process
from tests.unit.application.world import AMPLE, LIMITS, MINUTE_MS, World, posted

SECOND_MS = 1_000
QUOTAS = Quotas(endpoints=1_000, events_per_second=100_000, fan_out_per_second=10)
IN_TURN = replace(AMPLE, max_concurrency=1)


def paced(per_second: int = 10) -> World:
    """Make a Relay whose tenant may have so many deliveries a second."""
    return World(quotas=replace(QUOTAS, fan_out_per_second=per_second))


def crowd(world: World, count: int, *event_types: str, limits: Limits = AMPLE) -> list[Endpoint]:
    """Register that many endpoints."""
    return [world.endpoint(*event_types, limits=limits) for _ in range(count)]


def sent_by_second(world: World, since_ms: int) -> list[int]:
    """Count what was sent in each second since a moment."""
    seconds = [(each.at_ms - since_ms) // SECOND_MS for each in world.sender.sent]
    return [seconds.count(second) for second in range(max(seconds) + 1)]


def run_to_the_end(world: World) -> None:
    world.work_off(30 * MINUTE_MS)
    assert world.records_of(keys.FANOUTS) == []
    assert world.owed() == []


def sent_to(world: World, endpoint: Endpoint) -> list[str]:
    """Name the events that came to an endpoint, in order."""
    deliveries = {each.delivery_id: each for each in world.all_history()}
    own = {row["sk"].partition("#")[0] for row in world.records_of(keys.HISTORY) if endpoint.id in row["pk"]}
    return [deliveries[each.delivery_id].event_id for each in world.sender.sent if each.delivery_id in own]


def test_what_is_over_the_budget_is_paced_and_nothing_is_dropped() -> None:
    world = paced(10)
    endpoints = crowd(world, 5)
    began_ms = world.clock.now_ms()
    answers = [world.post() for _ in range(40)]
    run_to_the_end(world)
    assert [each["fan_out"] for each in answers] == ["inline"] * 2 + ["later"] * 38
    assert len(world.sender.sent) == len({each.delivery_id for each in world.sender.sent}) == 40 * 5
    by_second = sent_by_second(world, began_ms)
    assert 18 <= len(by_second) <= 22
    assert all(
        sum(by_second[first : first + length]) <= 10 * (length + 2)
        for length in range(1, 20)
        for first in range(20)
    )
    assert all(len(sent_to(world, each)) == 40 for each in endpoints)


def test_events_go_in_the_order_in_which_they_came_and_none_overtakes_for_ever() -> None:
    world = paced(10)
    one, *_ = crowd(world, 10, limits=IN_TURN)
    events = []
    for _ in range(60):
        events.append(world.post()["event_id"])
        world.pass_time(500)
    run_to_the_end(world)
    assert sent_to(world, one) == events


def test_while_others_wait_a_new_event_waits_behind_them() -> None:
    world = paced(10)
    crowd(world, 10, "order.paid")
    (small,) = crowd(world, 1, "user.made")
    for _ in range(4):
        world.post()
    assert world.post("user.made")["fan_out"] == "later"
    world.work_off(2 * SECOND_MS)
    assert sent_to(world, small) == []
    run_to_the_end(world)
    assert len(sent_to(world, small)) == 1


def test_when_the_wait_is_over_events_are_fanned_out_at_once_again() -> None:
    world = paced(10)
    crowd(world, 10)
    assert [world.post()["fan_out"] for _ in range(3)] == ["inline", "later", "later"]
    run_to_the_end(world)
    assert world.post()["fan_out"] == "inline"


def test_an_event_for_more_endpoints_than_the_budget_has_goes_in_parts() -> None:
    world = paced(10)
    crowd(world, 100)
    began_ms = world.clock.now_ms()
    said = world.post()
    assert (said["fan_out"], said["delivery_ids"]) == ("later", [])
    run_to_the_end(world)
    by_second = sent_by_second(world, began_ms)
    assert sum(by_second) == 100
    assert max(by_second) <= 20
    assert 9 <= len(by_second) <= 12


def test_a_budget_above_a_chunk_is_used_to_the_full() -> None:
    world = paced(100)
    crowd(world, 400)
    began_ms = world.clock.now_ms()
    world.post()
    run_to_the_end(world)
    assert sum(sent_by_second(world, began_ms)) == 400
    assert 3 <= len(sent_by_second(world, began_ms)) <= 6


def test_a_large_event_lets_others_in_between_its_parts() -> None:
    world = paced(10)
    crowd(world, 100, "large")
    (one,) = crowd(world, 1, "small")
    world.post("large")
    world.work_off(3 * SECOND_MS)
    world.post("small")
    world.work_off(3 * SECOND_MS)
    assert len(sent_to(world, one)) == 1
    assert len(world.sender.sent) < 100
    run_to_the_end(world)


@pytest.mark.parametrize("after", [False, True], ids=["before a write", "after a write"])
def test_killed_anywhere_it_neither_loses_nor_doubles(after: bool) -> None:  # noqa: FBT001 - a parameter
    for death in deaths(2, after=after):
        world = paced(10)
        crowd(world, 25)
        world.accept([posted()], Process(world))
        world.fan_out_called(death.process(world))
        for _ in range(8):
            world.pass_time(MINUTE_MS)
            world.sweep()
        run_to_the_end(world)
        assert len(world.sender.sent) == len({each.delivery_id for each in world.sender.sent}) == 25


def test_a_call_that_was_lost_is_made_up_for_by_reconcile() -> None:
    world = paced(10)
    crowd(world, 25)
    world.losing = 1
    world.post()
    assert world.fan_outs == []
    world.clock.advance(ms=61 * SECOND_MS)
    assert world.sweep().failed == 0
    run_to_the_end(world)
    assert len(world.sender.sent) == 25


def test_reconcile_leaves_alone_what_waits_for_its_moment() -> None:
    world = paced(1)
    crowd(world, 1)
    for _ in range(300):
        world.post()
    before = len(world.fan_outs)
    world.clock.advance(ms=1)
    assert world.sweep().fanned_out == 0
    assert len(world.fan_outs) == before


def test_a_call_for_another_moment_than_its_own_is_let_go() -> None:
    world = paced(10)
    crowd(world, 25)
    said = world.post()
    for _ in range(5):
        world.fan_out(said["event_id"], due_ms=0)
    assert len([each for each in world.fan_outs if each.due_ms > world.clock.now_ms()]) == 1
    run_to_the_end(world)
    assert len(world.sender.sent) == 25


def test_waiting_costs_a_call_a_part_and_one_each_quarter_of_an_hour() -> None:
    world = paced(1)
    crowd(world, 1)
    for _ in range(1_800):
        world.post()
    process = Process(world)
    runs = 0
    while world.fan_outs:
        runs += sum(each.arrives_ms <= world.clock.now_ms() for each in world.fan_outs)
        world.fan_out_called(process)
        world.clock.advance(ms=SECOND_MS)
    assert runs <= 1_800 * 2
    assert world.records_of(keys.FANOUTS) == []


def test_a_larger_budget_counts_for_what_waits_already() -> None:
    world = paced(1)
    crowd(world, 10)
    for _ in range(60):
        world.post()
    world.pass_time(61 * SECOND_MS)
    assert len(world.sender.sent) < 100
    world.quotas = replace(QUOTAS, fan_out_per_second=100)
    world.sweep()
    world.pass_time(10 * SECOND_MS)
    assert len(world.sender.sent) == 600
    run_to_the_end(world)
    assert world.post()["fan_out"] == "inline"


def test_a_smaller_budget_counts_for_what_comes_after_it() -> None:
    world = paced(100)
    crowd(world, 10)
    for _ in range(40):
        world.post()
    world.quotas = replace(QUOTAS, fan_out_per_second=10)
    for _ in range(10):
        world.post()
    world.pass_time(8 * SECOND_MS)
    assert len(world.sender.sent) == 400
    world.pass_time(30 * SECOND_MS)
    assert len(world.sender.sent) <= 420
    run_to_the_end(world)
    assert len(world.sender.sent) == 500


def test_ordered_endpoints_never_wait_and_are_charged() -> None:
    world = paced(10)
    ordered = world.endpoint("order.paid", ordering=Ordering.ENDPOINT)
    (other,) = crowd(world, 1)
    answers = [world.post() for _ in range(20)]
    assert [len(each["delivery_ids"]) for each in answers] == [2] * 5 + [1] * 15
    world.work_off()
    assert len(sent_to(world, ordered)) == 20
    assert len(sent_to(world, other)) < 20
    assert world.post("user.made")["fan_out"] == "later"
    run_to_the_end(world)
    assert len(sent_to(world, other)) == 21


def test_an_event_that_nobody_takes_costs_nothing() -> None:
    world = paced(1)
    crowd(world, 1, "order.paid")
    assert [world.post("user.made")["fan_out"] for _ in range(50)] == ["none"] * 50
    assert world.post()["fan_out"] == "inline"


def test_subscriptions_that_could_not_be_read_are_paid_for_when_they_can() -> None:
    world = paced(10)
    crowd(world, 20)
    process = Process(world)
    process.faults.fail_next(1, method="get")
    world.accept([posted()], process)
    began_ms = world.clock.now_ms()
    run_to_the_end(world)
    assert max(sent_by_second(world, began_ms)) <= 20
    assert len(world.sender.sent) == 20
    assert sent_by_second(world, began_ms)[0] == 10


def test_more_than_goes_at_once_is_charged_once() -> None:
    world = World(limits=replace(LIMITS, inline_fan_out_max=2), quotas=QUOTAS)
    crowd(world, 5)
    began_ms = world.clock.now_ms()
    for _ in range(4):
        world.post()
    run_to_the_end(world)
    assert len(world.sender.sent) == 20
    assert len(sent_by_second(world, began_ms)) <= 2


def test_a_limiter_that_cannot_count_keeps_no_event_from_being_accepted() -> None:
    world = paced(10)
    crowd(world, 5)
    process = Process(world)
    process.faults.fail_next(1, method="each")
    accepted = world.accept([posted() for _ in range(8)], process)
    assert accepted is not None
    run_to_the_end(world)
    assert len(world.sender.sent) == 40


def test_who_does_not_want_an_event_for_its_payload_is_not_paid_for() -> None:
    world = paced(10)
    for _ in range(45):
        world.endpoint("order.paid", filter=admitted({"n": [2]}))
    plain = crowd(world, 12)
    began_ms = world.clock.now_ms()
    assert world.post()["fan_out"] == "later"
    run_to_the_end(world)
    assert len(world.sender.sent) == len(plain)
    assert len(sent_by_second(world, began_ms)) <= 3
