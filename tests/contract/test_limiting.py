"""Allowances: a token is given out once, however many ask, and what is reserved is owed."""

from collections.abc import Callable

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.limiting import DynamoAllowances
from chalicelib.adapters.dynamodb.records import Tables
from chalicelib.application.ports import Allowance, Taken, Wish
from chalicelib.domain import allowance
from chalicelib.domain.bucket import SECOND
from tests.contract.given import NOW_US, STRANGER, TENANT

EVENTS = Allowance(TENANT, "events")
FAN_OUT = Allowance(TENANT, "fan-out")
TEN = allowance.bucket_of(10)
COST = TEN.cost


def taken(tables: Tables, count: int, *, tat: int = 0, now: int = NOW_US) -> Taken:
    (answer,) = DynamoAllowances(tables).take([Wish(EVENTS, TEN, count, tat)], now)
    return answer


def test_a_bucket_nobody_has_asked_yet_is_full(tables: Tables) -> None:
    assert taken(tables, 4) == Taken(4, NOW_US + 4 * COST)
    assert taken(tables, 100) == Taken(6, NOW_US + 10 * COST)
    assert taken(tables, 1) == Taken(0, NOW_US + 10 * COST)


def test_more_than_a_bucket_holds_is_given_as_much_as_it_holds(tables: Tables) -> None:
    assert taken(tables, 100) == Taken(10, NOW_US + 10 * COST)


def test_it_fills_by_the_rate_and_no_further_than_it_holds(tables: Tables) -> None:
    taken(tables, 10)
    assert taken(tables, 10, now=NOW_US + SECOND // 2).count == 5
    assert taken(tables, 99, now=NOW_US + 60 * SECOND).count == 10


def test_however_wrong_what_was_last_seen_is_the_answer_is_right(tables: Tables) -> None:
    taken(tables, 3)
    for tat in (0, NOW_US - SECOND, NOW_US + COST, NOW_US + 60 * SECOND):
        assert taken(tables, 1, tat=tat).count == 1
    assert taken(tables, 5, tat=NOW_US + 7 * COST) == Taken(3, NOW_US + 10 * COST)


def test_several_are_asked_together_each_for_itself(tables: Tables) -> None:
    store = DynamoAllowances(tables)
    others = [Allowance(TENANT, "key-1"), Allowance(STRANGER, "events")]
    taken(tables, 8)
    wishes = [Wish(of, TEN, 5) for of in (EVENTS, *others)]
    assert [each.count for each in store.take(wishes, NOW_US)] == [2, 5, 5]


def test_once_it_is_known_a_bucket_costs_one_call(tables: Tables, calls: Callable[[], int]) -> None:
    tat = taken(tables, 1).tat
    calls()
    for _ in range(3):
        tat = taken(tables, 1, tat=tat).tat
    assert calls() == 3


def test_what_is_reserved_is_owed_and_nothing_is_there_until_it_has_come_in(tables: Tables) -> None:
    store = DynamoAllowances(tables)
    assert store.reserve(Wish(EVENTS, TEN, 10), NOW_US) == NOW_US + 10 * COST
    assert store.reserve(Wish(EVENTS, TEN, 20), NOW_US) == NOW_US + 30 * COST
    assert taken(tables, 1, now=NOW_US + 2 * SECOND) == Taken(0, NOW_US + 30 * COST)
    assert taken(tables, 9, now=NOW_US + 3 * SECOND).count == 9


def test_a_bucket_that_was_idle_owes_only_what_is_reserved(tables: Tables) -> None:
    store = DynamoAllowances(tables)
    store.reserve(Wish(FAN_OUT, TEN, 10), NOW_US)
    later = NOW_US + 60 * SECOND
    assert store.reserve(Wish(FAN_OUT, TEN, 5), later) == later + 5 * COST


def test_what_is_owed_at_another_rate_is_owed_at_this_one(tables: Tables) -> None:
    store = DynamoAllowances(tables)
    slow, fast = allowance.bucket_of(1), allowance.bucket_of(100)
    store.reserve(Wish(FAN_OUT, slow, 600), NOW_US)
    tat = store.reserve(Wish(FAN_OUT, fast, 100), NOW_US)
    assert tat == NOW_US + 7 * SECOND
    assert store.reserve(Wish(FAN_OUT, slow, 1), NOW_US) == NOW_US + 701 * SECOND


def test_an_allowance_stands_in_a_partition_of_its_own_that_begins_with_its_tenant() -> None:
    partitions = {keys.allowance(*of).pk for of in (EVENTS, FAN_OUT, Allowance(TENANT, "key-1"))}
    assert len(partitions) == 3
    assert all(each.startswith(f"{TENANT}#") for each in partitions)
