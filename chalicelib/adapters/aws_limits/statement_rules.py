"""What DynamoDB demands of PartiQL statements: whole keys, one kind in a batch, distinct items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chalicelib.adapters.aws_limits.change_rules import check_change, check_change_size
from chalicelib.adapters.aws_limits.dynamodb_values import canonical
from chalicelib.adapters.aws_limits.item_rules import check_table_name, check_whole_item
from chalicelib.adapters.aws_limits.nodes import Comparison, Logic, Path, Value, conjuncts, every_node
from chalicelib.adapters.aws_limits.refusal import check_count, check_distinct, refuse
from chalicelib.adapters.aws_limits.statements import Statement, Verb, read_statement
from chalicelib.adapters.aws_limits.table_keys import check_key_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from chalicelib.adapters.aws_limits.dynamodb_values import AttributeValue, Item
    from chalicelib.adapters.aws_limits.nodes import Condition
    from chalicelib.adapters.aws_limits.refusal import Params
    from chalicelib.adapters.aws_limits.table_keys import KnownTables, TableKeys

BATCH_MOST = 25
TRANSACTION_MOST = 100


class StatementRules:
    """The rules for ExecuteStatement, BatchExecuteStatement and ExecuteTransaction."""

    def __init__(self, tables: KnownTables) -> None:
        """Take keys from the tables that are known."""
        self._tables = tables

    def check_one(self, params: Params) -> None:
        """Refuse a bad statement on its own."""
        statement = self._read(params, "Statement")
        if statement.verb is Verb.EXISTS:
            refuse("Statement", "EXISTS is for transactions only")
        keys = self._tables.of(statement.table)
        if params.get("ConsistentRead") and statement.index in keys.global_indexes:
            refuse("ConsistentRead", "a global index cannot be read consistently")

    def check_batch(self, params: Params) -> None:
        """Refuse a batch that mixes reads and writes, names an item twice or leaves a key open."""
        statements = self._read_all(params["Statements"], "Statements", BATCH_MOST)
        for place, statement in enumerate(statements):
            where = f"Statements[{place}].Statement"
            if statement.verb is Verb.EXISTS:
                refuse(where, "EXISTS is for transactions only")
            if statement.reads:
                self._check_single_read(statement, where)

    def check_transaction(self, params: Params) -> None:
        """Refuse a transaction that mixes reads and writes, names an item twice or leaves a key open."""
        statements = self._read_all(params["TransactStatements"], "TransactStatements", TRANSACTION_MOST)
        for place, statement in enumerate(statements):
            where = f"TransactStatements[{place}].Statement"
            if statement.returning:
                refuse(where, "a transaction cannot return items")
            if statement.reads:
                self._check_single_read(statement, where)
            if statement.verb is Verb.EXISTS:
                self._check_exists(statement, where)

    def _read_all(self, requests: Sequence[Params], where: str, most: int) -> list[Statement]:
        check_count(requests, 1, most, where)
        statements = [
            self._read(request, f"{where}[{place}].Statement") for place, request in enumerate(requests)
        ]
        if len({statement.reads for statement in statements}) > 1:
            refuse(where, "must be all reads or all writes")
        check_distinct([self._identity(statement) for statement in statements], where, "items")
        return statements

    def _read(self, request: Params, where: str) -> Statement:
        statement = read_statement(request["Statement"], request.get("Parameters") or (), where)
        check_table_name(statement.table, where)
        keys, ttl = self._tables.of(statement.table), self._tables.ttl_of(statement.table)
        if statement.item is not None:
            check_whole_item(keys, ttl, statement.item, where)
        if statement.verb in {Verb.UPDATE, Verb.DELETE}:
            _check_whole_key(statement, keys, where)
            _check_no_choice(statement, where)
        if statement.change is not None:
            check_change(statement.change, keys, ttl, where)
            check_change_size(statement.change, _key_of(statement, keys), where)
        return statement

    def _identity(self, statement: Statement) -> object:
        keys = self._tables.of(statement.table)
        attributes = _key_of(statement, keys) if statement.item is None else statement.item
        identity = keys.identity(attributes)
        return None if identity is None else (statement.table, identity)

    def _check_single_read(self, statement: Statement, where: str) -> None:
        keys = self._tables.of(statement.table)
        if statement.index is not None:
            refuse(where, "an index cannot be read here")
        _check_whole_key(statement, keys, where)
        if _others(statement.where, keys):
            refuse(where, "may say what the key equals and nothing else")

    def _check_exists(self, statement: Statement, where: str) -> None:
        keys = self._tables.of(statement.table)
        _check_whole_key(statement, keys, where)
        if not _others(statement.where, keys):
            refuse(where, "EXISTS needs a condition beside the key")


def _check_whole_key(statement: Statement, keys: TableKeys, where: str) -> None:
    found: dict[str, AttributeValue] = {}
    for name, content in _equalities(statement.where):
        if name not in keys.primary:
            continue
        if name in found and canonical(found[name]) != canonical(content):
            refuse(where, f"says two things about the key attribute {name}")
        check_key_value(keys, name, content, where)
        found[name] = content
    for name in keys.primary if keys.certain else (keys.hash_key,):
        if name not in found:
            refuse(where, f"must say in WHERE what the key attribute {name} equals")


def _check_no_choice(statement: Statement, where: str) -> None:
    """Refuse OR in the condition of a write: AWS documents none there, and readers of its grammar differ."""
    if statement.where is not None and any(
        isinstance(node, Logic) and node.operator == "OR" for node in every_node(statement.where)
    ):
        refuse(where, "a write's condition takes no OR; send a statement for each case")


def _key_of(statement: Statement, keys: TableKeys) -> Item:
    return {name: content for name, content in _equalities(statement.where) if name in keys.primary}


def _others(condition: Condition | None, keys: TableKeys) -> list[Condition]:
    parts = conjuncts(condition) if condition is not None else ()
    return [part for part in parts if not any(name in keys.primary for name, _ in _equality(part))]


def _equalities(condition: Condition | None) -> Iterator[tuple[str, AttributeValue]]:
    for part in conjuncts(condition) if condition is not None else ():
        yield from _equality(part)


def _equality(part: Condition) -> Iterator[tuple[str, AttributeValue]]:
    if not isinstance(part, Comparison) or part.operator != "=":
        return
    match part.operands:
        case (Path(parts=(str(name),)), Value(content=content)):
            yield name, content
        case (Value(content=content), Path(parts=(str(name),))):
            yield name, content
