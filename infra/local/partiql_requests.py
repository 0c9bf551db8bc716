"""PartiQL statements as the single-item requests of DynamoDB that mean the same, and the errors back again.

Values to values: the requests are made elsewhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

from infra.local.partiql import (
    Assignment,
    Compare,
    Condition,
    Delete,
    Insert,
    Missing,
    Path,
    Returning,
    Statement,
    StatementError,
    Update,
    Value,
)

_ERROR_CODES = {
    "ConditionalCheckFailedException": "ConditionalCheckFailed",
    "ItemCollectionSizeLimitExceededException": "ItemCollectionSizeLimitExceeded",
    "ProvisionedThroughputExceededException": "ProvisionedThroughputExceeded",
    "RequestLimitExceeded": "RequestLimitExceeded",
    "ResourceNotFoundException": "ResourceNotFound",
    "ThrottlingException": "ThrottlingError",
    "TransactionConflictException": "TransactionConflict",
    "ValidationException": "ValidationError",
}


@dataclass(frozen=True, slots=True)
class Request:
    """One call of DynamoDB's API."""

    action: str
    body: Mapping[str, Any]


@dataclass(slots=True)
class _Names:
    """Placeholders for the names and values of one request."""

    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)

    def path(self, path: Path) -> str:
        text = ""
        for part in path:
            if isinstance(part, int):
                text += f"[{part}]"
            else:
                text += ("." if text else "") + self._name(part)
        return text

    def value(self, value: Value) -> str:
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = value
        return placeholder

    def body(self) -> dict[str, Any]:
        named = {"ExpressionAttributeNames": self.names, "ExpressionAttributeValues": self.values}
        return {key: given for key, given in named.items() if given}

    def _name(self, name: str) -> str:
        for placeholder, known in self.names.items():
            if known == name:
                return placeholder
        placeholder = f"#n{len(self.names)}"
        self.names[placeholder] = name
        return placeholder


def request_of(statement: Statement, keys: Sequence[str], on_failure: str) -> Request:
    """Say what a statement means on a table with these key attributes.

    `on_failure` is ReturnValuesOnConditionCheckFailure. StatementError when the key is not given whole.
    """
    match statement:
        case Insert():
            return _put(statement, keys, on_failure)
        case Update():
            return _change(statement, keys, on_failure)
        case Delete():
            return _remove(statement, keys, on_failure)
        case _:
            assert_never(statement)


def error_of(statement: Statement, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the error of a single-item request into the error of its statement."""
    kind = str(answer.get("__type", "")).rpartition("#")[2]
    message = answer.get("message") or answer.get("Message") or kind
    if kind == "ConditionalCheckFailedException" and isinstance(statement, Insert):
        return {"Code": "DuplicateItem", "Message": "Duplicate primary key exists in table"}
    error = {"Code": _ERROR_CODES.get(kind, "InternalServerError"), "Message": message}
    return {**error, "Item": answer["Item"]} if "Item" in answer else error


def _put(statement: Insert, keys: Sequence[str], on_failure: str) -> Request:
    missing = [key for key in keys if key not in statement.item]
    if missing:
        raise StatementError(f"the item has no {missing[0]}")
    names = _Names()
    condition = f"attribute_not_exists({names.path((keys[0],))})"
    body = {"TableName": statement.table, "Item": statement.item, "ConditionExpression": condition}
    return Request("PutItem", {**body, **_on_failure(on_failure), **names.body()})


def _change(statement: Update, keys: Sequence[str], on_failure: str) -> Request:
    key, rest = _split(statement.where, keys)
    names = _Names()
    exists = f"attribute_exists({names.path((keys[0],))})"
    conditions = [exists, *(_condition(names, part) for part in rest)]
    body = {
        "TableName": statement.table,
        "Key": key,
        "UpdateExpression": _update_expression(names, statement),
        "ConditionExpression": " AND ".join(conditions),
        "ReturnValues": statement.returning.value,
    }
    return Request("UpdateItem", {**body, **_on_failure(on_failure), **names.body()})


def _remove(statement: Delete, keys: Sequence[str], on_failure: str) -> Request:
    if statement.returning is Returning.NEW:
        raise StatementError("a DELETE returns no new item")
    key, rest = _split(statement.where, keys)
    names = _Names()
    conditions = " AND ".join(_condition(names, part) for part in rest)
    guarded: dict[str, str] = {}
    if conditions:
        # A DELETE of an item that is not there succeeds, whatever its WHERE clause asks for besides the key.
        absent = f"attribute_not_exists({names.path((keys[0],))})"
        guarded = {"ConditionExpression": f"{absent} OR ({conditions})", **_on_failure(on_failure)}
    body = {"TableName": statement.table, "Key": key, "ReturnValues": statement.returning.value}
    return Request("DeleteItem", {**body, **guarded, **names.body()})


def _on_failure(on_failure: str) -> dict[str, str]:
    return {"ReturnValuesOnConditionCheckFailure": on_failure} if on_failure == "ALL_OLD" else {}


def _split(where: Sequence[Condition], keys: Sequence[str]) -> tuple[dict[str, Value], list[Condition]]:
    """Part the equalities on the key from what else must hold."""
    key: dict[str, Value] = {}
    rest: list[Condition] = []
    for part in where:
        match part:
            case Compare((str(name),), "=", Mapping() as value) if name in keys:
                key[name] = value
            case _:
                rest.append(part)
    if set(key) != set(keys):
        raise StatementError("Where clause does not contain a mandatory equality on all key attributes")
    return key, rest


def _condition(names: _Names, condition: Condition) -> str:
    match condition:
        case Compare():
            return f"{names.path(condition.path)} {condition.operator} {_operand(names, condition.other)}"
        case Missing():
            test = "attribute_exists" if condition.negated else "attribute_not_exists"
            return f"{test}({names.path(condition.path)})"
        case _:
            assert_never(condition)


def _operand(names: _Names, operand: Value | Path) -> str:
    return names.value(operand) if isinstance(operand, Mapping) else names.path(operand)


def _update_expression(names: _Names, statement: Update) -> str:
    sets = ", ".join(_set(names, assignment) for assignment in statement.sets)
    removes = ", ".join(names.path(path) for path in statement.removes)
    parts = (("SET", sets), ("REMOVE", removes))
    return " ".join(f"{verb} {changes}" for verb, changes in parts if changes)


def _set(names: _Names, assignment: Assignment) -> str:
    base = [names.path(assignment.base)] if assignment.base is not None else []
    value = [names.value(assignment.value)] if assignment.value is not None else []
    return f"{names.path(assignment.path)} = {f' {assignment.operator} '.join(base + value)}"
