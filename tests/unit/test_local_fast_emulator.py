"""What is mended looks at less and answers the same."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from infra.local.ministack_fast import SortedKeys, bounds, page
from infra.local.ministack_speech import copied, kept

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


class Reader:
    """Reads a text of question marks and words; `read` has the texts it was asked to read."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, text: str, parameters: list[dict[str, Any]] | None) -> dict[str, Any]:
        self.read.append(text)
        given = iter(parameters or [])
        found: list[Any] = []
        for word in text.split():
            if word == "?":
                value = next(given, None)
                if value is None:
                    raise ValueError("too few")
                found.append(("lit", value, ["param"]))
            else:
                found.append(("name", word))
        return {"op": "SET", "found": found, "last": found[-1:] and {"of": found[-1]}}


VALUES = st.sampled_from([{"S": "a"}, {"S": "b"}, {"N": "1"}, {"M": {"k": {"S": "v"}}}, {"L": []}])
TEXTS = st.sampled_from(["? a ?", "? ?", "a", "? b", ""])


@given(st.lists(st.tuples(TEXTS, st.lists(VALUES, max_size=3))))
def test_a_kept_reading_is_what_reading_again_would_be(asked: list[tuple[str, list[dict[str, Any]]]]) -> None:
    mended, plain = kept(Reader()), Reader()
    for text, parameters in asked:
        try:
            expected: dict[str, Any] | None = plain(text, parameters)
        except ValueError:
            expected = None
        try:
            assert mended(text, parameters) == expected
        except ValueError:
            assert expected is None


def test_a_text_is_read_once_for_each_row_of_types() -> None:
    reader = Reader()
    mended = kept(reader)
    mended("? a ?", [{"S": "1"}, {"N": "1"}])
    before = len(reader.read)
    for number in range(5):
        mended("? a ?", [{"S": f"{number}"}, {"N": f"{number}"}])
    assert len(reader.read) == before
    mended("? a ?", [{"N": "1"}, {"N": "1"}])
    assert len(reader.read) > before


def test_what_one_reading_is_made_into_changes_no_other() -> None:
    mended = kept(Reader())
    first = mended("? a", [{"S": "1"}])
    first["found"].clear()
    first["last"]["of"] = None
    assert mended("? a", [{"S": "2"}]) == Reader()("? a", [{"S": "2"}])


def test_a_reading_that_goes_by_the_values_is_not_kept() -> None:
    def counting(_: str, parameters: list[dict[str, Any]]) -> dict[str, Any]:
        return {"same": parameters[0]["S"] == parameters[1]["S"], "first": str(parameters[0])}

    mended = kept(counting)
    for pair in ([{"S": "a"}, {"S": "b"}], [{"S": "a"}, {"S": "a"}]):
        assert mended("? ?", pair) == counting("? ?", pair)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.binary(max_size=3),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=2), values, max_size=3),
    max_leaves=12,
)


@given(JSON_VALUES)
def test_a_copy_is_equal_and_shares_nothing_that_can_be_changed(value: Any) -> None:  # noqa: ANN401 - JSON
    def changeable(part: Any) -> set[int]:  # noqa: ANN401 - JSON
        if not isinstance(part, dict | list):
            return set()
        inside = part.values() if isinstance(part, dict) else part
        return {id(part)}.union(*map(changeable, inside))

    copy = copied(value)
    assert copy == value
    assert changeable(copy).isdisjoint(changeable(value))


def test_what_json_has_not_is_copied_too() -> None:
    buckets: defaultdict[str, dict[str, Any]] = defaultdict(dict, {"a": {"b": {1}}})
    copy = copied({"items": buckets})["items"]
    copy["a"]["b"].add(2)
    assert (type(copy), copy["new"], buckets) == (defaultdict, {}, {"a": {"b": {1}}})
