"""Long ends: each page and the cursor behind it in one transaction, on what was read of the endpoint."""

from dataclasses import replace

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.counting import DynamoCounters
from chalicelib.adapters.dynamodb.endings import DynamoEndings
from chalicelib.adapters.dynamodb.records import Span
from chalicelib.application.counting import Counting
from chalicelib.application.end_owed import EndOwed
from chalicelib.application.ports import Advanced
from chalicelib.domain import counts, metrics
from chalicelib.domain.delivery import Dead, Owed, given_up
from chalicelib.domain.ending import KEPT_MS, Cause, Ending
from chalicelib.domain.endpoint import Endpoint, EndpointState
from chalicelib.domain.outcome import DeathReason
from tests.contract.given import (
    NOW_MS,
    NOW_S,
    TENANT,
    Stores,
    capture,
    endpoint,
    event,
    lane_of,
    posted,
    without_moto,
)
from tests.fakes.fixed_clock import FixedClock
from tests.fakes.memory_bells import MemoryBells


@pytest.fixture
def endings(stores: Stores) -> DynamoEndings:
    return DynamoEndings(stores.tables)


def deleted(stores: Stores, old: Endpoint) -> Endpoint:
    gone = replace(old, state=EndpointState.DELETED).next_to(old, NOW_MS)
    assert stores.endpoints.replace(old, gone)
    return gone


def created(stores: Stores) -> Endpoint:
    made = endpoint()
    stores.endpoints.create(made)
    return made


def end_of(owed: Owed) -> tuple[Owed, Dead]:
    return owed, given_up(owed, DeathReason.ENDPOINT_DELETED, NOW_MS)


def dead_letters(stores: Stores, of: Endpoint) -> list[str]:
    partition = keys.endpoint_partition(of.tenant, of.id)
    stretch = stores.tables.query(keys.DEAD_LETTERS, partition, Span(), 1_000)
    return [str(each["reason"]) for each in stretch.records]


class TestWhatBeginsOne:
    def test_a_deletion_does_with_the_change(self, stores: Stores, endings: DynamoEndings) -> None:
        gone = deleted(stores, created(stores))
        assert endings.of(TENANT, gone.id) == [Ending(TENANT, gone.id, Cause.OWNER, gone.version)]
        assert list(endings.waiting()) == endings.of(TENANT, gone.id)

    def test_what_is_skipped_does_and_an_enabling_alone_does_not(
        self, stores: Stores, endings: DynamoEndings
    ) -> None:
        made = created(stores)
        off = made.disabled(NOW_MS)
        assert stores.endpoints.replace(made, off)
        (aging,) = endings.of(TENANT, made.id)
        assert (aging.cause, aging.due_ms) == (Cause.AGE, NOW_MS + KEPT_MS)
        on = off.enabled(NOW_MS + 1)
        assert stores.endpoints.replace(off, on)
        assert endings.of(TENANT, made.id) == [aging]
        again = on.disabled(NOW_MS + 2)
        assert stores.endpoints.replace(on, again)
        assert stores.endpoints.replace(again, again.enabled(NOW_MS + 3, NOW_MS + 3))
        causes = {each.cause: each.due_ms for each in endings.of(TENANT, made.id)}
        assert causes == {Cause.AGE: NOW_MS + 2 + KEPT_MS, Cause.OWNER: 0}
        found = stores.endpoints.get(TENANT, made.id)
        assert found is not None
        assert (found.skip_before_ms, found.state) == (NOW_MS + 3, EndpointState.ENABLED)

    def test_a_change_that_is_refused_begins_none(self, stores: Stores, endings: DynamoEndings) -> None:
        made = created(stores)
        newer = replace(made, description="new").next_to(made, NOW_MS)
        assert stores.endpoints.replace(made, newer)
        assert not stores.endpoints.replace(made, made.disabled(NOW_MS))
        assert endings.of(TENANT, made.id) == []

    def test_one_of_another_endpoint_or_tenant_is_not_read(
        self, stores: Stores, endings: DynamoEndings
    ) -> None:
        gone = deleted(stores, created(stores))
        assert endings.of(TENANT, endpoint(1).id) == []
        assert endings.of("other", gone.id) == []


class TestPages:
    def test_a_page_begins_behind_a_place(self, stores: Stores, endings: DynamoEndings) -> None:
        made = created(stores)
        owed = [posted(stores, number, made, NOW_MS + number) for number in range(5)]
        lane = lane_of(made)
        assert endings.page(lane, "", 2) == owed[:2]
        assert endings.page(lane, owed[1].place, 2) == owed[2:4]
        assert endings.page(lane, owed[4].place, 2) == []

    def test_as_many_ends_fit_as_a_transaction_holds(self, stores: Stores, endings: DynamoEndings) -> None:
        made = created(stores)
        captures = [capture(event(number, at_ms=NOW_MS + number), [made]) for number in range(50)]
        stores.capturing.commit(captures, NOW_S)
        ends = [end_of(each) for each in endings.page(lane_of(made), "", 50)]
        gone = deleted(stores, made)
        (ending,) = endings.of(TENANT, made.id)
        fitting = ends[: endings.fitting(ends)]
        assert 20 < len(fitting) < len(ends)
        assert endings.advance(ending, None, fitting, gone) is Advanced.MADE
        assert dead_letters(stores, made) == ["endpoint_deleted"] * len(fitting)


class TestAdvance:
    def test_ends_and_cursor_go_together(self, stores: Stores, endings: DynamoEndings) -> None:
        made = created(stores)
        owed = posted(stores, 1, made)
        gone = deleted(stores, made)
        (ending,) = endings.of(TENANT, made.id)
        then = replace(ending, cursor="0|somewhere")
        assert endings.advance(ending, then, [end_of(owed)], gone) is Advanced.MADE
        assert endings.of(TENANT, made.id) == [then]
        assert stores.work.peek(owed.lane, 5) == []
        assert dead_letters(stores, made) == ["endpoint_deleted"]
        assert endings.advance(then, None, [], gone) is Advanced.MADE
        assert endings.of(TENANT, made.id) == []

    def test_whoever_comes_second_is_told_so_and_ends_nothing(
        self, stores: Stores, endings: DynamoEndings
    ) -> None:
        made = created(stores)
        first, second = posted(stores, 1, made), posted(stores, 2, made)
        gone = deleted(stores, made)
        (ending,) = endings.of(TENANT, made.id)
        endings.advance(ending, replace(ending, cursor="0|a"), [end_of(first)], gone)
        assert endings.advance(ending, None, [end_of(second)], gone) is Advanced.OVERTAKEN
        assert stores.work.peek(second.lane, 5) == [second]

    def test_one_begun_anew_is_not_moved_on_by_who_worked_on_the_old(
        self, stores: Stores, endings: DynamoEndings
    ) -> None:
        made = created(stores)
        first = made.enabled(NOW_MS, NOW_MS)
        assert stores.endpoints.replace(made, first)
        (old,) = endings.of(TENANT, made.id)
        second = first.enabled(NOW_MS + 1, NOW_MS + 1)
        assert stores.endpoints.replace(first, second)
        assert endings.advance(old, None, [], second) is Advanced.OVERTAKEN
        endings.drop(old)
        assert [each.version for each in endings.of(TENANT, made.id)] == [second.version]

    def test_nothing_ends_by_an_endpoint_that_has_changed(
        self, stores: Stores, endings: DynamoEndings
    ) -> None:
        made = created(stores)
        owed = posted(stores, 1, made)
        off = made.disabled(NOW_MS)
        stores.endpoints.replace(made, off)
        (ending,) = endings.of(TENANT, made.id)
        stores.endpoints.replace(off, off.enabled(NOW_MS))
        assert endings.advance(ending, None, [end_of(owed)], off) is Advanced.CHANGED
        assert stores.work.peek(owed.lane, 5) == [owed]
        assert endings.of(TENANT, made.id) == [ending]

    def test_nothing_ends_when_one_of_it_has_moved(self, stores: Stores, endings: DynamoEndings) -> None:
        made = created(stores)
        first, second = posted(stores, 1, made), posted(stores, 2, made)
        gone = deleted(stores, made)
        (ending,) = endings.of(TENANT, made.id)
        assert stores.work.move([end_of(second)]) == [True]
        assert endings.advance(ending, None, [end_of(first), end_of(second)], gone) is Advanced.CHANGED
        assert stores.work.peek(first.lane, 5) == [first]

    def test_one_that_concerns_nothing_is_dropped(self, stores: Stores, endings: DynamoEndings) -> None:
        gone = deleted(stores, created(stores))
        (ending,) = endings.of(TENANT, gone.id)
        endings.drop(ending)
        assert endings.of(TENANT, gone.id) == []


@without_moto
def test_a_backlog_of_a_deleted_endpoint_ends_page_by_page(stores: Stores, endings: DynamoEndings) -> None:
    made = created(stores)
    captures = [capture(event(number, at_ms=NOW_MS + number), [made]) for number in range(150)]
    stores.capturing.commit(captures, NOW_S)
    deleted(stores, made)
    clock = FixedClock()
    counting = Counting(DynamoCounters(stores.tables, 1), clock)
    ender = EndOwed(endings, stores.endpoints, stores.gates, stores.work, MemoryBells(), clock, counting)
    assert ender.run(TENANT, made.id, lambda: 60_000) == 150
    assert dead_letters(stores, made) == ["endpoint_deleted"] * 150
    assert counting.take() == counts.counted(metrics.DEAD_LETTERS, "endpoint_deleted", 150)
    assert stores.work.peek(lane_of(made), 5) == []
    assert endings.of(TENANT, made.id) == []
