"""The two languages DynamoDB reads: expressions with placeholders, PartiQL with literals and parameters.

They share conditions and changes; this module reads what differs, the names and the values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

from chalicelib.adapters.aws_limits.dynamodb_values import check_value
from chalicelib.adapters.aws_limits.nodes import Path, Value
from chalicelib.adapters.aws_limits.refusal import check_bytes, refuse, utf8_bytes
from chalicelib.adapters.aws_limits.reserved_words import is_reserved
from chalicelib.adapters.aws_limits.tokens import EXPRESSION, Cursor, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from chalicelib.adapters.aws_limits.dynamodb_values import AttributeValue
    from chalicelib.adapters.aws_limits.placeholders import Placeholders
    from chalicelib.adapters.aws_limits.tokens import Token

EXPRESSION_LARGEST_BYTES = 4_096
_POSITION_MOST = 2**31 - 1


class Dialect(Protocol):
    """How one language writes names and values."""

    @property
    def cursor(self) -> Cursor:
        """Where the reading stands."""

    @property
    def lists(self) -> Mapping[str, str]:
        """The brackets that may stand around the choices of IN."""

    @property
    def statement(self) -> bool:
        """Whether this is PartiQL, which also knows != and IS, and functions in any case."""

    def name(self) -> str:
        """Read one attribute name."""

    def value(self) -> Value | None:
        """Read a value, or return None when none begins here."""


def read_path(dialect: Dialect) -> Path:
    """Read a document path."""
    cursor = dialect.cursor
    parts: list[str | int] = [dialect.name()]
    while True:
        if cursor.accept("."):
            parts.append(dialect.name())
        elif cursor.accept("["):
            parts.append(_position(cursor))
            cursor.expect("]")
        else:
            return Path(tuple(parts))


def _position(cursor: Cursor) -> int:
    if not cursor.token.text.isdigit() or int(cursor.token.text) > _POSITION_MOST:
        cursor.refuse_token("expected a position in a list")
    return int(cursor.take().text)


class ExpressionDialect:
    """Expressions: `name` or `#name`, `:value`."""

    lists: ClassVar[Mapping[str, str]] = {"(": ")"}
    statement: ClassVar[bool] = False

    def __init__(self, text: str, placeholders: Placeholders, where: str) -> None:
        """Begin reading the expression."""
        check_bytes(utf8_bytes(text), EXPRESSION_LARGEST_BYTES, where)
        if not text.strip():
            refuse(where, "must not be empty")
        self.cursor = Cursor(text, EXPRESSION, where)
        self._placeholders = placeholders

    def name(self) -> str:
        """Read one attribute name; refuse a reserved word."""
        token = self.cursor.token
        if token.kind is Kind.NAME:
            return self._placeholders.name(self.cursor.take().text, self.cursor.where)
        if token.kind is not Kind.WORD:
            self.cursor.refuse_token("expected an attribute")
        if is_reserved(token.text):
            self.cursor.refuse(f"{token.text} is a reserved word and needs a # placeholder")
        return self.cursor.take().text

    def value(self) -> Value | None:
        """Read a value placeholder."""
        if self.cursor.token.kind is not Kind.VALUE:
            return None
        return Value(self._placeholders.value(self.cursor.take().text, self.cursor.where))


class StatementDialect:
    """PartiQL: `name` or `"name"`, literals and `?`."""

    lists: ClassVar[Mapping[str, str]] = {"(": ")", "[": "]"}
    statement: ClassVar[bool] = True

    def __init__(self, cursor: Cursor, parameters: Sequence[AttributeValue]) -> None:
        """Begin reading with the parameters that the question marks stand for."""
        self.cursor = cursor
        self._parameters = parameters
        self._used = 0

    def name(self) -> str:
        """Read one attribute name; refuse a reserved word without double quotes."""
        token = self.cursor.token
        if token.kind is Kind.QUOTED:
            return self._quoted(self.cursor.take())
        if token.kind is not Kind.WORD:
            self.cursor.refuse_token("expected an attribute")
        if is_reserved(token.text):
            self.cursor.refuse(f"{token.text} is a reserved word and must stand in double quotes")
        return self.cursor.take().text

    def _quoted(self, token: Token) -> str:
        name = token.text[1:-1].replace('""', '"')
        if not name:
            self.cursor.refuse("a quoted name must not be empty")
        return name

    def value(self) -> Value | None:
        """Read a parameter or a literal."""
        if self.cursor.at("?"):
            return Value(self.parameter())
        content = self.literal()
        if content is None:
            return None
        check_value(content, self.cursor.where)
        return Value(content)

    def parameter(self) -> AttributeValue:
        """Read a question mark and return the parameter it stands for."""
        self.cursor.expect("?")
        if self._used >= len(self._parameters):
            self.cursor.refuse("has more question marks than parameters")
        self._used += 1
        return self._parameters[self._used - 1]

    def refuse_unused(self) -> None:
        """Refuse parameters that no question mark stands for."""
        if self._used < len(self._parameters):
            self.cursor.refuse(f"has {self._used} question marks but {len(self._parameters)} parameters")

    def literal(self) -> AttributeValue | None:
        """Read a literal, or return None when none begins here."""
        token = self.cursor.token
        if token.kind is Kind.TEXT:
            return {"S": self.cursor.take().text[1:-1].replace("''", "'")}
        if token.kind is Kind.NUMBER:
            return {"N": self.cursor.take().text}
        if token.kind is Kind.WORD:
            return self._constant()
        return self._compound() if token.kind is Kind.OPERATOR else None

    def _constant(self) -> AttributeValue | None:
        match self.cursor.accept("TRUE", "FALSE", "NULL"):
            case "NULL":
                return {"NULL": True}
            case None:
                return None
            case word:
                return {"BOOL": word == "TRUE"}

    def _compound(self) -> AttributeValue | None:
        match self.cursor.token.text:
            case "-" | "+":
                return self._signed()
            case "{":
                return {"M": self._map()}
            case "[":
                return {"L": self._members("[", "]")}
            case "<<":
                return self._set(self._members("<<", ">>"))
            case _:
                return None

    def _signed(self) -> AttributeValue:
        sign = self.cursor.take().text
        if self.cursor.token.kind is not Kind.NUMBER:
            self.cursor.refuse_token("expected a number after the sign")
        return {"N": f"{sign}{self.cursor.take().text}"}

    def _map(self) -> dict[str, AttributeValue]:
        entries: dict[str, AttributeValue] = {}
        self.cursor.expect("{")
        while not self.cursor.at("}"):
            name = self.field_name()
            entries[name] = self._nested()
            if not self.cursor.accept(","):
                break
        self.cursor.expect("}")
        return entries

    def field_name(self) -> str:
        """Read the name of a map's field, which stands in single quotes, and the colon after it."""
        if self.cursor.token.kind is not Kind.TEXT:
            self.cursor.refuse_token("expected a field name in single quotes")
        name = self.cursor.take().text[1:-1].replace("''", "'")
        self.cursor.expect(":")
        return name

    def _members(self, opening: str, closing: str) -> list[AttributeValue]:
        members: list[AttributeValue] = []
        self.cursor.expect(opening)
        while not self.cursor.at(closing):
            members.append(self._nested())
            if not self.cursor.accept(","):
                break
        self.cursor.expect(closing)
        return members

    def _nested(self) -> AttributeValue:
        if self.cursor.at("?"):
            self.cursor.refuse("a parameter may not stand inside a map, list or set literal")
        content = self.literal()
        if content is None:
            self.cursor.refuse_token("expected a literal")
        return content

    def _set(self, members: list[AttributeValue]) -> AttributeValue:
        kinds = {kind for member in members for kind in member}
        if len(kinds) != 1 or not kinds <= {"S", "N"}:
            self.cursor.refuse("a set must hold either texts or numbers, and at least one")
        kind = kinds.pop()
        return {f"{kind}S": [member[kind] for member in members]}
