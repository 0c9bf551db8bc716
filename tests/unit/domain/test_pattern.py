"""Filters: every operator takes what AWS documents that it takes, and no body and no filter make one slow."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.pattern import COMPARED_MAX, VALUES_MAX, admitted, compiled, members_of
from tests.unit.domain.examples import event
from tests.unit.domain.filters import choices, matches, nested, of

TAKEN: list[tuple[str, dict[str, Any]]] = [
    ("a text", of("state", "paid")),
    ("one of several", of("state", "open", "paid")),
    ("a number", of("count", 5)),
    ("a number written otherwise", of("count", 5.0)),
    ("a number with an exponent", of("amount", 3.018e2)),
    ("false", {"gift": [False]}),
    ("null", of("note", None)),
    ("an empty text", of("empty", "")),
    ("an element of a list", of("customer.tags", "vip")),
    ("a field within", of("customer.country", "FR", "DE")),
    ("a field of an element", of("lines.sku", "B-2")),
    ("prefix", of("id", {"prefix": "ord-"})),
    ("prefix of the whole", of("state", {"prefix": "paid"})),
    ("prefix of nothing takes every text", of("state", {"prefix": ""})),
    ("prefix in any case", of("id", {"prefix": {"equals-ignore-case": "ORD-"}})),
    ("suffix", of("file", {"suffix": ".PNG"})),
    ("suffix in any case", of("file", {"suffix": {"equals-ignore-case": ".png"}})),
    ("equals-ignore-case", of("state", {"equals-ignore-case": "PAID"})),
    ("equals-ignore-case beyond ASCII", of("state", {"equals-ignore-case": "paid"}, "straße")),
    ("anything-but a text", of("state", {"anything-but": "open"})),
    ("anything-but a number", of("count", {"anything-but": 6})),
    ("anything-but texts", of("state", {"anything-but": ["open", "lost"]})),
    ("anything-but numbers", of("count", {"anything-but": [4, 6]})),
    ("anything-but a text takes a number", of("count", {"anything-but": "5"})),
    ("anything-but a text takes false", of("gift", {"anything-but": "false"})),
    ("anything-but a number takes null", of("note", {"anything-but": 0})),
    ("anything-but takes a list with anything else", of("customer.tags", {"anything-but": "vip"})),
    ("anything-but a prefix", of("state", {"anything-but": {"prefix": "init"}})),
    ("anything-but prefixes", of("state", {"anything-but": {"prefix": ["init", "op"]}})),
    ("anything-but a suffix", of("file", {"anything-but": {"suffix": ".txt"}})),
    ("anything-but suffixes", of("file", {"anything-but": {"suffix": [".txt", ".png"]}})),
    ("anything-but in any case", of("state", {"anything-but": {"equals-ignore-case": "OPEN"}})),
    ("anything-but several in any case", of("state", {"anything-but": {"equals-ignore-case": ["X", "Y"]}})),
    ("anything-but a wildcard", of("file", {"anything-but": {"wildcard": "*/lib/*"}})),
    ("anything-but wildcards", of("file", {"anything-but": {"wildcard": ["*/lib/*", "*.txt"]}})),
    ("numeric =", of("amount", {"numeric": ["=", 301.80]})),
    ("numeric <", of("count", {"numeric": ["<", 6]})),
    ("numeric <= at its end", of("count", {"numeric": ["<=", 5]})),
    ("numeric >", of("count", {"numeric": [">", 4.999999]})),
    ("numeric >= at its end", of("count", {"numeric": [">=", 5]})),
    ("numeric range", of("count", {"numeric": [">", 0, "<=", 5]})),
    ("numeric range, lower end", of("count", {"numeric": [">=", 5, "<", 6]})),
    ("numeric, any element", of("lines.quantity", {"numeric": [">", 10]})),
    ("exists", of("state", {"exists": True})),
    ("exists, though null", of("note", {"exists": True})),
    ("exists, though empty", of("empty", {"exists": True})),
    ("exists in one element", of("lines.gift", {"exists": True})),
    ("absent", of("missing", {"exists": False})),
    ("absent below what is missing", of("missing.further", {"exists": False})),
    ("absent below a text", of("state.further", {"exists": False})),
    ("an object is no leaf", of("customer", {"exists": False})),
    ("an empty object is no leaf", of("nothing", {"exists": False})),
    ("an empty list is no leaf", of("none", {"exists": False})),
    ("absent or a value", of("state", {"exists": False}, "paid")),
    ("cidr", of("customer.address", {"cidr": "10.0.0.0/24"})),
    ("cidr given by an address within", of("customer.address", {"cidr": "10.0.0.7/24"})),
    ("cidr of one address", of("customer.address", {"cidr": "10.0.0.33/32"})),
    ("cidr of IPv6", of("customer.address6", {"cidr": "2001:DB8:0::/32"})),
    ("wildcard", of("file", {"wildcard": "dir/*.PNG"})),
    ("wildcard at either end", of("file", {"wildcard": "*sub*"})),
    ("wildcard for nothing", of("state", {"wildcard": "pa*id"})),
    ("wildcard alone", of("state", {"wildcard": "*"})),
    ("wildcard without one", of("state", {"wildcard": "paid"})),
    ("all fields", {"state": ["paid"], "count": [5], "customer": {"country": ["DE"]}}),
    ("$or", {"$or": [{"state": ["open"]}, {"count": [5]}]}),
    ("$or beside a field", {"state": ["paid"], "$or": [{"count": [4]}, {"gift": [False]}]}),
    ("$or of several fields", {"$or": [{"state": ["paid"], "count": [5]}, {"gift": [True]}]}),
    ("$or within $or", {"$or": [{"state": ["x"]}, {"count": [5], "$or": [{"id": ["x"]}, {"note": [None]}]}]}),
    ("$or within an object", {"customer": {"$or": [{"country": ["FR"]}, {"tags": ["vip"]}]}}),
    ("two fields of one element", {"lines": {"sku": ["B-2"], "quantity": [{"numeric": [">", 10]}]}}),
    ("absent in the element of the other", {"lines": {"sku": ["B-2"], "gift": [{"exists": False}]}}),
    ("$or in one element", {"lines": {"sku": ["A-1"], "$or": [{"quantity": [9]}, {"gift": [True]}]}}),
]  # fmt: skip

NOT_TAKEN: list[tuple[str, dict[str, Any]]] = [
    ("another text", of("state", "open")),
    ("another case", of("state", "PAID")),
    ("the text of a number", of("count", "5")),
    ("the number of a text", of("id", 1017)),
    ("0 for false", of("gift", 0)),
    ("the text of null", of("note", "null")),
    ("null for what is missing", of("missing", None)),
    ("null for an empty text", of("empty", None)),
    ("an object for its text", of("customer", "DE")),
    ("a field of a text", of("state.further", "paid")),
    ("prefix", of("id", {"prefix": "rd-"})),
    ("prefix of a number", of("count", {"prefix": "5"})),
    ("prefix of nothing takes no number", of("count", {"prefix": ""})),
    ("prefix in its case", of("id", {"prefix": "ORD-"})),
    ("suffix in its case", of("file", {"suffix": ".png"})),
    ("equals-ignore-case of a part", of("state", {"equals-ignore-case": "PAI"})),
    ("anything-but what it is", of("state", {"anything-but": "paid"})),
    ("anything-but what it is among others", of("count", {"anything-but": [4, 5.0]})),
    ("anything-but of what is missing", of("missing", {"anything-but": "x"})),
    ("anything-but of an object", of("customer", {"anything-but": "x"})),
    ("anything-but of an empty list", of("none", {"anything-but": "x"})),
    ("anything-but its prefix", of("state", {"anything-but": {"prefix": ["x", "pa"]}})),
    ("anything-but its suffix", of("file", {"anything-but": {"suffix": ".PNG"}})),
    ("anything-but in any case", of("state", {"anything-but": {"equals-ignore-case": "PAID"}})),
    ("anything-but its wildcard", of("file", {"anything-but": {"wildcard": "*/sub/*"}})),
    ("numeric =", of("amount", {"numeric": ["=", 301.800001]})),
    ("numeric < at its end", of("count", {"numeric": ["<", 5]})),
    ("numeric > at its end", of("count", {"numeric": [">", 5]})),
    ("numeric range", of("count", {"numeric": [">", 5, "<=", 8]})),
    ("numeric of a text", of("id", {"numeric": [">", 0]})),
    ("numeric of false", of("gift", {"numeric": ["=", 0]})),
    ("numeric of null", of("note", {"numeric": ["<", 1]})),
    ("exists", of("missing", {"exists": True})),
    ("an object does not exist", of("customer", {"exists": True})),
    ("an empty list does not exist", of("none", {"exists": True})),
    ("absent", of("state", {"exists": False})),
    ("absent, though null", of("note", {"exists": False})),
    ("absent in some element alone", of("lines.gift", {"exists": False})),
    ("absent or another value", of("state", {"exists": False}, "open")),
    ("cidr", of("customer.address", {"cidr": "10.0.1.0/24"})),
    ("cidr of the other family", of("customer.address", {"cidr": "2001:db8::/32"})),
    ("cidr of no address", of("id", {"cidr": "0.0.0.0/0"})),
    ("cidr of a number", of("count", {"cidr": "0.0.0.0/0"})),
    ("wildcard", of("file", {"wildcard": "dir/*.png"})),
    ("wildcard of a number", of("count", {"wildcard": "*"})),
    ("wildcard whose ends would overlap", of("state", {"wildcard": "pai*aid"})),
    ("one field of two", {"state": ["paid"], "count": [6]}),
    ("$or", {"$or": [{"state": ["open"]}, {"count": [6]}]}),
    ("$or beside a field", {"state": ["open"], "$or": [{"count": [5]}, {"gift": [False]}]}),
    ("$or of several fields", {"$or": [{"state": ["paid"], "count": [6]}, {"gift": [True]}]}),
    ("fields of two elements", {"lines": {"sku": ["A-1"], "quantity": [12]}}),
    ("fields of two, by $or", {"lines": {"sku": ["B-2"]}, "$or": [{"lines": {"gift": [True]}}, {"x": [1]}]}),
    ("absent where the other is not", {"lines": {"sku": ["A-1"], "gift": [{"exists": False}]}}),
]  # fmt: skip


@pytest.mark.parametrize("filter_", [pytest.param(filter_, id=name) for name, filter_ in TAKEN])
def test_an_event_that_is_as_the_filter_wants_it_passes(filter_: dict[str, Any]) -> None:
    assert matches(filter_)


@pytest.mark.parametrize("filter_", [pytest.param(filter_, id=name) for name, filter_ in NOT_TAKEN])
def test_an_event_that_is_otherwise_does_not_pass(filter_: dict[str, Any]) -> None:
    assert not matches(filter_)


@pytest.mark.parametrize(
    "wildcard, taken, not_taken",
    [
        (r"a\*b", ["a*b"], ["aXb", r"a\*b"]),
        (r"a\\b", [r"a\b"], [r"a\\b", "ab"]),
        (r"\**", ["*", "*x"], ["x*"]),
        (r"*\*", ["*", "x*"], ["*x", ""]),
        ("a*b*c", ["abc", "aXbYc", "abbcc", "a\nb\nc"], ["acb", "abcd", "ab"]),
        ("*a*a*", ["aa", "xaya"], ["a", "xa"]),
        ("", [""], ["x"]),
    ],
)
def test_a_wildcard_takes_any_characters_and_an_escaped_one_itself(
    wildcard: str, taken: list[str], not_taken: list[str]
) -> None:
    filter_ = of("text", {"wildcard": wildcard})
    assert [text for text in taken + not_taken if matches(filter_, {"text": text})] == taken


@given(st.text("ab*\\", max_size=8), st.lists(st.text("ab*\\", max_size=3), min_size=1, max_size=4))
def test_a_wildcard_takes_exactly_the_texts_that_are_made_by_it(filling: str, pieces: list[str]) -> None:
    escaped = [piece.replace("\\", "\\\\").replace("*", "\\*") for piece in pieces]
    if all(pieces[1:-1]):
        assert matches(of("text", {"wildcard": "*".join(escaped)}), {"text": filling.join(pieces)})
    plain = filling.replace("\\", "\\\\").replace("*", "\\*")
    assert matches(of("text", {"wildcard": plain}), {"text": filling})


@pytest.mark.parametrize(
    "content_type, body",
    [
        ("text/plain", b'{"state":"paid"}'),
        ("application/octet-stream", b"\xff\xfe"),
        ("application/json", b'["paid"]'),
        ("application/json", b'"paid"'),
        ("application/json", b"null"),
        ("application/json", b'{"state":'),
        ("application/json", b'{"state":"\xff"}'),
    ],
)
def test_a_body_that_is_no_json_object_has_nothing_to_match(content_type: str, body: bytes) -> None:
    assert members_of(event(body, content_type)) is None


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "application/cloudevents+json"])
def test_every_json_content_type_is_looked_into(content_type: str) -> None:
    assert members_of(event(b'{"state":"paid"}', content_type)) == {"state": "paid"}


@pytest.mark.parametrize(
    "number, equal, above",
    [
        ("9007199254740993", "9007199254740993.0", "9007199254740992"),
        ("0.30000000000000004", "0.30000000000000004", "0.3"),
        ("1e400", "10e399", "1e399"),
        ("-0.0", "0", "-1e-300"),
    ],
)
def test_numbers_are_compared_as_they_are_written_beyond_what_a_float_holds(
    number: str, equal: str, above: str
) -> None:
    members = members_of(event(f'{{"n":{number}}}'.encode()))
    assert members is not None
    assert compiled(f'{{"n":[{equal}]}}').matches(members)
    assert compiled(f'{{"n":[{{"numeric":[">",{above}]}}]}}').matches(members)
    assert not compiled(f'{{"n":[{above}]}}').matches(members)
    assert not compiled(f'{{"n":[{{"numeric":["<",{equal}]}}]}}').matches(members)


@pytest.mark.parametrize(
    "number", ["1e9999999999999999999", "-1e-9999999999999999999", "9" * 101, "9" * 200_000]
)
def test_a_number_that_is_too_large_to_compare_is_a_number_like_no_other(number: str) -> None:
    members = members_of(event(f'{{"n":{number}}}'.encode()))
    assert members is not None
    for taken in ('{"anything-but":5}', '{"exists":true}'):
        assert compiled(f'{{"n":[{taken}]}}').matches(members)
    for other in (
        '{"numeric":[">",0]}',
        '{"numeric":["<=",0]}',
        "5",
        '"5"',
        '{"prefix":""}',
        '{"exists":false}',
    ):
        assert not compiled(f'{{"n":[{other}]}}').matches(members)


def test_of_a_name_that_stands_twice_the_last_counts() -> None:
    members = members_of(event(b'{"state":"open","state":"paid"}'))
    assert members is not None
    assert compiled('{"state":["paid"]}').matches(members)
    assert not compiled('{"state":["open"]}').matches(members)


def test_a_dot_in_a_name_is_part_of_the_name() -> None:
    assert matches({"a.b": [1]}, {"a.b": 1})
    assert not matches({"a.b": [1]}, {"a": {"b": 1}})
    assert not matches({"a": {"b": [1]}}, {"a.b": 1})


def test_lists_in_lists_are_one_list() -> None:
    assert matches(of("a", 3), {"a": [[1, [2]], [[3]]]})
    assert matches({"a": {"b": [1], "c": [2]}}, {"a": [[{"b": 1}], [[{"b": 1, "c": 2}]]]})
    assert matches(of("a", {"exists": False}), {"a": [[], [[]]]})


def test_an_event_with_too_many_values_to_look_at_passes() -> None:
    filter_ = of("a", "never")
    assert not matches(filter_, {"a": ["x"] * (VALUES_MAX - 2)})
    assert matches(filter_, {"a": ["x"] * VALUES_MAX})
    assert not matches(filter_, {"a": ["x"], "b": ["x"] * 10 * VALUES_MAX})


@pytest.mark.parametrize(
    "operators",
    [
        [{"wildcard": f"*{number}*"} for number in range(100)],
        [{"anything-but": {"wildcard": ["*y*", *(f"*{number}*" for number in range(98)), "*x*"]}}],
    ],
    ids=["many operators", "one of many"],
)
def test_an_event_that_takes_too_many_comparisons_passes(operators: list[Any]) -> None:
    filter_ = of("a", *operators)
    most = COMPARED_MAX // 100
    assert not matches(filter_, {"a": ["x"] * most})
    assert matches(filter_, {"a": ["x"] * (most + 1)})


def _slow() -> Iterator[tuple[str, dict[str, Any], bytes]]:
    long = "a" * 260_000
    yield "wildcards", of("a", *[{"wildcard": "*a" * 5 + "*b"}] * 60), json.dumps({"a": long}).encode()
    yield "case", of("a", *[{"equals-ignore-case": "b"}] * 60), json.dumps({"a": long}).encode()
    many = [{"x": f"{number}", "y": number} for number in range(2_400)]
    yield "operators", of("a.x", *[{"prefix": "a"}] * 100), json.dumps({"a": many}).encode()
    yield "combinations", {"a": choices(9)}, json.dumps({"a": [{"0": {"x": 1}}] * 2_400}).encode()
    blocks = [{"cidr": f"10.0.{number}.0/24"} for number in range(75)]
    addresses = [f"{number:x}:2:3:4:5:6:7:8" for number in range(4_900)]
    yield "addresses", of("a", *blocks), json.dumps({"a": addresses}).encode()
    yield "nesting", nested(20), (b'{"a":' * 480) + b"1" + b"}" * 480
    yield "lists", of("a", 1), b'{"a":' + b"[" * 480 + b"]" * 480 + b"}"


@pytest.mark.parametrize("filter_, body", [pytest.param(*each[1:], id=each[0]) for each in _slow()])
def test_no_filter_and_no_body_make_matching_slow(filter_: dict[str, Any], body: bytes) -> None:
    pattern = compiled(admitted(filter_))
    members = members_of(event(body))
    assert members is not None
    began = time.process_time()
    pattern.matches(members)
    assert time.process_time() - began < 1
