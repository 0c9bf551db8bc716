"""The throughput benchmark: four cases of events posted while they are delivered."""

import asyncio
import json
import os
import statistics
import time
from dataclasses import dataclass
from typing import Any

import httpx

from tests.bench.load import Pace, Posted, post_all
from tests.bench.meter import Usage, amount
from tests.bench.stack import BenchStack, Costs

EVENTS = int(os.environ.get("RELAYBENCH_EVENTS", "3000"))
WARM_UP = 400
BODY_BYTES = 2_048
BATCH = 10
SETTLED_WITHIN_S = 60
BARE_POSTS = 500


@dataclass(frozen=True, slots=True)
class Case:
    """One case: its prefix in the result, how many endpoints, whether events are posted in tens.

    `under_way` bounds how many events may be accepted and not yet arrived: the load follows what the
    machine can do, so that throughput is its capacity and the times inside are those at capacity.
    """

    prefix: str
    endpoints: int
    in_tens: bool
    under_way: int


CASES = (
    Case("", 8, in_tens=True, under_way=120),
    Case("single_", 8, in_tens=False, under_way=24),
    Case("wide_", 200, in_tens=True, under_way=120),
    Case("wide_single_", 200, in_tens=False, under_way=24),
)


def run() -> dict[str, Any]:
    """Run every case, each on a stack of its own, and the bare comparison; give all figures."""
    wanted = os.environ.get("RELAYBENCH_CASES")
    figures: dict[str, Any] = {}
    for case in CASES:
        if wanted is not None and case.prefix not in wanted.split(","):
            continue
        with BenchStack() as stack:
            figures |= {case.prefix + name: value for name, value in _case(stack, case).items()}
            if "bare_post_cpu_us" not in figures:
                figures["bare_post_cpu_us"] = _bare_post_cpu_us(stack)
        print(
            json.dumps({k: v for k, v in figures.items() if k.startswith(case.prefix)}, indent=2), flush=True
        )
    return figures


def _case(stack: BenchStack, case: Case) -> dict[str, Any]:
    for number in range(case.endpoints):
        verifying_endpoint(stack, number)
    asyncio.run(_post(stack, case, WARM_UP))
    _wait_for(stack, WARM_UP)
    time.sleep(1.0)
    before = stack.costs()
    posted = asyncio.run(_post(stack, case, EVENTS, WARM_UP))
    accepted = accepted_ids(posted)
    _wait_for(stack, WARM_UP + len(accepted))
    time.sleep(1.0)
    costs = stack.costs().since(before)
    received = stack.ask("GET", f"/received?brief=1&after={0}", receiver=True)
    return _figures(case, accepted, received, posted, costs)


def verifying_endpoint(stack: BenchStack, number: int) -> None:
    url = f"http://127.0.0.1:{stack.receiver_port}/verify/{number}"
    body = {
        "url": url,
        "event_types": [f"bench.e{number}"],
        "rate_per_second": 100_000,
        "burst": 100_000,
    }
    made = stack.ask("POST", "/v1/endpoints", body)
    stack.ask("POST", "/secret", {"secret": made["secret"], "endpoint": str(number)}, receiver=True)


async def _post(stack: BenchStack, case: Case, events: int, arrived_before: int = 0) -> Posted:
    payloads = [payload(number, case.endpoints) for number in range(events)]
    pace = Pace(stack.receiver_port, arrived_before, case.under_way)
    if not case.in_tens:
        return await post_all(stack.api_port, "/v1/events", [(each.encode(), 1) for each in payloads], pace)
    tens = [payloads[start : start + BATCH] for start in range(0, events, BATCH)]
    bodies = [json.dumps({"events": [{"payload": each} for each in ten]}).encode() for ten in tens]
    return await post_all(stack.api_port, "/v1/events/batch", [(each, BATCH) for each in bodies], pace)


def payload(number: int, endpoints: int) -> str:
    head = {"type": f"bench.e{number % endpoints}", "number": number}
    lines = [f"line {number * 31 + place}: {'abcdefgh'[place % 8] * 3}" for place in range(120)]
    text = json.dumps({**head, "lines": lines})
    return json.dumps({**head, "lines": text[: BODY_BYTES - 60]})


def accepted_ids(posted: Posted) -> dict[str, float]:
    """Give the delivery ids that 202 answers named."""
    ids: dict[str, float] = {}
    for _, body in posted.answers:
        document = json.loads(body)
        for item in document.get("results", [document]):
            ids.update(dict.fromkeys(item.get("delivery_ids", []), 0.0))
    return ids


def _wait_for(stack: BenchStack, count: int) -> None:
    deadline = time.monotonic() + SETTLED_WITHIN_S
    while time.monotonic() < deadline:
        if stack.ask("GET", "/received?count=1", receiver=True)["count"] >= count:
            return
        time.sleep(0.25)


def _figures(
    case: Case, accepted: dict[str, float], received: list[dict[str, Any]], posted: Posted, costs: Costs
) -> dict[str, Any]:
    arrivals = [each for each in received if each["delivery_id"] in accepted]
    good = {each["delivery_id"] for each in arrivals if each["verified"]}
    waits = sorted(inside_ms(each) for each in arrivals)
    last_s = max((each["received_at"] for each in arrivals), default=0.0) / 1000
    count = max(1, len(good))
    cpu_us = {name: used * 1e6 for name, used in costs.cpu_s.items()}
    ingest = costs.used.get("api_handler", Usage())
    sending = costs.total - ingest
    return {
        "accepted": len(accepted),
        "delivered": len(good),
        "lost": len(set(accepted) - good),
        "duplicates": len(arrivals) - len({each["delivery_id"] for each in arrivals}),
        "deliveries_per_s": round(len(good) / max(0.001, last_s - posted.began_s), 1),
        "under_way_at_most": case.under_way,
        "p50_ms": round(statistics.median(waits), 1) if waits else None,
        "p99_ms": round(waits[int(len(waits) * 0.99) - 1], 1) if waits else None,
        "cpu_us_per_delivery": round((cpu_us["api"] + cpu_us["workers"]) / count),
        "cpu_us_by_process": {name: round(used / count) for name, used in cpu_us.items()},
        "aws_calls_per_delivery": round(amount(sending, "call ") / count, 3),
        "aws_calls_per_accepted_event": round(amount(ingest, "call ") / max(1, len(accepted)), 3),
        "invocations_per_delivery": round(sending["invocations"] / count, 3),
        "rows_per_visit_mean": round(costs.granted / max(1, costs.admitted), 2),
        "write_units_per_delivery": round(amount(costs.total, "write ") / count, 2),
        "read_units_per_delivery": round(amount(costs.total, "read ") / count, 2),
        "used": {name: dict(usage) for name, usage in costs.used.items()},
    }


def inside_ms(arrival: dict[str, Any]) -> float:
    """Give the time from acceptance (the millisecond in the delivery id) to arrival."""
    accepted_ms = int(arrival["delivery_id"].replace("-", "")[:12], 16)
    return max(0.0, float(arrival["received_at"]) - accepted_ms)


def _bare_post_cpu_us(stack: BenchStack) -> int:
    """Give what a plain httpx client costs for each post of the same size to the same receiver."""
    body = b"x" * BODY_BYTES
    with httpx.Client(trust_env=False) as client:
        url = f"http://127.0.0.1:{stack.receiver_port}/sink"
        client.post(url, content=body)
        began = time.process_time()
        for _ in range(BARE_POSTS):
            client.post(url, content=body)
        return round((time.process_time() - began) / BARE_POSTS * 1e6)
