"""What deliveries use of AWS, counted at leisure: one request at a time, the next when all of it has arrived.

So nobody waits for a processor that another has, and what is counted is what a delivery needs. Written to
build/bench/counted.json, from which `make cost` reckons.
"""

import asyncio
import base64
import json
import os
import random
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
from chalice.app import ScheduledEventConfig

from app import app
from chalicelib.adapters.aws_limits.dynamodb_values import item_size
from infra.local.schedules import period_of
from tests.bench.billing import MINUTES_A_MONTH
from tests.bench.load import Pace, Posted, post_all
from tests.bench.meter import Usage
from tests.bench.orders import order
from tests.bench.stack import BenchStack, Costs

TARGET = Path("build/bench/counted.json")
ENDPOINTS = 10
SIZES = tuple(map(int, os.environ.get("RELAYBENCH_COST_SIZES", "512,2048,8192,65536").split(",")))
SCALE = float(os.environ.get("RELAYBENCH_COST_SCALE", "1"))
ARRIVED_WITHIN_S = 180.0
BATCH_BYTES = 3_300_000
SETTLED_S = 1.0
IDLE_S = float(os.environ.get("RELAYBENCH_IDLE_S", "30"))
IDLE_SPEED = 60
ROWS = ("events", "history")
PERIODS = {
    each.name: period_of(each.schedule_expression)
    for each in app.event_sources
    if isinstance(each, ScheduledEventConfig)
}


@dataclass(frozen=True, slots=True)
class Fill:
    """How events come: so many in a request, for so many endpoints, each with a lane; requests to post.

    `shards` is how many queues the endpoints are spread over: with one, all bells of a request are one batch.
    """

    name: str
    events: int
    lanes: int
    requests: int
    shards: int = 4


SINGLY = Fill("singly", 1, 1, 60)
SPREAD = Fill("ten for ten endpoints", 10, 10, 30)
TENS = Fill("ten for one endpoint", 10, 1, 30)
FULL = Fill("full", 100, 10, 8, shards=1)


@dataclass(frozen=True, slots=True)
class Case:
    """One case: how events come, how large they are, and what is special about it."""

    name: str
    fill: Fill
    size: int
    path: str = "/sink"
    keys: bool = False
    plain: bool = False


def cases() -> list[Case]:
    """Give every fill at every size, and full batches of 2 KB with what else may cost."""
    every = [
        Case(f"{fill.name}, {_told(size)}", fill, size) for fill in (SINGLY, TENS, FULL) for size in SIZES
    ]
    return [
        *every,
        Case("ten for ten endpoints, 2 KB", SPREAD, 2_048),
        Case("singly, 2 KB, answered after 200 ms", SINGLY, 2_048, path="/slow?ms=200"),
        Case("full, 2 KB, answered after 200 ms", FULL, 2_048, path="/slow?ms=200"),
        Case("full, 2 KB, with idempotency keys", FULL, 2_048, keys=True),
        Case("full, 2 KB that do not deflate", FULL, 2_048, plain=True),
    ]


def run() -> dict[str, Any]:
    """Count every case and what nothing to do uses; give all of it."""
    counted: dict[str, Any] = {"cores": os.cpu_count(), "load": os.getloadavg()[1], "cases": {}}
    for shards in (4, 1):
        with BenchStack(settings={"RELAY_SHARD_COUNT": str(shards)}) as stack:
            for case in cases():
                if case.fill.shards == shards:
                    counted["cases"][case.name] = _counted(stack, case)
                    print(case.name, json.dumps(counted["cases"][case.name]["cpu_s"]), flush=True)
    counted["idle"] = _idle()
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(json.dumps(counted, indent=1) + "\n")
    return counted


def _counted(stack: BenchStack, case: Case) -> dict[str, Any]:
    types = [f"cost.t{time.time_ns()}e{number}" for number in range(case.fill.lanes)]
    for number, event_type in enumerate(types):
        _endpoint(stack, case, number, event_type)
    _post(stack, case, types, 2)
    before, kept_before = stack.costs(), _kept(stack)
    requests = max(1, round(case.fill.requests * SCALE))
    _post(stack, case, types, requests)
    costs, kept = stack.costs().since(before), _kept(stack)
    if any("dead-letters" in name for name in costs.total):
        raise RuntimeError(f"{case.name}: not all of it succeeded")
    events = requests * _events(case)
    return {
        "fill": case.fill.name,
        "payload_bytes": case.size,
        "deliveries": events,
        "requests": requests,
        **_told_of(costs),
        "kept": {name: {k: kept[name][k] - kept_before[name][k] for k in kept[name]} for name in kept},
    }


def _idle() -> dict[str, Any]:
    """Count what a month uses in which nothing is posted: minutes go by in seconds, and are scaled up."""
    with BenchStack(schedule_speed=IDLE_SPEED) as stack:
        for number in range(ENDPOINTS):
            _endpoint(stack, Case("idle", SINGLY, 512), number, f"idle.e{number}")
        time.sleep(IDLE_S)
        costs = stack.costs()
    months = MINUTES_A_MONTH / (IDLE_S * IDLE_SPEED / 60)
    used = {name: _scaled(usage, _runs(name, usage, months)) for name, usage in costs.used.items()}
    del used["api_handler"]
    return {
        "used": _plain(used),
        "cpu_s": {name: used_s * months for name, used_s in costs.cpu_s.items()} | {"api": 0.0},
        "log_bytes": costs.log_bytes * months,
    }


def _runs(function: str, usage: Usage, months: float) -> float:
    """Say by how much to scale what a function used: to its schedule, or as the time that went by."""
    period = PERIODS.get(function)
    if period is None or not usage["invocations"]:
        return months
    return timedelta(minutes=MINUTES_A_MONTH) / period / usage["invocations"]


def _scaled(usage: Usage, by: float) -> Usage:
    return Usage({name: each * by for name, each in usage.items()})


def _endpoint(stack: BenchStack, case: Case, number: int, event_type: str) -> None:
    limits = {"rate_per_second": 100_000, "burst": 100_000, "max_concurrency": 10}
    url = f"http://127.0.0.1:{stack.receiver_port}{case.path}"
    stack.ask("POST", "/v1/endpoints", {"url": url, "event_types": [event_type], **limits})


def _post(stack: BenchStack, case: Case, types: Sequence[str], requests: int) -> None:
    """Post requests, one after another, and wait until the last is settled too."""
    bodies = [_body(case, types, number) for number in range(requests)]
    path = "/v1/events" if case.fill.events == 1 else "/v1/events/batch"
    arrived = stack.ask("GET", "/received?count=1", receiver=True)["count"]
    pace = Pace(stack.receiver_port, arrived, _events(case))
    loads = [(each, _events(case)) for each in bodies]
    posted = asyncio.run(_within(post_all(stack.api_port, path, loads, pace)))
    _check(posted)
    deadline = time.monotonic() + ARRIVED_WITHIN_S
    while stack.ask("GET", "/received?count=1", receiver=True)["count"] < arrived + requests * _events(case):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{case.name}: not all of it arrived")
        time.sleep(0.1)
    time.sleep(SETTLED_S)


async def _within(posting: Awaitable[Posted]) -> Posted:
    return await asyncio.wait_for(posting, ARRIVED_WITHIN_S)


def _check(posted: Posted) -> None:
    refused = sorted({status for status, _ in posted.answers if status not in {202, 207}})
    if refused:
        raise RuntimeError(f"the API answered {refused}")


def _events(case: Case) -> int:
    """Say how many events a request has: as many as fit into a batch's body, written as JSON text."""
    return min(case.fill.events, BATCH_BYTES // case.size)


def _body(case: Case, types: Sequence[str], number: int) -> bytes:
    places = range(number * 1_000, number * 1_000 + _events(case))
    payloads = [_payload(case, types[place % len(types)], place) for place in places]
    if case.fill.events == 1:
        return payloads[0].encode()
    once = f"{types[0]}-{time.time_ns()}"
    keys = [{"idempotency_key": f"{once}-{place}"} if case.keys else {} for place in places]
    events = [{"payload": payload, **key} for payload, key in zip(payloads, keys, strict=True)]
    return json.dumps({"events": events}).encode()


def _payload(case: Case, event_type: str, number: int) -> str:
    if not case.plain:
        return order(number, event_type, case.size)
    head = {"type": event_type, "cipher": ""}
    return json.dumps(head | {"cipher": _noise(case.size - len(json.dumps(head)), number)})


def _noise(length: int, number: int) -> str:
    """Give text that deflates badly: a cipher in base64."""
    return base64.b64encode(random.Random(number).randbytes(length))[:length].decode()


def _kept(stack: BenchStack) -> dict[str, dict[str, int]]:
    """Weigh the rows that stay: how many and how many bytes."""
    client: Any = boto3.client(
        "dynamodb",
        endpoint_url=stack.emulator_url,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    kept = {}
    for table in ROWS:
        pages = client.get_paginator("scan").paginate(TableName=f"relay-{table}")
        sizes = [item_size(item) for page in pages for item in page["Items"]]
        kept[table] = {"rows": len(sizes), "bytes": sum(sizes)}
    return kept


def _told_of(costs: Costs) -> dict[str, Any]:
    return {"used": _plain(costs.used), "cpu_s": dict(costs.cpu_s), "log_bytes": costs.log_bytes}


def _plain(used: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    return {name: dict(usage) for name, usage in used.items() if usage}


def _told(size: int) -> str:
    return f"{size / 1024:g} KB"
