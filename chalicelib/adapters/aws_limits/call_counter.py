"""Counting AWS calls for the benchmark: a hook in the client, cheap and safe under threads.

It changes a call in one way only, and only when asked: DynamoDB writes are made to say what they consumed.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

from chalicelib.adapters.aws_limits.dynamodb_values import item_size
from chalicelib.adapters.aws_limits.emitters import emitter_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping

    from botocore.model import OperationModel

    from chalicelib.adapters.aws_limits.emitters import HasEvents

    Fields = MutableMapping[str, Any]

_WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"})
_STATEMENTS = frozenset({"ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction"})
_MARK = "relay_counts_write_units"


class CallCounter:
    """How many requests went out by (service, operation), their write units, and the bytes of what was read.

    Write units are what the answers say; bytes are counted here, item by item as AWS counts them, since what
    an emulator says of reads is not to be trusted.

    A request that botocore sends again after a failure counts again, as AWS bills it again.
    """

    def __init__(self) -> None:
        """Start at nothing."""
        self._lock = threading.Lock()
        self._calls: Counter[tuple[str, str]] = Counter()
        self._write_units = 0.0
        self._read_bytes = 0

    def calls(self) -> dict[tuple[str, str], int]:
        """Return the counts so far, such as {("dynamodb", "UpdateItem"): 3}."""
        with self._lock:
            return dict(self._calls)

    def total(self, *services: str) -> int:
        """Return how many requests went to these services, or to all when none is named."""
        calls = self.calls().items()
        return sum(count for (service, _), count in calls if not services or service in services)

    @property
    def write_units(self) -> float:
        """The DynamoDB write units consumed so far; stays 0 unless counting them was asked for."""
        with self._lock:
            return self._write_units

    @property
    def read_bytes(self) -> int:
        """The bytes of the DynamoDB items read so far; stays 0 unless counting them was asked for."""
        with self._lock:
            return self._read_bytes

    def reset(self) -> None:
        """Start again at nothing."""
        with self._lock:
            self._calls.clear()
            self._write_units = 0.0
            self._read_bytes = 0

    def add_call(self, service: str, operation: str) -> None:
        """Count one request."""
        with self._lock:
            self._calls[service, operation] += 1

    def add_read_bytes(self, size: int) -> None:
        """Add what was read."""
        with self._lock:
            self._read_bytes += size

    def add_write_units(self, units: float) -> None:
        """Add consumed write units."""
        with self._lock:
            self._write_units += units


def count_calls(target: HasEvents, *, write_units: bool = False, read_bytes: bool = False) -> CallCounter:
    """Count every request of a boto3 client, or of all clients a session makes from now on.

    With `write_units`, DynamoDB writes ask for their consumed capacity and it is summed; with `read_bytes`,
    what its reads answer is weighed.
    """
    counter = CallCounter()
    emitter = emitter_of(target)

    def count(event_name: str, **_: object) -> None:
        counter.add_call(*event_name.split(".")[1:3])

    emitter.register_first("before-send", count)
    if write_units:
        _sum_write_units(emitter, counter)
    if read_bytes:
        _sum_read_bytes(emitter, counter)
    return counter


def _sum_write_units(emitter: Any, counter: CallCounter) -> None:  # noqa: ANN401 - untyped in botocore
    def ask(params: Fields, model: OperationModel, context: Fields, **_: object) -> None:
        if _writes(model.name, params):
            params.setdefault("ReturnConsumedCapacity", "TOTAL")
            context[_MARK] = True

    def add(parsed: Mapping[str, Any], context: Mapping[str, Any], **_: object) -> None:
        if context.get(_MARK):
            counter.add_write_units(_consumed(parsed))

    emitter.register_last("before-parameter-build.dynamodb", ask)
    emitter.register_last("after-call.dynamodb", add)


def _sum_read_bytes(emitter: Any, counter: CallCounter) -> None:  # noqa: ANN401 - untyped in botocore
    def add(parsed: Mapping[str, Any], **_: object) -> None:
        counter.add_read_bytes(sum(item_size(each) for each in _read(parsed)))

    for operation in ("GetItem", "BatchGetItem", "Query", "Scan"):
        emitter.register_last(f"after-call.dynamodb.{operation}", add)


def _read(parsed: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from parsed.get("Items", ())
    yield from (each for items in parsed.get("Responses", {}).values() for each in items)
    if "Item" in parsed:
        yield parsed["Item"]


def _writes(operation: str, params: Mapping[str, Any]) -> bool:
    if operation in _WRITES:
        return True
    return operation in _STATEMENTS and not _first_statement(params).upper().startswith("SELECT")


def _first_statement(params: Mapping[str, Any]) -> str:
    statements = params.get("Statements") or params.get("TransactStatements") or [params]
    return str(statements[0].get("Statement", "")).lstrip()


def _consumed(parsed: Mapping[str, Any]) -> float:
    consumed = parsed.get("ConsumedCapacity") or []
    tables = [consumed] if isinstance(consumed, dict) else consumed
    return sum(float(table.get("CapacityUnits", 0.0)) for table in tables)
