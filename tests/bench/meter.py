"""What AWS would bill, counted function by function: requests, write and read units, invocations.

It listens at hooks of a session, as the strict checks do, and changes a call in one way only: writes to
DynamoDB are made to say what they consumed. Read units are reckoned here from what was asked for and the
bytes that came, since what an emulator says of reads is not to be trusted.
"""

import math
import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from botocore.client import BaseClient
from botocore.model import OperationModel

from chalicelib.adapters.aws_limits.dynamodb_values import item_size
from chalicelib.adapters.aws_limits.emitters import emitter_of

Usage = Counter[str]
"""How much of each thing: `call dynamodb Query`, `write owed`, `read Query`, `invocations`, `wall_ms` …"""

READ_UNIT_BYTES = 4_096
QUEUE_REQUEST_BYTES = 65_536
OUTSIDE = "outside"
_WRITES = frozenset(("PutItem UpdateItem DeleteItem BatchWriteItem TransactWriteItems").split())
_STATEMENTS = frozenset(("ExecuteStatement BatchExecuteStatement ExecuteTransaction").split())
_ASKED = "relay_bench_asked"


def amount(usage: Mapping[str, float], kind: str) -> float:
    """Give how much of a kind of thing was used, such as `write ` for all write units."""
    return sum(each for name, each in usage.items() if name.startswith(kind))


class Meter:
    """Counts by function; what is used outside of any is under `outside`."""

    def __init__(self) -> None:
        """Start at nothing."""
        self._lock = threading.Lock()
        self._used: defaultdict[str, Usage] = defaultdict(Counter)
        self._here = threading.local()

    def used(self) -> dict[str, dict[str, float]]:
        """Give what each function has used so far."""
        with self._lock:
            return {name: dict(usage) for name, usage in self._used.items()}

    @contextmanager
    def within(self, function: str) -> Iterator[None]:
        """Bill what this thread does meanwhile to a function, as one invocation of it.

        Lambda bills whole milliseconds.
        """
        self._here.function = function
        began = time.perf_counter()
        try:
            yield
        finally:
            wall_ms = math.ceil((time.perf_counter() - began) * 1_000)
            self.add({"invocations": 1, "wall_ms": wall_ms})
            del self._here.function

    def add(self, usage: Mapping[str, float]) -> None:
        """Bill something to the function that runs in this thread."""
        function = getattr(self._here, "function", OUTSIDE)
        with self._lock:
            self._used[function].update(usage)

    def listen(self, to: BaseClient | boto3.Session) -> None:
        """Hear every call of a client, or of the clients that a session makes from now on."""
        emitter = emitter_of(to)
        emitter.register_first("before-send", self._on_request)
        emitter.register_last("before-parameter-build.dynamodb", _ask)
        emitter.register_last("after-call.dynamodb", self._on_answer)

    def _on_request(self, event_name: str, request: Any, **_: object) -> None:  # noqa: ANN401 - two classes of botocore
        service, operation = event_name.split(".")[1:3]
        if service != "sqs":
            self.add({f"call {service} {operation}": 1})
            return
        body = getattr(request, "body", None) or getattr(request, "data", None) or b""
        kind = "fifo" if b".fifo" in body else "standard"
        self.add({f"call sqs {operation} {kind}": max(1, math.ceil(len(body) / QUEUE_REQUEST_BYTES))})

    def _on_answer(
        self, parsed: Mapping[str, Any], model: OperationModel, context: Mapping[str, Any], **_: object
    ) -> None:
        asked = context.get(_ASKED)
        if asked is None:
            return
        if isinstance(asked, _Question):
            self.add({f"read {model.name}": asked.units(parsed)})
        else:
            for table, units in _consumed(parsed):
                self.add({f"write {table} {model.name}": units})


class _Question:
    """What a read asked for: how many keys of each table or a stretch, and how consistently."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        wanted = params.get("RequestItems")
        tables = wanted.values() if wanted else [params]
        self._strong = all(each.get("ConsistentRead") for each in tables)
        self._keys = sum(len(each["Keys"]) for each in wanted.values()) if wanted else 0

    def units(self, parsed: Mapping[str, Any]) -> float:
        """Reckon the units: each key by itself, there or not; a stretch by its sum."""
        if self._keys:
            sizes = [item_size(each) for items in parsed["Responses"].values() for each in items]
            whole = sum(map(read_units, sizes)) + self._keys - len(sizes)
        else:
            found = [parsed["Item"]] if "Item" in parsed else parsed.get("Items", ())
            whole = read_units(sum(item_size(each) for each in found))
        return whole if self._strong else whole / 2


def read_units(size: int) -> int:
    """Give the units of a strongly consistent read of so many bytes; nothing is read for nothing."""
    return max(1, math.ceil(size / READ_UNIT_BYTES))


def thread_cpu_s(native_id: int) -> float:
    """Read what a thread of this process has used of the CPU; 0 when it is gone."""
    try:
        told = Path(f"/proc/self/task/{native_id}/stat").read_text()
    except OSError:
        return 0.0
    fields = told.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _ask(
    params: MutableMapping[str, Any], model: OperationModel, context: MutableMapping[str, Any], **_: object
) -> None:
    if model.name in _WRITES | _STATEMENTS:
        params.setdefault("ReturnConsumedCapacity", "TOTAL")
        context[_ASKED] = True
    elif model.name in {"GetItem", "BatchGetItem", "Query", "Scan"}:
        context[_ASKED] = _Question(params)


def _consumed(parsed: Mapping[str, Any]) -> Iterable[tuple[str, float]]:
    consumed = parsed.get("ConsumedCapacity") or []
    for table in [consumed] if isinstance(consumed, dict) else consumed:
        yield table.get("TableName", ""), float(table.get("CapacityUnits", 0.0))
