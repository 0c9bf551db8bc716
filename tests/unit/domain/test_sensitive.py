"""Sensitive paths: what may be written, and where in it a mistake is."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.sensitive import PATHS_MAX, below, parse, valid_paths


@pytest.mark.parametrize(
    "text, steps",
    [
        ("$", ()),
        ("$.card.number", ("card", "number")),
        ("$.items[*].name", ("items", None, "name")),
        ("$.*", (None,)),
        ("$[0][12]", (0, 12)),
        ("$['an odd name']", ("an odd name",)),
        (r"$['it\'s'].b", ("it's", "b")),
        (r"$['\\']", ("\\",)),
        ("$['']", ("",)),
        ("$['a.b[0]']", ("a.b[0]",)),
        ("$.größe.x-y.$ref", ("größe", "x-y", "$ref")),
    ],
)
def test_a_path_is_read_step_by_step(text: str, steps: tuple[str | int | None, ...]) -> None:
    assert parse(text) == steps
    assert valid_paths([text, text]) == (text,)


@pytest.mark.parametrize(
    "text, place",
    [
        ("", 1),
        ("card.number", 1),
        ("$card", 2),
        ("$.", 2),
        ("$..number", 2),
        ("$.card.", 7),
        ("$.items[1:2]", 8),
        ("$.items[-1]", 8),
        ("$.items[01]", 8),
        ("$.items[?(@.x)]", 8),
        ('$["card"]', 2),
        ("$['card", 2),
        ("$.a b", 4),
        ("$.a[*]name", 7),
        ("$" + ".a" * 200, 257),
    ],
)
def test_a_bad_path_is_refused_with_the_place_in_it(text: str, place: int) -> None:
    with pytest.raises(RelayError) as refused:
        valid_paths(["$.fine", text])
    assert (refused.value.code, refused.value.field) == (ErrorCode.FIELD_INVALID, "sensitive_paths.1")
    assert f"at character {place}: " in refused.value.detail


def test_there_may_be_so_many_and_no_more() -> None:
    assert len(valid_paths([f"$.n{number}" for number in range(PATHS_MAX)])) == PATHS_MAX
    with pytest.raises(RelayError, match=str(PATHS_MAX + 1)):
        valid_paths([f"$.n{number}" for number in range(PATHS_MAX + 1)])


def test_a_wildcard_goes_everywhere_and_a_name_to_no_item() -> None:
    paths = (parse("$.a[*].b"), parse("$.a[1]"))
    assert below(paths, "a") == ((None, "b"), (1,))
    assert below(below(paths, "a"), 1) == (("b",), ())
    assert below(below(paths, "a"), "x") == (("b",),)
    assert below(paths, 0) == ()


@given(st.lists(st.text(min_size=0, max_size=20), min_size=1, max_size=8))
def test_any_member_can_be_named(names: list[str]) -> None:
    quoted = [re.sub(r"(['\\])", r"\\\1", name) for name in names]
    assert parse("$" + "".join(f"['{name}']" for name in quoted)) == tuple(names)
