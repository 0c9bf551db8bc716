"""Reading what conditions and changes share: plain operands, the names of functions, and types of values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chalicelib.adapters.aws_limits.dialects import read_path
from chalicelib.adapters.aws_limits.dynamodb_values import type_of
from chalicelib.adapters.aws_limits.nodes import Value
from chalicelib.adapters.aws_limits.tokens import Kind

if TYPE_CHECKING:
    from chalicelib.adapters.aws_limits.dialects import Dialect
    from chalicelib.adapters.aws_limits.nodes import Operand, Path
    from chalicelib.adapters.aws_limits.tokens import Cursor


def read_plain(dialect: Dialect) -> Path | Value:
    """Read a value or, where none begins, a path."""
    value = dialect.value()
    return value if value is not None else read_path(dialect)


def read_function(dialect: Dialect) -> str | None:
    """Read the name of a function and its opening bracket, or return None where no function begins."""
    cursor = dialect.cursor
    if cursor.token.kind is not Kind.WORD or cursor.after.text != "(":
        return None
    written = cursor.take().text
    cursor.expect("(")
    return written.lower() if dialect.statement else written


def check_type(cursor: Cursor, operand: Operand, allowed: frozenset[str], operator: str) -> None:
    """Refuse a value whose type the operator or function cannot take; a path's type is not known."""
    if isinstance(operand, Value) and type_of(operand.content) not in allowed:
        cursor.refuse(f"{operator} cannot take a value of type {type_of(operand.content)}")
