"""Filters say of an event what the emulators of EventBridge say, wherever those claim to say what AWS does.

ministack is asked through its API, moto's matcher where it stands: its API does not match. Left out is where
one of them is known to be wrong, or where Relay differs knowingly (docs/decisions/0015).
"""

import json
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from moto.events.models import EventPattern

from chalicelib.domain.event import Event
from chalicelib.domain.pattern import admitted, compiled, members_of
from tests.contract.emulated import strict_client

MANY = settings(max_examples=200, deadline=None)
TEXT = st.text("abA.*/", max_size=4)
TEXTS = st.lists(TEXT, min_size=1, max_size=3)
NUMBER = st.integers(-3, 3) | st.sampled_from([0.5, -1.25, 2.0, 1e3])
ADDRESS = st.sampled_from(["10.0.0.1", "10.0.1.1", "192.168.0.1", "2001:db8::1", "::1", "10.0.0.256"])
BLOCK = st.sampled_from(["10.0.0.0/24", "10.0.0.0/8", "0.0.0.0/0", "2001:db8::/32", "::/0"])
WILDCARD = st.lists(st.sampled_from(["a", "b", "A", ".", "\\*", "*a", "*/"]), max_size=4).map("".join)


def one(name: str, operand: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return operand.map(lambda value: {name: value})


def ranges() -> st.SearchStrategy[list[Any]]:
    single = st.tuples(st.sampled_from(["=", "<", "<=", ">", ">="]), NUMBER)
    low, high = st.sampled_from([">", ">="]), st.sampled_from(["<", "<="])
    double = st.tuples(low, st.integers(-3, 0), high, st.integers(1, 3))
    return st.builds(list, single | double)


FILLED = TEXT.filter(bool)
AFFIX = TEXT | one("equals-ignore-case", TEXT)
EXCLUDED = (
    TEXT
    | NUMBER
    | TEXTS
    | st.lists(NUMBER, min_size=1, max_size=3)
    | one("prefix", FILLED | st.lists(FILLED, min_size=1, max_size=2))
    | one("suffix", FILLED | st.lists(FILLED, min_size=1, max_size=2))
    | one("equals-ignore-case", TEXT | TEXTS)
    | one("wildcard", WILDCARD)
)
OPERATOR = (
    TEXT
    | NUMBER
    | st.none()
    | ADDRESS
    | one("prefix", AFFIX)
    | one("suffix", AFFIX)
    | one("equals-ignore-case", TEXT)
    | one("wildcard", WILDCARD)
    | one("anything-but", EXCLUDED)
    | one("numeric", ranges())
    | one("cidr", BLOCK)
    | one("exists", st.booleans())
)
LEAF = st.lists(OPERATOR, min_size=1, max_size=3)
NAMES = st.sampled_from("abc")


def filters(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    fields = st.dictionaries(NAMES, leaf, min_size=1, max_size=2)
    choice = st.lists(st.dictionaries(st.sampled_from("def"), leaf, min_size=1), min_size=2, max_size=3)
    return fields | st.builds(lambda some, branches: {**some, "$or": branches}, fields, choice)


SCALAR = TEXT | NUMBER | st.none() | ADDRESS
LIST = st.lists(SCALAR, min_size=1, max_size=3)
FLAT = st.dictionaries(st.sampled_from("abcdef"), SCALAR | LIST)


def says(filter_: dict[str, Any], members: dict[str, Any]) -> bool:
    body = json.dumps(members).encode()
    read = members_of(Event("tn_1", "evt_1", "order.paid", "application/json", body, 0))
    assert read is not None
    return compiled(admitted(filter_)).matches(read)


def has_numbers(members: dict[str, Any]) -> bool:
    values = [each for value in members.values() for each in (value if isinstance(value, list) else [value])]
    return any(isinstance(each, int | float) for each in values)


@MANY
@given(filters(LEAF), FLAT)
def test_a_filter_says_what_motos_matcher_says(filter_: dict[str, Any], members: dict[str, Any]) -> None:
    """Moto takes a number for an address, so those are kept from its blocks."""
    assume('"cidr"' not in json.dumps(filter_) or not has_numbers(members))
    message: Any = {"detail": members}
    theirs = EventPattern.load(json.dumps({"detail": filter_})).matches_event(message)
    assert says(filter_, members) is theirs


PRESENT = st.lists(OPERATOR.filter(lambda each: each != {"exists": False}), min_size=1, max_size=2)
INNER = SCALAR | st.booleans() | st.lists(SCALAR | st.booleans(), max_size=2)
DEEP = st.dictionaries(
    st.sampled_from("abcdef"),
    INNER | st.lists(st.dictionaries(NAMES, INNER, max_size=3), max_size=3) | st.dictionaries(NAMES, INNER),
)


@MANY
@given(filters(LEAF) | filters(PRESENT | st.dictionaries(NAMES, PRESENT, min_size=1, max_size=2)), DEEP)
def test_a_filter_says_what_ministack_says(
    ministack: str, filter_: dict[str, Any], members: dict[str, Any]
) -> None:
    asked = {"EventPattern": json.dumps({"detail": filter_}), "Event": json.dumps({"detail": members})}
    assert says(filter_, members) is strict_client("events", ministack).test_event_pattern(**asked)["Result"]
