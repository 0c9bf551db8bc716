"""Reading what an update does: UpdateExpression and the SET and REMOVE of PartiQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chalicelib.adapters.aws_limits.dialects import read_path
from chalicelib.adapters.aws_limits.nodes import Assignment, Call, Change, Path, Sum, Value
from chalicelib.adapters.aws_limits.operands import check_type, read_function, read_plain

if TYPE_CHECKING:
    from chalicelib.adapters.aws_limits.dialects import Dialect
    from chalicelib.adapters.aws_limits.nodes import Operand

_CLAUSES = ("SET", "REMOVE", "ADD", "DELETE")
_FUNCTIONS = frozenset({"if_not_exists", "list_append"})
_STATEMENT_FUNCTIONS = frozenset({"list_append", "set_add", "set_delete"})
_SET_TYPES = frozenset({"SS", "NS", "BS"})
_ADDABLE = _SET_TYPES | {"N"}


class AssignmentReader:
    """Reads `path = value` pairs and bare paths, refusing what DynamoDB's own reader refuses."""

    def __init__(self, dialect: Dialect) -> None:
        """Begin where the dialect's cursor stands."""
        self._dialect = dialect
        self._cursor = dialect.cursor

    def assignments(self) -> list[Assignment]:
        """Read `path = value`, separated by commas."""
        found = [self._assignment()]
        while self._cursor.accept(","):
            found.append(self._assignment())
        return found

    def paths(self) -> list[Path]:
        """Read paths, separated by commas."""
        found = [read_path(self._dialect)]
        while self._cursor.accept(","):
            found.append(read_path(self._dialect))
        return found

    def changes(self, allowed: frozenset[str], clause: str) -> list[tuple[Path, Value]]:
        """Read `path :value` pairs of ADD or DELETE, separated by commas."""
        found = [self._change(allowed, clause)]
        while self._cursor.accept(","):
            found.append(self._change(allowed, clause))
        return found

    def _change(self, allowed: frozenset[str], clause: str) -> tuple[Path, Value]:
        path, value = read_path(self._dialect), self._dialect.value()
        if value is None:
            self._cursor.refuse_token(f"{clause} needs a value placeholder")
        check_type(self._cursor, value, allowed, clause)
        return path, value

    def _assignment(self) -> Assignment:
        path = read_path(self._dialect)
        self._cursor.expect("=")
        grouped = self._cursor.at("(")
        value = self._group_or_sum() if grouped else self._sum(self._operand())
        self._check_set_function(path, value)
        return Assignment(path, value)

    def _group_or_sum(self) -> Operand | Sum:
        self._cursor.expect("(")
        inner = self._sum(self._operand())
        self._cursor.expect(")")
        if isinstance(inner, Sum):
            self._refuse_more("only one + or -")
            return inner
        return self._sum(inner)

    def _sum(self, left: Operand) -> Operand | Sum:
        operator = self._cursor.accept("+", "-")
        if operator is None:
            self._refuse_more("only + and -")
            return left
        right = self._operand()
        self._refuse_more("only one + or -")
        for operand in (left, right):
            check_type(self._cursor, operand, frozenset({"N"}), operator)
        return Sum(operator, (left, right))

    def _refuse_more(self, rule: str) -> None:
        if self._cursor.at("+", "-", "*", "/", "%"):
            self._cursor.refuse(f"SET takes {rule}; compute the number before the call")

    def _operand(self) -> Operand:
        if self._cursor.accept("("):
            inner = self._operand()
            self._cursor.expect(")")
            return inner
        function = read_function(self._dialect)
        return read_plain(self._dialect) if function is None else self._call(function)

    def _call(self, function: str) -> Call:
        arguments = [self._operand()]
        while self._cursor.accept(","):
            arguments.append(self._operand())
        self._cursor.expect(")")
        call = Call(function, tuple(arguments))
        self._check_call(call)
        return call

    def _check_call(self, call: Call) -> None:
        known = _STATEMENT_FUNCTIONS if self._dialect.statement else _FUNCTIONS
        if call.function not in known:
            self._cursor.refuse(f"SET knows no function {call.function}, only {', '.join(sorted(known))}")
        if len(call.arguments) != 2:  # noqa: PLR2004 - all of them take two
            self._cursor.refuse(f"{call.function} takes 2 operands")
        if call.function == "if_not_exists" and not isinstance(call.arguments[0], Path):
            self._cursor.refuse("if_not_exists needs an attribute first")
        if call.function == "list_append":
            for argument in call.arguments:
                check_type(self._cursor, argument, frozenset({"L"}), call.function)

    def _check_set_function(self, path: Path, value: Operand | Sum) -> None:
        if not isinstance(value, Call) or value.function not in {"set_add", "set_delete"}:
            return
        if value.arguments[0] != path:
            self._cursor.refuse(f"the first operand of {value.function} must be the attribute that is set")
        if not isinstance(value.arguments[1], Value):
            self._cursor.refuse(f"the second operand of {value.function} must be a set")
        check_type(self._cursor, value.arguments[1], _SET_TYPES, value.function)


def read_update(dialect: Dialect) -> Change:
    """Read an UpdateExpression that is all of its text."""
    reader, cursor = AssignmentReader(dialect), dialect.cursor
    found: dict[str, Change] = {}
    while cursor.at(*_CLAUSES) or not found:
        clause = cursor.expect(*_CLAUSES)
        if clause in found:
            cursor.refuse(f"may have one {clause} only; separate its parts with commas")
        found[clause] = _read_clause(reader, clause)
    cursor.expect_end()
    return _together(found)


def _read_clause(reader: AssignmentReader, clause: str) -> Change:
    match clause:
        case "SET":
            return Change(assigned=tuple(reader.assignments()))
        case "REMOVE":
            return Change(removed=tuple(reader.paths()))
        case "ADD":
            return Change(added=tuple(reader.changes(_ADDABLE, clause)))
        case _:
            return Change(deleted=tuple(reader.changes(_SET_TYPES, clause)))


def _together(found: dict[str, Change]) -> Change:
    nothing = Change()
    return Change(
        assigned=found.get("SET", nothing).assigned,
        removed=found.get("REMOVE", nothing).removed,
        added=found.get("ADD", nothing).added,
        deleted=found.get("DELETE", nothing).deleted,
    )
