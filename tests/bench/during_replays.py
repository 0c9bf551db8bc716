"""`python -m tests.bench.during_replays`: what a bulk replay does to first attempts of the same endpoint.

Runs with and without 5,000 replays under way take turns, each on a stack of its own with the same history.
"""

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench import arrived
from tests.bench.latency import Run, quantile, summary
from tests.bench.neighbours import EVENT, EVENTS, HUNDREDS
from tests.bench.stack import BenchStack, machine_cpu_s
from tests.bench.steady import Arrival, post_steadily, spread

TARGET = Path("build/bench/during-replays.json")
PAIRS = int(os.environ.get("RELAYBENCH_PAIRS", "3"))
FOR_S = float(os.environ.get("RELAYBENCH_BESIDE_S", "28"))
REPLAYS = int(os.environ.get("RELAYBENCH_BACKLOG", "5000"))
WARM_UP_S = 3.0
RATIO_AT_MOST = 1.2
SCHEDULE_SPEED = 6.0
ANSWER_MS, EVENTS_PER_S = 20, 20.0
RATE_PER_S, CONCURRENCY = 150, 40
SENT_WITHIN_S = 120
ALONE, BESIDE, FIRST = "alone", "replays", "first"


def main() -> int:
    """Measure pairs; the exit code is 1 when replays do harm, or were not under way all the time."""
    began_s = time.monotonic()
    runs = [_run(name, pair) for pair in range(PAIRS) for name in (ALONE, BESIDE)]
    figures = {**_figures(runs), "took_s": round(time.monotonic() - began_s)}
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps({name: value for name, value in figures.items() if name != "runs"}))
    print(f"written to {TARGET}")
    return int(bool(figures["faults"]) or figures["ratio"] > RATIO_AT_MOST)


def _run(name: str, seed: int) -> Run:
    with BenchStack(app="app:app", schedule_speed=SCHEDULE_SPEED) as stack:
        endpoint_id = _with_history(stack)
        replay = _replayed(stack, endpoint_id) if name == BESIDE else None
        before, machine_s, own_s = stack.costs(), machine_cpu_s(), time.process_time()
        answered = asyncio.run(post_steadily(stack.api_port, _arrivals(seed)))
        told = _left(stack, replay)
        cpu_s = {**stack.costs().since(before).cpu_s, "load": time.process_time() - own_s}
        cpu_s["others"] = machine_cpu_s() - machine_s - sum(cpu_s.values())
        measured = arrived.accepted(answered, FIRST, WARM_UP_S)
        log = arrived.received(stack, measured)
        timed = arrived.timed(measured, log, arrived.queue_ms(stack, [endpoint_id], measured))
        stack.stop_at_once()
    run = Run(name, timed, len(measured) - len(timed), arrived.late_ms(answered), cpu_s, {BESIDE: told})
    print(json.dumps(run.told()), flush=True)
    return run


def _with_history(stack: BenchStack) -> str:
    """Register the endpoint and let it succeed at as many deliveries as are going to be replayed."""
    url = f"http://127.0.0.1:{stack.receiver_port}/slow/both?ms={ANSWER_MS}"
    limits = {"rate_per_second": 1_000, "burst": 1_000, "max_concurrency": CONCURRENCY}
    made = stack.ask("POST", "/v1/endpoints", {"url": url, "event_types": ["*"], **limits})
    item = {"payload": json.dumps({"type": "before"})}
    for _ in range(0, REPLAYS, HUNDREDS):
        stack.ask("POST", EVENTS, {"events": [item] * HUNDREDS})
    deadline = time.monotonic() + SENT_WITHIN_S
    while stack.ask("GET", f"/v1/endpoints/{made['id']}/backlog")["size"]:
        if time.monotonic() > deadline:
            raise TimeoutError("the deliveries that are to be replayed were not sent")
        time.sleep(0.5)
    slower = {"rate_per_second": RATE_PER_S, "burst": RATE_PER_S}
    stack.ask("PATCH", f"/v1/endpoints/{made['id']}", slower, headers={"If-Match": f'"{made["version"]}"'})
    return str(made["id"])


def _replayed(stack: BenchStack, endpoint_id: str) -> str:
    """Begin to replay all of it."""
    body = {"since": "2020-01-01T00:00:00Z", "status": "succeeded", "confirm": REPLAYS}
    until = datetime.now(UTC).isoformat()
    begun = stack.ask("POST", f"/v1/endpoints/{endpoint_id}/replay", {**body, "until": until})
    return str(begun["id"])


def _left(stack: BenchStack, replay: str | None) -> dict[str, int]:
    """Say how many replays had reached the receiver when the last event was posted."""
    if replay is None:
        return {}
    log = stack.ask("GET", "/received?brief=1", receiver=True)
    sent = len(log) - len({each["delivery_id"] for each in log})
    return {"sent": sent, "left": REPLAYS - sent}


def _arrivals(seed: int) -> list[Arrival]:
    body = json.dumps({"type": FIRST}).encode()
    moments = spread(EVENTS_PER_S, WARM_UP_S + FOR_S, random.Random(seed))
    return [Arrival(at_s, EVENT, body, FIRST) for at_s in moments]


def _figures(runs: Sequence[Run]) -> dict[str, Any]:
    timed = {
        name: [each for run in runs if run.phase == name for each in run.timed] for name in (ALONE, BESIDE)
    }
    p99 = {name: quantile([each.total for each in timed[name]], 0.99) for name in timed}
    return {
        "first_p99_ms_alone": round(p99[ALONE], 1),
        "first_p99_ms_beside": round(p99[BESIDE], 1),
        "ratio": round(p99[BESIDE] / p99[ALONE], 3),
        "cores": os.cpu_count(),
        "plan": {
            "pairs": PAIRS,
            "for_s": FOR_S,
            "endpoint": f"{RATE_PER_S}/s, cap {CONCURRENCY}, answered after {ANSWER_MS} ms",
            "first_attempts": f"{EVENTS_PER_S}/s on a schedule with jitter",
            "replays": REPLAYS,
            "latency": "the receiver's log less the millisecond in the delivery id",
        },
        "alone": summary(timed[ALONE]),
        "beside": summary(timed[BESIDE]),
        "faults": _faults(runs),
        "runs": [run.told() for run in runs],
    }


def _faults(runs: Sequence[Run]) -> list[str]:
    missing = [f"{run.phase}: {run.missing} never arrived" for run in runs if run.missing]
    told = [run.neighbours[BESIDE] for run in runs if run.phase == BESIDE]
    over = [f"the replays were over before the load was: {each}" for each in told if int(each["left"]) <= 0]
    return [*missing, *over]


if __name__ == "__main__":
    sys.exit(main())
