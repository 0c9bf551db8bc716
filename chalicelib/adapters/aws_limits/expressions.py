"""All expressions of one request, read together, since they share their placeholders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chalicelib.adapters.aws_limits.change_rules import check_apart
from chalicelib.adapters.aws_limits.conditions import read_condition
from chalicelib.adapters.aws_limits.dialects import ExpressionDialect
from chalicelib.adapters.aws_limits.placeholders import Placeholders
from chalicelib.adapters.aws_limits.updates import AssignmentReader, read_update

if TYPE_CHECKING:
    from chalicelib.adapters.aws_limits.nodes import Change, Condition
    from chalicelib.adapters.aws_limits.refusal import Params


@dataclass(frozen=True, slots=True)
class Expressions:
    """What the expressions of one request say; None where one is missing."""

    change: Change | None = None
    condition: Condition | None = None
    filter_: Condition | None = None
    key_condition: Condition | None = None


def read_expressions(request: Params, where: str = "") -> Expressions:
    """Read every expression of the request; refuse bad ones, and placeholders missing or unused."""
    placeholders = Placeholders(request, where)

    def dialect(parameter: str) -> ExpressionDialect:
        return ExpressionDialect(request[parameter], placeholders, f"{where}{parameter}")

    def condition(parameter: str) -> Condition | None:
        return read_condition(dialect(parameter)) if parameter in request else None

    found = Expressions(
        change=read_update(dialect("UpdateExpression")) if "UpdateExpression" in request else None,
        condition=condition("ConditionExpression"),
        filter_=condition("FilterExpression"),
        key_condition=condition("KeyConditionExpression"),
    )
    if "ProjectionExpression" in request:
        _read_projection(dialect("ProjectionExpression"))
    placeholders.refuse_unused()
    return found


def _read_projection(dialect: ExpressionDialect) -> None:
    paths = AssignmentReader(dialect).paths()
    dialect.cursor.expect_end()
    check_apart(paths, dialect.cursor.where)
