from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.adapters.aws_limits.dynamodb_values import item_size, value_size
from tests.unit.aws_limits import Limit, Params, call, refusal_of

if TYPE_CHECKING:
    from decimal import Decimal

KIB_400 = 409_600


def put(**attributes: object) -> Params:
    return {"TableName": "relay-owed", "Item": {"pk": {"S": "p"}, "sk": {"S": "s"}, **attributes}}


def number(text: str) -> Params:
    return put(n={"N": text})


def nested(kind: str, wraps: int) -> dict[str, Any]:
    value: dict[str, Any] = {"S": "leaf"}
    for _ in range(wraps):
        value = {"M": {"n": value}} if kind == "M" else {"L": [value]}
    return value


def key(pk: str = "p", sk: str = "s") -> Params:
    return {"TableName": "relay-owed", "Item": {"pk": {"S": pk}, "sk": {"S": sk}}}


def gate(**attributes: object) -> Params:
    return {"TableName": "relay-gates", "Item": {"pk": {"S": "p"}, **attributes}}


NUMBERS = {
    "38 digits": Limit("dynamodb.put_item", number("1" * 38), number("1" * 39), "Item.n"),
    "zeros at the ends do not count": Limit(
        "dynamodb.put_item", number("00" + "1" * 38 + "00.00"), number("1" + "0" * 37 + ".1"), "Item.n"
    ),
    "the largest": Limit("dynamodb.put_item", number("9.9e125"), number("1e126"), "Item.n"),
    "the smallest": Limit("dynamodb.put_item", number("1e-130"), number("9.9e-131"), "Item.n"),
    "a negative one": Limit("dynamodb.put_item", number("-9.9E+125"), number("-1E+126"), "Item.n"),
    "zero with an exponent": Limit("dynamodb.put_item", number("0e125"), number("0e126"), "Item.n"),
    "digits at all": Limit("dynamodb.put_item", number(".5"), number("."), "Item.n"),
    "no words": Limit("dynamodb.put_item", number("5."), number("NaN"), "Item.n"),
    "no separators": Limit("dynamodb.put_item", number("1000"), number("1_000"), "Item.n"),
    "no blanks": Limit("dynamodb.put_item", number("+1"), number(" 1"), "Item.n"),
    "ASCII digits": Limit("dynamodb.put_item", number("1"), number("\uff11"), "Item.n"),
    "an exponent that can be read": Limit(
        "dynamodb.put_item", number("1e000000000000000001"), number("1e9223372036854775808"), "Item.n"
    ),
}
VALUES = {
    "a text set with a member": Limit("dynamodb.put_item", put(a={"SS": [""]}), put(a={"SS": []}), "Item.a"),
    "a number set with a member": Limit(
        "dynamodb.put_item", put(a={"NS": ["1"]}), put(a={"NS": []}), "Item.a"
    ),
    "a binary set with a member": Limit(
        "dynamodb.put_item", put(a={"BS": [b"\0"]}), put(a={"BS": []}), "Item.a"
    ),
    "an empty set inside a list": Limit(
        "dynamodb.put_item", put(a={"L": []}), put(a={"L": [{"SS": []}]}), "Item.a[0]"
    ),
    "distinct members": Limit(
        "dynamodb.put_item", put(a={"SS": ["x", "X"]}), put(a={"SS": ["x", "x"]}), "Item.a"
    ),
    "distinct numbers": Limit(
        "dynamodb.put_item", put(a={"NS": ["1", "2"]}), put(a={"NS": ["1", "1.0"]}), "Item.a"
    ),
    "good numbers in a set": Limit(
        "dynamodb.put_item", put(a={"NS": ["1"]}), put(a={"NS": ["1", "x"]}), "Item.a[1]"
    ),
    "one type": Limit("dynamodb.put_item", put(a={"M": {}}), put(a={}), "Item.a"),
    "one type only": Limit("dynamodb.put_item", put(a={"S": ""}), put(a={"S": "1", "N": "1"}), "Item.a"),
    "a true null": Limit("dynamodb.put_item", put(a={"NULL": True}), put(a={"NULL": False}), "Item.a"),
    "an expiry that is a number": Limit(
        "dynamodb.put_item", put(ttl={"N": "1764000000"}), put(ttl={"S": "1764000000"}), "Item.ttl"
    ),
}
KEYS = {
    "a hash key of 2,048 bytes": Limit(
        "dynamodb.put_item", key("漢" * 682 + "xx"), key("x" * 2_049), "Item.pk"
    ),
    "a range key of 1,024 bytes": Limit(
        "dynamodb.put_item", key(sk="x" * 1_024), key(sk="漢" * 342), "Item.sk"
    ),
    "a hash key": Limit("dynamodb.put_item", key("x"), key(""), "Item.pk"),
    "a range key": Limit("dynamodb.put_item", key(sk="x"), key(sk=""), "Item.sk"),
    "a key of the table's type": Limit(
        "dynamodb.put_item",
        put(),
        {"TableName": "relay-owed", "Item": {"pk": {"S": "p"}, "sk": {"N": "1"}}},
        "Item.sk",
    ),
    "a whole key": Limit(
        "dynamodb.put_item", put(), {"TableName": "relay-owed", "Item": {"pk": {"S": "p"}}}, "Item"
    ),
    "an index's key": Limit(
        "dynamodb.put_item",
        gate(armed_shard={"S": "0"}, armed_until={"N": "1"}),
        gate(armed_shard={"S": ""}, armed_until={"N": "1"}),
        "Item.armed_shard",
    ),
    "an index's key of its type": Limit(
        "dynamodb.put_item", gate(), gate(armed_until={"S": "1"}), "Item.armed_until"
    ),
}
SIZES = [
    ({"S": "abc"}, 3),
    ({"S": "漢"}, 3),
    ({"B": b"\0\1"}, 2),
    ({"BOOL": True}, 1),
    ({"NULL": True}, 1),
    ({"SS": ["ab", "c"]}, 3),
    ({"NS": ["1", "123"]}, 5),
    ({"L": []}, 3),
    ({"L": [{"S": "ab"}, {"BOOL": False}]}, 3 + 2 + 3),
    ({"M": {}}, 3),
    ({"M": {"ab": {"S": "c"}}}, 3 + 1 + 2 + 1),
]
NUMBER_SIZES = [
    ("0", 1),
    ("-0", 1),
    ("1", 2),
    ("12", 2),
    ("123", 3),
    ("1234", 3),
    ("0042", 2),
    ("100", 2),
    ("1010", 3),
    ("0.0000001", 2),
    ("1E125", 2),
    ("1E-100", 2),
    ("1.5", 3),
    ("15", 2),
    ("1.200", 3),
    ("1.234", 4),
    ("3.14159", 5),
    ("100.5", 4),
    ("0.15", 2),
    ("-42", 3),
    ("1" * 38, 20),
]


@pytest.mark.parametrize("limit", NUMBERS.values(), ids=NUMBERS)
def test_a_number_keeps_to_what_dynamodb_stores(limit: Limit) -> None:
    limit.check()


@pytest.mark.parametrize("limit", VALUES.values(), ids=VALUES)
def test_a_value_keeps_to_what_dynamodb_stores(limit: Limit) -> None:
    limit.check()


@pytest.mark.parametrize("limit", KEYS.values(), ids=KEYS)
def test_a_key_keeps_to_what_dynamodb_stores(limit: Limit) -> None:
    limit.check()


@pytest.mark.parametrize("kind", ["M", "L"])
def test_f112_nesting_33_is_refused_and_32_passes(kind: str) -> None:
    call("dynamodb.put_item", put(deep=nested(kind, 31)))
    assert "32 levels" in refusal_of("dynamodb.put_item", put(deep=nested(kind, 32))).rule


def test_f112_nesting_beyond_all_measure_is_refused_too() -> None:
    assert refusal_of("dynamodb.put_item", put(deep=nested("L", 5_000))).call == "dynamodb.PutItem"


def test_f112_number_1e126_is_refused() -> None:
    assert refusal_of("dynamodb.put_item", number("1e126")).parameter == "Item.n"


@pytest.mark.parametrize("letter", ["x", "漢"])
def test_f116_an_item_of_409601_bytes_with_names_is_refused(letter: str) -> None:
    bytes_each = len(letter.encode())
    room = KIB_400 - item_size(put(payload={"S": ""})["Item"])
    fits = letter * (room // bytes_each) + "y" * (room % bytes_each)
    call("dynamodb.put_item", put(payload={"S": fits}))
    refusal = refusal_of("dynamodb.put_item", put(payload={"S": fits + "y"}))
    assert (refusal.parameter, refusal.rule) == ("Item", "must take at most 409600 bytes, takes 409601")


@pytest.mark.parametrize("value,size", SIZES)
def test_a_value_is_as_large_as_aws_counts_it(value: dict[str, Any], size: int) -> None:
    assert value_size(value) == size


@pytest.mark.parametrize("text,size", NUMBER_SIZES)
def test_a_number_is_as_large_as_aws_counts_it(text: str, size: int) -> None:
    assert value_size({"N": text}) == size


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=6))
def test_a_numbers_size_depends_on_its_value_alone(value: Decimal) -> None:
    sizes = {value_size({"N": text}) for text in (str(value), f"{value:f}", f"{value:E}", f"{value:f}0")}
    assert len(sizes) == 1
    assert sizes.pop() <= 21


def test_an_item_counts_its_names_in_bytes() -> None:
    assert item_size({"größe": {"N": "12"}, "x": {"S": "ab"}}) == 7 + 2 + 1 + 2
