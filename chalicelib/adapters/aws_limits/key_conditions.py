"""What a query's key condition may say, and that its filter leaves the key alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chalicelib.adapters.aws_limits.dynamodb_values import type_of
from chalicelib.adapters.aws_limits.nodes import Call, Path, Value, children, conjuncts, roots
from chalicelib.adapters.aws_limits.refusal import refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chalicelib.adapters.aws_limits.nodes import Condition, Node
    from chalicelib.adapters.aws_limits.refusal import Params
    from chalicelib.adapters.aws_limits.table_keys import TableKeys

_CONDITION = "KeyConditionExpression"
_COMPARATORS = frozenset({"=", "<", "<=", ">", ">=", "BETWEEN", "begins_with"})


def check_query(
    params: Params,
    condition: Condition | None,
    filter_: Condition | None,
    keys: TableKeys,
) -> None:
    """Refuse a query that is no equality on one attribute and at most one range on another."""
    if condition is None:
        refuse(_CONDITION, "is required")
    operators = _operators(condition, keys.types)
    names = _key_names(params, keys)
    if names is not None:
        _check_names(operators, names)
    elif "=" not in operators.values():
        refuse(_CONDITION, "must say what the hash key equals")
    _check_filter(filter_, set(names or operators))
    if params.get("ConsistentRead") and params.get("IndexName") in keys.global_indexes:
        refuse("ConsistentRead", "a global index cannot be read consistently")


def _key_names(params: Params, keys: TableKeys) -> tuple[str, ...] | None:
    return keys.primary if keys.certain and params.get("IndexName") is None else None


def _operators(condition: Condition, types: Mapping[str, str]) -> dict[str, str]:
    operators: dict[str, str] = {}
    for part in conjuncts(condition):
        name, operator = _one(part, types)
        if name in operators:
            refuse(_CONDITION, f"says two things about {name}")
        operators[name] = operator
    if len(operators) > 2:  # noqa: PLR2004 - a key has two attributes at most
        refuse(_CONDITION, "speaks of more than two attributes")
    return operators


def _one(part: Condition, types: Mapping[str, str]) -> tuple[str, str]:
    operator = part.function if isinstance(part, Call) else part.operator
    if operator not in _COMPARATORS:
        refuse(_CONDITION, "may only compare keys with = < <= > >= BETWEEN and begins_with, joined by AND")
    return _key_of(children(part), types), operator


def _key_of(operands: tuple[Node, ...], types: Mapping[str, str]) -> str:
    paths = [operand for operand in operands if isinstance(operand, Path)]
    values = [operand for operand in operands if isinstance(operand, Value)]
    if len(paths) != 1 or len(paths[0].parts) != 1 or len(values) != len(operands) - 1:
        refuse(_CONDITION, "must compare one key attribute with values")
    name = paths[0].root
    for value in values:
        kind = type_of(value.content)
        if kind != types.get(name, kind) or kind not in {"S", "N", "B"}:
            refuse(_CONDITION, f"{name} needs a value of type {types.get(name, 'S, N or B')}, not {kind}")
        if not value.content[kind]:
            refuse(_CONDITION, f"{name} needs a value that is not empty")
    return name


def _check_names(operators: dict[str, str], names: tuple[str, ...]) -> None:
    if operators.get(names[0]) != "=":
        refuse(_CONDITION, f"must say what {names[0]} equals")
    for name in operators:
        if name not in names:
            refuse(_CONDITION, f"{name} is no key attribute of the table")


def _check_filter(filter_: Condition | None, names: set[str]) -> None:
    for name in roots(filter_) if filter_ is not None else ():
        if name in names:
            refuse("FilterExpression", f"may not speak of the key attribute {name}")
