"""Long ends: what an owner's word or time has ended goes in pages, killed anywhere, and is told before."""

from functools import partial
from itertools import count

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.application.ports import Extent
from chalicelib.domain import ids
from chalicelib.domain.delivery import Status
from chalicelib.domain.ending import DAY_MS, KEPT_MS
from chalicelib.domain.endpoint import Backlog, Endpoint, EndpointState, Limits, Ordering
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.outcome import DeathReason
from tests.fakes.scripted_sender import DIES, Answer, in_turn, status
from tests.unit.application.interruptions import at_call, deaths, meanwhile
from tests.unit.application.invariants import check
from tests.unit.application.process import Process
from tests.unit.application.world import AMPLE, BY, FAILS, MINUTE_MS, OK, TENANT, World, lane_of

MANY = 150
WIDE = Limits(100_000, 100_000, max_concurrency=25)


def disable(world: World, endpoint: Endpoint) -> None:
    world.run(lambda it: it.manage.disable(TENANT, endpoint.id, BY), world.usual)


def enable(world: World, endpoint: Endpoint, backlog: Backlog, from_ms: int = 0) -> None:
    """Enable an endpoint a millisecond after whatever was last."""
    world.clock.advance(ms=1)
    world.run(lambda it: it.manage.enable(TENANT, endpoint.id, (backlog, from_ms), BY), world.usual)


def delete(world: World, endpoint: Endpoint) -> None:
    world.run(lambda it: it.manage.delete(world.now(endpoint), BY), world.usual)


def backlog_of(world: World, endpoint: Endpoint, count: int) -> list[str]:
    """Let deliveries wait for a disabled endpoint."""
    disable(world, endpoint)
    return world.deliveries(count)


def switch(change: str, endpoint: Endpoint, process: Process) -> None:
    """Change an endpoint as a process does that may die of it."""
    manage = process.manage
    match change:
        case "delete":
            manage.delete(manage.get(TENANT, endpoint.id), BY)
        case "disable":
            manage.disable(TENANT, endpoint.id, BY)
        case _:
            manage.enable(TENANT, endpoint.id, (Backlog.SKIP, 0), BY)


def ended(world: World, endpoint: Endpoint, change: str) -> None:
    """Delete an endpoint, or skip what it is owed, and end all of that at once."""
    if change == "delete":
        delete(world, endpoint)
    else:
        disable(world, endpoint)
        enable(world, endpoint, Backlog.SKIP)
    end_all(world)


def settle(world: World) -> None:
    """Let some minutes pass in which every function does its part."""
    for _ in range(4):
        world.clock.advance(ms=MINUTE_MS)
        end_all(world)
        world.sweep()
        world.work_off(for_ms=MINUTE_MS)


def reasons(world: World) -> set[str]:
    return {str(each["reason"]) for each in world.records_of(keys.DEAD_LETTERS)}


def end_all(world: World) -> None:
    """Do what is called for until nothing is, then what the schedule calls for."""
    for _ in range(50):
        world.endings_called()
        world.call_endings()
        if not world.endings:
            return
    raise AssertionError("endings never come to an end")


class TestDisableAndEnable:
    def test_what_a_disabled_endpoint_is_owed_waits_and_is_delivered_when_that_is_chosen(
        self, world: World
    ) -> None:
        endpoint = world.endpoint()
        waiting = backlog_of(world, endpoint, 3)
        world.work_off(for_ms=MINUTE_MS)
        assert (len(world.owed()), world.sender.sent) == (3, [])
        enable(world, endpoint, Backlog.DELIVER)
        world.work_off(for_ms=2 * MINUTE_MS)
        assert [world.outcomes(each) for each in waiting] == [["success"]] * 3
        assert world.now(endpoint).state is EndpointState.ENABLED
        check(world)

    def test_what_is_skipped_is_dead_and_never_sent_and_what_comes_later_is(self, world: World) -> None:
        endpoint = world.endpoint()
        waiting = backlog_of(world, endpoint, MANY)
        enable(world, endpoint, Backlog.SKIP)
        (later,) = world.deliveries(1)
        world.endings_called()
        world.work_off(for_ms=2 * MINUTE_MS)
        assert [world.outcomes(each) for each in waiting] == [["skipped"]] * MANY
        assert world.outcomes(later) == ["success"]
        assert {each.delivery_id for each in world.sender.sent} == {later}
        assert len(world.records_of(keys.DEAD_LETTERS)) == MANY
        check(world)

    def test_who_comes_to_what_is_skipped_before_it_is_ended_sends_nothing(self, world: World) -> None:
        endpoint = world.endpoint()
        waiting = backlog_of(world, endpoint, 15)
        enable(world, endpoint, Backlog.SKIP)
        world.work_off(for_ms=2 * MINUTE_MS)
        assert [world.outcomes(each) for each in waiting] == [["skipped"]] * 15
        assert world.sender.sent == []
        end_all(world)
        check(world)

    def test_it_resumes_from_a_moment(self, world: World) -> None:
        endpoint = world.endpoint()
        early = backlog_of(world, endpoint, 2)
        world.clock.advance(ms=MINUTE_MS)
        moment = world.clock.now_ms()
        late = world.deliveries(2)
        enable(world, endpoint, Backlog.RESUME_FROM, moment)
        end_all(world)
        world.work_off(for_ms=2 * MINUTE_MS)
        assert [world.outcomes(each) for each in early] == [["skipped"]] * 2
        assert [world.outcomes(each) for each in late] == [["success"]] * 2
        check(world)

    def test_what_was_skipped_once_stays_skipped(self, world: World) -> None:
        endpoint = world.endpoint()
        (early,) = backlog_of(world, endpoint, 1)
        enable(world, endpoint, Backlog.SKIP)
        world.purge()
        disable(world, endpoint)
        enable(world, endpoint, Backlog.DELIVER)
        world.work_off(for_ms=2 * MINUTE_MS)
        end_all(world)
        assert world.outcomes(early) == ["skipped"]
        assert world.sender.sent == []

    def test_a_moment_that_is_still_to_come_is_refused(self, world: World) -> None:
        endpoint = world.endpoint()
        disable(world, endpoint)
        with pytest.raises(RelayError, match=f"^{ErrorCode.FIELD_INVALID}"):
            enable(world, endpoint, Backlog.RESUME_FROM, world.clock.now_ms() + 2)
        assert world.now(endpoint).state is EndpointState.DISABLED

    def test_an_enabled_endpoint_has_nothing_to_choose_for(self, world: World) -> None:
        endpoint = world.endpoint()
        with pytest.raises(RelayError, match=f"^{ErrorCode.ENDPOINT_ENABLED}"):
            enable(world, endpoint, Backlog.SKIP)
        assert world.records_of(keys.ENDINGS) == []

    def test_disabling_twice_is_disabling_once(self, world: World) -> None:
        endpoint = world.endpoint()
        disable(world, endpoint)
        first = world.now(endpoint)
        world.clock.advance(ms=1)
        disable(world, endpoint)
        assert world.now(endpoint) == first
        assert (first.state, first.state_reason) == (EndpointState.DISABLED, "")

    def test_a_deleted_endpoint_is_neither(self, world: World) -> None:
        endpoint = world.endpoint()
        delete(world, endpoint)
        with pytest.raises(RelayError, match=f"^{ErrorCode.ENDPOINT_DELETED}"):
            disable(world, endpoint)
        with pytest.raises(RelayError, match=f"^{ErrorCode.ENDPOINT_DELETED}"):
            enable(world, endpoint, Backlog.DELIVER)

    def test_a_switch_goes_over_what_somebody_else_changed_meanwhile(self, world: World) -> None:
        endpoint = world.endpoint()
        process = Process(world)
        meanwhile(
            process, lambda: world.change(endpoint, description="new"), lambda step: step.method == "together"
        )
        world.run(lambda it: it.manage.disable(TENANT, endpoint.id, BY), process)
        now = world.now(endpoint)
        assert (now.state, now.description) == (EndpointState.DISABLED, "new")


class TestReads:
    def told(self, world: World, delivery: str) -> tuple[Status, DeathReason | None, int]:
        told = world.usual.questions.delivery(TENANT, delivery)
        assert told.hold is None
        return told.status, told.ending, told.next_ms

    def test_a_read_says_how_a_delivery_will_end_until_it_has(self, world: World) -> None:
        endpoint = world.endpoint()
        (first,) = backlog_of(world, endpoint, 1)
        assert world.usual.questions.delivery(TENANT, first).ending is None
        enable(world, endpoint, Backlog.SKIP)
        assert self.told(world, first) == (Status.PENDING, DeathReason.SKIPPED, 0)
        (listed,) = world.usual.questions.deliveries(TENANT, endpoint.id, Extent("", 10)).items
        assert listed.ending is DeathReason.SKIPPED
        end_all(world)
        assert self.told(world, first) == (Status.DEAD, None, 0)

    def test_a_read_says_so_of_a_deleted_endpoint_in_every_list(self, world: World) -> None:
        endpoint = world.endpoint()
        posted = world.post()
        delete(world, endpoint)
        (delivery,) = posted["delivery_ids"]
        assert self.told(world, delivery) == (Status.PENDING, DeathReason.ENDPOINT_DELETED, 0)
        (listed,) = world.usual.questions.deliveries_of_event(TENANT, posted["event_id"], "", 10).items
        assert listed.ending is DeathReason.ENDPOINT_DELETED

    def test_a_read_says_so_of_what_waited_too_long(self, world: World) -> None:
        endpoint = world.endpoint()
        (old,) = backlog_of(world, endpoint, 1)
        world.clock.advance(ms=KEPT_MS)
        assert self.told(world, old) == (Status.PENDING, DeathReason.EXPIRED, 0)


class TestDeletion:
    def test_all_that_a_deleted_endpoint_is_owed_ends_whichever_lane_it_is_in(self, world: World) -> None:
        endpoint = world.endpoint(limits=WIDE)
        waiting = backlog_of(world, endpoint, MANY)
        delete(world, endpoint)
        assert world.endings_called() == MANY
        assert [world.outcomes(each) for each in waiting] == [["endpoint_deleted"]] * MANY
        assert world.records_of(keys.ENDINGS)[1:] == []
        world.purge()
        check(world)

    def test_what_a_lowered_cap_left_in_a_lane_ends_too(self, world: World) -> None:
        endpoint = world.endpoint(limits=WIDE)
        waiting = backlog_of(world, endpoint, 30)
        world.change(endpoint, limits=AMPLE)
        delete(world, endpoint)
        end_all(world)
        assert [world.outcomes(each) for each in waiting] == [["endpoint_deleted"]] * 30

    def test_an_ordered_line_ends_too(self, world: World) -> None:
        endpoint = world.endpoint(ordering=Ordering.ENDPOINT)
        waiting = backlog_of(world, endpoint, 40)
        delete(world, endpoint)
        end_all(world)
        assert [world.outcomes(each) for each in waiting] == [["endpoint_deleted"]] * 40
        check(world)

    def test_a_call_that_is_lost_is_made_again_by_the_schedule(self, world: World) -> None:
        endpoint = world.endpoint()
        backlog_of(world, endpoint, 2)
        delete(world, endpoint)
        world.purge()
        world.call_endings()
        world.endings_called()
        assert reasons(world) == {"endpoint_deleted"}

    def test_no_neighbour_loses_anything(self, world: World) -> None:
        endpoint, neighbour = world.endpoint(), world.endpoint()
        waiting = backlog_of(world, endpoint, 40)
        delete(world, endpoint)
        end_all(world)
        world.work_off(for_ms=MINUTE_MS)
        assert len(world.sender.sent) == len(waiting) // 2
        tags = {ids.tag_of(each.delivery_id) for each in world.sender.sent}
        assert tags == {ids.endpoint_tag(neighbour.id)}
        check(world)


class TestWhoeverIsSending:
    def test_what_is_being_sent_is_left_to_its_sender(self, world: World) -> None:
        endpoint = world.endpoint()
        inflight = world.deliveries(3)
        process = Process(world)

        def delete_and_end() -> None:
            delete(world, endpoint)
            end_all(world)
            assert world.records_of(keys.DEAD_LETTERS) == []

        meanwhile(process, delete_and_end, lambda step: step.method == "each" and _inserts(step.writes))
        world.deliver(process)
        assert [world.outcomes(each) for each in inflight] == [["success"]] * 3
        check(world)

    def test_what_a_dead_holder_was_sending_is_told_of_before_it_ends(self, world: World) -> None:
        endpoint = world.endpoint()
        deliveries = world.deliveries(3)
        self.die_while_sending(world)
        world.clock.advance(ms=MINUTE_MS)
        delete(world, endpoint)
        world.endings_called()
        assert [world.outcomes(each) for each in deliveries] == [["unknown", "endpoint_deleted"]] * 3
        check(world)

    def test_what_is_still_under_a_lease_as_all_else_ends_is_ended_by_who_comes_next(
        self, world: World
    ) -> None:
        endpoint = world.endpoint()
        (delivery,) = world.deliveries(1)
        self.die_while_sending(world)
        delete(world, endpoint)
        end_all(world)
        assert world.outcomes(delivery) == []
        for _ in range(3):
            world.clock.advance(ms=MINUTE_MS)
            world.sweep()
            world.work_off(for_ms=MINUTE_MS)
        assert world.outcomes(delivery) == ["unknown", "endpoint_deleted"]
        check(world)

    def die_while_sending(self, world: World) -> None:
        process = Process(world)
        process.faults.kill_at(2, after=False)
        world.deliver(process)
        assert process.faults.killed
        world.purge()


def _inserts(writes: tuple[object, ...]) -> bool:
    return any(type(each).__name__ == "Insert" for each in writes)


class TestDeaths:
    @pytest.mark.parametrize("after", [False, True])
    def test_killed_at_any_write_it_goes_on(self, after: bool) -> None:  # noqa: FBT001 - which side of the write
        for death in deaths(4, after=after):
            world = World()
            endpoint = world.endpoint(limits=WIDE)
            waiting = backlog_of(world, endpoint, 80)
            enable(world, endpoint, Backlog.SKIP)
            world.end_owed(TENANT, endpoint.id, death.process(world))
            end_all(world)
            world.work_off(for_ms=2 * MINUTE_MS)
            assert [world.outcomes(each) for each in waiting] == [["skipped"]] * 80
            assert world.sender.sent == []
            check(world)

    @pytest.mark.parametrize("after", [False, True])
    @pytest.mark.parametrize("change", ["delete", "disable", "enable"])
    def test_a_switch_that_dies_is_made_or_is_not(self, change: str, after: bool) -> None:  # noqa: FBT001 - as above
        for death in deaths(1, after=after):
            world = World()
            endpoint = world.endpoint()
            waiting = backlog_of(world, endpoint, 2)
            if change == "disable":
                enable(world, endpoint, Backlog.SKIP)
            world.clock.advance(ms=1)
            world.run(partial(switch, change, endpoint), death.process(world))
            end_all(world)
            if world.now(endpoint).state is EndpointState.DISABLED:
                enable(world, endpoint, Backlog.DELIVER)
            world.work_off(for_ms=3 * MINUTE_MS)
            for _ in range(3):
                world.clock.advance(ms=MINUTE_MS)
                world.sweep()
                world.work_off(for_ms=MINUTE_MS)
            ends = {tuple(world.outcomes(each)) for each in waiting}
            assert len(ends) == 1
            assert world.owed() == []
            check(world)

    def test_two_at_once_end_each_delivery_once(self) -> None:
        for call in count(1):
            world = World()
            endpoint = world.endpoint()
            waiting = backlog_of(world, endpoint, 40)
            delete(world, endpoint)
            first, second = Process(world), Process(world)
            came = at_call(first, call, partial(world.end_owed, TENANT, endpoint.id, second))
            world.end_owed(TENANT, endpoint.id, first)
            end_all(world)
            assert [world.outcomes(each) for each in waiting] == [["endpoint_deleted"]] * 40
            check(world)
            if not came():
                assert call > 10
                return

    @pytest.mark.parametrize("dies_at", [None, 2, 3, 4, 5])
    def test_a_sender_that_comes_between_any_two_calls_of_it_is_not_contradicted(
        self, dies_at: int | None
    ) -> None:
        for call in count(1):
            world = World()
            endpoint = world.endpoint()
            deliveries = world.deliveries(12)
            delete(world, endpoint)
            ender, sender = Process(world), Process(world)
            if dies_at:
                sender.faults.kill_at(dies_at, after=False)
            came = at_call(ender, call, partial(world.deliver, sender))
            world.end_owed(TENANT, endpoint.id, ender)
            settle(world)
            assert {world.outcomes(each)[-1] for each in deliveries} == {"endpoint_deleted"}
            check(world)
            if not came():
                return

    @pytest.mark.parametrize("change", ["delete", "skip"])
    @pytest.mark.parametrize("answer", [OK, FAILS, DIES])
    @pytest.mark.parametrize("after", [False, True])
    def test_one_that_comes_between_any_two_calls_of_a_sender_contradicts_nobody(
        self,
        change: str,
        answer: Answer,
        after: bool,  # noqa: FBT001 - which side of the call
    ) -> None:
        """What arrived is no dead letter, and what is one was not sent after that."""
        for call in count(1):
            world = World()
            endpoint = world.endpoint()
            world.sender.script = in_turn([answer, OK])
            deliveries = world.deliveries(12)
            sender = Process(world)
            came = at_call(sender, call, partial(ended, world, endpoint, change), after=after)
            world.deliver(sender)
            world.sender.script = lambda _: OK
            settle(world)
            if came():
                assert world.owed() == []
                assert {world.outcomes(each)[-1] for each in deliveries} <= {
                    "success",
                    "skipped",
                    "endpoint_deleted",
                }
            check(world)
            if not came():
                return

    def test_when_time_runs_out_it_calls_itself(self, world: World) -> None:
        endpoint = world.endpoint()
        waiting = backlog_of(world, endpoint, MANY)
        delete(world, endpoint)
        world.endings.clear()
        left = iter([60_000, 60_000, *[5_000] * 100])
        ended = world.run(lambda it: it.end_owed.run(TENANT, endpoint.id, lambda: next(left)))
        assert ended is not None
        assert 0 < ended < MANY
        assert world.endings == [(TENANT, endpoint.id)]
        end_all(world)
        assert [world.outcomes(each) for each in waiting] == [["endpoint_deleted"]] * MANY


class TestWhatArrived:
    def test_an_arrival_whose_row_is_still_owed_is_finished_and_not_ended(self) -> None:
        for death in deaths(2):
            world = World()
            endpoint = world.endpoint()
            (delivery,) = world.deliveries(1)
            world.deliver(death.process(world))
            disable(world, endpoint)
            world.clock.advance(ms=MINUTE_MS)
            enable(world, endpoint, Backlog.SKIP)
            world.purge()
            world.call_endings()
            end_all(world)
            told = world.outcomes(delivery)
            arrived = "success" in told
            assert told[-1] == ("success" if arrived else "skipped")
            assert world.owed() == []
            check(world)


class TestAge:
    def test_what_waits_for_a_disabled_endpoint_is_kept_for_ninety_days(self, world: World) -> None:
        endpoint = world.endpoint()
        first = world.deliveries(1)
        world.purge()
        world.clock.advance(ms=30 * DAY_MS)
        disable(world, endpoint)
        (late,) = world.deliveries(1)
        world.clock.advance(ms=KEPT_MS - 1_000)
        end_all(world)
        assert len(world.owed()) == 2
        world.clock.advance(ms=1_000)
        end_all(world)
        assert [world.outcomes(each) for each in (*first, late)] == [["expired"], ["expired"]]
        assert world.sender.sent == []

    def test_what_came_later_ends_later(self, world: World) -> None:
        endpoint = world.endpoint()
        disable(world, endpoint)
        (early,) = world.deliveries(1)
        world.clock.advance(ms=10 * DAY_MS)
        (late,) = world.deliveries(1)
        world.clock.advance(ms=KEPT_MS - 10 * DAY_MS)
        end_all(world)
        assert (world.outcomes(early), world.outcomes(late)) == (["expired"], [])
        for _ in range(11):
            world.clock.advance(ms=DAY_MS)
            world.call_endings()
            end_all(world)
        assert world.outcomes(late) == ["expired"]

    def test_enabled_in_time_nothing_expires(self, world: World) -> None:
        endpoint = world.endpoint()
        (delivery,) = backlog_of(world, endpoint, 1)
        world.clock.advance(ms=KEPT_MS // 2)
        enable(world, endpoint, Backlog.DELIVER)
        world.purge()
        world.clock.advance(ms=KEPT_MS)
        end_all(world)
        assert world.records_of(keys.ENDINGS) == []
        world.sweep()
        assert world.outcomes(delivery) == []
        assert len(world.owed()) == 1

    def test_disabled_again_it_begins_anew(self, world: World) -> None:
        endpoint = world.endpoint()
        (delivery,) = backlog_of(world, endpoint, 1)
        world.clock.advance(ms=KEPT_MS - DAY_MS)
        enable(world, endpoint, Backlog.DELIVER)
        disable(world, endpoint)
        world.clock.advance(ms=2 * DAY_MS)
        end_all(world)
        assert world.outcomes(delivery) == []

    def test_enabled_while_it_is_being_ended_the_rest_is_delivered(self) -> None:
        for call in count(1):
            world = World()
            endpoint = world.endpoint()
            waiting = backlog_of(world, endpoint, 40)
            world.clock.advance(ms=KEPT_MS)
            ender = Process(world)
            came = at_call(ender, call, partial(enable, world, endpoint, Backlog.DELIVER))
            world.end_owed(TENANT, endpoint.id, ender)
            if not came():
                return
            left = len(world.owed())
            world.work_off(for_ms=2 * MINUTE_MS)
            told = [world.outcomes(each) for each in waiting]
            assert (told.count(["success"]), told.count(["expired"])) == (left, 40 - left)
            check(world)


class TestBacklog:
    def test_it_says_how_much_since_when_and_for_how_long(self, world: World) -> None:
        endpoint = world.endpoint(limits=Limits(rate_per_second=10, burst=20, max_concurrency=25))
        disable(world, endpoint)
        world.clock.advance(ms=MINUTE_MS)
        world.deliveries(1)
        since_ms = world.clock.now_ms()
        world.clock.advance(ms=MINUTE_MS)
        world.deliveries(44)
        found = world.usual.backlog.of(TENANT, endpoint.id)
        assert (found.size, found.complete, found.drain_s) == (45, True, 5)
        assert found.oldest_ms == since_ms

    def test_nothing_waits_since_never(self, world: World) -> None:
        endpoint = world.endpoint()
        found = world.usual.backlog.of(TENANT, endpoint.id)
        assert (found.size, found.complete, found.oldest_ms, found.drain_s) == (0, True, 0, 0)

    def test_what_is_bound_to_end_unsent_is_not_counted(self, world: World) -> None:
        endpoint = world.endpoint()
        backlog_of(world, endpoint, 5)
        enable(world, endpoint, Backlog.SKIP)
        disable(world, endpoint)
        world.deliveries(2)
        assert world.usual.backlog.of(TENANT, endpoint.id).size == 2

    def test_of_nobody_s_endpoint_nothing_is_said(self, world: World) -> None:
        endpoint = world.endpoint()
        for tenant, name in (("other", endpoint.id), (TENANT, "ep_1"), (TENANT, lane_of(endpoint).name)):
            with pytest.raises(RelayError, match=f"^{ErrorCode.NOT_FOUND}"):
                world.usual.backlog.of(tenant, name)


def test_f070_a_410_disables_at_once_and_what_waits_is_kept_for_the_owner_to_choose(world: World) -> None:
    endpoint = world.endpoint()
    world.sender.script = in_turn([status(410), OK])
    (gone,) = world.deliveries(1)
    world.work_off()
    pending = world.deliveries(20)
    world.work_off(for_ms=MINUTE_MS)
    assert world.outcomes(gone) == ["permanent", "permanent_failure"]
    assert world.now(endpoint).state is EndpointState.DISABLED
    assert "410" in world.now(endpoint).state_reason
    assert (len(world.sender.sent), len(world.owed())) == (1, 20)
    assert world.usual.backlog.of(TENANT, endpoint.id).size == 20
    enable(world, endpoint, Backlog.DELIVER)
    assert world.now(endpoint).state_reason == ""
    world.work_off(for_ms=2 * MINUTE_MS)
    assert [world.outcomes(each) for each in pending] == [["success"]] * 20


def test_f070_a_404_disables_nothing(world: World) -> None:
    endpoint = world.endpoint()
    world.sender.script = in_turn([status(404), OK])
    first, second = world.deliveries(2)
    world.work_off(for_ms=MINUTE_MS)
    assert sorted(world.outcomes(each)[-1] for each in (first, second)) == ["permanent_failure", "success"]
    assert world.now(endpoint).state is EndpointState.ENABLED
