"""Ordered endpoints in the store: their lane, their numbers, and how many a tenant may have."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Delete, Merge, Tables
from chalicelib.application.ports import Subscriber, Unavailable
from chalicelib.domain.delivery import Again, Created, Owed, owed_of_key
from chalicelib.domain.endpoint import ORDERED_LANE, ORDERED_MAX, Endpoint, EndpointState, Ordering
from tests.contract.given import (
    NOW_MS,
    NOW_S,
    NOW_US,
    STRANGER,
    TENANT,
    Stores,
    capture,
    endpoint,
    event,
    failure,
    lane_of,
    owing,
    subscriber,
    without_moto,
)

Calls = Callable[[], int]


def ordered(
    number: int = 0, event_types: tuple[str, ...] = ("order.paid",), tenant: str = TENANT
) -> Endpoint:
    return replace(endpoint(number, event_types, tenant=tenant), ordering=Ordering.ENDPOINT)


def accepted(stores: Stores, number: int, of: Endpoint, sequence: int, at_ms: int = NOW_MS) -> Owed:
    """Accept an event for an ordered endpoint under a number."""
    posted = event(number, at_ms=at_ms)
    one = replace(capture(posted), owing=owing(posted, [of], sequence))
    assert stores.capturing.commit([one], at_ms // 1000) == [None]
    return one.owing[0].owed


def counted(tables: Tables) -> int | None:
    at = keys.ordered_count(TENANT)
    record = tables.get([at]).get(at)
    return None if record is None else int(record["endpoints"])


def set_count(tables: Tables, count: int) -> None:
    tables.together([Merge(keys.ordered_count(TENANT), {"endpoints": count})])


class TestLane:
    def test_rows_come_by_sequence_whatever_their_ready_times(self, stores: Stores) -> None:
        of = ordered()
        late = accepted(stores, 1, of, 1_000_000, NOW_MS - 5)
        early = accepted(stores, 2, of, 9, NOW_MS + 5)
        middle = accepted(stores, 3, of, 10, NOW_MS)
        assert stores.work.peek(lane_of(of, ORDERED_LANE), 11) == [early, middle, late]
        assert stores.work.peek(lane_of(of, ORDERED_LANE), 1) == [early]

    def test_f132_a_row_moved_to_a_later_time_stays_in_its_place(self, stores: Stores) -> None:
        of = ordered()
        head, behind = accepted(stores, 1, of, 1), accepted(stores, 2, of, 2)
        moved = replace(head, ready_ms=NOW_MS + 5_000, made=1, counted=1, first_ms=NOW_MS)
        step = Again(replace(failure(head), next_ms=moved.ready_ms), moved)
        assert stores.work.move([(head, step)]) == [True]
        assert stores.work.peek(lane_of(of, ORDERED_LANE), 11) == [moved, behind]
        assert stores.work.move([(head, step)]) == [False]

    def test_a_row_is_found_again_by_its_key_alone(self, stores: Stores) -> None:
        of = ordered()
        row = accepted(stores, 1, of, 77)
        named = owed_of_key(row.lane, row.key)
        assert stores.work.reread([named]).owed == {named.key: row}

    def test_history_says_the_number_so_that_the_row_can_be_made_again(self, stores: Stores) -> None:
        of = ordered()
        row = accepted(stores, 1, of, 77)
        found = stores.reading.delivery(TENANT, of.id, row.delivery_id, NOW_US)
        assert found is not None
        (created,) = found.rows
        assert isinstance(created, Created)
        assert (created.lane, created.sequence) == (ORDERED_LANE, 77)

    def test_it_is_the_lane_that_reconcile_looks_at(self, stores: Stores) -> None:
        plain, of = endpoint(1), ordered(2)
        for each in (plain, of):
            stores.endpoints.create(each)
        stores.capturing.arm([(TENANT, plain.id), (TENANT, of.id)], NOW_MS)
        assert {each.endpoint_id: each.numbers for each in stores.watching.armed()} == {
            plain.id: ("0",),
            of.id: (ORDERED_LANE,),
        }


class TestSubscription:
    def test_it_says_whether_an_endpoint_is_ordered(self, stores: Stores) -> None:
        plain, of = endpoint(1), ordered(2)
        for each in (plain, of):
            stores.endpoints.create(each)
        assert stores.endpoints.get(TENANT, of.id) == of
        found = stores.capturing.subscribers(TENANT, ["order.paid"])["order.paid"]
        assert found == (subscriber(plain), subscriber(of))
        assert [each.ordered for each in found] == [False, True]

    def test_a_value_of_two_is_unordered(self, stores: Stores) -> None:
        of = endpoint()
        at = keys.subscription(TENANT, "order.paid")
        stores.tables.together([Merge(at, {of.id: [3, of.created_ms]})])
        found = stores.capturing.subscribers(TENANT, ["order.paid"])
        assert found == {"order.paid": (Subscriber(of.id, 3, of.created_ms, ordered=False),)}

    def test_it_stays_ordered_when_its_subscriptions_change(self, stores: Stores) -> None:
        old = ordered(1, ("a",))
        stores.endpoints.create(old)
        assert stores.endpoints.replace(old, replace(old, version=2, event_types=("b",)))
        assert [each.ordered for each in stores.capturing.subscribers(TENANT, ["b"])["b"]] == [True]


class TestNumbers:
    def take(self, stores: Stores, *endpoints: Endpoint, count: int = 1, now_us: int = NOW_US) -> list[int]:
        counts = dict.fromkeys((each.id for each in endpoints), count)
        firsts = stores.capturing.take_numbers(TENANT, counts, now_us)
        assert firsts.keys() == counts.keys()
        return [firsts[each.id] for each in endpoints]

    def test_they_ascend_for_each_endpoint_apart(self, stores: Stores) -> None:
        one, other = ordered(1), ordered(2)
        for each in (one, other):
            stores.endpoints.create(each)
        assert self.take(stores, one) == [1]
        assert self.take(stores, one, other, count=3) == [2, 1]
        assert self.take(stores, one, other) == [5, 4]

    def test_twenty_five_endpoints_take_one_call(self, stores: Stores, calls: Calls) -> None:
        many = [ordered(number) for number in range(25)]
        self.take(stores, *many)
        calls()
        self.take(stores, *many, count=100)
        assert calls() == 1

    def test_no_tenant_counts_with_another(self, stores: Stores) -> None:
        mine, theirs = ordered(1), ordered(1, tenant=STRANGER)
        for each in (mine, theirs):
            stores.endpoints.create(each)
        self.take(stores, mine)
        assert stores.capturing.take_numbers(STRANGER, {theirs.id: 1}, NOW_US) == {theirs.id: 1}

    def test_a_lost_counter_goes_on_above_all_that_it_gave(self, stores: Stores) -> None:
        of, kept = ordered(1), ordered(2)
        for each in (of, kept):
            stores.endpoints.create(each)
        (before, _) = self.take(stores, of, kept, count=1_000)
        stores.tables.each([Delete(keys.sequence(TENANT, of.id))])
        lost, other = self.take(stores, of, kept, count=5)
        assert (before, lost, other) == (1, NOW_US + 1, 1_001)
        stores.tables.each([Delete(keys.sequence(TENANT, of.id))])
        (again,) = self.take(stores, of, now_us=NOW_US + 6)
        assert again > lost + 4

    def test_a_deleted_endpoint_s_counter_stays(self, stores: Stores) -> None:
        """An event that was matched before the deletion may still take a number."""
        old = ordered()
        stores.endpoints.create(old)
        self.take(stores, old)
        stores.endpoints.replace(old, replace(old, version=2, state=EndpointState.DELETED))
        assert self.take(stores, old) == [2]

    def test_counters_are_no_endpoints(self, stores: Stores) -> None:
        of = ordered()
        stores.endpoints.create(of)
        self.take(stores, of)
        assert stores.endpoints.page(TENANT, "", 10).items == (of,)


class TestHowMany:
    def test_a_tenant_has_some_from_the_first_created_to_the_last_deleted(self, stores: Stores) -> None:
        one, other = ordered(1), ordered(2)
        stores.endpoints.create(endpoint(3))
        assert not stores.capturing.any_ordered(TENANT)
        for each in (one, other):
            assert stores.endpoints.create(each)
            assert stores.capturing.any_ordered(TENANT)
        assert not stores.capturing.any_ordered(STRANGER)
        off = replace(one, version=2, state=EndpointState.DISABLED)
        assert stores.endpoints.replace(one, off)
        assert stores.endpoints.replace(other, replace(other, version=2, state=EndpointState.DELETED))
        assert stores.capturing.any_ordered(TENANT), "a disabled one is still owed its events"
        assert stores.endpoints.replace(off, replace(off, version=3, state=EndpointState.DELETED))
        assert not stores.capturing.any_ordered(TENANT)

    def test_one_too_many_is_refused_whole(self, stores: Stores) -> None:
        old, new = ordered(1), ordered(2)
        assert stores.endpoints.create(old)
        set_count(stores.tables, ORDERED_MAX)
        assert not stores.endpoints.create(new)
        assert stores.endpoints.get(TENANT, new.id) is None
        assert stores.capturing.subscribers(TENANT, ["order.paid"])["order.paid"] == (subscriber(old),)
        assert stores.endpoints.create(endpoint(3))
        assert counted(stores.tables) == ORDERED_MAX
        assert stores.endpoints.replace(old, replace(old, version=2, state=EndpointState.DELETED))
        assert stores.endpoints.create(new)
        assert counted(stores.tables) == ORDERED_MAX

    def test_a_place_is_given_back_once(self, stores: Stores) -> None:
        old = ordered(1)
        for each in (old, ordered(2)):
            stores.endpoints.create(each)
        gone = replace(old, version=2, state=EndpointState.DELETED)
        assert stores.endpoints.replace(old, gone)
        assert not stores.endpoints.replace(old, gone)
        assert stores.endpoints.replace(gone, replace(gone, version=3))
        assert counted(stores.tables) == 1

    def test_an_id_taken_twice_takes_no_place(self, stores: Stores) -> None:
        of = ordered()
        stores.endpoints.create(of)
        with pytest.raises(Unavailable):
            stores.endpoints.create(of)
        assert counted(stores.tables) == 1

    @without_moto
    def test_an_event_for_as_many_as_there_may_be_is_one_transaction(
        self, stores: Stores, calls: Calls
    ) -> None:
        many = [ordered(number) for number in range(ORDERED_MAX)]
        stores.capturing.commit([capture(event(1))], NOW_S)
        posted = event(2)
        calls()
        one = replace(capture(posted), owing=owing(posted, many, 5))
        assert stores.capturing.commit([one], NOW_S) == [None]
        assert calls() == 1
