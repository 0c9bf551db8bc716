"""The mended Query looks at fewer items and answers the same."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from infra.local.ministack_fast import SortedKeys, bounds, page

KEYS = st.text("ab#1", min_size=1, max_size=4)
Matching = Callable[[str, str, str], bool]
CONDITIONS: dict[str, Matching] = {
    "pk = :p": lambda *_: True,
    "pk = :p AND sk = :low": lambda key, low, _: key == low,
    "pk = :p AND sk < :low": lambda key, low, _: key < low,
    "pk = :p AND #s <= :low": lambda key, low, _: key <= low,
    "#p = :p and sk > :low": lambda key, low, _: key > low,
    "pk = :p AND (sk >= :low)": lambda key, low, _: key >= low,
    "pk = :p AND begins_with(sk, :low)": lambda key, low, _: key.startswith(low),
    "pk = :p AND #s BETWEEN :low AND :high": lambda key, low, high: low <= key <= high,
}


def asked(expression: str, low: str, high: str) -> dict[str, Any]:
    return {
        "KeyConditionExpression": expression,
        "ExpressionAttributeNames": {"#s": "sk", "#p": "pk"},
        "ExpressionAttributeValues": {":p": {"S": "p"}, ":low": {"S": low}, ":high": {"S": high}},
    }


@given(st.sets(KEYS), st.sampled_from(sorted(CONDITIONS)), KEYS, KEYS)
def test_the_bounds_are_what_the_condition_says(keys: set[str], expression: str, one: str, two: str) -> None:
    low, high = sorted((one, two))
    ordered = sorted(keys)
    places = bounds(ordered, "sk", asked(expression, low, high))
    assert places is not None
    matching = [key for key in ordered if CONDITIONS[expression](key, low, high)]
    assert ordered[slice(*places)] == matching


@given(keys=st.sets(KEYS), forward=st.booleans(), limit=st.integers(1, 5), cursor=st.none() | KEYS)
def test_a_page_is_what_the_limit_takes_and_one_more(
    keys: set[str], *, forward: bool, limit: int, cursor: str | None
) -> None:
    ordered = sorted(keys)
    query: dict[str, Any] = {"ScanIndexForward": forward, "Limit": limit}
    if cursor is not None:
        query["ExclusiveStartKey"] = {"sk": {"S": cursor}}
    left = [key for key in ordered if cursor is None or (key > cursor if forward else key < cursor)]
    expected = left[: limit + 1] if forward else left[-limit - 1 :]
    assert page(ordered, (0, len(ordered)), "sk", query) == expected


def test_what_is_not_understood_is_left_alone() -> None:
    for expression in ("pk = :p AND :low < sk", "pk = :p AND size(sk) > :low", "pk = :p OR sk = :low"):
        assert bounds(["a"], "sk", asked(expression, "a", "b")) is None


@given(st.lists(st.tuples(st.booleans(), KEYS)))
def test_the_keys_stay_sorted_as_items_come_and_go(changes: list[tuple[bool, str]]) -> None:
    sorted_keys = SortedKeys()
    bucket: dict[str, Any] = {"a": 1}
    for add, key in changes:
        assert sorted_keys.of(bucket) == sorted(bucket)
        if add and key not in bucket:
            bucket[key] = 1
            sorted_keys.added(bucket, key)
        elif not add and key in bucket:
            del bucket[key]
            sorted_keys.removed(bucket, key)
    assert sorted_keys.of(bucket) == sorted(bucket)


def test_keys_changed_behind_its_back_are_sorted_anew() -> None:
    sorted_keys = SortedKeys()
    bucket: dict[str, Any] = {"b": 1}
    assert sorted_keys.of(bucket) == ["b"]
    bucket["a"] = 1
    assert sorted_keys.of(bucket) == ["a", "b"]
