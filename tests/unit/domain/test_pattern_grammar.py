"""Filters as they are written: refused with the place of the fault, bounded, and kept as they are."""

import json
from typing import Any

import pytest

from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.pattern import PATTERN_MAX, admitted
from tests.unit.domain.filters import choices, nested, of

REFUSED: list[tuple[object, str, str]] = [
    ({}, "filter", "at least one field"),
    ({"a": 1}, "filter.a", "a list of values, or an object of fields"),
    ({"a": "b"}, "filter.a", "a list of values, or an object of fields"),
    ({"a": None}, "filter.a", "a list of values, or an object of fields"),
    ({"a": []}, "filter.a", "at least one value"),
    ({"a": {}}, "filter.a", "at least one field"),
    ({"a": [[1]]}, "filter.a[0]", "an operator"),
    ({"a": ["x", {}]}, "filter.a[1]", "one of: anything-but"),
    ({"a": [{"prefix": "a", "suffix": "b"}]}, "filter.a[0]", "one of: anything-but"),
    ({"a": [{"regex": "a"}]}, "filter.a[0].regex", "one of: anything-but"),
    ({"a": [{"exactly": "a"}]}, "filter.a[0].exactly", "one of: anything-but"),
    ({"a": [{"prefix": 1}]}, "filter.a[0].prefix", "text"),
    ({"a": [{"prefix": ["a"]}]}, "filter.a[0].prefix", "text"),
    ({"a": [{"suffix": {"prefix": "a"}}]}, "filter.a[0].suffix", '{"equals-ignore-case": text}'),
    ({"a": [{"suffix": {"equals-ignore-case": 1}}]}, "filter.a[0].suffix.equals-ignore-case", "text"),
    ({"a": [{"equals-ignore-case": None}]}, "filter.a[0].equals-ignore-case", "text"),
    ({"a": [{"exists": "true"}]}, "filter.a[0].exists", "true or false"),
    ({"a": [{"exists": 1}]}, "filter.a[0].exists", "true or false"),
    ({"a": [{"anything-but": []}]}, "filter.a[0].anything-but", "a list of texts"),
    ({"a": [{"anything-but": ["a", 1]}]}, "filter.a[0].anything-but", "a list of texts"),
    ({"a": [{"anything-but": True}]}, "filter.a[0].anything-but", "a list of texts"),
    ({"a": [{"anything-but": [None]}]}, "filter.a[0].anything-but", "a list of texts"),
    ({"a": [{"anything-but": {"numeric": ["=", 1]}}]}, "filter.a[0].anything-but", "with one of: prefix"),
    ({"a": [{"anything-but": {"prefix": ""}}]}, "filter.a[0].anything-but.prefix", "at least one character"),
    ({"a": [{"anything-but": {"suffix": ["a", 1]}}]}, "filter.a[0].anything-but.suffix[1]", "text"),
    ({"a": [{"anything-but": {"wildcard": ["a**"]}}]}, "filter.a[0].anything-but.wildcard[0]", "no two *"),
    ({"a": [{"anything-but": {"prefix": []}}]}, "filter.a[0].anything-but.prefix", "at least one text"),
    ({"a": [{"wildcard": "a**b"}]}, "filter.a[0].wildcard", "no two *"),
    ({"a": [{"wildcard": "a\\b"}]}, "filter.a[0].wildcard", "no two *"),
    ({"a": [{"wildcard": "a\\"}]}, "filter.a[0].wildcard", "no two *"),
    ({"a": [{"cidr": "10.0.0.1"}]}, "filter.a[0].cidr", "a block such as"),
    ({"a": [{"cidr": "10.0.0.0/33"}]}, "filter.a[0].cidr", "a block such as"),
    ({"a": [{"cidr": "10.0.0/8"}]}, "filter.a[0].cidr", "a block such as"),
    ({"a": [{"cidr": "fe80::1%eth0/64"}]}, "filter.a[0].cidr", "a block such as"),
    ({"a": [{"cidr": "10.0.0.0/+8"}]}, "filter.a[0].cidr", "a block such as"),
    ({"a": [{"numeric": 5}]}, "filter.a[0].numeric", 'one of ["=", n]'),
    ({"a": [{"numeric": []}]}, "filter.a[0].numeric", 'one of ["=", n]'),
    ({"a": [{"numeric": [">"]}]}, "filter.a[0].numeric", 'one of ["=", n]'),
    ({"a": [{"numeric": ["!=", 5]}]}, "filter.a[0].numeric[0]", 'one of ["=", n]'),
    ({"a": [{"numeric": ["<", 5, ">", 1]}]}, "filter.a[0].numeric[0]", 'such as [">", 0'),
    ({"a": [{"numeric": [">", 1, "=", 5]}]}, "filter.a[0].numeric[2]", 'such as [">", 0'),
    ({"a": [{"numeric": [">", 5, "<", 5]}]}, "filter.a[0].numeric[3]", "above the first"),
    ({"detail": {"amount": [{"numeric": [">", "5"]}]}}, "filter.detail.amount[0].numeric[1]", "a number"),
    ({"a": [{"numeric": [">", True]}]}, "filter.a[0].numeric[1]", "a number"),
    ({"$or": {"a": [1]}}, "filter.$or", "at least two objects"),
    ({"$or": [{"a": [1]}]}, "filter.$or", "at least two objects"),
    ({"$or": [{"a": [1]}, 2]}, "filter.$or[1]", "at least one field"),
    ({"$or": [{"a": [1]}, {}]}, "filter.$or[1]", "at least one field"),
    ({"$or": [{"a": [1]}, {"prefix": ["a"]}]}, "filter.$or[1].prefix", "the name of a field"),
    ({"$or": [{"a": [1]}, {"b": {"exists": [True]}}]}, "filter.$or[1].b.exists", "the name of a field"),
    ({"a": [1], "$or": [{"b": [1]}, {"a": [2]}]}, "filter.$or[1].a", "each field once"),
    ({"a b": {"c.d": []}}, 'filter["a b"]["c.d"]', "at least one value"),
    ({"a": ["\ud800"]}, "filter", "half surrogate pairs"),
]


@pytest.mark.parametrize(
    "filter_, place, expected", [pytest.param(*each, id=str(each[0])) for each in REFUSED]
)
def test_a_filter_that_is_no_pattern_is_refused_with_its_place(
    filter_: dict[str, Any], place: str, expected: str
) -> None:
    with pytest.raises(RelayError) as told:
        admitted(filter_)
    assert told.value.code is ErrorCode.FIELD_INVALID
    assert told.value.field == place
    assert expected in told.value.expected


@pytest.mark.parametrize(
    "fits, beyond, expected",
    [
        (of("a", "é" * 1_019), of("a", "é" * 1_019 + "e"), f"at most {PATTERN_MAX} bytes"),
        (nested(20), nested(21), "at most 20 levels"),
        (of("a", *range(100)), of("a", *range(101)), "at most 100"),
        (choices(9), choices(10), "at most 1000 combinations"),
    ],
    ids=["bytes", "levels", "values", "combinations"],
)
def test_a_filter_has_bounds(fits: dict[str, Any], beyond: dict[str, Any], expected: str) -> None:
    assert admitted(fits)
    with pytest.raises(RelayError) as told:
        admitted(beyond)
    assert expected in told.value.expected


def test_a_filter_is_kept_as_it_was_written_but_for_spaces() -> None:
    written = '{"z":[1,2.5,1e-07,"é",null,true,{"numeric":[">",0]}],"a":{"$or":[{"c":[1]},{"b":[2]}]}}'
    assert admitted(json.loads(written)) == written
