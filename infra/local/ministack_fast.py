"""ministack with its linear scans mended, for runs with a backlog: `python -m infra.local.ministack_fast`.

As shipped, a Query walks its whole partition before it looks at Limit, every send rebuilds the table of
deduplication ids of the last five minutes, every delete rebuilds the queue, and a long poll looks ten times
a second. None of that is so on AWS, and it makes one endpoint's backlog everybody's. Answers stay the same;
only the time they take changes. Figures measured with it must say so.

Runs on the emulator's own Python, and only on the version whose insides it knows.
"""

import asyncio
import gc
import importlib
import re
import sys
import time
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

from infra.local.ministack_speech import mend_conditions, mend_copies, mend_server, mend_statements

_KNOWN = "1.5.33"
_SMALL = 12
_LOOK_EVERY_S = 0.1
_LOOK_AT_EMPTY_EVERY_S = 1.0
_LAST_CHARACTER = "\U0010ffff"
_CONDITION = re.compile(
    r"""begins_with\s*\(\s*(?P<starting>[\#\w]+)\s*,\s*(?P<prefix>:\w+)\s*\)
      | (?P<ranging>[\#\w]+)\s+BETWEEN\s+(?P<low>:\w+)\s+AND\s+(?P<high>:\w+)
      | (?P<compared>[\#\w]+)\s*(?P<operator><=|>=|=|<|>)\s*(?P<value>:\w+)""",
    re.VERBOSE | re.IGNORECASE,
)
_NOTHING_ELSE = re.compile(r"(?:\s|AND|[()])*", re.IGNORECASE)

Bucket = dict[str, Any]
Range = tuple[int, int]


class SortedKeys:
    """The sort keys of large partitions in order, kept so as items come and go."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._known: dict[int, tuple[Bucket, list[str]]] = {}

    def of(self, bucket: Bucket) -> list[str]:
        """Give the keys of a partition in order."""
        known = self._known.get(id(bucket))
        if known is None or known[0] is not bucket or len(known[1]) != len(bucket):
            known = self._known[id(bucket)] = (bucket, sorted(bucket))
        return known[1]

    def added(self, bucket: Bucket, key: str) -> None:
        """Note a new key."""
        if (known := self._known.get(id(bucket))) is not None:
            insort(known[1], key)

    def removed(self, bucket: Bucket, key: str) -> None:
        """Note that a key is gone."""
        if not bucket:
            self._known.pop(id(bucket), None)
        elif (known := self._known.get(id(bucket))) is not None:
            del known[1][bisect_left(known[1], key)]

    def forget(self) -> None:
        """Start over: items were replaced wholesale."""
        self._known.clear()


def bounds(keys: list[str], sort_key: str, query: Mapping[str, Any]) -> Range | None:
    """Say between which places of the ordered keys a Query's answer lies; None when that is not clear."""
    expression = query.get("KeyConditionExpression") or ""
    if not _NOTHING_ELSE.fullmatch(_CONDITION.sub(" ", expression)):
        return None
    start, end = 0, len(keys)
    names, values = query.get("ExpressionAttributeNames") or {}, query.get("ExpressionAttributeValues") or {}
    for found in _CONDITION.finditer(expression):
        name = found["starting"] or found["ranging"] or found["compared"]
        if names.get(name, name) == sort_key:
            low, high = _one_bound(keys, found.groupdict(), values)
            start, end = max(start, low), min(end, high)
    return start, max(start, end)


def page(keys: list[str], places: Range, sort_key: str, query: Mapping[str, Any]) -> list[str]:
    """Give the keys that one page can take, and one more so that it knows whether there are more."""
    start, end = places
    cursor = (query.get("ExclusiveStartKey") or {}).get(sort_key, {}).get("S")
    limit = query.get("Limit")
    if query.get("ScanIndexForward", True):
        start = start if cursor is None else max(start, bisect_right(keys, cursor))
        return keys[start:end] if limit is None else keys[start : min(end, start + int(limit) + 1)]
    end = end if cursor is None else min(end, bisect_left(keys, cursor))
    return keys[start:end] if limit is None else keys[max(start, end - int(limit) - 1) : end]


def _one_bound(keys: list[str], found: Mapping[str, str | None], values: Mapping[str, Any]) -> Range:
    def text(placeholder: str | None) -> str:
        return str(values[str(placeholder)]["S"])

    if found["starting"]:
        prefix = text(found["prefix"])
        return bisect_left(keys, prefix), bisect_left(keys, prefix + _LAST_CHARACTER)
    if found["ranging"]:
        return bisect_left(keys, text(found["low"])), bisect_right(keys, text(found["high"]))
    value = text(found["value"])
    places: dict[str, Range] = {
        "=": (bisect_left(keys, value), bisect_right(keys, value)),
        "<": (0, bisect_left(keys, value)),
        "<=": (0, bisect_right(keys, value)),
        ">": (bisect_right(keys, value), len(keys)),
        ">=": (bisect_left(keys, value), len(keys)),
    }
    return places[str(found["operator"])]


class _Tables:
    """ministack's tables, one of them with only the items that a Query can need."""

    def __init__(self, tables: Any, name: str, view: Mapping[str, Any]) -> None:  # noqa: ANN401 - ministack has no types
        self._tables, self._name, self._view = tables, name, view

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - as dict's
        return self._view if name == self._name else self._tables.get(name, default)

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - as dict's
        return self._view if name == self._name else self._tables[name]

    def __contains__(self, name: str) -> bool:
        return name in self._tables


def mend_tables(dynamodb: Any) -> None:  # noqa: ANN401 - ministack has no types
    """Let a Query look only at the items between its bounds, up to its limit."""
    sorted_keys = SortedKeys()
    query, set_item, remove_item = dynamodb._query, dynamodb._set_item, dynamodb._remove_item  # noqa: SLF001
    replaced = dynamodb._items_replaced  # noqa: SLF001

    def mended_set(table: Any, partition: str, key: str, item: Any) -> Any:  # noqa: ANN401
        is_new = key not in table["items"].get(partition, ())
        old = set_item(table, partition, key, item)
        if is_new:
            sorted_keys.added(table["items"][partition], key)
        return old

    def mended_remove(table: Any, partition: str, key: str) -> Any:  # noqa: ANN401
        bucket = table["items"].get(partition, {})
        old = remove_item(table, partition, key)
        if old is not None:
            sorted_keys.removed(bucket, key)
        return old

    def mended_replaced(table: Any) -> None:  # noqa: ANN401
        sorted_keys.forget()
        replaced(table)

    def mended_query(data: dict[str, Any]) -> Any:  # noqa: ANN401
        tables = dynamodb._tables  # noqa: SLF001
        view = _view(dynamodb, sorted_keys, data)
        if view is None:
            return query(data)
        dynamodb._tables = _Tables(tables, data["TableName"], view)  # noqa: SLF001
        try:
            return query(data)
        finally:
            dynamodb._tables = tables  # noqa: SLF001

    dynamodb._query, dynamodb._set_item, dynamodb._remove_item = mended_query, mended_set, mended_remove  # noqa: SLF001
    dynamodb._items_replaced = mended_replaced  # noqa: SLF001


def _view(dynamodb: Any, sorted_keys: SortedKeys, data: Mapping[str, Any]) -> Mapping[str, Any] | None:  # noqa: ANN401
    """Give the table with only the items that the Query can need; None for what is left as it is."""
    table = dynamodb._tables.get(data.get("TableName", ""))  # noqa: SLF001
    if not table or data.get("IndexName") or not table.get("sk_name"):
        return None
    sort_key = table["sk_name"]
    names, values = data.get("ExpressionAttributeNames") or {}, data.get("ExpressionAttributeValues") or {}
    expression = data.get("KeyConditionExpression")
    partition = dynamodb._extract_pk_from_condition(expression, values, names, table["pk_name"])  # noqa: SLF001
    bucket = table["items"].get(partition) or {}
    if len(bucket) < _SMALL or dynamodb._get_attr_type(table, sort_key) != "S":  # noqa: SLF001
        return None
    keys = sorted_keys.of(bucket)
    try:
        places = bounds(keys, sort_key, data)
    except (KeyError, TypeError):
        return None
    if places is None:
        return None
    items = {key: bucket[key] for key in page(keys, places, sort_key, data)}
    return {**table, "items": {partition: items}}


class _Bells:
    """Wakes the long polls of a queue when something about it has changed."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[asyncio.Future[None]]] = defaultdict(list)

    def ring(self, queue: str) -> None:
        for future in self._waiting.pop(queue, ()):
            if not future.done():
                future.set_result(None)

    async def wait(self, queue: str, within_s: float) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting[queue].append(future)
        await asyncio.wait([future], timeout=within_s)


def mend_queues(sqs: Any) -> None:  # noqa: ANN401 - ministack has no types
    """Let sends, deletes and long polls cost the same however many messages there are."""
    bells = _Bells()
    receive = sqs._act_receive_message  # noqa: SLF001

    def ringing(action: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
        def mended(data: Any, url: str) -> Any:  # noqa: ANN401
            answer = action(data, url)
            bells.ring(_queue(data, url))
            return answer

        return mended

    async def mended_receive(data: dict[str, Any], url: str) -> Any:  # noqa: ANN401
        queue = sqs._get_q(data.get("QueueUrl", url))  # noqa: SLF001
        attributes = queue["attributes"]
        wait_s = data.get("WaitTimeSeconds")
        wait_s = int(attributes.get("ReceiveMessageWaitTimeSeconds", 0) if wait_s is None else wait_s)
        deadline = time.monotonic() + wait_s
        while True:
            answer = await receive({**data, "WaitTimeSeconds": 0}, url)
            left_s = deadline - time.monotonic()
            if answer or left_s <= 0:
                return answer
            # What is hidden or delayed may become visible, and a topic may deliver, with nobody ringing.
            pause_s = _LOOK_EVERY_S if queue["messages"] else _LOOK_AT_EMPTY_EVERY_S
            await bells.wait(_queue(data, url), min(left_s, pause_s))

    def mended_delete(data: dict[str, Any], url: str) -> Any:  # noqa: ANN401
        queue = sqs._get_q(data.get("QueueUrl", url), "sqs:DeleteMessage")  # noqa: SLF001
        entries = data.get("Entries", [])
        sqs._validate_batch_entries(entries, "DeleteMessageBatchRequestEntry")  # noqa: SLF001
        handles = {entry.get("ReceiptHandle") or "" for entry in entries}
        gone = {
            message["receipt_handle"] for message in queue["messages"] if message["receipt_handle"] in handles
        }
        if gone:
            queue["messages"] = [m for m in queue["messages"] if m["receipt_handle"] not in gone]
        return {
            "Successful": [{"Id": entry["Id"]} for entry in entries if entry.get("ReceiptHandle") in gone],
            "Failed": [_stale(entry) for entry in entries if entry.get("ReceiptHandle") not in gone],
        }

    sqs._prune_dedup, sqs._expire_retained = _prune, _retain(sqs._expire_retained)  # noqa: SLF001
    sqs._act_send_message = ringing(sqs._act_send_message)  # noqa: SLF001
    sqs._HANDLERS.update(  # noqa: SLF001
        SendMessage=sqs._act_send_message,  # noqa: SLF001
        ReceiveMessage=mended_receive,
        DeleteMessageBatch=ringing(mended_delete),
        DeleteMessage=ringing(sqs._act_delete_message),  # noqa: SLF001
        ChangeMessageVisibility=ringing(sqs._act_change_visibility),  # noqa: SLF001
        ChangeMessageVisibilityBatch=ringing(sqs._act_change_visibility_batch),  # noqa: SLF001
    )


def _queue(data: Mapping[str, Any], url: str) -> str:
    return str(data.get("QueueUrl", url)).rpartition("/")[2]


def _stale(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "Id": entry["Id"],
        "Code": "ReceiptHandleIsInvalid",
        "Message": "The input receipt handle is invalid.",
        "SenderFault": True,
    }


def _prune(queue: Any) -> None:  # noqa: ANN401 - ministack has no types
    """Forget the deduplication ids that are over; they stand in the order in which they end."""
    known, now = queue["dedup_cache"], time.time()
    over = []
    for key, entry in known.items():
        if entry["expire"] > now:
            break
        over.append(key)
    for key in over:
        del known[key]


def _retain(expire: Callable[[Any], None]) -> Callable[[Any], None]:
    """Look for messages past their retention once a second, not at every question."""
    looked: dict[int, float] = {}

    def mended(queue: Any) -> None:  # noqa: ANN401 - ministack has no types
        now = time.monotonic()
        if now - looked.get(id(queue), 0.0) >= 1:
            looked[id(queue)] = now
            expire(queue)

    return mended


def main() -> None:
    """Mend ministack, then run it."""
    if version("ministack") != _KNOWN:
        sys.exit(f"The mended emulator knows ministack {_KNOWN} only, not {version('ministack')}.")
    mend_tables(importlib.import_module("ministack.services.dynamodb"))
    mend_queues(importlib.import_module("ministack.services.sqs"))
    # All that it stores is looked through by every full collection, though hardly any of it is garbage.
    gc.set_threshold(100_000, 50, 1_000)
    mend_statements()
    mend_conditions()
    mend_copies()
    mend_server()
    importlib.import_module("ministack.app").main()


if __name__ == "__main__":
    main()
