"""Conditional changes: what they mean on a record, which every store has to match."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.change import Change, Op, Test, applied, holds
from tests.unit.domain.examples import FEW

RECORD: dict[str, Any] = {"tat": 5, "st": "closed", "zero": 0, "L0": {"h": "me", "u": 7, "k": ["a"]}}


def asks(*tests: Test) -> bool:
    return holds(Change(tests, {}, {}), RECORD)


@pytest.mark.parametrize(
    "op, below, equal, above",
    [
        (Op.EQ, False, True, False),
        (Op.LT, True, False, False),
        (Op.LE, True, True, False),
        (Op.GT, False, False, True),
        (Op.GE, False, True, True),
        (Op.MISSING, False, False, False),
    ],
)
def test_an_attribute_is_compared_with_a_value(op: Op, *, below: bool, equal: bool, above: bool) -> None:
    assert asks(Test("tat", op, 6)) is below
    assert asks(Test("tat", op, 5)) is equal
    assert asks(Test("tat", op, 4)) is above


@pytest.mark.parametrize("op", list(Op))
@pytest.mark.parametrize("path", ["nothing", "L9", "L0.x", "L9.h", "tat.h", "L0.h.x"])
def test_a_missing_attribute_is_only_missing(path: str, op: Op) -> None:
    for value in (0, "", None):
        assert asks(Test(path, op, value)) is (op is Op.MISSING)


def test_zero_is_there() -> None:
    assert asks(Test("zero", Op.EQ, 0))
    assert not asks(Test("zero", Op.MISSING))


def test_a_dotted_path_reaches_into_a_map() -> None:
    assert asks(Test("L0.h", Op.EQ, "me"), Test("L0.u", Op.LE, 7))
    assert not asks(Test("L0.h", Op.EQ, "you"))


def test_every_test_must_hold_and_none_at_all_always_does() -> None:
    good, bad = Test("tat", Op.EQ, 5), Test("st", Op.EQ, "open")
    assert asks()
    assert asks(good, good)
    assert not asks(good, bad)
    assert not asks(bad, good)


def test_a_change_sets_moves_and_removes() -> None:
    change = Change((), {"st": "open", "new": [1]}, {"tat": -7}, ("L0", "never-there"))
    assert applied(change, RECORD) == {"tat": -2, "st": "open", "zero": 0, "new": [1]}


def test_a_counter_that_is_not_there_cannot_be_moved() -> None:
    with pytest.raises(KeyError):
        applied(Change((), {}, {"nothing": 1}), RECORD)


@FEW
@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(), max_size=3),
    st.dictionaries(st.sampled_from("abc"), st.integers(), max_size=3),
    st.lists(st.sampled_from("abcd"), max_size=2),
)
def test_the_record_given_stays_as_it_was(
    sets: dict[str, int], adds: dict[str, int], removes: list[str]
) -> None:
    record: dict[str, Any] = {"a": 1, "b": 2, "c": 3, "d": {"list": [1]}}
    after = applied(Change((), sets, adds, tuple(removes)), record)
    after.get("d", {}).get("list", []).append(2)
    assert record == {"a": 1, "b": 2, "c": 3, "d": {"list": [1]}}
