"""The PartiQL that Relay writes, read into values: single-item INSERT, UPDATE and DELETE statements.

Only for emulators that have no PartiQL of their own; nothing here calls one.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Value = Mapping[str, Any]
Path = tuple[str | int, ...]

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")*")
      | (?P<number>\d+(?:\.\d+)?)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<symbol><=|>=|<>|!=|[=<>(){}\[\],:.?*+-])
    )""",
    re.VERBOSE,
)
_COMPARISONS = {"=": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


class StatementError(Exception):
    """The statement is not one of the forms that are understood here."""


class Returning(StrEnum):
    """Which item an answer carries."""

    NOTHING = "NONE"
    OLD = "ALL_OLD"
    NEW = "ALL_NEW"


@dataclass(frozen=True, slots=True)
class Compare:
    """A path against a value or another path."""

    path: Path
    operator: str
    other: Value | Path


@dataclass(frozen=True, slots=True)
class Missing:
    """A path that is not there, or, negated, is."""

    path: Path
    negated: bool


Condition = Compare | Missing


@dataclass(frozen=True, slots=True)
class Assignment:
    """`path = base ± value`; without a base the value alone."""

    path: Path
    base: Path | None
    operator: str
    value: Value | None


@dataclass(frozen=True, slots=True)
class Insert:
    """A new item."""

    table: str
    item: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Update:
    """Changes to one item that is there."""

    table: str
    sets: tuple[Assignment, ...]
    removes: tuple[Path, ...]
    where: tuple[Condition, ...]
    returning: Returning


@dataclass(frozen=True, slots=True)
class Delete:
    """One item taken away."""

    table: str
    where: tuple[Condition, ...]
    returning: Returning


Statement = Insert | Update | Delete


def parse(text: str, parameters: Sequence[Value] = ()) -> Statement:
    """Read one statement with its parameters; StatementError when it is none of the known forms."""
    reader = _Reader(text, parameters)
    statement = _statement(reader)
    reader.finish()
    return statement


def _statement(reader: "_Reader") -> Statement:
    match reader.word():
        case "INSERT":
            return _insert(reader)
        case "UPDATE":
            return _update(reader)
        case "DELETE":
            return _delete(reader)
        case other:
            raise StatementError(f"a statement cannot begin with {other!r}")


class _Reader:
    """Walks the tokens of one statement, giving out its parameters in order."""

    def __init__(self, text: str, parameters: Sequence[Value]) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0
        self._parameters = iter(parameters)

    def peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("end", "")

    def take(self) -> tuple[str, str]:
        token = self.peek()
        self._at += 1
        return token

    def word(self) -> str:
        kind, text = self.take()
        return text.upper() if kind == "word" else ""

    def accept(self, *words: str) -> bool:
        """Take these words or symbols when they come next, all or none."""
        ahead = self._tokens[self._at : self._at + len(words)]
        if [text.upper() for kind, text in ahead if kind in {"word", "symbol"}] != list(words):
            return False
        self._at += len(words)
        return True

    def expect(self, *words: str) -> None:
        if not self.accept(*words):
            raise StatementError(f"{' '.join(words)} expected at {self.peek()[1]!r}")

    def name(self) -> str:
        kind, text = self.take()
        if kind not in {"word", "quoted"}:
            raise StatementError(f"a name expected at {text!r}")
        return text

    def value(self) -> Value:
        kind, text = self.take()
        match kind, text.upper():
            case "symbol", "?":
                return self._parameter()
            case "text", _:
                return {"S": text}
            case "number", _:
                return {"N": text}
            case "word", "TRUE" | "FALSE":
                return {"BOOL": text.upper() == "TRUE"}
            case "word", "NULL":
                return {"NULL": True}
        raise StatementError(f"a value expected at {text!r}")

    def path(self) -> Path:
        parts: list[str | int] = [self.name()]
        while True:
            if self.accept("."):
                parts.append(self.name())
            elif self.accept("["):
                parts.append(int(self.take()[1]))
                self.expect("]")
            else:
                return tuple(parts)

    def finish(self) -> None:
        kind, text = self.peek()
        if kind != "end":
            raise StatementError(f"the statement does not end at {text!r}")
        if next(self._parameters, None) is not None:
            raise StatementError("there are more parameters than question marks")

    def _parameter(self) -> Value:
        given = next(self._parameters, None)
        if given is None:
            raise StatementError("there are fewer parameters than question marks")
        return given


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            raise StatementError(f"unexpected {text[at]!r}")
        kind = str(found.lastgroup)
        token = found[kind]
        if kind in {"text", "quoted"}:
            token = token[1:-1].replace(token[0] * 2, token[0])
        yield kind, token
        at = found.end()


def _insert(reader: _Reader) -> Insert:
    reader.expect("INTO")
    table = reader.name()
    reader.expect("VALUE", "{")
    item: dict[str, Value] = {}
    while not reader.accept("}"):
        key = reader.take()[1]
        reader.expect(":")
        item[key] = reader.value()
        reader.accept(",")
    return Insert(table, item)


def _update(reader: _Reader) -> Update:
    table = reader.name()
    sets: list[Assignment] = []
    removes: list[Path] = []
    while True:
        if reader.accept("SET"):
            sets.append(_assignment(reader))
            while reader.accept(","):
                sets.append(_assignment(reader))
        elif reader.accept("REMOVE"):
            removes.append(reader.path())
        else:
            break
    if not sets and not removes:
        raise StatementError("an UPDATE needs a SET or a REMOVE")
    return Update(table, tuple(sets), tuple(removes), _where(reader), _returning(reader))


def _delete(reader: _Reader) -> Delete:
    reader.expect("FROM")
    return Delete(reader.name(), _where(reader), _returning(reader))


def _assignment(reader: _Reader) -> Assignment:
    path = reader.path()
    reader.expect("=")
    if not _is_path(reader):
        return Assignment(path, None, "", reader.value())
    base = reader.path()
    for operator in "+-":
        if reader.accept(operator):
            return Assignment(path, base, operator, reader.value())
    return Assignment(path, base, "", None)


def _is_path(reader: _Reader) -> bool:
    kind, text = reader.peek()
    return kind == "quoted" or (kind == "word" and text.upper() not in {"TRUE", "FALSE", "NULL"})


def _where(reader: _Reader) -> tuple[Condition, ...]:
    reader.expect("WHERE")
    conditions = [_condition(reader)]
    while reader.accept("AND"):
        conditions.append(_condition(reader))
    return tuple(conditions)


def _condition(reader: _Reader) -> Condition:
    path = reader.path()
    if reader.accept("IS", "MISSING"):
        return Missing(path, negated=False)
    if reader.accept("IS", "NOT", "MISSING"):
        return Missing(path, negated=True)
    operator = _COMPARISONS.get(reader.take()[1])
    if operator is None:
        raise StatementError(f"a comparison expected after {'.'.join(map(str, path))}")
    return Compare(path, operator, reader.path() if _is_path(reader) else reader.value())


def _returning(reader: _Reader) -> Returning:
    if not reader.accept("RETURNING"):
        return Returning.NOTHING
    for word, returning in (("NEW", Returning.NEW), ("OLD", Returning.OLD)):
        if reader.accept("ALL", word, "*"):
            return returning
    raise StatementError("only RETURNING ALL NEW * and ALL OLD * are understood")
