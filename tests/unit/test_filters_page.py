"""What docs/filters.md shows passes and does not pass, just as it says."""

import json
import re
from pathlib import Path

import pytest

from chalicelib.domain.pattern import (
    COMPARED_MAX,
    PATTERN_MAX,
    VALUES_MAX,
    admitted,
    compiled,
    members_of,
    written,
)
from tests.unit.domain.examples import event

PAGE = (Path(__file__).parents[2] / "docs" / "filters.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ([^|`]+) \| `(.+)` \| `(.+)` \| `(.+)` \|$", re.MULTILINE)
ROWS = ROW.findall(PAGE)
OPERATORS = "prefix suffix equals-ignore-case wildcard anything-but numeric exists cidr $or".split()


def passes(filter_: str, body: str) -> bool:
    members = members_of(event(body.encode()))
    assert members is not None
    return compiled(admitted(json.loads(filter_))).matches(members)


@pytest.mark.parametrize("filter_, good, bad", [pytest.param(*row[1:], id=row[0]) for row in ROWS])
def test_an_example_passes_and_another_does_not(filter_: str, good: str, bad: str) -> None:
    assert (passes(filter_, good), passes(filter_, bad)) == (True, False)


def test_every_operator_has_an_example() -> None:
    assert len(ROWS) == sum(line.startswith("| ") and "`{" in line for line in PAGE.splitlines())
    assert all(any(f'"{name}"' in filter_ for _, filter_, *_ in ROWS) for name in OPERATORS)


def test_the_first_example_is_taken_as_it_stands() -> None:
    (block,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    filter_ = json.loads(block)["filter"]
    assert written(admitted(filter_)) == filter_


def test_the_bounds_are_those_that_are_kept() -> None:
    assert f"at most {PATTERN_MAX:,} bytes" in PAGE
    assert f"looks at {VALUES_MAX:,} values" in PAGE
    assert f"compares them {COMPARED_MAX:,} times" in PAGE
