"""DynamoDB: which rules each call must keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chalicelib.adapters.aws_limits.change_rules import check_change, check_change_size, check_written_size
from chalicelib.adapters.aws_limits.dynamodb_values import check_value, item_size
from chalicelib.adapters.aws_limits.expressions import Expressions, read_expressions
from chalicelib.adapters.aws_limits.item_rules import check_index_name, check_table_name, check_whole_item
from chalicelib.adapters.aws_limits.key_conditions import check_query
from chalicelib.adapters.aws_limits.refusal import check_bytes, check_distinct, refuse
from chalicelib.adapters.aws_limits.statement_rules import StatementRules
from chalicelib.adapters.aws_limits.table_keys import check_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chalicelib.adapters.aws_limits.dynamodb_values import Item
    from chalicelib.adapters.aws_limits.refusal import Params
    from chalicelib.adapters.aws_limits.table_keys import KnownTables

TRANSACTION_LARGEST_BYTES = 4 * 1_048_576
BATCH_WRITES_MOST = 25
BATCH_READS_MOST = 100
_ACTIONS = frozenset({"Put", "Update", "Delete", "ConditionCheck"})
_RETURN_VALUES = {
    "DeleteItem": frozenset({"NONE", "ALL_OLD"}),
    "PutItem": frozenset({"NONE", "ALL_OLD"}),
    "UpdateItem": frozenset({"NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"}),
}


class DynamoDbRules:
    """The rules for every DynamoDB call, given the tables that are known."""

    def __init__(self, tables: KnownTables) -> None:
        """Take keys from the tables that are known."""
        self._tables = tables
        self._statements = StatementRules(tables)

    def check(self, operation: str, params: Params) -> None:
        """Refuse what DynamoDB refuses of this call."""
        if "TableName" in params:
            check_table_name(params["TableName"], "TableName")
        returned = params.get("ReturnValues", "NONE")
        if operation in _RETURN_VALUES and returned not in _RETURN_VALUES[operation]:
            refuse("ReturnValues", f"{operation} cannot return {returned}")
        self._check_kind(operation, params)

    def _check_kind(self, operation: str, params: Params) -> None:
        match operation:
            case "PutItem" | "UpdateItem" | "DeleteItem" | "GetItem":
                self._check_request(params, "")
            case "Query" | "Scan":
                self._check_search(operation, params)
            case "BatchWriteItem" | "BatchGetItem" | "TransactWriteItems" | "TransactGetItems":
                self._check_many(operation, params)
            case "ExecuteStatement" | "BatchExecuteStatement" | "ExecuteTransaction":
                self._check_statements(operation, params)
            case "CreateTable":
                _check_new_table(params)
            case "UpdateTimeToLive":
                attribute = params["TimeToLiveSpecification"]["AttributeName"]
                self._tables.learn_ttl(params["TableName"], attribute)

    def _check_many(self, operation: str, params: Params) -> None:
        match operation:
            case "BatchWriteItem":
                self._check_batch_write(params["RequestItems"])
            case "BatchGetItem":
                self._check_batch_get(params["RequestItems"])
            case "TransactWriteItems":
                self._check_transact_write(params["TransactItems"])
            case _:
                self._check_transact_get(params["TransactItems"])

    def _check_statements(self, operation: str, params: Params) -> None:
        match operation:
            case "ExecuteStatement":
                self._statements.check_one(params)
            case "BatchExecuteStatement":
                self._statements.check_batch(params)
            case _:
                self._statements.check_transaction(params)

    def _check_request(self, request: Params, where: str) -> int:
        """Refuse a bad request for one item; return the bytes it surely touches."""
        table = request["TableName"]
        check_table_name(table, f"{where}TableName")
        keys, ttl = self._tables.of(table), self._tables.ttl_of(table)
        size = 0
        if "Item" in request:
            size = check_whole_item(keys, ttl, request["Item"], f"{where}Item")
        if "Key" in request:
            size = self._check_key(table, request["Key"], f"{where}Key")
        expressions = read_expressions(request, where)
        return self._check_change(expressions, request, where) or size

    def _check_key(self, table: str, key: Item, where: str) -> int:
        for name, value in key.items():
            check_value(value, f"{where}.{name}")
        check_key(self._tables.of(table), key, where)
        return item_size(key)

    def _check_change(self, expressions: Expressions, request: Params, where: str) -> int:
        if expressions.change is None:
            return 0
        table, key = request["TableName"], request["Key"]
        for path in expressions.change.paths:
            if path.root in key:
                refuse(f"{where}UpdateExpression", f"{path.root} is part of the key and cannot be changed")
        expression = f"{where}UpdateExpression"
        check_change(expressions.change, self._tables.of(table), self._tables.ttl_of(table), expression)
        if not where:  # UpdateItem itself, no action of a transaction
            check_written_size(expressions.change, expression)
        return check_change_size(expressions.change, key, expression)

    def _check_search(self, operation: str, params: Params) -> None:
        if params.get("IndexName") is not None:
            check_index_name(params["IndexName"], "IndexName")
        for name, value in (params.get("ExclusiveStartKey") or {}).items():
            check_value(value, f"ExclusiveStartKey.{name}")
        expressions = read_expressions(params)
        if operation == "Query":
            keys = self._tables.of(params["TableName"])
            check_query(params, expressions.key_condition, expressions.filter_, keys)

    def _check_batch_write(self, tables: Mapping[str, list[Params]]) -> None:
        """Refuse a bad batch; its limit of 16 MB is out of reach, 25 items of 400 KB being 10 MB."""
        _check_total(tables, BATCH_WRITES_MOST)
        for table, requests in tables.items():
            identities = []
            for place, request in enumerate(requests):
                action, where = _one_of(request, f"RequestItems.{table}[{place}]")
                self._check_request({**request[action], "TableName": table}, f"{where}.{action}.")
                attributes = request[action].get("Item") or request[action].get("Key")
                identities.append(self._tables.of(table).identity(attributes))
            check_distinct(identities, f"RequestItems.{table}", "items")

    def _check_batch_get(self, tables: Mapping[str, Params]) -> None:
        _check_total({table: request["Keys"] for table, request in tables.items()}, BATCH_READS_MOST)
        for table, request in tables.items():
            where = f"RequestItems.{table}"
            check_table_name(table, where)
            for place, key in enumerate(request["Keys"]):
                self._check_key(table, key, f"{where}.Keys[{place}]")
            read_expressions(request, f"{where}.")
            keys = self._tables.of(table)
            check_distinct([keys.identity(key) for key in request["Keys"]], f"{where}.Keys", "keys")

    def _check_transact_write(self, items: list[Params]) -> None:
        identities: list[object] = []
        total = 0
        for place, item in enumerate(items):
            action, where = _one_of(item, f"TransactItems[{place}]")
            if action not in _ACTIONS:
                refuse(where, f"must be one of {', '.join(sorted(_ACTIONS))}")
            total += self._check_request(item[action], f"{where}.{action}.")
            identities.append(self._identity(item[action]))
        check_distinct(identities, "TransactItems", "items")
        check_bytes(total, TRANSACTION_LARGEST_BYTES, "TransactItems")

    def _check_transact_get(self, items: list[Params]) -> None:
        for place, item in enumerate(items):
            self._check_request(item["Get"], f"TransactItems[{place}].Get.")
        check_distinct([self._identity(item["Get"]) for item in items], "TransactItems", "items")

    def _identity(self, request: Params) -> object:
        attributes: Any = request.get("Item") or request.get("Key")
        identity = self._tables.of(request["TableName"]).identity(attributes)
        return None if identity is None else (request["TableName"].rpartition("/")[2], identity)


def _check_total(tables: Mapping[str, list[Params]], most: int) -> None:
    total = sum(len(requests) for requests in tables.values())
    if not 1 <= total <= most:
        refuse("RequestItems", f"must hold 1 to {most} items over all tables, holds {total}")


def _one_of(request: Params, where: str) -> tuple[str, str]:
    if len(request) != 1:
        refuse(where, "must be exactly one action")
    return next(iter(request)), where


def _check_new_table(params: Params) -> None:
    indexes = [*(params.get("GlobalSecondaryIndexes") or []), *(params.get("LocalSecondaryIndexes") or [])]
    used = {entry["AttributeName"] for part in (params, *indexes) for entry in part["KeySchema"]}
    defined = {entry["AttributeName"] for entry in params["AttributeDefinitions"]}
    if used != defined:
        refuse("AttributeDefinitions", "must define exactly the key attributes of the table and its indexes")
    for place, index in enumerate(indexes):
        check_index_name(index["IndexName"], f"Indexes[{place}].IndexName")
