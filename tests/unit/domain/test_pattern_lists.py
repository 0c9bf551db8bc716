"""What is documented of `$or`, lists and absence, written down once more and tried out choice by choice."""

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.domain.errors import RelayError
from chalicelib.domain.pattern import admitted
from tests.unit.domain.filters import matches

Values = dict[tuple[str, ...], list[tuple[tuple[tuple[object, int], ...], object]]]


def told(value: object, path: tuple[str, ...] = (), within: tuple[tuple[object, int], ...] = ()) -> Values:
    """List each value of an event under its path, with the element of each list that it stands in."""
    found: Values = {}
    inner: list[Values] = []
    if isinstance(value, dict):
        inner = [told(each, (*path, name), within) for name, each in value.items()]
    elif isinstance(value, list):
        # A list is named by where it stands.
        lists = (path, within)
        inner = [told(each, path, (*within, (lists, at))) for at, each in enumerate(value)]
    else:
        return {path: [(within, value)]}
    for each in inner:
        for at, values in each.items():
            found.setdefault(at, []).extend(values)
    return found


def agree(*places: tuple[tuple[object, int], ...]) -> bool:
    """Say whether no two places are in different elements of one list."""
    chosen: dict[object, int] = {}
    return all(chosen.setdefault(of_list, at) == at for place in places for of_list, at in place)


def alternatives(
    filter_: dict[str, Any], path: tuple[str, ...] = ()
) -> list[dict[tuple[str, ...], list[Any]]]:
    """Write a filter without `$or`: as one filter per combination."""
    parts: list[list[dict[tuple[str, ...], list[Any]]]] = []
    for name, inner in filter_.items():
        if name == "$or":
            parts.append([each for branch in inner for each in alternatives(branch, path)])
        elif isinstance(inner, dict):
            parts.append(alternatives(inner, (*path, name)))
        else:
            parts.append([{(*path, name): inner}])
    return [
        {at: each for part in chosen for at, each in part.items()} for chosen in itertools.product(*parts)
    ]


def by_trial(filter_: dict[str, Any], members: dict[str, Any]) -> bool:
    """Try every choice of values: one a field, or none where absence is allowed and nothing fits in."""
    values = told(members)
    for wanted in alternatives(filter_):
        options = [
            [
                place
                for place, value in values.get(path, [])
                if value in [each for each in allowed if each != ABSENT]
            ]
            + ([None] if ABSENT in allowed else [])
            for path, allowed in wanted.items()
        ]
        for chosen in itertools.product(*options):
            places = [place for place in chosen if place is not None]
            lacking = [path for path, place in zip(wanted, chosen, strict=True) if place is None]
            there = (place for path in lacking for place, _ in values.get(path, []))
            if agree(*places) and not any(agree(*places, place) for place in there):
                return True
    return False


ABSENT = {"exists": False}
NAMES = st.sampled_from("ab")
BODIES = st.dictionaries(
    NAMES,
    st.recursive(
        st.sampled_from("xy"),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=2),
        max_leaves=8,
    ),
    min_size=1,
)
LEAVES = st.lists(st.sampled_from(["x", "y", ABSENT]), min_size=1, max_size=2, unique_by=str)


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(NAMES, inner, min_size=1, max_size=2)


FIELDS = _objects(st.recursive(LEAVES, _objects, max_leaves=4))
FILTERS = FIELDS | st.builds(
    lambda fields, branches: {**fields, "$or": branches},
    st.dictionaries(NAMES, LEAVES | FIELDS, max_size=1),
    st.lists(FIELDS, min_size=2, max_size=3),
)


@settings(max_examples=60)
@given(FILTERS, BODIES)
def test_lists_choices_and_absence_are_as_told_by_trying_every_choice(
    filter_: dict[str, Any], members: dict[str, Any]
) -> None:
    try:
        admitted(filter_)
    except RelayError as error:
        assert "each field once" in error.expected  # noqa: PT017 - the one fault that such a filter may have
        return
    assert matches(filter_, members) is by_trial(filter_, members)
