"""Load for a while, as much as the machine takes: what came out, how fast, and who used the CPU."""

import asyncio
import itertools
import json
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.bench.latency import quantile
from tests.bench.load import Pace, Posted, post_each
from tests.bench.meter import Usage, amount
from tests.bench.orders import order
from tests.bench.stack import BenchStack, Costs
from tests.bench.throughput import accepted_ids, inside_ms

ARRIVED_WITHIN_S = 60.0
WARM_UP_S = 3.0
LOOK_EVERY_S = 0.25
DIFFERENT = 500
"""Payloads made beforehand and posted in turn: making them must not compete with what is measured."""


@dataclass(frozen=True, slots=True)
class Load:
    """What is posted, to how many endpoints, and how they are served.

    `under_way` bounds how many events may be accepted and not yet arrived; endpoints answer after
    `latency_ms`, have a lane for every ten of `at_once`, and `slots` functions run at the same time.
    """

    endpoints: int = 8
    at_once: int = 10
    slots: int = 64
    latency_ms: int = 0
    payload_bytes: int = 2_048
    in_a_request: int = 10
    under_way: int = 120


def saturate(load: Load, seconds: float) -> dict[str, Any]:
    """Run a load for so long on a stack of its own and give its figures."""
    with BenchStack(slots=load.slots) as stack:
        for number in range(load.endpoints):
            _endpoint(stack, load, number)
        _post(stack, load, WARM_UP_S)
        before, own_s = stack.costs(), time.process_time()
        posted = _post(stack, load, seconds)
        own_s = time.process_time() - own_s
        costs = stack.costs().since(before)
        log = stack.ask("GET", "/received?brief=1", receiver=True)
    return _figures(posted, log, costs, own_s)


def _endpoint(stack: BenchStack, load: Load, number: int) -> None:
    """Make an endpoint; those that answer at once look at signatures too."""
    path = f"/slow/{number}?ms={load.latency_ms}" if load.latency_ms else f"/verify/{number}"
    limits = {"rate_per_second": 100_000, "burst": 100_000, "max_concurrency": load.at_once}
    url = f"http://127.0.0.1:{stack.receiver_port}{path}"
    made = stack.ask("POST", "/v1/endpoints", {"url": url, "event_types": [f"bench.e{number}"], **limits})
    stack.ask("POST", "/secret", {"secret": made["secret"], "endpoint": str(number)}, receiver=True)


def _post(stack: BenchStack, load: Load, seconds: float) -> Posted:
    """Post for so long, then wait until all of it has arrived."""
    arrived = stack.ask("GET", "/received?count=1", receiver=True)["count"]
    pace = Pace(stack.receiver_port, arrived, load.under_way)
    path = "/v1/events" if load.in_a_request == 1 else "/v1/events/batch"
    posted = asyncio.run(post_each(stack.api_port, path, _requests(load, seconds), pace))
    wanted = arrived + len(accepted_ids(posted))
    deadline = time.monotonic() + ARRIVED_WITHIN_S
    while stack.ask("GET", "/received?count=1", receiver=True)["count"] < wanted:
        if time.monotonic() > deadline:
            break
        time.sleep(LOOK_EVERY_S)
    return posted


def _requests(load: Load, seconds: float) -> Iterator[tuple[bytes, int]]:
    """Give requests until the time is over, events for all endpoints in turn."""
    made = max(load.endpoints, DIFFERENT if load.payload_bytes < 10_000 else 0)
    payloads = [order(place, f"bench.e{place % load.endpoints}", load.payload_bytes) for place in range(made)]
    waiting = itertools.cycle(payloads)
    over_s = time.monotonic() + seconds
    while time.monotonic() < over_s:
        some = list(itertools.islice(waiting, load.in_a_request))
        whole = (
            some[0]
            if load.in_a_request == 1
            else json.dumps({"events": [{"payload": each} for each in some]})
        )
        yield whole.encode(), load.in_a_request


def cpu_by_part(costs: Costs, own_s: float) -> dict[str, float]:
    """Part the CPU by process; that of the workers into functions and what plays Lambda's event source."""
    used = dict(costs.cpu_s)
    workers_s = used.pop("workers")
    functions_s = min(workers_s, costs.functions_cpu_s)
    return {**used, "functions": functions_s, "event source": workers_s - functions_s, "producer": own_s}


def _figures(posted: Posted, log: list[dict[str, Any]], costs: Costs, own_s: float) -> dict[str, Any]:
    accepted = accepted_ids(posted)
    arrivals = [each for each in log if each["delivery_id"] in accepted]
    good = {each["delivery_id"] for each in arrivals if each["verified"]}
    waits = [inside_ms(each) for each in arrivals]
    took_s = max((each["received_at"] for each in arrivals), default=0.0) / 1_000 - posted.began_s
    cpu_s = cpu_by_part(costs, own_s)
    count = max(1, len(good))
    ingest = costs.used.get("api_handler", Usage())
    return {
        "accepted": len(accepted),
        "refused": sum(status not in {202, 207} for status, _ in posted.answers),
        "delivered": len(good),
        "lost": len(set(accepted) - good),
        "duplicates": len(arrivals) - len({each["delivery_id"] for each in arrivals}),
        "seconds": round(took_s, 1),
        "deliveries_per_s": round(len(good) / max(0.001, took_s), 1),
        "p50_ms": round(statistics.median(waits), 1) if waits else None,
        "p99_ms": round(quantile(waits, 0.99), 1) if waits else None,
        "cpu_s": {name: round(used, 1) for name, used in cpu_s.items()},
        "cpu_share": {name: round(used / sum(cpu_s.values()), 3) for name, used in cpu_s.items()},
        "calls_per_delivery": round(amount(costs.total, "call ") / count, 2),
        "ingest_calls_per_delivery": round(amount(ingest, "call ") / count, 2),
        "write_units_per_delivery": round(amount(costs.total, "write ") / count, 2),
        "read_units_per_delivery": round(amount(costs.total, "read ") / count, 2),
        "rows_per_visit": round(costs.granted / max(1, costs.admitted), 2),
    }
