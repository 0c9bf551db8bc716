"""What owners are told, on every store: marks are found, one of two writes, and a page is a page."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Update
from chalicelib.application.ports.noticing import Alert
from chalicelib.domain import gate as gates
from chalicelib.domain import ids
from chalicelib.domain.change import Change
from chalicelib.domain.delivery import given_up
from chalicelib.domain.endpoint import Endpoint
from chalicelib.domain.gate import ALERT_SHARDS
from chalicelib.domain.notice import KEPT_S, Finding, Notice, NoticeKind, Told, Track, Trouble
from chalicelib.domain.outcome import DeathReason
from tests.contract.given import NOW_MS, NOW_US, STRANGER, TENANT, Stores, endpoint, posted

FOUND = Finding(
    NoticeKind.DEAD_LETTERS,
    NOW_MS - 5,
    NOW_MS,
    {DeathReason.EXPIRED: 2, DeathReason.POISONED: 1},
    complete=False,
    why="so it is",
)


def noticed(number: int, *, at_ms: int = NOW_MS, tenant: str = TENANT, of: Finding = FOUND) -> Notice:
    return Notice(tenant, ids.new_id("ntc", at_ms + number, number), endpoint(0).id, at_ms, of)


def alert_of(of: Endpoint, at_us: int = NOW_US) -> Alert:
    return Alert(of.tenant, of.id, at_us)


def mark(stores: Stores, some: Iterable[Endpoint], at_us: int) -> None:
    """Mark gates as a change does that is made anyway."""
    change = gates.and_alert(Change((), {"seen": at_us}, {}), at_us, refused=False)
    made = stores.tables.each([Update(keys.gate(each.tenant, each.id), change) for each in some])
    assert all(each.done for each in made)


def test_what_is_marked_is_found_once_it_is_due_under_whichever_shard(stores: Stores) -> None:
    some = [endpoint(number) for number in range(2 * ALERT_SHARDS)]
    for number, each in enumerate(some):
        assert stores.endpoints.create(each)
        mark(stores, [each], NOW_US + number)
    unmarked = endpoint(99)
    assert stores.endpoints.create(unmarked)
    found = sorted(stores.noticing.alerts(NOW_US + 5), key=lambda each: each.at_us)
    assert found == [alert_of(each, NOW_US + number) for number, each in enumerate(some[:6])]


def test_a_mark_is_taken_away_only_if_it_is_the_one_that_was_looked_at(stores: Stores) -> None:
    made = endpoint()
    assert stores.endpoints.create(made)
    mark(stores, [made], NOW_US)
    later_us = NOW_US + 10 * gates.SECOND
    assert not stores.noticing.looked(alert_of(made, NOW_US - 1), later_us, None)
    assert stores.noticing.looked(alert_of(made), later_us, None)
    assert list(stores.noticing.alerts(later_us)) == []
    assert not stores.noticing.looked(alert_of(made), later_us, None)


def test_a_mark_that_is_looked_at_within_two_seconds_stays_for_the_next_look(stores: Stores) -> None:
    made = endpoint()
    assert stores.endpoints.create(made)
    mark(stores, [made], NOW_US)
    assert stores.noticing.looked(alert_of(made), NOW_US + gates.SECOND, None)
    assert list(stores.noticing.alerts(NOW_US)) == []
    assert len(list(stores.noticing.alerts(NOW_US + 2 * gates.SECOND))) == 1


def test_a_mark_can_be_moved_to_when_there_is_more_to_see(stores: Stores) -> None:
    made = endpoint()
    assert stores.endpoints.create(made)
    mark(stores, [made], NOW_US)
    again_us = NOW_US + 3_600 * gates.SECOND
    assert stores.noticing.looked(alert_of(made), NOW_US + 5 * gates.SECOND, again_us)
    assert list(stores.noticing.alerts(again_us)) == []
    assert [each.at_us for each in stores.noticing.alerts(again_us + 1)] == [again_us + 1]


def test_a_look_sees_the_endpoint_its_gate_and_what_was_told(stores: Stores) -> None:
    made = endpoint()
    assert stores.noticing.look(alert_of(made)) is None
    assert stores.endpoints.create(made)
    mark(stores, [made], NOW_US)
    sight = stores.noticing.look(alert_of(made))
    assert sight is not None
    assert (sight.endpoint, sight.gate.died, sight.told) == (made, NOW_US, Told())


def test_everything_that_was_told_comes_back(stores: Stores) -> None:
    made = endpoint()
    assert stores.endpoints.create(made)
    told = Told(
        0,
        Track(NoticeKind.DEAD_LETTERS, NOW_MS, NOW_MS - 1, {DeathReason.EXPIRED: 3}, -1),
        Track(NoticeKind.ADDRESS_REFUSED, 1, 2, {}, 3),
        4,
        5,
        Trouble(6, 7),
        ("ntc_1", "ntc_2"),
        8,
        9,
    )
    written = stores.noticing.tell(alert_of(made), Told(), told, [], [])
    assert written == replace(told, version=1)
    sight = stores.noticing.look(alert_of(made))
    assert sight is not None
    assert sight.told == written
    assert written is not None
    over = stores.noticing.tell(alert_of(made), written, replace(written, trouble=None), [], [])
    assert over == replace(written, version=2, trouble=None)


@pytest.mark.parametrize("before", [Told(), Told(version=1)], ids=["first", "second"])
def test_of_two_that_write_one_is_told_no_and_writes_nothing(stores: Stores, before: Told) -> None:
    alert = alert_of(endpoint())
    if before.version:
        assert stores.noticing.tell(alert, Told(), Told(), [], []) == before
    mine, other = noticed(1), noticed(2)
    assert stores.noticing.tell(alert, before, replace(before, unsent=(mine.id,)), [mine], [])
    assert stores.noticing.tell(alert, before, replace(before, unsent=(other.id,)), [other], []) is None
    assert stores.noticing.notices(TENANT, [other.id, mine.id]) == [mine]


def test_what_the_channel_has_taken_is_marked_in_one_with_what_is_left(stores: Stores) -> None:
    alert, some = alert_of(endpoint()), [noticed(1), noticed(2)]
    told = stores.noticing.tell(alert, Told(), Told(unsent=tuple(each.id for each in some)), some, [])
    assert told is not None
    taken = replace(some[0], published_ms=NOW_MS + 9)
    assert stores.noticing.tell(alert, told, replace(told, unsent=(some[1].id,)), [], [taken])
    assert stores.noticing.notices(TENANT, [each.id for each in some]) == [taken, some[1]]


def test_the_dead_letters_of_an_endpoint_are_read_newest_event_first_and_to_a_limit(stores: Stores) -> None:
    made, other = endpoint(1), endpoint(2)
    for each in (made, other):
        assert stores.endpoints.create(each)
    for number in range(5):
        owed = posted(stores, number, made, NOW_MS + number)
        assert stores.work.move([(owed, given_up(owed, DeathReason.EXPIRED, NOW_MS + number))]) == [True]
    some = stores.noticing.letters(TENANT, made.id, 5)
    assert [each.at_ms for each in some.ended] == [NOW_MS + number for number in (4, 3, 2, 1, 0)]
    assert some.complete
    fewer = stores.noticing.letters(TENANT, made.id, 3)
    assert (len(fewer.ended), fewer.complete) == (3, False)
    assert stores.noticing.letters(TENANT, other.id, 5).ended == ()


def test_a_page_lists_a_tenants_notices_newest_first_and_continues(stores: Stores) -> None:
    some = [noticed(number) for number in range(5)]
    stranger = noticed(9, tenant=STRANGER)
    assert stores.noticing.tell(alert_of(endpoint()), Told(), Told(), some, [])
    assert stores.noticing.tell(
        replace(alert_of(endpoint()), tenant=STRANGER), Told(), Told(), [stranger], []
    )
    first = stores.noticing.page(TENANT, "", 2, NOW_MS)
    second = stores.noticing.page(TENANT, first.after, 2, NOW_MS)
    last = stores.noticing.page(TENANT, second.after, 2, NOW_MS)
    assert [*first.items, *second.items, *last.items] == some[::-1]
    assert last.after == ""


def test_a_notice_past_its_ninety_days_is_not_listed(stores: Stores) -> None:
    assert stores.noticing.tell(alert_of(endpoint()), Told(), Told(), [noticed(1)], [])
    ends_ms = NOW_MS + KEPT_S * 1000
    assert len(stores.noticing.page(TENANT, "", 5, ends_ms - 1000).items) == 1
    assert stores.noticing.page(TENANT, "", 5, ends_ms).items == ()
