"""Disabling what has failed for days, once, whatever the count jumps to, whoever dies; and hours of stats."""

from dataclasses import replace
from functools import partial
from itertools import count

import pytest

from chalicelib.adapters.dynamodb import keys, rows
from chalicelib.domain import gate as gates
from chalicelib.domain.endpoint import Backlog, Endpoint, EndpointState
from chalicelib.domain.gate import Tally
from chalicelib.domain.histogram import bucket_of
from chalicelib.domain.notice import NoticeKind
from tests.fakes.scripted_sender import in_turn, status
from tests.unit.application.interruptions import at_call, deaths
from tests.unit.application.invariants import check
from tests.unit.application.process import Process
from tests.unit.application.world import BY, FAILS, HOUR_MS, MINUTE_MS, OK, TENANT, World

DAY_MS = 24 * HOUR_MS
REFUSES = status(401)


def fail_for(world: World, ms: int, every_ms: int = 6 * HOUR_MS) -> None:
    """Post an event now and then for a while, to an endpoint that takes none."""
    until_ms = world.clock.now_ms() + ms
    while world.clock.now_ms() < until_ms:
        world.post()
        world.pass_time(min(every_ms, until_ms - world.clock.now_ms()))


def failed_nearly_long_enough(world: World) -> Endpoint:
    """Give an endpoint that the next failure disables."""
    endpoint = world.endpoint()
    world.sender.script = lambda _: REFUSES
    for _ in range(12):
        world.post()
        world.work_off()
    world.clock.advance(ms=3 * DAY_MS)
    return endpoint


def times_disabled(world: World, endpoint: Endpoint) -> int:
    """Count how often an endpoint was disabled: nothing else has changed it."""
    return world.now(endpoint).version - endpoint.version


class TestF071:
    def test_f071_it_is_not_eager(self, world: World) -> None:
        endpoint = world.endpoint()
        world.sender.script = in_turn([FAILS, OK])
        world.post()
        world.pass_time(HOUR_MS)
        assert world.now(endpoint).state is EndpointState.ENABLED
        world.sender.script = lambda _: REFUSES
        fail_for(world, 2 * HOUR_MS, 5 * MINUTE_MS)
        assert world.now(endpoint).state is EndpointState.ENABLED

    def test_f071_after_days_without_a_success_it_is_disabled_and_what_waits_is_kept(
        self, world: World
    ) -> None:
        endpoint = world.endpoint()
        world.sender.script = lambda _: REFUSES
        fail_for(world, 3 * DAY_MS - HOUR_MS)
        assert world.now(endpoint).state is EndpointState.ENABLED
        fail_for(world, 3 * DAY_MS)
        off = world.now(endpoint)
        assert off.state is EndpointState.DISABLED
        assert "no attempt has succeeded since" in off.state_reason
        assert times_disabled(world, endpoint) == 1
        sent = len(world.sender.sent)
        assert len(world.owed()) > 5
        world.pass_time(DAY_MS)
        assert len(world.sender.sent) == sent

    def test_f071_enabled_again_it_gets_what_it_missed_and_has_three_days_anew(self, world: World) -> None:
        endpoint = world.endpoint()
        world.sender.script = lambda _: REFUSES
        fail_for(world, 4 * DAY_MS)
        missed = [each.delivery_id for each in world.owed()]
        assert missed
        world.run(lambda it: it.manage.enable(TENANT, endpoint.id, (Backlog.DELIVER, 0), BY), world.usual)
        world.post()
        world.sender.script = in_turn([REFUSES, OK])
        world.pass_time(2 * MINUTE_MS)
        assert world.now(endpoint).state is EndpointState.ENABLED
        told = [world.outcomes(each)[-1] for each in missed]
        assert sorted(set(told)) in (["permanent_failure", "success"], ["success"])
        check(world)

    def test_f071_its_owner_is_told_outside_it(self, world: World) -> None:
        endpoint = failed_nearly_long_enough(world)
        world.notify()
        world.heard.clear()
        world.post()
        world.work_off()
        world.clock.advance(ms=MINUTE_MS)
        world.notify()
        told = {each.finding.kind: each for each in world.heard}
        assert told[NoticeKind.ENDPOINT_DISABLED].finding.why == world.now(endpoint).state_reason


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_f068_six_redirects_disable_nothing(world: World, code: int) -> None:
    endpoint = world.endpoint()
    moved = status(code, headers=(("Location", "https://elsewhere.example/"),))
    world.sender.script = lambda _: moved
    world.deliveries(6)
    world.work_off(for_ms=HOUR_MS)
    assert len(world.sender.sent) >= 6
    assert {each.request.url for each in world.sender.sent} == {endpoint.url}
    assert world.now(endpoint).state is EndpointState.ENABLED


class TestOnce:
    def test_a_count_that_jumps_over_the_limit_disables_once(self, world: World) -> None:
        endpoint = failed_nearly_long_enough(world)
        world.deliveries(40)
        world.work_off(for_ms=MINUTE_MS)
        assert times_disabled(world, endpoint) == 1
        assert world.now(endpoint).state is EndpointState.DISABLED
        check(world)

    @pytest.mark.parametrize("after", [False, True])
    def test_whoever_dies_of_it_it_is_disabled_once_by_the_next_failure(self, after: bool) -> None:  # noqa: FBT001 - which side of the write
        for death in deaths(4, after=after):
            world = World()
            endpoint = failed_nearly_long_enough(world)
            world.post()
            world.deliver(death.process(world))
            for _ in range(4):
                world.clock.advance(ms=MINUTE_MS)
                world.sweep()
                world.work_off(for_ms=MINUTE_MS)
                if world.now(endpoint).state is EndpointState.ENABLED:
                    world.post()
            assert world.now(endpoint).state is EndpointState.DISABLED
            assert times_disabled(world, endpoint) == 1
            check(world)

    def test_two_that_find_it_at_once_disable_it_once(self) -> None:
        for call in count(1):
            world = World()
            endpoint = failed_nearly_long_enough(world)
            world.post()
            first, second = Process(world), Process(world)

            def another(on: World = world, process: Process = second) -> None:
                on.post()
                on.purge()
                on.visit(on.owed()[-1].lane, process)

            came = at_call(first, call, another)
            world.deliver(first)
            world.work_off(for_ms=2 * MINUTE_MS)
            assert times_disabled(world, endpoint) == 1
            check(world)
            if not came():
                return

    @pytest.mark.parametrize("change", ["url", "delete"])
    def test_what_its_owner_does_meanwhile_is_not_undone(self, change: str) -> None:
        for call in count(1):
            world = World()
            endpoint = failed_nearly_long_enough(world)
            world.post()
            process = Process(world)
            came = at_call(process, call, partial(meanwhile, world, endpoint, change))
            world.deliver(process)
            now = world.now(endpoint)
            if not came():
                return
            if change == "delete":
                assert now.state is EndpointState.DELETED
            elif now.state is EndpointState.DISABLED:
                assert times_disabled(world, endpoint) == 2, "it was disabled before it had a new URL"
                gate = world.gate(endpoint)
                assert gate.off_from <= now.state_ms * 1000
            check(world)

    def test_it_can_be_switched_off(self) -> None:
        world = World(rules=replace(World().rules, auto_disable=False))
        endpoint = failed_nearly_long_enough(world)
        world.post()
        world.work_off()
        assert world.now(endpoint).state is EndpointState.ENABLED


def meanwhile(world: World, endpoint: Endpoint, change: str) -> None:
    """Change or delete an endpoint, unless that has been done to it already."""
    now = world.now(endpoint)
    if change == "delete":
        world.run(lambda it: it.manage.delete(now, BY), Process(world))
    else:
        new = replace(now, url="https://receiver.example/moved")
        world.run(lambda it: it.manage.change(now, new, BY), Process(world))


class TestStats:
    def tallies(self, world: World, endpoint: Endpoint) -> dict[int, Tally]:
        found = world.usual.questions.hours(TENANT, endpoint.id, 9_999_999, 100).items
        return {each.hour: each for each in found}

    def test_hours_tell_what_was_sent_in_them_newest_first(self, world: World) -> None:
        endpoint = world.endpoint()
        hour = world.clock.now_ms() // HOUR_MS
        world.sender.script = in_turn([OK, OK, REFUSES, OK])
        world.deliveries(4)
        world.work_off()
        took = bucket_of(OK.took_ms)
        told = Tally(hour, 4, 1, 0, {took: 4}, {0: 4})
        assert self.tallies(world, endpoint) == {hour: told}
        assert world.records_of(keys.STATS) == []
        world.clock.advance(ms=2 * HOUR_MS)
        for _ in range(2):
            world.post()
            world.work_off()
        assert [rows.tally_of(each) for each in world.records_of(keys.STATS)] == [told]
        found = world.usual.questions.hours(TENANT, endpoint.id, 9_999_999, 100).items
        assert found == (Tally(hour + 2, 2, 0, 0, {took: 2}, {0: 2}), told)

    def test_a_page_ends_where_the_next_begins(self, world: World) -> None:
        endpoint = world.endpoint()
        for _ in range(5):
            world.post()
            world.work_off()
            world.clock.advance(ms=HOUR_MS)
        first = world.usual.questions.hours(TENANT, endpoint.id, 9_999_999, 2)
        rest = world.usual.questions.hours(TENANT, endpoint.id, int(first.after), 3)
        hours = [each.hour for each in (*first.items, *rest.items)]
        assert hours == sorted(set(hours), reverse=True)
        assert (len(hours), rest.after) == (5, "")

    @pytest.mark.parametrize("after", [False, True])
    def test_whoever_dies_as_an_hour_ends_it_is_told_once_and_whole(self, after: bool) -> None:  # noqa: FBT001 - which side of the write
        for death in deaths(3, after=after):
            world = World()
            endpoint = world.endpoint()
            world.deliveries(12)
            world.work_off()
            world.clock.advance(ms=HOUR_MS)
            world.post()
            world.work_off()
            world.post()
            world.deliver(death.process(world))
            for _ in range(3):
                world.clock.advance(ms=MINUTE_MS)
                world.sweep()
                world.work_off(for_ms=MINUTE_MS)
            gate = world.gate(endpoint)
            found = self.tallies(world, endpoint)
            assert found[min(found)].attempts == 12
            assert sum(each.attempts for each in found.values()) == gate.sent
            assert gates.this_hour(gate, world.clock.now_us()) == found[max(found)]
            check(world)
