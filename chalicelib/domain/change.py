"""A conditional change to one record, as a value: what must hold, what is then set.

The gate's rules produce these; a store renders them to its own language, and `holds` and
`applied` are their meaning. Only what the store can do is sayable: no arithmetic in a test,
and + and - alone in a change.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, assert_never

Record = Mapping[str, Any]


class Op(StrEnum):
    """How a test compares the attribute with its value; NE is for those that are there.

    Of one that is not, DynamoDB's two languages say different things.
    """

    EQ = "="
    NE = "<>"
    LE = "<="
    LT = "<"
    GE = ">="
    GT = ">"
    MISSING = "IS MISSING"


@dataclass(frozen=True, slots=True)
class Test:
    """One comparison of an attribute (a dotted path reaches into a map) with a value."""

    path: str
    op: Op
    value: Any = None

    __test__ = False


@dataclass(frozen=True, slots=True)
class Change:
    """Tests that must all hold, then attributes set, counters moved and attributes removed."""

    tests: tuple[Test, ...]
    sets: Mapping[str, Any]
    adds: Mapping[str, int]
    removes: tuple[str, ...] = ()


def holds(change: Change, record: Record) -> bool:
    """Say whether every test of a change holds for a record; a missing attribute equals nothing."""
    return all(_passes(test, _read(record, test.path)) for test in change.tests)


def applied(change: Change, record: Record) -> dict[str, Any]:
    """Give the record after a change whose tests hold; the one given stays as it was."""
    after = deepcopy(dict(record))
    for path, value in change.sets.items():
        after[path] = value
    for path, step in change.adds.items():
        after[path] = after[path] + step
    for path in change.removes:
        after.pop(path, None)
    return after


def _read(record: Record, path: str) -> object:
    value: Any = record
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def _passes(test: Test, actual: Any) -> bool:  # noqa: ANN401 - an attribute holds any stored type
    if test.op is Op.MISSING or actual is None:
        return test.op is Op.MISSING and actual is None
    match test.op:
        case Op.EQ:
            return bool(actual == test.value)
        case Op.NE:
            return bool(actual != test.value)
        case Op.LE:
            return bool(actual <= test.value)
        case Op.LT:
            return bool(actual < test.value)
        case Op.GE:
            return bool(actual >= test.value)
        case Op.GT:
            return bool(actual > test.value)
        case _:
            assert_never(test.op)
