"""Writes as DynamoDB says them: PartiQL statements and transaction items. Pure."""

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, assert_never

from chalicelib.adapters.dynamodb.records import (
    Check,
    Count,
    Delete,
    Insert,
    Key,
    Merge,
    Put,
    Statement,
    Update,
    Write,
)
from chalicelib.domain.change import Op, Record, Test

Attributes = dict[str, Any]
_PATHS_MAX = 4_096


def attribute(value: object) -> dict[str, Any]:
    """Give a value in DynamoDB's tagged form: text, integers, bytes, lists and maps."""
    write = _USUAL.get(type(value))
    if write is not None:
        return write(value)
    match value:
        case str():
            return {"S": value}
        case bool():
            return {"BOOL": value}
        case int():
            return {"N": str(value)}
        case bytes():
            return {"B": value}
        case Mapping():
            return {"M": attributes(value)}
        case list() | tuple():
            return {"L": [attribute(each) for each in value]}
        case _:
            raise TypeError(f"{type(value).__name__} cannot be stored")


_USUAL: Mapping[type, Callable[[object], dict[str, Any]]] = {
    str: lambda value: {"S": value},
    int: lambda value: {"N": str(value)},
}
"""Almost all values are of these, and asking what a value is an instance of is dear."""


def attributes(record: Mapping[str, Any]) -> Attributes:
    """Give a record in DynamoDB's tagged form."""
    return {name: attribute(value) for name, value in record.items()}


def plain(item: Mapping[str, Any]) -> dict[str, Any]:
    """Give a tagged item as plain values again."""
    return {name: _value(tagged) for name, tagged in item.items()}


def statement(table: str, write: Statement) -> Attributes:
    """Say a single write as a PartiQL statement; an update brings the item back."""
    match write:
        case Insert(key, record):
            full = {**key.parts, **record}
            names = ",".join(f"'{name}':?" for name in full)
            return _partiql(f'INSERT INTO "{table}" VALUE {{{names}}}', full.values())
        case Delete(key, tests):
            where, values = _where(key, tests)
            text = f'DELETE FROM "{table}" WHERE {where}'  # noqa: S608 - values are parameters
            return _partiql(text, values)
        case Update(key, change) | Count(key, change):
            where, values = _where(key, change.tests)
            sets = [f"SET {_path(path)}=?" for path in change.sets]
            steps = [f"SET {_path(path)}={_path(path)}{_sign(step)}?" for path, step in change.adds.items()]
            removes = [f"REMOVE {_path(path)}" for path in change.removes]
            clauses = " ".join([*sets, *steps, *removes])
            moved = [*change.sets.values(), *map(abs, change.adds.values())]
            returning = " RETURNING ALL NEW *" if isinstance(write, Update) else ""
            text = f'UPDATE "{table}" {clauses} WHERE {where}{returning}'
            return _partiql(text, [*moved, *values])
        case _:
            assert_never(write)


def transact_item(table: str, write: Write) -> Attributes:
    """Say a write as one item of a transaction."""
    match write:
        case Insert(key, record):
            names = _Names()
            condition = f"attribute_not_exists({names.name('pk')})"
            return {"Put": {"TableName": table, "Item": _item(key, record), **names.clause(condition)}}
        case Put(key, record, tests):
            names = _Names()
            condition = names.tests(tests)
            return {"Put": {"TableName": table, "Item": _item(key, record), **names.clause(condition)}}
        case Delete(key, tests):
            names = _Names()
            condition = names.tests(tests)
            return {"Delete": {"TableName": table, "Key": attributes(key.parts), **names.clause(condition)}}
        case Update(key, change):
            names = _Names()
            update = names.update(change.sets, change.adds, change.removes)
            exists = f"attribute_exists({names.name('pk')})"
            condition = " AND ".join(filter(None, [exists, names.tests(change.tests)]))
            return {"Update": _update(table, key, update, names.clause(condition))}
        case Merge(key, sets, removes):
            names = _Names()
            update = names.update(sets, {}, removes)
            return {"Update": _update(table, key, update, names.clause(""))}
        case Check(key, tests):
            names = _Names()
            condition = names.tests(tests)
            asked = {"TableName": table, "Key": attributes(key.parts), **names.clause(condition)}
            return {"ConditionCheck": asked}
        case _:
            assert_never(write)


def _update(table: str, key: Key, update: str, clause: Attributes) -> Attributes:
    return {"TableName": table, "Key": attributes(key.parts), "UpdateExpression": update, **clause}


def _value(tagged: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a stored value has any stored type
    ((tag, value),) = tagged.items()
    match tag:
        case "N":
            return int(value)
        case "M":
            return plain(value)
        case "L":
            return [_value(each) for each in value]
        case "B":
            return base64.b64decode(value)
        case _:
            return value


def _item(key: Key, record: Record) -> Attributes:
    return attributes({**key.parts, **record})


def _partiql(text: str, values: Iterable[object]) -> Attributes:
    return {
        "Statement": text,
        "Parameters": [attribute(value) for value in values],
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def _where(key: Key, tests: Sequence[Test]) -> tuple[str, list[object]]:
    parts = [f"{name}=?" for name in key.parts]
    values: list[object] = list(key.parts.values())
    for test in tests:
        if test.op is Op.MISSING:
            parts.append(f"{_path(test.path)} IS MISSING")
        else:
            parts.append(f"{_path(test.path)}{test.op.value}?")
            values.append(test.value)
    return " AND ".join(parts), values


@lru_cache(_PATHS_MAX)
def _path(path: str) -> str:
    return ".".join(f'"{part}"' for part in path.split("."))


def _sign(step: int) -> str:
    return "+" if step >= 0 else "-"


class _Names:
    """Placeholders of one expression: every name and value once."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: Attributes = {}

    def name(self, path: str) -> str:
        return ".".join(self._one(part) for part in path.split("."))

    def _one(self, part: str) -> str:
        return self._names.setdefault(part, f"#n{len(self._names)}")

    def value(self, value: object) -> str:
        placeholder = f":v{len(self._values)}"
        self._values[placeholder] = attribute(value)
        return placeholder

    def tests(self, tests: Sequence[Test]) -> str:
        return " AND ".join(self._test(test) for test in tests)

    def _test(self, test: Test) -> str:
        if test.op is Op.MISSING:
            return f"attribute_not_exists({self.name(test.path)})"
        return f"{self.name(test.path)} {test.op.value} {self.value(test.value)}"

    def update(self, sets: Mapping[str, Any], adds: Mapping[str, int], removes: Sequence[str]) -> str:
        assigned = [f"{self.name(path)} = {self.value(value)}" for path, value in sets.items()]
        for path, step in adds.items():
            name = self.name(path)
            assigned.append(f"{name} = {name} {_sign(step)} {self.value(abs(step))}")
        removed = [self.name(path) for path in removes]
        clauses = [("SET", assigned), ("REMOVE", removed)]
        return " ".join(f"{verb} {', '.join(parts)}" for verb, parts in clauses if parts)

    def clause(self, condition: str) -> Attributes:
        clause: Attributes = {}
        if condition:
            clause["ConditionExpression"] = condition
        if self._names:
            clause["ExpressionAttributeNames"] = {each: name for name, each in self._names.items()}
        if self._values:
            clause["ExpressionAttributeValues"] = self._values
        return clause
