"""`python -m tests.bench.isolation`: what misbehaving endpoints do to the latency of healthy ones.

Runs of healthy endpoints alone and beside misbehaving ones take turns, each on a stack of its own that has
just started, so that nothing of one run is left in the next. Latency is the receiver's log less the event's
receive time, the millisecond in the delivery id. Depends on the API, the receiver and clocks alone.
"""

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench import arrived, neighbours
from tests.bench.latency import Run, quantile, summary
from tests.bench.neighbours import EVENT, Neighbours, faults
from tests.bench.stack import AS_SHIPPED, BenchStack, machine_cpu_s
from tests.bench.steady import Arrival, post_steadily, spread

TARGET = Path("build/bench/isolation.json")
PAIRS = int(os.environ.get("RELAYBENCH_PAIRS", "3"))
ALONE_S = float(os.environ.get("RELAYBENCH_ALONE_S", "18"))
BESIDE_S = float(os.environ.get("RELAYBENCH_BESIDE_S", "30"))
WARM_UP_S = float(os.environ.get("RELAYBENCH_WARM_UP_S", "4"))
BACKLOG = int(os.environ.get("RELAYBENCH_BACKLOG", "5000"))
HEALTHY, HEALTHY_PER_S, HEALTHY_MS = 20, 2.0, 50
RATIO_AT_MOST = 1.2
# Reconcile comes round in every run, however short.
SCHEDULE_SPEED = 6.0
SHOWN = ("healthy_p99_ms_alone", "healthy_p99_ms_beside", "ratio", "worst", "faults", "took_s")
ALONE, HEALTHY_ONES = "alone", "healthy"

PHASES: Mapping[str, Neighbours] = {
    "backlogs": Neighbours(("/hang/b", "/always500/b"), per_s=0.5, backlog=BACKLOG),
    "flood": Neighbours((f"/slow/f?ms={HEALTHY_MS}",), per_s=100, in_tens=True),
    "ten_slow": Neighbours(tuple(f"/slow/s{n}?ms=4000" for n in range(10)), per_s=1 / 8),
    "sixteen_hang": Neighbours(tuple(f"/hang/h{n}" for n in range(16)), per_s=0.5),
}
# Asked for by name: a flood within the endpoint's own rate, which is work for all and not only noise.
ALSO: Mapping[str, Neighbours] = {
    "flood_allowed": Neighbours(
        (f"/slow/f?ms={HEALTHY_MS}",), 100, in_tens=True, limits={"rate_per_second": 200, "burst": 200}
    ),
}


def main() -> int:
    """Measure every phase; the exit code is 1 when one does harm, or was not what it should be."""
    began_s = time.monotonic()
    wanted = os.environ.get("RELAYBENCH_PHASES", ",".join(PHASES)).split(",")
    turns = [_run(ALONE, Neighbours(), ALONE_S, 0)]
    for pair in range(PAIRS):
        for name in wanted:
            turns.append(_run(name, {**PHASES, **ALSO}[name], BESIDE_S, pair))
            turns.append(_run(ALONE, Neighbours(), ALONE_S, pair))
    figures = {**_figures(turns, wanted), "took_s": round(time.monotonic() - began_s)}
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps({name: figures[name] for name in SHOWN}))
    print(f"written to {TARGET}")
    return int(bool(figures["faults"]) or figures["ratio"] > RATIO_AT_MOST)


def _run(phase: str, beside: Neighbours, for_s: float, seed: int) -> Run:
    began_s = time.monotonic()
    with BenchStack(app="app:app", schedule_speed=SCHEDULE_SPEED) as stack:
        healthy = [_healthy(stack, number) for number in range(HEALTHY)]
        ids = dict(zip(beside.paths, beside.move_in(stack), strict=True))
        moved_in_s = time.monotonic()
        before, machine_s, own_s = stack.costs(), machine_cpu_s(), time.process_time()
        answered = asyncio.run(post_steadily(stack.api_port, _arrivals(beside, WARM_UP_S + for_s, seed)))
        cpu_s = {**stack.costs().since(before).cpu_s, "load": time.process_time() - own_s}
        cpu_s["others"] = machine_cpu_s() - machine_s - sum(cpu_s.values())
        measured = arrived.accepted(answered, HEALTHY_ONES, WARM_UP_S)
        received = arrived.received(stack, measured)
        timed = arrived.timed(measured, received, arrived.queue_ms(stack, healthy, measured))
        told = neighbours.tell(stack, received, ids)
        stack.stop_at_once()
    run = Run(phase, timed, len(measured) - len(timed), arrived.late_ms(answered), cpu_s, told)
    times = f"{moved_in_s - began_s:.0f} s to begin, {time.monotonic() - began_s:.0f} s in all"
    print(json.dumps({**run.told(), "took": times}), flush=True)
    return run


def _healthy(stack: BenchStack, number: int) -> str:
    url = f"http://127.0.0.1:{stack.receiver_port}/slow/healthy{number}?ms={HEALTHY_MS}"
    made = stack.ask("POST", "/v1/endpoints", {"url": url, "event_types": [f"healthy.n{number}"]})
    return str(made["id"])


def _arrivals(beside: Neighbours, for_s: float, seed: int) -> list[Arrival]:
    """Give all that is posted in a run; the healthy ones' arrivals are the same in every run of a seed."""
    dice = random.Random(seed)
    arrivals = []
    for number in range(HEALTHY):
        body = json.dumps({"type": f"healthy.n{number}"}).encode()
        arrivals += [Arrival(at_s, EVENT, body, HEALTHY_ONES) for at_s in spread(HEALTHY_PER_S, for_s, dice)]
    return [*arrivals, *beside.arrivals(for_s, dice)]


def _figures(turns: Sequence[Run], wanted: Sequence[str]) -> dict[str, Any]:
    alone = [each for run in turns if run.phase == ALONE for each in run.timed]
    alone_p99 = quantile([each.total for each in alone], 0.99)
    phases = {name: _phase(name, turns, alone_p99) for name in wanted}
    worst = max(phases, key=lambda name: float(phases[name]["p99_ms"]))
    return {
        "healthy_p99_ms_alone": round(alone_p99, 1),
        "healthy_p99_ms_beside": phases[worst]["p99_ms"],
        "ratio": phases[worst]["ratio"],
        "worst": worst,
        "emulator": "ministack 1.5.33 as shipped"
        if AS_SHIPPED
        else "ministack 1.5.33, its linear scans mended",
        "cores": os.cpu_count(),
        "plan": {
            "pairs": PAIRS,
            "alone_s": ALONE_S,
            "beside_s": BESIDE_S,
            "warm_up_s": WARM_UP_S,
            "healthy": f"{HEALTHY} endpoints, {HEALTHY_PER_S}/s each, answered after {HEALTHY_MS} ms",
            "latency": "the receiver's log less the millisecond in the delivery id",
            "alone": "all runs alone; `own_pairs` has those just before and after the phase's",
            "stack": f"just started for every run; schedules {SCHEDULE_SPEED} times as often as deployed",
        },
        "alone": summary(alone),
        "phases": phases,
        "faults": faults(turns),
        "runs": [run.told() for run in turns],
    }


def _phase(name: str, turns: Sequence[Run], alone_p99: float) -> dict[str, Any]:
    """Tell of a phase against all runs alone, and against those just before and after its own."""
    places = [place for place, run in enumerate(turns) if run.phase == name]
    beside = [each for place in places for each in turns[place].timed]
    own = [each for place in places for side in (-1, 1) for each in turns[place + side].timed]
    told = summary(beside)
    left_over = [_left_over(turns[place]) for place in places]
    return {
        **told,
        "left_over_at_least": {path: min(each[path] for each in left_over) for path in left_over[0]},
        "ratio": round(told["p99_ms"] / alone_p99, 3),
        "own_pairs": {
            "samples_alone": len(own),
            "ratio": round(told["p99_ms"] / quantile([each.total for each in own], 0.99), 3),
        },
    }


def _left_over(run: Run) -> dict[str, int]:
    return {path: int(told["left_over"]) for path, told in run.neighbours.items()}


if __name__ == "__main__":
    sys.exit(main())
