"""Questions about events and deliveries: what is there, in which order, page by page."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from chalicelib.application.ports import Generations, Page
from chalicelib.domain import gate as gates
from chalicelib.domain.delivery import Again, Dead, Owed, Status, given_up, status_of
from chalicelib.domain.endpoint import Endpoint, EndpointState
from chalicelib.domain.event import Event
from chalicelib.domain.gate import TAKE_OVER_GRACE, Ask, Grant
from chalicelib.domain.outcome import DeathReason
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
        page = stores.reading.events(tenant, after, limit, now_ms)
        return Page(tuple(each.event.id for each in page.items), page.after)

    return read


def deliveries_of(stores: Stores, of: Endpoint) -> Read[Generations]:
    return lambda after, limit: stores.reading.deliveries(TENANT, of.id, after, limit, NOW_US)


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

    def test_f119_an_event_past_its_retention_is_absent(self, stores: Stores) -> None:
        keep(stores, [event(1)])
        end_ms = NOW_MS + 35 * DAY_MS
        assert stores.reading.event(TENANT, event(1).id, end_ms - 1) is not None
        assert stores.reading.event(TENANT, event(1).id, end_ms) is None
        assert stores.reading.events(TENANT, "", 10, end_ms).items == ()


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
        page = stores.reading.events(TENANT, "", 5, NOW_MS)
        assert (len(page.items), page.after) == (5, "")

    def test_f120_what_is_past_its_retention_hides_nothing(self, stores: Stores) -> None:
        """A cursor may lead into an hour of which the oldest are gone."""
        keep(stores, [event(number, at_ms=NOW_MS - 35 * DAY_MS - 1_000 - number) for number in range(3)])
        living = keep(stores, [event(number, at_ms=NOW_MS - 35 * DAY_MS + 1_000) for number in range(3)])
        assert paged(events_of(stores), 2) == living

    def test_f120_what_arrives_meanwhile_moves_no_page(self, stores: Stores) -> None:
        expected = keep(stores, [event(number) for number in range(4)])
        first = stores.reading.events(TENANT, "", 2, NOW_MS)
        keep(stores, [event(9, at_ms=NOW_MS + 1), event(10, at_ms=NOW_MS + HOUR_MS)])
        second = stores.reading.events(TENANT, first.after, 2, NOW_MS)
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
        page = stores.reading.deliveries(TENANT, endpoint().id, "", 4, NOW_US)
        assert (len(page.items), page.after) == (4, "")

    def test_f120_what_happens_meanwhile_moves_no_page(self, stores: Stores) -> None:
        expected = self.given(stores, 4, endpoint())
        first = stores.reading.deliveries(TENANT, endpoint().id, "", 2, NOW_US)
        posted(stores, 99, endpoint(), NOW_MS + 99)
        second = stores.reading.deliveries(TENANT, endpoint().id, first.after, 2, NOW_US)
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
