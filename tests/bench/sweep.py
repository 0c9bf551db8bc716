"""`python -m tests.bench.sweep`: what lanes, pollers, slow receivers and large payloads do to throughput.

From one base case in every direction; writes build/bench/sweep.json and the table of docs/load-test.md.
"""

import json
import os
import platform
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.bench.page import put_between, table
from tests.bench.saturate import Load, saturate
from tests.bench.stack import AS_SHIPPED

TARGET = Path("build/bench/sweep.json")
PAGE = Path("docs/load-test.md")
SECONDS = float(os.environ.get("RELAYBENCH_SWEEP_S", "15"))
BASE = Load()
STEPS: dict[str, tuple[int, ...]] = {
    "endpoints": (1, 8, 50, 200),
    "at_once": (10, 40),
    "slots": (4, 16, 64),
    "latency_ms": (0, 50, 200, 1_000),
    "payload_bytes": (512, 2_048, 8_192, 65_536),
}
WORDS = {
    "endpoints": "endpoints, a lane each",
    "at_once": "requests at once of an endpoint",
    "slots": "functions at once",
    "latency_ms": "receivers answer after, ms",
    "payload_bytes": "payload, bytes",
}
WANTED = os.environ.get("RELAYBENCH_SWEEP_DIRECTIONS", ",".join(STEPS)).split(",")


def main() -> int:
    """Walk; the exit code is 1 when anything was lost."""
    base = saturate(BASE, SECONDS)
    found = [_point("base", 0, base)]
    for name in WANTED:
        for value in STEPS[name]:
            load = replace(BASE, **{name: value})
            found.append(_point(name, value, base if load == BASE else saturate(load, SECONDS)))
    emulator = "ministack as shipped" if AS_SHIPPED else "ministack, mended"
    figures = {"seconds": SECONDS, "machine": machine(), "emulator": emulator, "points": found}
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(json.dumps(figures, indent=2) + "\n")
    put_between(PAGE, "sweep", f"{_about(figures)}\n\n{_table(found)}")
    print(f"written to {TARGET} and {PAGE}")
    return int(any(point["lost"] for point in found))


def machine() -> str:
    """Say what machine this is."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "unknown")
    return f"{os.cpu_count()} cores of {model}, CPython {platform.python_version()}"


def _point(name: str, value: int, figures: dict[str, Any]) -> dict[str, Any]:
    point = {"direction": name, "value": value, **figures}
    print(name, value, figures["deliveries_per_s"], figures["p99_ms"], flush=True)
    return point


def _about(figures: dict[str, Any]) -> str:
    return f"{figures['machine']}, {figures['emulator']}, {SECONDS:g} s a point."


def _table(points: list[dict[str, Any]]) -> str:
    head = (
        "what",
        "",
        "delivered /s",
        "p50 ms",
        "p99 ms",
        "calls",
        "write units",
        "read units",
        "rows a visit",
        "lost",
    )
    keys = ("deliveries_per_s", "p50_ms", "p99_ms", "calls_per_delivery", "write_units_per_delivery")
    more = ("read_units_per_delivery", "rows_per_visit", "lost")
    rows = [
        (WORDS[point["direction"]], point["value"], *(point[key] for key in (*keys, *more)))
        for point in points
        if point["direction"] in WORDS
    ]
    return table(head, rows)


if __name__ == "__main__":
    sys.exit(main())
