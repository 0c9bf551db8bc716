"""Questions about events and deliveries: what is there, in which order, page by page."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from chalicelib.application.ports import Extent, Generations, Health, Page
from chalicelib.domain import gate as gates
from chalicelib.domain.delivery import Again, Dead, Owed, Status, given_up, status_of
from chalicelib.domain.endpoint import Endpoint, EndpointState
from chalicelib.domain.event import Event
from chalicelib.domain.gate import SECOND, TAKE_OVER_GRACE, Ask, Grant, HoldReason, Spell
from chalicelib.domain.outcome import DeathReason
from chalicelib.domain.retention import HISTORY_DAYS
from tests.contract.given import (
    HOUR_MS,
    NOW_MS,
    NOW_US,
    RULES,
    STRANGER,
    TENANT,
    Stores,
    capture,
    endpoint,
    event,
    failure,
    posted,
    success,
    without_moto,
)

T = TypeVar("T")
DAY_MS = 86_400_000
Read = Callable[[str, int], Page[T]]


def paged(read: Read[T], limit: int) -> list[T]:
    """Read a list to its end, page by page, each within the limit."""
    found: list[T] = []
    after = ""
    while True:
        page = read(after, limit)
        assert len(page.items) <= limit
        found += page.items
        if not page.after:
            return found
        after = page.after


def events_of(stores: Stores, tenant: str = TENANT, now_ms: int = NOW_MS) -> Read[str]:
    def read(after: str, limit: int) -> Page[str]:
        page = stores.reading.events(tenant, Extent(after, limit), now_ms)
        return Page(tuple(each.event.id for each in page.items), page.after)

    return read


def deliveries_of(stores: Stores, of: Endpoint) -> Read[Generations]:
    return lambda after, limit: stores.reading.deliveries(TENANT, of.id, Extent(after, limit), NOW_US)


def keep(stores: Stores, events: list[Event]) -> list[str]:
    """Accept events and give their ids, newest first."""
    stores.capturing.commit([capture(each) for each in events], NOW_MS // 1000)
    return sorted((each.id for each in events), reverse=True)


class TestEvent:
    def test_an_event_is_its_tenants_alone(self, stores: Stores) -> None:
        keep(stores, [event(1)])
        found = stores.reading.event(TENANT, event(1).id, NOW_MS)
        assert found is not None
        assert found.event == event(1)
        assert stores.reading.event(STRANGER, event(1).id, NOW_MS) is None
        assert stores.reading.event(TENANT, event(2).id, NOW_MS) is None

    def test_many_are_read_by_name_and_those_that_are_not_there_are_left_out(self, stores: Stores) -> None:
        keep(stores, [event(1), event(2)])
        names = [event(number).id for number in (1, 2, 3)]
        found = stores.reading.events_named(TENANT, names, NOW_MS)
        assert {name: stored.event for name, stored in found.items()} == {
            event(number).id: event(number) for number in (1, 2)
        }
        assert stores.reading.events_named(STRANGER, names, NOW_MS) == {}
        assert stores.reading.events_named(TENANT, names, NOW_MS + 35 * DAY_MS) == {}
        assert stores.reading.events_named(TENANT, [], NOW_MS) == {}

    def test_f119_an_event_past_its_retention_is_absent(self, stores: Stores) -> None:
        keep(stores, [event(1)])
        end_ms = NOW_MS + 35 * DAY_MS
        assert stores.reading.event(TENANT, event(1).id, end_ms - 1) is not None
        assert stores.reading.event(TENANT, event(1).id, end_ms) is None
        assert stores.reading.events(TENANT, Extent("", 10), end_ms).items == ()


class TestEvents:
    def test_the_newest_come_first_whatever_hour_or_partition_they_are_in(self, stores: Stores) -> None:
        expected = keep(stores, [event(number, at_ms=NOW_MS - number * HOUR_MS // 2) for number in range(4)])
        assert paged(events_of(stores), 2) == expected
        assert paged(events_of(stores, STRANGER), 3) == []

    def test_f120_events_of_one_partition_are_all_listed(self, stores: Stores) -> None:
        """Sixteen partitions share an hour; here one has everything."""
        expected = keep(stores, [event(16 * number) for number in range(5)])
        for limit in (1, 2):
            assert paged(events_of(stores), limit) == expected

    def test_f120_exactly_as_many_as_the_limit_are_the_last_page(self, stores: Stores) -> None:
        keep(stores, [event(number) for number in range(5)])
        page = stores.reading.events(TENANT, Extent("", 5), NOW_MS)
        assert (len(page.items), page.after) == (5, "")

    def test_f120_what_is_past_its_retention_hides_nothing(self, stores: Stores) -> None:
        """A cursor may lead into an hour of which the oldest are gone."""
        keep(stores, [event(number, at_ms=NOW_MS - 35 * DAY_MS - 1_000 - number) for number in range(3)])
        living = keep(stores, [event(number, at_ms=NOW_MS - 35 * DAY_MS + 1_000) for number in range(3)])
        assert paged(events_of(stores), 2) == living

    def test_f120_what_arrives_meanwhile_moves_no_page(self, stores: Stores) -> None:
        expected = keep(stores, [event(number) for number in range(4)])
        first = stores.reading.events(TENANT, Extent("", 2), NOW_MS)
        keep(stores, [event(9, at_ms=NOW_MS + 1), event(10, at_ms=NOW_MS + HOUR_MS)])
        second = stores.reading.events(TENANT, Extent(first.after, 2), NOW_MS)
        found = [each.event.id for page in (first, second) for each in page.items]
        assert (found, second.after) == (expected, "")


def statuses(found: Generations) -> Status:
    return status_of(found.rows, leased=found.leased)


class TestDelivery:
    def test_all_its_rows_come_oldest_first(self, stores: Stores) -> None:
        of = endpoint()
        row = posted(stores, 1, of)
        step = _failed(stores, row)
        last = step.owed
        stores.work.move([(last, Dead(failure(last), given_up(last, DeathReason.EXPIRED, NOW_MS).ended))])
        found = stores.reading.delivery(TENANT, of.id, row.delivery_id, NOW_US)
        assert found is not None
        assert [type(each).__name__ for each in found.rows] == ["Created", "Attempt", "Attempt", "Ended"]
        assert found.rows[1:3] == (step.attempt, failure(last))
        assert statuses(found) is Status.DEAD

    def test_a_delivery_is_its_endpoints_and_its_tenants_alone(self, stores: Stores) -> None:
        of = endpoint()
        row = posted(stores, 1, of)
        assert stores.reading.delivery(STRANGER, of.id, row.delivery_id, NOW_US) is None
        assert stores.reading.delivery(TENANT, endpoint(2).id, row.delivery_id, NOW_US) is None

    def test_a_live_lease_makes_it_inflight(self, stores: Stores) -> None:
        of = endpoint()
        stores.endpoints.create(of)
        row, other = posted(stores, 1, of), posted(stores, 2, of)
        owner = (TENANT, of.id)
        grant = gates.ask(stores.gates.read([owner])[owner], Ask("0", "me", (row.key,)), NOW_US, RULES)
        assert isinstance(grant, Grant)
        stores.gates.change([(owner, grant.change)])
        end = NOW_US + RULES.lease + TAKE_OVER_GRACE
        asked = [(row, NOW_US), (row, end - 1), (row, end), (other, NOW_US)]
        found = [stores.reading.delivery(TENANT, of.id, each.delivery_id, now) for each, now in asked]
        assert [each and each.leased for each in found] == [True, True, False, False]


def _failed(stores: Stores, row: Owed) -> Again:
    moved = replace(row, ready_ms=row.ready_ms + 1, made=row.made + 1, counted=row.counted + 1)
    step = Again(failure(row), moved)
    assert stores.work.move([(row, step)]) == [True]
    return step


class TestDeliveries:
    def given(self, stores: Stores, count: int, of: Endpoint) -> list[str]:
        """Make deliveries of three history rows each and give their ids, newest first."""
        captures = [capture(event(number, at_ms=NOW_MS + number), [of]) for number in range(count)]
        stores.capturing.commit(captures, NOW_MS // 1000)
        rows = [each.owing[0].owed for each in captures]
        stores.work.insert([(row, failure(row)) for row in rows])
        seconds = [replace(row, made=1) for row in rows]
        stores.work.insert([(row, success(row)) for row in seconds])
        return [row.delivery_id for row in reversed(rows)]

    def listed(self, stores: Stores, of: Endpoint, limit: int) -> list[str]:
        found = paged(deliveries_of(stores, of), limit)
        assert {len(each.rows) for each in found} == {3}
        assert {statuses(each) for each in found} == {Status.SUCCEEDED}
        return [each.delivery_id for each in found]

    def test_the_newest_come_first_and_each_whole(self, stores: Stores) -> None:
        expected = self.given(stores, 5, endpoint(1))
        posted(stores, 99, endpoint(2))
        for limit in (2, 5):
            assert self.listed(stores, endpoint(1), limit) == expected

    @without_moto
    def test_f120_more_rows_than_the_store_is_asked_for_at_once_are_all_listed(self, stores: Stores) -> None:
        """140 deliveries are 420 rows: pages of the store end inside a delivery's rows."""
        expected = self.given(stores, 140, endpoint())
        for limit in (60, 70):
            assert self.listed(stores, endpoint(), limit) == expected

    def test_f120_exactly_as_many_as_the_limit_are_the_last_page(self, stores: Stores) -> None:
        self.given(stores, 4, endpoint())
        page = stores.reading.deliveries(TENANT, endpoint().id, Extent("", 4), NOW_US)
        assert (len(page.items), page.after) == (4, "")

    def test_f120_what_happens_meanwhile_moves_no_page(self, stores: Stores) -> None:
        expected = self.given(stores, 4, endpoint())
        first = stores.reading.deliveries(TENANT, endpoint().id, Extent("", 2), NOW_US)
        posted(stores, 99, endpoint(), NOW_MS + 99)
        second = stores.reading.deliveries(TENANT, endpoint().id, Extent(first.after, 2), NOW_US)
        found = [each.delivery_id for page in (first, second) for each in page.items]
        assert (found, second.after) == (expected, "")


class TestTakers:
    def given(self, stores: Stores, count: int) -> tuple[Event, list[str]]:
        """Make endpoints, and an event that each third takes; the event and its takers, newest first."""
        every = [endpoint(number) for number in range(count)]
        for each in every:
            stores.endpoints.create(each)
        takers = every[::3]
        one = event(1)
        stores.capturing.commit([capture(one, takers)], NOW_MS // 1000)
        return one, [each.id for each in reversed(takers)]

    def test_they_are_walked_newest_first_from_any_of_them(self, stores: Stores) -> None:
        one, takers = self.given(stores, 7)
        assert list(stores.reading.takers(TENANT, one.id, "")) == takers
        for place, after in enumerate(takers):
            assert list(stores.reading.takers(TENANT, one.id, after)) == takers[place + 1 :]

    def test_a_deleted_endpoint_is_one_of_them(self, stores: Stores) -> None:
        one, takers = self.given(stores, 4)
        stores.endpoints.replace(endpoint(3), replace(endpoint(3), state=EndpointState.DELETED, version=2))
        assert list(stores.reading.takers(TENANT, one.id, "")) == takers

    def test_an_event_of_another_tenant_has_none(self, stores: Stores) -> None:
        one, _ = self.given(stores, 1)
        assert list(stores.reading.takers(STRANGER, one.id, "")) == []

    @without_moto
    def test_more_endpoints_than_the_store_is_asked_for_at_once_are_all_walked(self, stores: Stores) -> None:
        one, takers = self.given(stores, 120)
        assert list(stores.reading.takers(TENANT, one.id, "")) == takers


class TestHolds:
    """What is held and why: an endpoint's gate and last holds, and the hold its deliveries are under."""

    def owner(self, of: Endpoint) -> tuple[str, str]:
        return (of.tenant, of.id)

    def noted(self, stores: Stores, of: Endpoint, number: int) -> list[Spell]:
        """Put so many holds of a second each into history and give them, newest first."""
        reasons = (HoldReason.RATE_LIMIT, HoldReason.BREAKER_OPEN, HoldReason.RAMP)
        spells = [
            Spell(reasons[place % 3], NOW_US + place * SECOND, NOW_US + (place + 1) * SECOND)
            for place in range(number)
        ]
        stores.work.insert([], [(self.owner(of), each) for each in spells])
        return spells[::-1]

    def hold(self, stores: Stores, of: Endpoint, reason: HoldReason) -> None:
        gate = stores.gates.read([self.owner(of)])[self.owner(of)]
        change = gates.hold_begun(gate, reason, NOW_US)
        assert change is not None
        assert stores.gates.change([(self.owner(of), change)])[0].made

    def test_health_is_the_gate_and_the_last_holds_newest_first(
        self, stores: Stores, calls: Callable[[], int]
    ) -> None:
        of, other = endpoint(1), endpoint(2)
        for each in (of, other):
            stores.endpoints.create(each)
            posted(stores, 1 + each.created_ms % 2, each)
        expected, others = self.noted(stores, of, 12), self.noted(stores, other, 1)
        calls()
        found = stores.reading.health(TENANT, of.id, 5, NOW_MS)
        assert calls() == 2
        assert found == Health(stores.gates.read([self.owner(of)])[self.owner(of)], tuple(expected[:5]))
        for limit in (11, 12, 13):
            found = stores.reading.health(TENANT, of.id, limit, NOW_MS)
            assert found is not None
            assert list(found.holds) == expected[:limit]
        found = stores.reading.health(TENANT, other.id, 5, NOW_MS)
        assert found is not None
        assert list(found.holds) == others

    def test_a_hold_past_its_retention_is_absent(self, stores: Stores) -> None:
        of = endpoint(1)
        stores.endpoints.create(of)
        posted(stores, 1, of)
        newest = self.noted(stores, of, 2)[0]
        ends_ms = newest.until // 1_000_000 * 1000 + HISTORY_DAYS * DAY_MS
        for now_ms, kept in ((ends_ms - 1, True), (ends_ms, False)):
            found = stores.reading.health(TENANT, of.id, 5, now_ms)
            assert found is not None
            assert (newest in found.holds) is kept

    def test_an_endpoint_that_was_never_held_has_no_holds(self, stores: Stores) -> None:
        of = endpoint()
        stores.endpoints.create(of)
        posted(stores, 1, of)
        found = stores.reading.health(TENANT, of.id, 5, NOW_MS)
        assert found is not None
        assert found.holds == ()

    def test_health_is_its_tenants_alone(self, stores: Stores) -> None:
        of = endpoint()
        stores.endpoints.create(of)
        self.noted(stores, of, 1)
        assert stores.reading.health(STRANGER, of.id, 5, NOW_MS) is None
        assert stores.reading.health(TENANT, endpoint(1).id, 5, NOW_MS) is None

    def test_holds_are_no_deliveries_and_break_no_list_of_them(self, stores: Stores) -> None:
        of = endpoint()
        stores.endpoints.create(of)
        rows = [posted(stores, number, of, NOW_MS + number) for number in range(3)]
        self.noted(stores, of, 5)
        for limit in (1, 3):
            listed = paged(deliveries_of(stores, of), limit)
            assert [each.delivery_id for each in listed] == [row.delivery_id for row in reversed(rows)]
            assert all(len(each.rows) == 1 for each in listed)

    @pytest.mark.parametrize("reason", [HoldReason.RATE_LIMIT, HoldReason.ENDPOINT_CAP, HoldReason.RAMP])
    def test_a_delivery_shows_the_hold_that_goes_on(self, stores: Stores, reason: HoldReason) -> None:
        of, other = endpoint(1), endpoint(2)
        for each in (of, other):
            stores.endpoints.create(each)
        row, beside = posted(stores, 1, of), posted(stores, 2, other)
        self.hold(stores, of, reason)
        found = stores.reading.delivery(TENANT, of.id, row.delivery_id, NOW_US)
        assert found is not None
        assert found.hold == Spell(reason, NOW_US, 0)
        (listed,) = paged(deliveries_of(stores, of), 5)
        assert listed == found
        free = stores.reading.delivery(TENANT, other.id, beside.delivery_id, NOW_US)
        assert free is not None
        assert free.hold is None

    def test_a_disabled_endpoint_s_deliveries_show_since_when(self, stores: Stores) -> None:
        old = endpoint()
        stores.endpoints.create(old)
        row = posted(stores, 1, old)
        off = replace(old, state=EndpointState.DISABLED).next_to(old, NOW_MS)
        assert stores.endpoints.replace(old, off)
        found = stores.reading.delivery(TENANT, old.id, row.delivery_id, NOW_US + 5)
        assert found is not None
        assert found.hold == Spell(HoldReason.DISABLED, NOW_US, 0)
