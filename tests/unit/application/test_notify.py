"""Notify: an owner is told once of what will not arrive, whoever dies or fails on the way."""

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
import trustme

from chalicelib.adapters.dynamodb import keys
from chalicelib.application.auditing import Recorder
from chalicelib.application.notify import CLAIM_MS, LIFE_MS, SILENT_AFTER
from chalicelib.application.ports import Unavailable
from chalicelib.domain import gate as gates
from chalicelib.domain.audit import Action
from chalicelib.domain.auth import Auth
from chalicelib.domain.backoff import RetryProfile
from chalicelib.domain.delivery import given_up
from chalicelib.domain.ending import DAY_MS, KEPT_MS
from chalicelib.domain.endpoint import Endpoint, EndpointState, WrappedSecret
from chalicelib.domain.gate import Breaker, Rules
from chalicelib.domain.notice import Notice, NoticeKind
from chalicelib.domain.outcome import DeathReason, Fault, Reply
from tests.fakes.faults import Step
from tests.fakes.scripted_sender import Answer, status
from tests.unit.application.interruptions import at_call, deaths, fail, meanwhile
from tests.unit.application.invariants import check
from tests.unit.application.process import Process
from tests.unit.application.world import (
    BY,
    FAILS,
    HOUR_MS,
    MINUTE_MS,
    OK,
    TAKE_OVER_MS,
    TENANT,
    World,
    lane_of,
)

NEVER = status(404)
REFUSED = Answer(Reply(fault=Fault.REFUSED))
WITHOUT_BREAKER = Rules(breaker=False)


def kinds(world: World) -> list[NoticeKind]:
    return [each.finding.kind for each in world.heard]


def lost(notice: Notice) -> dict[DeathReason, int]:
    return dict(notice.finding.reasons)


def marks(world: World) -> list[str]:
    """Name the gates that are marked."""
    return [each["pk"] for each in world.records_of(keys.GATES) if "alert_until" in each]


def listed(world: World) -> list[Notice]:
    return list(world.usual.noticing.page(TENANT, "", 200, world.clock.now_ms()).items)


def die(world: World, count: int = 1, answer: Answer = NEVER) -> None:
    """Let that many deliveries die at each endpoint."""
    world.sender.script = lambda _: answer
    world.deliveries(count)
    world.work_off(for_ms=1_000)


def minutes(world: World, count: int) -> None:
    """Let the function run once a minute for a while, and the queues be worked off meanwhile."""
    for _ in range(count):
        world.notify()
        world.pass_time(MINUTE_MS)


@pytest.fixture
def endpoint(world: World) -> Endpoint:
    return world.endpoint()


def test_nobody_is_told_of_what_arrives(world: World, endpoint: Endpoint) -> None:
    world.deliveries(3)
    world.work_off(for_ms=1_000)
    assert marks(world) == []
    world.notify()
    assert (kinds(world), listed(world)) == ([], [])
    assert endpoint.id


def test_the_first_dead_letter_raises_a_notice_that_names_no_url(world: World, endpoint: Endpoint) -> None:
    die(world)
    world.notify()
    (notice,) = world.heard
    assert (notice.finding.kind, notice.endpoint_id) == (NoticeKind.DEAD_LETTERS, endpoint.id)
    assert (notice.tenant, lost(notice)) == (TENANT, {DeathReason.PERMANENT_FAILURE: 1})
    assert listed(world) == [replace(notice, published_ms=world.clock.now_ms())]


def test_later_ones_of_the_hour_are_counted_into_the_next(world: World, endpoint: Endpoint) -> None:
    die(world)
    world.notify()
    for _ in range(5):
        world.clock.advance(ms=MINUTE_MS)
        die(world, 3)
        world.notify()
    assert len(world.heard) == 1
    world.clock.advance(ms=HOUR_MS)
    world.notify()
    assert [sum(lost(each).values()) for each in world.heard] == [1, 15]
    minutes(world, 130)
    assert len(world.heard) == 2
    assert marks(world) == []
    assert endpoint.id


def test_a_window_without_another_death_ends_in_silence_and_the_next_death_is_told_at_once(
    world: World, endpoint: Endpoint
) -> None:
    die(world)
    minutes(world, 90)
    assert (len(world.heard), marks(world)) == (1, [])
    die(world)
    world.notify()
    assert [sum(lost(each).values()) for each in world.heard] == [1, 1]
    assert endpoint.id


def test_hundreds_of_exhaustions_are_one_publish_per_endpoint_and_window() -> None:
    world = World(WITHOUT_BREAKER)
    endpoints = [world.endpoint(retry_profile=RetryProfile.QUICK) for _ in range(2)]
    world.sender.script = lambda _: FAILS
    world.deliveries(150)
    minutes(world, 200)
    told = Counter(each.endpoint_id for each in world.heard)
    assert told.keys() == {each.id for each in endpoints}
    assert all(count <= 2 for count in told.values()), "one for the first, one for the rest of the window"
    for each in endpoints:
        counted = sum((Counter(lost(n)) for n in world.heard if n.endpoint_id == each.id), Counter())
        assert counted == {DeathReason.ATTEMPTS_EXHAUSTED: 150}


def test_each_endpoint_has_a_notice_of_its_own(world: World) -> None:
    made = {world.endpoint().id for _ in range(3)}
    die(world)
    world.notify()
    assert Counter(each.endpoint_id for each in world.heard) == dict.fromkeys(made, 1)


@pytest.mark.parametrize("change", [{"event_types": ("other",)}, {"state": EndpointState.DELETED}])
def test_what_an_owner_did_is_told_to_nobody(
    world: World, endpoint: Endpoint, change: dict[str, Any]
) -> None:
    world.losing = 99
    world.deliveries(2)
    world.losing = 0
    now = world.now(endpoint)
    then = replace(now, **change).next_to(now, world.clock.now_ms())
    recorder = Recorder(world.clock, world.dice)
    record = recorder.record(BY, Action.ENDPOINT_CHANGED, (TENANT, now.id))
    assert world.usual.endpoints.replace(now, then, record)
    world.ring(lane_of(endpoint))
    world.work_off(for_ms=1_000)
    assert len(world.records_of(keys.DEAD_LETTERS)) == 2
    minutes(world, 5)
    assert world.heard == []
    assert marks(world) == []


def test_a_refused_address_is_told_at_once_though_other_deaths_have_their_window(
    world: World, endpoint: Endpoint
) -> None:
    die(world)
    world.notify()
    world.clock.advance(ms=MINUTE_MS)
    die(world, 4, REFUSED)
    world.notify()
    assert kinds(world) == [NoticeKind.DEAD_LETTERS, NoticeKind.ADDRESS_REFUSED]
    assert lost(world.heard[1]) == {DeathReason.REFUSED: 4}
    world.clock.advance(ms=MINUTE_MS)
    die(world, 4, REFUSED)
    world.notify()
    assert len(world.heard) == 2
    assert endpoint.id


def test_an_endpoint_that_says_it_is_gone_is_told_of_once(world: World, endpoint: Endpoint) -> None:
    die(world, 1, status(410))
    minutes(world, 3)
    assert Counter(kinds(world)) == {NoticeKind.ENDPOINT_GONE: 1, NoticeKind.DEAD_LETTERS: 1}
    world.change(endpoint, state=EndpointState.ENABLED, state_reason="")
    minutes(world, 3)
    assert NoticeKind.RECOVERED not in kinds(world)
    world.sender.script = lambda _: OK
    world.deliveries(1)
    minutes(world, 3)
    assert kinds(world).count(NoticeKind.RECOVERED) == 1
    die(world, 1, status(410))
    minutes(world, 3)
    assert kinds(world).count(NoticeKind.ENDPOINT_GONE) == 2


def test_an_endpoint_its_owner_disables_is_told_to_nobody(world: World, endpoint: Endpoint) -> None:
    world.change(endpoint, state=EndpointState.DISABLED)
    minutes(world, 4)
    assert (world.heard, marks(world)) == ([], [])


def test_an_endpoint_disabled_by_relay_is_told_with_its_reason(world: World, endpoint: Endpoint) -> None:
    world.change(endpoint, state=EndpointState.DISABLED, state_reason="no success for 72 hours")
    minutes(world, 4)
    assert kinds(world) == [NoticeKind.ENDPOINT_DISABLED]
    assert world.heard[0].finding.why == "no success for 72 hours"


def test_what_waited_too_long_at_a_disabled_endpoint_is_told(world: World, endpoint: Endpoint) -> None:
    world.run(lambda it: it.manage.disable(TENANT, endpoint.id, BY), world.usual)
    world.deliveries(3)
    world.clock.advance(ms=KEPT_MS + DAY_MS)
    world.call_endings()
    world.endings_called()
    world.notify()
    assert [lost(each) for each in world.heard] == [{DeathReason.EXPIRED: 3}]


def outage(world: World) -> None:
    """Open the breaker."""
    world.sender.script = lambda _: FAILS
    world.deliveries(20)
    while world.deliver():
        pass


def test_a_breaker_that_is_open_for_a_quarter_of_an_hour_is_told_once_and_so_is_its_recovery(
    world: World, endpoint: Endpoint
) -> None:
    outage(world)
    assert world.gate(endpoint).state is Breaker.OPEN
    opened_ms = world.gate(endpoint).held_from // 1000
    minutes(world, 14)
    assert world.heard == []
    minutes(world, 30)
    assert kinds(world) == [NoticeKind.BREAKER_OPEN]
    assert world.heard[0].finding.since_ms == opened_ms
    world.sender.script = lambda _: OK
    minutes(world, 30)
    assert kinds(world) == [NoticeKind.BREAKER_OPEN, NoticeKind.RECOVERED]
    assert world.heard[1].finding.since_ms == opened_ms
    assert world.gate(endpoint).state is Breaker.CLOSED
    assert marks(world) == []
    check(world)


def test_a_breaker_that_closes_sooner_is_told_to_nobody(world: World, endpoint: Endpoint) -> None:
    outage(world)
    minutes(world, 5)
    world.sender.script = lambda _: OK
    minutes(world, 40)
    assert (world.heard, marks(world)) == ([], [])
    assert world.gate(endpoint).state is Breaker.CLOSED


def test_a_recovery_sums_up_what_died_meanwhile(world: World, endpoint: Endpoint) -> None:
    outage(world)
    minutes(world, 17)
    letters = [each for each in world.owed() if each.lane.endpoint_id == endpoint.id][:3]
    for owed in letters:
        world.usual.settlement.bury([(owed, given_up(owed, DeathReason.EXPIRED, world.clock.now_ms()))])
    world.sender.script = lambda _: OK
    minutes(world, 10)
    (summary,) = [each for each in world.heard if each.finding.kind is NoticeKind.RECOVERED]
    assert lost(summary) == {DeathReason.EXPIRED: 3}


def test_a_new_url_is_no_recovery_until_something_has_arrived(world: World, endpoint: Endpoint) -> None:
    outage(world)
    minutes(world, 17)
    world.sender.script = lambda _: status(503, headers=(("Retry-After", "600"),))
    world.change(endpoint, url="https://receiver.example/new")
    minutes(world, 3)
    assert kinds(world) == [NoticeKind.BREAKER_OPEN]
    world.sender.script = lambda _: OK
    minutes(world, 15)
    assert kinds(world) == [NoticeKind.BREAKER_OPEN, NoticeKind.RECOVERED]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_death_is_told_whichever_write_its_function_dies_at(after: bool) -> None:  # noqa: FBT001 - a parameter
    for death in deaths(2, after=after):
        world = World()
        endpoint = world.endpoint()
        world.sender.script = lambda _: NEVER
        world.deliveries(1)
        world.deliver(death.process(world))
        world.pass_time(TAKE_OVER_MS)
        minutes(world, 5)
        for _ in range(12):
            world.sweep()
            minutes(world, 6)
        died = len(world.records_of(keys.DEAD_LETTERS))
        assert [sum(lost(each).values()) for each in world.heard] == [1], death
        assert died == 1
        check(world)
        assert marks(world) == []
        assert endpoint.id


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_notice_is_lost_at_no_death_and_repeated_once_at_most_under_its_id(after: bool) -> None:  # noqa: FBT001 - a parameter
    repeated = 0
    for death in deaths(3, after=after):
        world = World()
        world.endpoint()
        die(world)
        world.notify(death.process(world))
        minutes(world, 70)
        assert len({each.id for each in world.heard}) == 1
        assert len(world.heard) <= 2
        repeated += len(world.heard) - 1
        (shown,) = listed(world)
        assert shown.published_ms
        assert marks(world) == []
    assert repeated == 1, "the one death between publishing and marking"


def test_two_functions_at_once_publish_once_wherever_the_other_comes_in() -> None:
    reached = True
    number = 0
    while reached:
        number += 1
        world = World()
        for _ in range(2):
            world.endpoint()
        die(world, 3)
        first, second = Process(world), Process(world)
        came = at_call(first, number, partial(world.notify, second))
        world.notify(first)
        minutes(world, 4)
        assert [lost(each) for each in world.heard] == [{DeathReason.PERMANENT_FAILURE: 3}] * 2
        assert len({each.id for each in world.heard}) == 2
        reached = came()
    assert number > 8


def test_a_death_while_an_endpoint_is_looked_at_is_told_all_the_same() -> None:
    reached = True
    number = 0
    while reached:
        number += 1
        world = World()
        world.endpoint()
        die(world)
        process = Process(world)
        came = at_call(process, number, partial(die, world, 2))
        world.notify(process)
        minutes(world, 70)
        assert sum(sum(lost(each).values()) for each in world.heard) == 1 + 2 * came()
        assert marks(world) == []
        reached = came()
    assert number > 5


def test_a_dead_letter_that_becomes_readable_late_is_counted(world: World, endpoint: Endpoint) -> None:
    """Its moment is that of its send, its transaction came after another had counted past that moment."""
    world.sender.script = lambda _: NEVER
    world.deliveries(2)
    process = Process(world)

    def another() -> None:
        world.clock.advance(ms=30_000)
        world.notify()

    def second_death(step: Step) -> bool:
        return step.method == "together" and len(world.records_of(keys.DEAD_LETTERS)) == 1

    meanwhile(process, another, second_death)
    world.deliver(process)
    minutes(world, 70)
    assert sum(sum(lost(each).values()) for each in world.heard) == 2
    assert endpoint.id


def test_a_failing_channel_delays_notices_and_loses_none(world: World) -> None:
    endpoints = [world.endpoint() for _ in range(SILENT_AFTER + 2)]
    die(world)
    process = Process(world)
    process.faults.fail_next(1_000, method="publish")
    for _ in range(180):
        done = world.notify(process)
        assert done is not None
        assert len(done.failures) <= SILENT_AFTER
        world.clock.advance(ms=MINUTE_MS)
    assert world.heard == []
    assert len(listed(world)) == len(endpoints)
    assert all(not each.published_ms for each in listed(world))
    die(world)
    process.faults.clear()
    minutes(world, 4)
    assert {each.id for each in world.heard} == {each.id for each in listed(world)}
    assert len(world.heard) == len({each.id for each in world.heard})
    assert Counter(each.endpoint_id for each in world.heard) == {each.id: 2 for each in endpoints}


def test_a_notice_that_the_channel_always_refuses_keeps_no_other_from_being_published(world: World) -> None:
    endpoints = [world.endpoint() for _ in range(2)]
    die(world)
    process = Process(world)

    def refuse(step: Step) -> None:
        if step.method == "publish" and step.writes[0].endpoint_id == endpoints[0].id:  # type: ignore[attr-defined]  # a notice
            fail()

    process.faults.before = refuse
    for _ in range(5):
        world.notify(process)
        world.clock.advance(ms=MINUTE_MS)
    assert {each.endpoint_id for each in world.heard} == {endpoints[1].id}


def test_a_failing_store_delays_a_notice_at_whichever_call_it_fails() -> None:
    reached = True
    number = 0
    while reached:
        number += 1
        world = World()
        world.endpoint()
        die(world)
        process = Process(world)
        came = at_call(process, number, fail)
        with suppress(Unavailable):
            world.notify(process)
        minutes(world, 6)
        assert len({each.id for each in world.heard}) == 1
        assert len(world.heard) <= 2
        reached = came()


def test_while_one_publishes_others_wait_and_once_it_is_dead_they_do_not(world: World) -> None:
    world.endpoint()
    die(world)
    process = Process(world)
    process.faults.kill_at(2, after=False)
    assert world.notify(process) is None
    (waiting,) = listed(world)
    assert not waiting.published_ms
    world.clock.advance(ms=CLAIM_MS - 1)
    world.notify()
    assert world.heard == []
    world.clock.advance(ms=1)
    world.notify()
    assert [each.id for each in world.heard] == [waiting.id]


def test_a_run_begins_nothing_when_its_function_is_about_to_end(world: World) -> None:
    for _ in range(3):
        world.endpoint()
    die(world)
    process = Process(world)
    process.faults.after = lambda step: (
        world.clock.advance(ms=LIFE_MS + 1) if step.method == "publish" else None
    )
    world.notify(process)
    assert len(world.heard) == 1
    minutes(world, 3)
    assert len(world.heard) == 3


def test_a_gate_made_anew_repeats_nothing(world: World, endpoint: Endpoint) -> None:
    """What was told stands apart from the gate, which may be rebuilt and is then marked."""
    die(world, 2)
    minutes(world, 90)
    record = gates.new_record(10, 20, 8, rules=world.rules) | gates.perhaps_died(world.clock.now_us())
    at = keys.gate(endpoint.tenant, endpoint.id)
    world.records.by_key[at] = {**at.parts, **record}
    minutes(world, 70)
    assert len(world.heard) == 1
    assert marks(world) == []


def test_a_gate_that_is_lost_before_its_owner_was_told_and_rebuilt_is_told(
    world: World, endpoint: Endpoint
) -> None:
    die(world, 2)
    del world.records.by_key[keys.gate(endpoint.tenant, endpoint.id)]
    assert world.notify()
    assert world.heard == []
    world.run(lambda it: it.rebuild.run(), world.usual)
    world.notify()
    assert [lost(each) for each in world.heard] == [{DeathReason.PERMANENT_FAILURE: 2}]


def test_a_mark_of_an_endpoint_that_is_no_more_is_taken_away(world: World, endpoint: Endpoint) -> None:
    die(world)
    world.records.by_key.pop(keys.endpoint(endpoint.tenant, endpoint.id))
    minutes(world, 2)
    assert (world.heard, marks(world)) == ([], [])


def test_what_succeeds_writes_no_mark_and_costs_no_call_more(world: World, endpoint: Endpoint) -> None:
    world.deliveries(5)
    process = Process(world)
    world.deliver(process)
    writes = [write for step in process.faults.steps for write in step.writes]
    assert not [write for write in writes if "alert_until" in repr(write)]
    assert endpoint.id


@pytest.mark.parametrize("given", ["at first", "later", "with new limits"])
def test_an_owner_is_told_a_month_before_a_certificate_expires(world: World, given: str) -> None:
    now = datetime.fromtimestamp(world.clock.now_ms() / 1000, UTC)
    authority = trustme.CA()
    leaf = authority.issue_cert("relay.example", not_before=now, not_after=now + timedelta(days=100))
    pem = leaf.cert_chain_pems[0].bytes().decode()
    auth: Auth[WrappedSecret] = Auth(authorities=pem)
    if given == "at first":
        endpoint = world.endpoint(auth=auth)
    else:
        endpoint = world.endpoint()
        limits = {"limits": replace(endpoint.limits, burst=77)} if given == "with new limits" else {}
        world.change(endpoint, auth=auth, **limits)
    assert len(marks(world)) == 1
    for _ in range(69):
        world.notify()
        world.clock.advance(ms=DAY_MS)
    assert kinds(world) == []
    for _ in range(3):
        world.clock.advance(ms=DAY_MS)
        world.notify()
    assert kinds(world) == [NoticeKind.CERTIFICATE_EXPIRES]
    assert marks(world) == []
    assert [each.endpoint_id for each in listed(world)] == [endpoint.id]
