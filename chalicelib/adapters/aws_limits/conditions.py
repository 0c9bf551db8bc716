"""Reading conditions: ConditionExpression, FilterExpression, KeyConditionExpression and PartiQL's WHERE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chalicelib.adapters.aws_limits.dynamodb_values import ALL_TYPES, in_order
from chalicelib.adapters.aws_limits.nodes import Call, Comparison, Logic, Path, Value, operators
from chalicelib.adapters.aws_limits.operands import check_type, read_function, read_plain

if TYPE_CHECKING:
    from chalicelib.adapters.aws_limits.dialects import Dialect
    from chalicelib.adapters.aws_limits.nodes import Condition, Node, Operand

OPERATORS_MOST = 300
IN_MOST = 100
_COMPARATORS = ("=", "<>", "<", "<=", ">", ">=")
_ORDERINGS = frozenset({"<", "<=", ">", ">=", "BETWEEN"})
_ORDERED_TYPES = frozenset({"S", "N", "B"})
_ARITHMETIC = ("+", "-", "*", "/", "%")
_ARGUMENTS = {
    "attribute_exists": 1,
    "attribute_not_exists": 1,
    "attribute_type": 2,
    "begins_with": 2,
    "contains": 2,
    "size": 1,
}
_EXISTENCE = frozenset({"attribute_exists", "attribute_not_exists"})
_ARGUMENT_TYPES = {
    "begins_with": frozenset({"S", "B"}),
    "size": ALL_TYPES - {"N", "BOOL", "NULL"},
}


class ConditionReader:
    """Reads one condition, refusing what DynamoDB's own reader refuses."""

    def __init__(self, dialect: Dialect) -> None:
        """Begin where the dialect's cursor stands."""
        self._dialect = dialect
        self._cursor = dialect.cursor
        self._grouped: Node | None = None

    def read(self) -> Condition:
        """Return the condition."""
        condition = self._condition(self._either())
        if operators(condition) > OPERATORS_MOST:
            self._cursor.refuse(f"must have at most {OPERATORS_MOST} operators")
        return condition

    def _either(self) -> Node:
        first = self._all()
        parts = [first]
        while self._cursor.accept("OR"):
            parts.append(self._all())
        return first if len(parts) == 1 else Logic("OR", tuple(map(self._condition, parts)))

    def _all(self) -> Node:
        first = self._not()
        parts = [first]
        while self._cursor.accept("AND"):
            parts.append(self._not())
        return first if len(parts) == 1 else Logic("AND", tuple(map(self._condition, parts)))

    def _not(self) -> Node:
        if self._cursor.accept("NOT"):
            return Logic("NOT", (self._condition(self._comparison()),))
        return self._comparison()

    def _comparison(self) -> Node:
        left = self._term()
        comparators = (*_COMPARATORS, "!=") if self._dialect.statement else _COMPARATORS
        comparator = self._cursor.accept(*comparators)
        if comparator:
            return self._checked(Comparison(comparator, (self._operand(left), self._operand(self._term()))))
        if self._cursor.accept("BETWEEN"):
            return self._between(self._operand(left))
        if self._cursor.accept("IN"):
            return self._in(self._operand(left))
        if self._dialect.statement and self._cursor.accept("IS"):
            return self._is(self._operand(left))
        return left

    def _between(self, left: Operand) -> Comparison:
        low = self._operand(self._term())
        self._cursor.expect("AND")
        high = self._operand(self._term())
        if isinstance(low, Value) and isinstance(high, Value) and not in_order(low.content, high.content):
            self._cursor.refuse("BETWEEN needs bounds of one type, the lower first")
        return self._checked(Comparison("BETWEEN", (left, low, high)))

    def _in(self, left: Operand) -> Comparison:
        opening = self._cursor.expect(*self._dialect.lists)
        choices = self._operands(self._dialect.lists[opening])
        if not 1 <= len(choices) <= IN_MOST:
            self._cursor.refuse(f"IN takes 1 to {IN_MOST} operands, has {len(choices)}")
        return self._checked(Comparison("IN", (left, *choices)))

    def _is(self, left: Operand) -> Condition:
        negated = self._cursor.accept("NOT")
        condition = Comparison(f"IS {self._cursor.expect('MISSING', 'NULL')}", (left,))
        return Logic("NOT", (condition,)) if negated else condition

    def _term(self) -> Node:
        term = self._group() if self._cursor.accept("(") else self._bare_term()
        if self._cursor.at(*_ARITHMETIC):
            self._cursor.refuse("a condition takes no arithmetic; compute the number before the call")
        return term

    def _group(self) -> Node:
        inner = self._either()
        self._cursor.expect(")")
        if inner is self._grouped:
            self._cursor.refuse("has redundant parentheses")
        self._grouped = inner
        return inner

    def _bare_term(self) -> Node:
        function = read_function(self._dialect)
        if function is None:
            return read_plain(self._dialect)
        call = Call(function, self._operands(")"))
        self._check_call(call)
        return call

    def _operands(self, closing: str) -> tuple[Operand, ...]:
        operands: list[Operand] = []
        while not self._cursor.at(closing):
            operands.append(self._operand(self._term()))
            if not self._cursor.accept(","):
                break
        self._cursor.expect(closing)
        return tuple(operands)

    def _condition(self, node: Node) -> Condition:
        if isinstance(node, (Path, Value)) or (isinstance(node, Call) and node.function == "size"):
            self._cursor.refuse_token(
                "an attribute, a value or size() is no condition; expected to compare it"
            )
        return node

    def _operand(self, node: Node) -> Operand:
        if isinstance(node, (Comparison, Logic)) or (isinstance(node, Call) and node.function != "size"):
            self._cursor.refuse_token("a condition may not stand where an operand must")
        return node

    def _checked(self, comparison: Comparison) -> Comparison:
        first, *others = comparison.operands
        if len(others) == 1 and isinstance(first, Path) and first == others[0]:
            self._cursor.refuse(f"compares {first} with itself")
        if comparison.operator in _ORDERINGS:
            for operand in comparison.operands:
                check_type(self._cursor, operand, _ORDERED_TYPES, comparison.operator)
        return comparison

    def _check_call(self, call: Call) -> None:
        if call.function not in _ARGUMENTS:
            self._cursor.refuse(f"knows no function {call.function}")
        if len(call.arguments) != _ARGUMENTS[call.function]:
            self._cursor.refuse(f"{call.function} takes {_ARGUMENTS[call.function]} operands")
        if call.function in _EXISTENCE and not isinstance(call.arguments[0], Path):
            self._cursor.refuse(f"{call.function} needs an attribute")
        if call.function == "attribute_type":
            self._check_type_name(call.arguments[1])
        for argument in call.arguments:
            check_type(self._cursor, argument, _ARGUMENT_TYPES.get(call.function, ALL_TYPES), call.function)
            if isinstance(argument, Call):
                self._cursor.refuse(f"{call.function} cannot take {argument.function}()")

    def _check_type_name(self, operand: Operand) -> None:
        name = operand.content.get("S") if isinstance(operand, Value) else None
        if name not in ALL_TYPES:
            self._cursor.refuse(f"attribute_type needs one of {', '.join(sorted(ALL_TYPES))}")


def read_condition(dialect: Dialect) -> Condition:
    """Read a condition that is all of its text."""
    condition = ConditionReader(dialect).read()
    dialect.cursor.expect_end()
    return condition
