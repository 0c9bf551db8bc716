"""Tables by boto3: batching, paging and bounded retries; errors become `Unavailable`."""

import random
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.adapters.aws_json import JsonService
from chalicelib.adapters.dynamodb import render
from chalicelib.adapters.dynamodb.records import (
    Count,
    Glance,
    Key,
    Made,
    Span,
    Statement,
    Stretch,
    Write,
)
from chalicelib.application.ports import Unavailable
from chalicelib.domain.change import Record

GET_MAX = 100
STATEMENTS_MAX = 25
GLANCED = 25
TRIES = 6
_PAUSE_S = 0.02
_BUSY = frozenset(
    (
        "TransactionConflict ThrottlingError ProvisionedThroughputExceeded RequestLimitExceeded"
        " InternalServerError TransactionConflictException ThrottlingException"
        " ProvisionedThroughputExceededException TransactionInProgressException"
    ).split()
)
_REFUSED = frozenset({"ConditionalCheckFailed", "DuplicateItem"})


class DynamoTables:
    """Relay's tables in DynamoDB; `prefix` stands before every table's name."""

    def __init__(self, service: JsonService, prefix: str) -> None:
        """Use DynamoDB for the tables of one installation."""
        self._service = service
        self._prefix = prefix

    def get(self, keys: Sequence[Key]) -> dict[Key, Record]:
        """Read records by key, in one call per hundred; missing ones are left out."""
        found: dict[Key, Record] = {}
        distinct = list(dict.fromkeys(keys))
        for start in range(0, len(distinct), GET_MAX):
            found.update(self._get(distinct[start : start + GET_MAX]))
        return found

    def query(self, table: str, pk: str, span: Span, limit: int) -> Stretch:
        """Read at most `limit` records of one partition."""
        records: list[Record] = []
        asked = self._question(table, pk, span)
        while len(records) < limit:
            asked["Limit"] = limit - len(records)
            page = self._call("Query", **asked)
            records += [render.plain(item) for item in page["Items"]]
            start = page.get("LastEvaluatedKey")
            if start is None:
                return Stretch(tuple(records), more=False)
            asked["ExclusiveStartKey"] = start
        return Stretch(tuple(records), more=True)

    def glance(self, table: str, pk: str, names: Sequence[str], most: int) -> Glance:
        """Count at most so many records of one partition, and read some attributes of its first.

        Beyond the first few only their number is asked for.
        """
        asked: dict[str, Any] = {
            "TableName": self._prefix + table,
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": pk}},
        }
        few = {"ProjectionExpression": ",".join(("sk", *names)), "Limit": min(GLANCED, most)}
        page = self._call("Query", **asked, **few)
        first = render.plain(page["Items"][0]) if page["Items"] else None
        count = len(page["Items"])
        while "LastEvaluatedKey" in page and count < most:
            begin = page["LastEvaluatedKey"]
            page = self._call("Query", **asked, ExclusiveStartKey=begin, Select="COUNT", Limit=most - count)
            count += page["Count"]
        return Glance(first, count, more="LastEvaluatedKey" in page)

    def each(self, writes: Sequence[Statement]) -> list[Made]:
        """Make writes that have nothing to do with one another, in one call per 25."""
        made: dict[int, Made] = {}
        left = list(range(len(writes)))
        for attempt in range(TRIES):
            for batch in _batches(left, writes):
                made.update(self._execute(batch, [writes[place] for place in batch]))
            left = [place for place in left if place not in made]
            if not left:
                return [made[place] for place in range(len(writes))]
            _pause(attempt)
        raise Unavailable("the store was too busy for a write")

    def together(self, writes: Sequence[Write]) -> list[int]:
        """Make at most 100 writes, all or none; the places of those that stood in the way."""
        items: Any = [render.transact_item(self._name(write.key), write) for write in writes]
        token = secrets.token_hex(16)
        for attempt in range(TRIES):
            try:
                self._service.call("TransactWriteItems", TransactItems=items, ClientRequestToken=token)
            except ClientError as error:
                refused = _refused_places(error)
                if refused:
                    return refused
            except BotoCoreError as error:
                raise Unavailable("the store could not be reached") from error
            else:
                return []
            _pause(attempt)
        raise Unavailable("the store was too busy for a transaction")

    def walk(self, table: str) -> Iterator[Record]:
        """Read a whole table, page by page, in no order."""
        asked: dict[str, Any] = {"TableName": self._prefix + table, "ConsistentRead": True}
        yield from self._pages("Scan", asked)

    def browse(self, table: str, after: Key | None, limit: int) -> Stretch:
        """Read at most `limit` records of a whole table after a key, in an order that is the store's own."""
        asked: dict[str, Any] = {"TableName": self._prefix + table, "ConsistentRead": True, "Limit": limit}
        if after is not None:
            asked["ExclusiveStartKey"] = render.attributes(after.parts)
        page = self._call("Scan", **asked)
        records = tuple(render.plain(item) for item in page["Items"])
        return Stretch(records, more="LastEvaluatedKey" in page)

    def indexed(self, table: str, index: str, value: str) -> Iterator[Record]:
        """Read the keys an index holds under a value, page by page; eventually consistent."""
        asked: dict[str, Any] = {
            "TableName": self._prefix + table,
            "IndexName": index,
            "KeyConditionExpression": "#k = :v",
            "ExpressionAttributeNames": {"#k": f"{index}_shard"},
            "ExpressionAttributeValues": {":v": {"S": value}},
        }
        yield from self._pages("Query", asked)

    def _pages(self, operation: str, asked: dict[str, Any]) -> Iterator[Record]:
        while True:
            page = self._call(operation, **asked)
            yield from (render.plain(item) for item in page["Items"])
            if "LastEvaluatedKey" not in page:
                return
            asked["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _name(self, key: Key) -> str:
        return self._prefix + key.table

    def _question(self, table: str, pk: str, span: Span) -> dict[str, Any]:
        values = {":pk": {"S": pk}, ":low": {"S": span.low}, ":high": {"S": span.high}}
        return {
            "TableName": self._prefix + table,
            "ConsistentRead": True,
            "ScanIndexForward": not span.backwards,
            "KeyConditionExpression": "pk = :pk AND sk BETWEEN :low AND :high",
            "ExpressionAttributeValues": values,
        }

    def _get(self, keys: Sequence[Key]) -> dict[Key, Record]:
        asked: Any = {}
        for key in keys:
            wanted = asked.setdefault(self._name(key), {"Keys": [], "ConsistentRead": True})
            wanted["Keys"].append(render.attributes(key.parts))
        found: dict[Key, Record] = {}
        for attempt in range(TRIES):
            page = self._call("BatchGetItem", RequestItems=asked)
            for name, items in page["Responses"].items():
                for item in items:
                    record = render.plain(item)
                    found[Key(name.removeprefix(self._prefix), record["pk"], record.get("sk", ""))] = record
            asked = page.get("UnprocessedKeys")
            if not asked:
                return found
            _pause(attempt)
        raise Unavailable("the store was too busy for a read")

    def _execute(self, places: Sequence[int], writes: Sequence[Statement]) -> dict[int, Made]:
        statements: Any = [render.statement(self._name(write.key), write) for write in writes]
        answer = self._call("BatchExecuteStatement", Statements=statements)
        made = {}
        for place, write, response in zip(places, writes, answer["Responses"], strict=True):
            result = _made(response, beside=isinstance(write, Count))
            if result is not None:
                made[place] = result
        return made

    def _call(self, operation: str, **asked: Any) -> Any:  # noqa: ANN401 - DynamoDB's JSON
        try:
            return self._service.call(operation, **asked)
        except (ClientError, BotoCoreError) as error:
            raise Unavailable(f"the store failed: {type(error).__name__}") from error


def _batches(places: Sequence[int], writes: Sequence[Statement]) -> Iterator[list[int]]:
    """Split into calls of at most 25, none of them with two writes of one item."""
    batch: list[int] = []
    keys: set[Key] = set()
    for place in places:
        key = writes[place].key
        if len(batch) == STATEMENTS_MAX or key in keys:
            yield batch
            batch, keys = [], set()
        batch.append(place)
        keys.add(key)
    if batch:
        yield batch


def _made(response: Mapping[str, Any], *, beside: bool) -> Made | None:
    error = response.get("Error")
    item = response.get("Item")
    if error is None:
        return Made(done=True, record=render.plain(item) if item else None)
    if error["Code"] in _REFUSED:
        old = error.get("Item")
        return Made(done=False, record=render.plain(old) if old else None)
    if beside:
        return Made(done=False)
    if error["Code"] in _BUSY:
        return None
    raise Unavailable(f"the store refused a statement: {error['Code']} {error.get('Message', '')}")


def _refused_places(error: ClientError) -> list[int]:
    """Give the places whose condition failed; none when the transaction may be tried again."""
    code = error.response.get("Error", {}).get("Code", "")
    reasons: Any = error.response.get("CancellationReasons", [])
    codes = [reason.get("Code", "None") for reason in reasons]
    refused = [place for place, each in enumerate(codes) if each in _REFUSED]
    if refused:
        return refused
    if code in _BUSY or any(each in _BUSY for each in codes):
        return []
    raise Unavailable(f"the store refused a transaction: {code} {codes}") from error


def _pause(attempt: int) -> None:
    time.sleep(_PAUSE_S * 2**attempt * random.random())  # noqa: S311 - jitter, not a secret
