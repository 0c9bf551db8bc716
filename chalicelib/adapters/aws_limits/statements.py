"""Reading PartiQL statements in the documented forms: SELECT, INSERT, UPDATE, DELETE and EXISTS."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

from chalicelib.adapters.aws_limits.conditions import ConditionReader
from chalicelib.adapters.aws_limits.dialects import StatementDialect, read_path
from chalicelib.adapters.aws_limits.dynamodb_values import check_value
from chalicelib.adapters.aws_limits.nodes import Assignment, Change, Path
from chalicelib.adapters.aws_limits.tokens import STATEMENT, Cursor, Kind
from chalicelib.adapters.aws_limits.updates import AssignmentReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chalicelib.adapters.aws_limits.dynamodb_values import AttributeValue, Item
    from chalicelib.adapters.aws_limits.nodes import Condition

_RETURNING = {
    "UPDATE": frozenset({"ALL OLD", "MODIFIED OLD", "ALL NEW", "MODIFIED NEW"}),
    "DELETE": frozenset({"ALL OLD"}),
}


class Verb(StrEnum):
    """What a statement does."""

    SELECT = "SELECT"
    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    EXISTS = "EXISTS"


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement as read: what it does to which table, and under which condition."""

    verb: Verb
    table: str
    where: Condition | None = None
    item: Item | None = None
    change: Change | None = None
    index: str | None = None
    returning: bool = False

    @property
    def reads(self) -> bool:
        """Whether it only reads; EXISTS stands among the writes of a transaction."""
        return self.verb is Verb.SELECT


def read_statement(text: str, parameters: Sequence[AttributeValue], where: str) -> Statement:
    """Read one statement that is all of its text, with exactly as many question marks as parameters."""
    for place, parameter in enumerate(parameters):
        check_value(parameter, f"{where}.Parameters[{place}]")
    reader = _StatementReader(Cursor(text, STATEMENT, where), parameters)
    return reader.read()


class _StatementReader:
    def __init__(self, cursor: Cursor, parameters: Sequence[AttributeValue]) -> None:
        self._cursor = cursor
        self._dialect = StatementDialect(cursor, parameters)

    def read(self) -> Statement:
        verb = Verb(self._cursor.expect(*Verb))
        statement = self._of(verb)
        self._cursor.accept(";")
        self._cursor.expect_end()
        self._dialect.refuse_unused()
        return statement

    def _of(self, verb: Verb) -> Statement:
        match verb:
            case Verb.SELECT:
                return self._select()
            case Verb.INSERT:
                return self._insert()
            case Verb.UPDATE:
                return self._update()
            case Verb.DELETE:
                return self._delete()
            case Verb.EXISTS:
                return self._exists()
            case _:
                assert_never(verb)

    def _select(self) -> Statement:
        if not self._cursor.accept("*"):
            AssignmentReader(self._dialect).paths()
        self._cursor.expect("FROM")
        table = self._table()
        index = self._table() if self._cursor.accept(".") else None
        where = self._where()
        if self._cursor.accept("ORDER"):
            self._order()
        return Statement(Verb.SELECT, table, where, index=index)

    def _order(self) -> None:
        self._cursor.expect("BY")
        while True:
            read_path(self._dialect)
            self._cursor.accept("ASC", "DESC")
            if not self._cursor.accept(","):
                return

    def _exists(self) -> Statement:
        self._cursor.expect("(")
        self._cursor.expect("SELECT")
        inner = self._select()
        self._cursor.expect(")")
        return Statement(Verb.EXISTS, inner.table, inner.where, index=inner.index)

    def _insert(self) -> Statement:
        self._cursor.expect("INTO")
        table = self._table()
        self._cursor.expect("VALUE")
        return Statement(Verb.INSERT, table, item=self._item())

    def _item(self) -> Item:
        item: dict[str, AttributeValue] = {}
        self._cursor.expect("{")
        while not self._cursor.at("}"):
            name = self._dialect.field_name()
            if name in item:
                self._cursor.refuse(f"names the attribute {name} twice")
            value = self._dialect.value()
            if value is None:
                self._cursor.refuse_token("expected a literal or a question mark")
            item[name] = value.content
            if not self._cursor.accept(","):
                break
        self._cursor.expect("}")
        return item

    def _update(self) -> Statement:
        table = self._table()
        change = self._change()
        where = self._where()
        return Statement(Verb.UPDATE, table, where, change=change, returning=self._returning(Verb.UPDATE))

    def _change(self) -> Change:
        reader = AssignmentReader(self._dialect)
        assigned: list[Assignment] = []
        removed: list[Path] = []
        clause = self._cursor.expect("SET", "REMOVE")
        while clause:
            if clause == "SET":
                assigned += reader.assignments()
            else:
                removed += reader.paths()
            clause = self._cursor.accept("SET", "REMOVE") or ""
        return Change(assigned=tuple(assigned), removed=tuple(removed))

    def _delete(self) -> Statement:
        self._cursor.expect("FROM")
        table = self._table()
        where = self._where()
        return Statement(Verb.DELETE, table, where, returning=self._returning(Verb.DELETE))

    def _where(self) -> Condition | None:
        return ConditionReader(self._dialect).read() if self._cursor.accept("WHERE") else None

    def _returning(self, verb: Verb) -> bool:
        if not self._cursor.accept("RETURNING"):
            return False
        which = f"{self._cursor.expect('ALL', 'MODIFIED')} {self._cursor.expect('OLD', 'NEW')}"
        self._cursor.expect("*")
        if which not in _RETURNING[verb]:
            self._cursor.refuse(f"{verb} cannot return {which} *")
        return True

    def _table(self) -> str:
        token = self._cursor.token
        if token.kind not in {Kind.WORD, Kind.QUOTED}:
            self._cursor.refuse_token("expected the name of a table or index")
        return self._dialect.name()
