"""What a page of a list costs: page 400 as much as page 1, in bytes of items read, counted in the client."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import pytest

from chalicelib.adapters.dynamodb import keys, rows
from chalicelib.adapters.dynamodb.notice_rows import notice_row
from chalicelib.adapters.dynamodb.records import Insert
from chalicelib.application.ports import Extent
from chalicelib.domain import ids
from chalicelib.domain.delivery import Created, Ended, given_up
from chalicelib.domain.endpoint import Endpoint
from chalicelib.domain.gate import Tally
from chalicelib.domain.notice import Finding, Notice, NoticeKind
from chalicelib.domain.outcome import DeathReason
from infra.local.emulator import EmulatorName
from tests.contract.busy_history import BusyHistory
from tests.contract.emulated import counter
from tests.contract.given import NOW_MS, TENANT, Stores, capture, endpoint, event, failure, success, uncounted

PAGE = 400
ROWS = PAGE + 5
AS_MUCH = 1.5
SECOND_MS = 1_000
HOUR = NOW_MS // 3_600_000
pytestmark = pytest.mark.parametrize("tables", [EmulatorName.MINISTACK.value], indirect=True)


@dataclass(frozen=True, slots=True)
class Measuring:
    """A long history, and what reading from it costs."""

    busy: BusyHistory
    read_bytes: Callable[[], int]

    def check(self, name: str, names: Iterable[str]) -> None:
        """Hold page 400 of a list to what page 1 costs; of its names, each is a page."""
        walk, newest_first = self.busy.lists()[name], sorted(names, reverse=True)
        costs = []
        for place in (0, PAGE - 1):
            self.read_bytes()
            page = walk(Extent(newest_first[place - 1] if place else "", 1))
            costs.append(self.read_bytes())
            assert [each.split()[0] for each in page.items] == newest_first[place : place + 1], name
        assert 0 < costs[1] <= AS_MUCH * costs[0], (name, costs)


@pytest.fixture
def measuring(stores: Stores, ministack: str) -> Measuring:
    counted = counter("dynamodb", ministack)

    def since_last() -> int:
        read = counted.read_bytes
        counted.reset()
        return read

    return Measuring(BusyHistory(stores), since_last)


def test_page_400_of_what_an_endpoint_got_costs_what_page_1_costs(measuring: Measuring) -> None:
    """Events a second apart, of which one dies, one waits and one arrives, in turn, below one that died."""
    stores, to = measuring.busy.stores, measuring.busy.to
    some = [capture(event(number, at_ms=NOW_MS - number * SECOND_MS), [to]) for number in range(3 * ROWS + 1)]
    for start in range(0, len(some), 20):
        stores.capturing.commit(some[start : start + 20], NOW_MS // 1000)
    owed = [each.owing[0].owed for each in some]
    died, waits, arrived = [owed[0], *owed[1::3]], owed[2::3], owed[3::3]
    tried = [success(each) for each in arrived] + [failure(each) for each in (*died, *waits)]
    stores.work.insert(list(zip([*arrived, *died, *waits], tried, strict=True)))
    stores.work.close(uncounted(*arrived, *died), [])
    ended = [given_up(replace(each, made=1), DeathReason.EXPIRED, NOW_MS).ended for each in died]
    stores.tables.each([each for one in ended for each in last_rows(to, one)])

    measuring.check("deliveries", [each.delivery_id for each in owed])
    measuring.check("succeeded deliveries", [each.delivery_id for each in arrived])
    measuring.check("dead deliveries", [each.delivery_id for each in died])
    measuring.check("pending deliveries", [each.delivery_id for each in waits])
    measuring.check("dead letters", [each.delivery_id for each in died])
    measuring.check("attempts", [each.key for each in tried])
    measuring.check("events", [measuring.busy.wide.id, *(each.stored.event.id for each in some)])


def last_rows(to: Endpoint, ended: Ended) -> Iterator[Insert]:
    """Give the last row of a delivery's history, and its dead letter."""
    at = (TENANT, to.id, ended.delivery_id, ended.generation)
    yield Insert(keys.ended(*at), rows.ended_row(ended))
    yield Insert(keys.dead_letter(*at), rows.dead_letter_row(ended))


def test_page_400_of_what_is_many_endpoints_costs_what_page_1_costs(measuring: Measuring) -> None:
    busy, tables = measuring.busy, measuring.busy.stores.tables
    some = [endpoint(number) for number in range(100, 100 + ROWS)]
    noticed = [ids.new_id("ntc", NOW_MS + number, number) for number in range(ROWS)]
    finding = Finding(NoticeKind.DEAD_LETTERS, NOW_MS, NOW_MS, {}, complete=True)
    tables.each([Insert(keys.endpoint(TENANT, each.id), rows.endpoint_row(each)) for each in some])
    for to, notice_id in zip(some, noticed, strict=True):
        delivery = ids.delivery_id(busy.wide.id, to.id)
        created = Created(delivery, 0, busy.wide.id, busy.wide.type, "0", NOW_MS)
        at = keys.attempt(TENANT, to.id, (delivery, 0, keys.CREATED_NUMBER))
        notice = Notice(TENANT, notice_id, to.id, NOW_MS, finding)
        told = Insert(keys.notice(TENANT, notice_id), notice_row(notice))
        tables.each([Insert(at, rows.created_row(created)), told])

    measuring.check("endpoints", [busy.to.id, *(each.id for each in (*some, *busy.left))])
    measuring.check("deliveries of an event", [each.id for each in some])
    measuring.check("notices", noticed)


def test_page_400_of_an_endpoint_s_hours_costs_what_page_1_costs(measuring: Measuring) -> None:
    stores, owner = measuring.busy.stores, (TENANT, measuring.busy.to.id)
    stores.work.insert([], [(owner, Tally(HOUR - number, 5, 1, 1)) for number in range(ROWS)])
    costs = []
    for page in (1, PAGE):
        measuring.read_bytes()
        (told,) = stores.reading.hours(*owner, HOUR + 2 - page, 1, NOW_MS)
        assert told.hour == HOUR + 1 - page
        costs.append(measuring.read_bytes())
    assert 0 < costs[1] <= AS_MUCH * costs[0]
