"""Retention: what is overdue goes, all of it and nothing else; what is still needed stays."""

from dataclasses import replace
from functools import partial
from itertools import chain, repeat

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Key
from chalicelib.application import retention as retaining
from chalicelib.application.ingest import Post
from chalicelib.application.ports import Extent, Stand
from chalicelib.application.retention import HOUR_MS, Chore, Retained, Retention
from chalicelib.domain import ids
from chalicelib.domain.delivery import Status
from chalicelib.domain.endpoint import Endpoint, EndpointState, Ordering
from chalicelib.domain.errors import RelayError
from chalicelib.domain.retention import (
    DAY_MS,
    DAY_S,
    DEAD_DAYS,
    HISTORY_DAYS,
    OVERDUE_AFTER_S,
    PAYLOAD_DAYS,
    SLACK_DAYS,
)
from tests.fakes.scripted_sender import status
from tests.unit.application.interruptions import at_call, deaths
from tests.unit.application.process import Process
from tests.unit.application.world import LARGE, TENANT, World, posted

AMPLE_MS = 3_600_000
REFUSES = status(404)
DISABLED, ENABLED = EndpointState.DISABLED, EndpointState.ENABLED
EXPIRING = (keys.EVENTS, keys.HISTORY, keys.DEAD_LETTERS, keys.IDEMPOTENCY)


@pytest.fixture
def world() -> World:
    return World()


def retain(world: World, process: Process | None = None) -> Retained:
    """Run retention once, with all the time it wants; what it did before it was killed is not told."""
    did = world.run(lambda it: it.retention.run(lambda: AMPLE_MS), process or Process(world))
    return did or Retained()


def pass_days(world: World, days: float, every_h: float = 24) -> Retained:
    """Let days pass, with a run of retention after every so many hours."""
    did = Retained()
    until_ms = world.clock.now_ms() + int(days * DAY_MS)
    while world.clock.now_ms() < until_ms:
        world.clock.advance_to(min(until_ms, world.clock.now_ms() + int(every_h * HOUR_MS)))
        did = did.plus(retain(world))
    return did


def stored(world: World) -> int:
    """Count the rows of all tables that expire, but for the hours that list events."""
    found = [record for table in EXPIRING for record in world.records_of(table)]
    return sum(not record["pk"].endswith("#hours") for record in found)


def shown(world: World, delivery: str) -> Status | None:
    """Give a delivery's status as its owner sees it; None when it is absent."""
    try:
        return world.usual.questions.delivery(TENANT, delivery).status
    except RelayError:
        return None


def kept(world: World, event_id: str, tenant: str = TENANT) -> bool:
    """Say whether the bytes of an event are there."""
    return f"{tenant}/{event_id}" in world.kept


def test_what_is_removed_is_exactly_what_is_overdue(world: World) -> None:
    world.endpoint()
    large = [world.post(body=LARGE, key=f"key {n}")["event_id"] for n in range(30)]
    small = [world.post()["event_id"] for _ in range(120)]
    world.work_off()
    world.clock.advance(ms=2_000)
    young = [world.post(body=LARGE)["event_id"] for _ in range(3)]
    world.work_off()
    due_ms = (ids.created_ms(small[-1]) // 1000 + PAYLOAD_DAYS * DAY_S) * 1000
    world.clock.advance_to(due_ms)
    did = retain(world)
    assert (did.payloads, did.rows) == (len(large), len(large) + len(small) + len(large))
    assert {each.partition("/")[2] for each in world.kept} == set(young)
    assert {
        record["sk"] for record in world.records_of(keys.EVENTS) if ids.is_id(record["sk"], "evt")
    } == set(young)


def test_a_row_a_second_inside_its_window_stays_and_goes_a_second_later(world: World) -> None:
    world.sender.script = lambda _: REFUSES
    world.endpoint()
    said = world.post(body=LARGE, key="k")
    world.work_off()
    retain(world)
    until_s = {at: record["ttl"] for at, record in world.records.by_key.items() if "ttl" in record}
    assert len(set(until_s.values())) == 4
    for moment_s in sorted(set(until_s.values())):
        for now_s in (moment_s - 1, moment_s):
            world.clock.advance_to(now_s * 1000)
            sweep(world)
            assert until_s.keys() & world.records.by_key.keys() == {
                at for at, ttl in until_s.items() if ttl > now_s
            }
    assert stored(world) == 0
    assert not kept(world, said["event_id"])


def sweep(world: World) -> None:
    """Do all chores, whatever the hour."""
    for chore in Chore:
        world.usual.retaining.note(chore.value, Stand())
    assert retain(world).finished


def test_f122_what_is_pending_is_never_purged_and_what_ended_is_told_for_ninety_days_from_its_end(
    world: World,
) -> None:
    late, never = world.endpoint("late"), world.endpoint("never")
    for each in (late, never):
        world.change(each, state=DISABLED)
    finished, pending = world.post("late", LARGE), world.post("never", LARGE)
    (done,), (waits,) = finished["delivery_ids"], pending["delivery_ids"]
    pass_days(world, 80)
    world.change(late, state=ENABLED)
    world.work_off()
    assert shown(world, done) is Status.SUCCEEDED
    assert world.sends(done)[0].request.body == LARGE
    pass_days(world, HISTORY_DAYS - 1)
    found = world.usual.questions.delivery(TENANT, done)
    assert (found.status, found.event_type, len(found.attempts)) == (Status.SUCCEEDED, "late", 1)
    assert not kept(world, finished["event_id"])
    assert shown(world, waits) is Status.PENDING
    pass_days(world, 2)
    assert shown(world, done) is None
    assert (shown(world, waits), kept(world, pending["event_id"])) == (Status.PENDING, True)
    pass_days(world, SLACK_DAYS + 1)
    assert world.history(done) == []
    world.change(never, state=ENABLED)
    world.work_off()
    assert shown(world, waits) is Status.SUCCEEDED
    assert world.sends(waits)[0].request.body == LARGE


def test_retention_that_was_away_for_days_finds_what_it_missed(world: World) -> None:
    of = world.endpoint()
    world.change(of, state=DISABLED)
    said = world.post(body=LARGE)
    pass_days(world, 23)
    world.clock.advance(ms=9 * DAY_MS)
    retain(world)
    pass_days(world, 10)
    assert kept(world, said["event_id"])
    world.change(of, state=ENABLED)
    world.work_off()
    assert shown(world, said["delivery_ids"][0]) is Status.SUCCEEDED


def test_a_payload_outlives_its_dead_letter(world: World) -> None:
    world.sender.script = lambda _: REFUSES
    world.endpoint()
    said = world.post(body=LARGE)
    world.work_off()
    pass_days(world, DEAD_DAYS - 1)
    assert len(world.records_of(keys.DEAD_LETTERS)) == 1
    assert kept(world, said["event_id"])
    assert world.usual.questions.payload(TENANT, said["event_id"])[1] == LARGE
    pass_days(world, 2)
    assert world.records_of(keys.DEAD_LETTERS) == []
    assert not kept(world, said["event_id"])
    assert shown(world, said["delivery_ids"][0]) is None


def test_an_event_that_is_kept_for_a_death_is_listed_as_long(world: World) -> None:
    world.sender.script = lambda _: REFUSES
    world.endpoint()
    said = world.post()
    world.work_off()
    pass_days(world, DEAD_DAYS - 1)
    listed = world.usual.questions.events(TENANT, Extent("", 10))
    assert [each.event.id for each in listed.items] == [said["event_id"]]


def test_a_dead_letter_is_looked_up_once(world: World) -> None:
    world.sender.script = lambda _: REFUSES
    world.endpoint()
    world.deliveries(5)
    world.work_off()
    assert retain(world).prolonged == 5
    assert pass_days(world, 30).prolonged == 0


def test_what_is_owed_is_prolonged_once_in_six_days(world: World) -> None:
    of = world.endpoint()
    world.change(of, state=DISABLED)
    world.deliveries(10)
    days = {day: pass_days(world, 1, every_h=1).prolonged for day in range(1, 41)}
    # Looked for every six hours, found once in six days; from the fourth time on the events are kept, too.
    assert {day: count for day, count in days.items() if count} == dict(
        zip(range(7, 41, 6), (10, 10, 10, 20, 20, 20), strict=True)
    )


def test_the_payload_of_an_event_that_was_never_written_goes_after_an_hour(world: World) -> None:
    world.endpoint()
    first = world.post(body=LARGE, key="k")
    assert world.post(body=LARGE, key="k") == first
    lost = Process(world)
    lost.faults.kill_at(2, after=False)
    assert world.accept([posted(body=LARGE)], lost) is None
    world.work_off()
    assert len(world.kept) == 3
    world.clock.advance(ms=HOUR_MS - 1_000)
    retain(world)
    assert len(world.kept) == 3
    world.clock.advance(ms=HOUR_MS)
    assert retain(world).payloads == 2
    assert kept(world, first["event_id"])
    assert len(world.kept) == 1


def test_each_tenant_s_payloads_are_found_whatever_its_name(world: World) -> None:
    tenants = ["a", "acme", "acme-2", "acme.x", "acme0", "acme00", "b"]
    for tenant in tenants:
        world.accept([Post(tenant, LARGE, "application/json", "order.paid")])
    assert pass_days(world, PAYLOAD_DAYS - 1, every_h=240).payloads == 0
    for tenant in tenants:
        world.accept([Post(tenant, LARGE, "application/json", "order.paid")])
    assert pass_days(world, 1.1, every_h=6).payloads == len(tenants)
    assert sorted(each.partition("/")[0] for each in world.kept) == sorted(tenants)


def overdue_world(deliveries: int = 12) -> World:
    """Make a world in which some of everything is overdue and some of everything is not."""
    world = World()
    world.endpoint("good")
    gone, held = world.endpoint("bad", "gone"), world.endpoint("held")
    world.change(held, state=DISABLED)
    for number in range(deliveries):
        world.post("good", LARGE, f"key {number}")
    world.post("held", LARGE)
    world.work_off()
    world.change(gone, state=EndpointState.DELETED)
    pass_days(world, 34)
    world.post("good", LARGE, "young")
    world.work_off()
    world.clock.advance(ms=2 * DAY_MS)
    return world


def remains(world: World) -> tuple[set[Key], set[str]]:
    """Give all that is stored, but for how far retention has come and until when things are kept."""
    rows = {key for key in world.records.by_key if key != keys.retention()}
    return rows, set(world.kept)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_any_write_it_goes_on_and_removes_the_same(after: bool) -> None:  # noqa: FBT001 - a case
    calm = overdue_world()
    assert retain(calm).finished
    for death in deaths(20, after=after):
        world = overdue_world()
        retain(world, death.process(world))
        for _ in range(3):
            retain(world)
        assert remains(world) == remains(calm)


def test_two_at_once_remove_the_same() -> None:
    calm = overdue_world()
    retain(calm)
    for number in range(1, 60):
        world = overdue_world()
        first = Process(world)
        reached = at_call(first, number, partial(retain, world))
        retain(world, first)
        retain(world)
        assert remains(world) == remains(calm)
        if not reached():
            return
    raise AssertionError("there are more calls than thought")


def test_a_chore_goes_on_where_its_time_was_over(world: World) -> None:
    world.endpoint()
    said = [world.post(body=LARGE if n % 10 == 0 else b"{}") for n in range(250)]
    world.work_off()
    world.clock.advance(ms=(PAYLOAD_DAYS + 1) * DAY_MS)
    total, runs = Retained(), 0
    while not total.finished:
        total = total.plus(Process(world).retention.run(chain([AMPLE_MS], repeat(0)).__next__))
        runs += 1
        assert runs < 100
    assert runs > 10
    assert (total.payloads, total.rows) == (25, len(said) + len({"the hour that lists them"}))
    assert retain(world) == Retained(finished=True)


def test_the_time_that_is_left_is_enough_for_a_page(world: World) -> None:
    world.endpoint()
    assert not Process(world).retention.run(lambda: retaining.STOP_BEFORE_MS).finished


def test_a_stack_that_was_off_for_months_loses_nothing_that_is_owed(world: World) -> None:
    of = world.endpoint()
    world.change(of, state=DISABLED)
    said = [world.post(body=LARGE) for _ in range(3)]
    world.clock.advance(ms=200 * DAY_MS)
    while not Process(world).retention.run(chain([AMPLE_MS], repeat(0)).__next__).finished:
        pass
    world.change(of, state=ENABLED)
    world.work_off()
    assert [shown(world, each["delivery_ids"][0]) for each in said] == [Status.SUCCEEDED] * 3
    assert {each.request.body for each in world.sender.sent} == {LARGE}


def test_nothing_is_removed_while_what_is_needed_cannot_be_prolonged(world: World) -> None:
    world.endpoint()
    world.post(body=LARGE)
    world.work_off()
    world.clock.advance(ms=(PAYLOAD_DAYS + 1) * DAY_MS)
    failing = Process(world)
    failing.tables.faults.fail_next(100, method="browse")
    did = failing.retention.run(lambda: AMPLE_MS)
    assert (did.removed, did.failed, did.finished) == (0, 2, False)
    assert len(world.kept) == 1
    assert retain(world).payloads == 1


def test_a_chore_that_the_store_fails_keeps_no_other_from_being_done(world: World) -> None:
    world.endpoint()
    world.post(body=LARGE)
    world.work_off()
    world.clock.advance(ms=(PAYLOAD_DAYS + 1) * DAY_MS)
    failing = Process(world)
    failing.payloads.faults.fail_next(method="listed")
    did = failing.retention.run(lambda: AMPLE_MS)
    assert (did.payloads, did.failed, did.finished) == (0, 1, False)
    assert did.rows == 2
    did = retain(world)
    assert (did.payloads, did.failed, did.finished) == (1, 0, True)


def deleted(world: World, endpoint: Endpoint) -> bool:
    """Say whether nothing of an endpoint is left."""
    owner = (endpoint.tenant, endpoint.id)
    at = [keys.endpoint(*owner), keys.tagged(*owner), keys.gate(*owner), keys.sequence(*owner)]
    there = [key in world.records.by_key for key in at]
    assert len(set(there[:3])) == 1
    return not any(there)


def test_a_deleted_endpoint_is_known_until_the_last_of_its_history_is_gone(world: World) -> None:
    world.sender.script = lambda _: REFUSES
    used, unused = world.endpoint("used", ordering=Ordering.ENDPOINT), world.endpoint("unused")
    stays = world.endpoint("stays")
    world.post("used")
    world.work_off()
    for each in (used, unused):
        world.change(each, state=EndpointState.DELETED)
    retain(world)
    assert [deleted(world, each) for each in (used, unused, stays)] == [False, False, False]
    pass_days(world, 2)
    assert [deleted(world, each) for each in (used, unused, stays)] == [False, True, False]
    pass_days(world, DEAD_DAYS - 3)
    assert len(world.usual.questions.deliveries(TENANT, used.id, Extent("", 10)).items) == 1
    pass_days(world, SLACK_DAYS + 4)
    assert [deleted(world, each) for each in (used, unused, stays)] == [True, True, False]


def test_an_endpoint_changed_meanwhile_is_not_forgotten(world: World) -> None:
    of = world.endpoint()
    world.change(of, state=EndpointState.DELETED)
    world.clock.advance(ms=2 * DAY_MS)
    read = world.now(of)
    assert not world.usual.retaining.forget(replace(read, version=read.version + 1))
    assert world.usual.retaining.forget(read)
    assert not world.usual.retaining.forget(read)


def test_what_should_have_been_gone_for_two_days_is_told(world: World) -> None:
    world.sender.script = lambda _: REFUSES
    world.endpoint()
    world.deliveries(3)
    world.work_off()
    process = Process(world)
    lazy = Retention(process.retaining, process.payloads, world.clock)
    (ttl,) = {record["ttl"] for record in world.records_of(keys.DEAD_LETTERS)}
    world.clock.advance_to((ttl + OVERDUE_AFTER_S) * 1000 - 1_000)
    assert lazy.run(lambda: AMPLE_MS).overdue == 0
    world.clock.advance(ms=25 * HOUR_MS)
    assert lazy.run(lambda: AMPLE_MS).overdue == 3 + 1  # and the hour that lists their events
    world.clock.advance(ms=10 * DAY_MS)
    assert lazy.run(lambda: AMPLE_MS).overdue == 3 + 1 + 1  # and the endpoint's history
    assert retain(world).rows >= 12
    world.clock.advance(ms=25 * HOUR_MS)
    assert retain(world) == Retained(finished=True)


def test_nothing_is_looked_at_twice_within_the_hour(world: World) -> None:
    assert retain(world).finished
    steps = Process(world)
    assert steps.retention.run(lambda: AMPLE_MS).finished
    assert [step.method for step in steps.tables.faults.steps] == ["get"]
