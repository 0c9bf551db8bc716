"""What retention reads, moves and removes: every row it means, on every store, and none besides."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Insert, Key, Span
from chalicelib.adapters.dynamodb.retaining import DynamoRetaining
from chalicelib.application.ports import Page, Stand
from chalicelib.domain.change import Record
from chalicelib.domain.delivery import Again, Owed, given_up
from chalicelib.domain.endpoint import EndpointState
from chalicelib.domain.outcome import DeathReason
from chalicelib.domain.retention import dead_until_s, history_until_s, payload_until_s
from tests.contract.given import (
    HOUR_MS,
    NOW_MS,
    NOW_S,
    TENANT,
    Stores,
    capture,
    endpoint,
    event,
    failure,
    posted,
    without_moto,
)

T = TypeVar("T")


@pytest.fixture
def retaining(stores: Stores) -> DynamoRetaining:
    return DynamoRetaining(stores.tables)


def everything(page: Callable[[str, int], Page[T]], limit: int) -> list[T]:
    """Page through all there is."""
    found: list[T] = []
    after = ""
    while True:
        one = page(after, limit)
        found += one.items
        after = one.after
        if not after:
            return found


def stored(stores: Stores, at: Key) -> Record:
    return stores.tables.get([at])[at]


def given(stores: Stores, count: int) -> list[Owed]:
    """Have so many deliveries owed to one endpoint."""
    of = endpoint()
    stores.endpoints.create(of)
    return [posted(stores, number, of) for number in range(count)]


def buried(stores: Stores, owed: Owed, at_ms: int = NOW_MS) -> None:
    """Give a delivery up."""
    assert stores.work.move([(owed, given_up(owed, DeathReason.EXPIRED, at_ms))]) == [True]


def test_how_far_each_chore_has_come_is_read_as_it_was_written(retaining: DynamoRetaining) -> None:
    assert retaining.stands() == {}
    under_way, done = Stand('["owed", "a", "b"]', NOW_MS, NOW_MS - 1), Stand("", 0, NOW_MS)
    retaining.note("owed", under_way)
    assert retaining.stands() == {"owed": under_way}
    retaining.note("dead", done)
    assert retaining.stands() == {"owed": under_way, "dead": done}
    retaining.note("owed", done)
    assert retaining.stands() == {"owed": done, "dead": done}


def test_how_far_it_has_come_is_no_fan_out(stores: Stores, retaining: DynamoRetaining) -> None:
    retaining.note("owed", Stand("", NOW_MS))
    assert list(stores.fanning_out.waiting(NOW_MS)) == []


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_every_owed_row_dead_letter_and_endpoint_is_met_once(
    stores: Stores, retaining: DynamoRetaining, limit: int
) -> None:
    owed = given(stores, 8)
    for each in owed[:3]:
        buried(stores, each)
    stores.endpoints.create(endpoint(1))
    assert sorted(each.delivery_id for each in everything(retaining.owed, limit)) == sorted(
        each.delivery_id for each in owed[3:]
    )
    letters = everything(retaining.dead, limit)
    assert sorted(each.delivery_id for each in letters) == sorted(each.delivery_id for each in owed[:3])
    assert {(each.at_ms, each.until_s, each.kept) for each in letters} == {
        (NOW_MS, dead_until_s(NOW_MS), False)
    }
    assert {each.id for each in everything(retaining.endpoints, limit)} == {endpoint().id, endpoint(1).id}


def test_a_dead_letter_is_marked_and_says_all_it_said(stores: Stores, retaining: DynamoRetaining) -> None:
    first, second = given(stores, 2)
    buried(stores, first)
    buried(stores, second)
    before = everything(retaining.dead, 10)
    marked = next(each for each in before if each.delivery_id == first.delivery_id)
    retaining.mark_kept([marked])
    after = everything(retaining.dead, 10)
    assert {each.delivery_id: each.kept for each in after} == {
        first.delivery_id: True,
        second.delivery_id: False,
    }
    assert [replace(each, kept=False) for each in after] == before


def test_an_event_is_kept_longer_and_never_shorter(stores: Stores, retaining: DynamoRetaining) -> None:
    given(stores, 3)
    ids = [(TENANT, event(number).id) for number in range(3)]
    at = [keys.event(*each) for each in ids]
    hour = keys.listed_hour(TENANT, keys.hour_of(NOW_MS))
    until_s = payload_until_s(NOW_MS)
    longer = until_s + 40_000
    before = [stored(stores, each) for each in at]
    wanted = {ids[0]: longer, ids[1]: until_s - 1, (TENANT, event(9).id): longer}
    assert retaining.keep_events(wanted) == 1
    assert [stored(stores, each) for each in at] == [{**before[0], "ttl": longer}, *before[1:]]
    assert stored(stores, hour)["ttl"] == longer
    assert retaining.keep_events(wanted) == 0


def test_only_the_history_that_is_meant_is_kept_longer(stores: Stores, retaining: DynamoRetaining) -> None:
    first, second = given(stores, 2)
    tried = replace(first, made=1, counted=1, ready_ms=NOW_MS + 5_000)
    assert stores.work.move([(first, Again(failure(first), tried))]) == [True]
    partition = keys.endpoint_partition(TENANT, first.lane.endpoint_id)

    def history() -> dict[str, Record]:
        found = stores.tables.query(keys.HISTORY, partition, Span(), 100).records
        return {each["sk"]: each for each in found}

    before = history()
    longer = history_until_s(NOW_MS) + 1
    assert retaining.keep_history([tried], longer) == 2
    assert history() == {
        name: {**record, "ttl": longer} if name.startswith(first.delivery_id) else record
        for name, record in before.items()
    }
    assert retaining.keep_history([tried, second], longer) == 1
    assert retaining.keep_history([tried, second], longer) == 0


def test_an_event_lives_until_the_second_its_time_is_over(stores: Stores, retaining: DynamoRetaining) -> None:
    given(stores, 1)
    here, missing = (TENANT, event(0).id), (TENANT, event(5).id)
    until_s = payload_until_s(NOW_MS)
    assert retaining.living([here, missing], until_s - 1) == {here}
    assert retaining.living([here, missing], until_s) == set()


@without_moto
@pytest.mark.parametrize("limit", [1, 3, 100])
def test_rows_past_their_time_go_and_no_others(
    stores: Stores, retaining: DynamoRetaining, limit: int
) -> None:
    tables = [table for table in keys.EXPIRING if table != keys.IDEMPOTENCY]
    at = {
        Key(table, f"p{number % 2}", f"{number:02d}"): NOW_S - 4 + number
        for table in tables
        for number in range(9)
    }
    at |= {Key(keys.IDEMPOTENCY, f"key {number}"): NOW_S - 4 + number for number in range(9)}
    stays = [Key(keys.HISTORY, "p0", "no ttl"), Key(keys.GATES, "gate"), Key(keys.OWED, "lane", "1")]
    stores.tables.each([Insert(key, {"ttl": ttl}) for key, ttl in at.items()])
    stores.tables.each([Insert(key, {"x": 1}) for key in stays])
    removed, after, pages = 0, "", 0
    while pages == 0 or after:
        done = retaining.expire(after, limit, NOW_S)
        removed, after, pages = removed + done.removed, done.after, pages + 1
        assert pages < 200
    assert removed == 5 * len(keys.EXPIRING)
    left = {key for key, ttl in at.items() if ttl > NOW_S}
    assert set(stores.tables.get([*at, *stays])) == left | set(stays)


def test_a_deleted_endpoint_goes_when_nothing_leads_to_it(stores: Stores, retaining: DynamoRetaining) -> None:
    (owed,) = given(stores, 1)
    of = stores.endpoints.get(TENANT, endpoint().id)
    assert of is not None
    gone = replace(of, state=EndpointState.DELETED).next_to(of, NOW_MS)
    assert stores.endpoints.replace(of, gone)
    assert retaining.oldest_until_s(gone) == history_until_s(NOW_MS)
    assert not retaining.forget(gone)
    other = endpoint(1)
    stores.endpoints.create(other)
    assert retaining.oldest_until_s(other) is None
    assert not retaining.forget(replace(other, version=other.version + 1))
    assert stores.endpoints.get(TENANT, other.id) == other
    assert retaining.forget(other)
    assert stores.endpoints.get(TENANT, other.id) is None
    assert stores.gates.read([(TENANT, other.id)]) == {}
    assert stores.endpoints.get(TENANT, gone.id) == gone
    assert owed.lane.endpoint_id == gone.id


def test_what_is_listed_of_a_tenant_s_events_lasts_as_long_as_they(
    stores: Stores, retaining: DynamoRetaining
) -> None:
    assert retaining.listed_until_s(TENANT) is None
    for at_ms in (NOW_MS, NOW_MS - 3 * HOUR_MS):
        stores.capturing.commit([capture(event(1, at_ms=at_ms))], NOW_S)
    until_s = retaining.listed_until_s(TENANT)
    assert until_s is not None
    oldest = payload_until_s(NOW_MS - 3 * HOUR_MS)
    assert oldest <= until_s <= oldest + HOUR_MS // 1000
