"""`python -m tests.simulation`: hold it against what was measured, simulate the scale, and write it down.

Writes build/bench/simulate.json, docs/scale.md and its plots. With `--page` it makes the page from the
figures that are there.
"""

import gc
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.simulation import measured, page
from tests.simulation.runs import PARTS, RUNS, run
from tests.simulation.summary import summary
from tests.simulation.sweeping import sweep_s

TARGET = Path("build/bench/simulate.json")
ARMED = (1_000, 10_000, 40_000)


def main() -> int:
    """Simulate, or only write the page."""
    if "--page" not in sys.argv[1:]:
        TARGET.parent.mkdir(parents=True, exist_ok=True)
        TARGET.write_text(json.dumps(simulated(), indent=1) + "\n")
    page.write(json.loads(TARGET.read_text()))
    print(f"written to {TARGET} and {page.TARGET}")
    return 0


def simulated() -> dict[str, Any]:
    """Simulate everything, the long runs on two cores."""
    began = time.monotonic()
    # Nothing here makes cycles that matter, and looking for them takes a tenth of the time.
    with ProcessPoolExecutor(PARTS, initializer=gc.disable) as pool:
        parts = {name: [pool.submit(run, RUNS[name], part) for part in range(PARTS)] for name in RUNS}
        figures: dict[str, Any] = beside()
        runs = {name: summary(RUNS[name], [each.result() for each in some]) for name, some in parts.items()}
    cpu_s = sum(each["cpu_s"] for each in runs.values())
    return {**figures, "runs": runs, "took_s": round(time.monotonic() - began), "cpu_s": round(cpu_s)}


def beside() -> dict[str, Any]:
    """Hold the simulation against what is known, and measure sweeps; printed as it comes."""
    against = {}
    for name, case in measured.CASES.items():
        found = {each: round(value, 2) for each, value in measured.simulate(case).items()}
        against[name] = {each: [case.measured[each], found[each]] for each in found}
        off = {each: f"{found[each] / case.measured[each] - 1:+.0%}" for each in found}
        print(f"{name}: off by {off}", flush=True)
    gate = asdict(measured.one_gate())
    print("one gate:", gate, flush=True)
    sweeps = {str(armed): [sweep_s(armed, at_once=1), sweep_s(armed)] for armed in ARMED}
    print("sweeps (s):", sweeps, flush=True)
    return {"measured": against, "one_gate": gate, "sweeps_s": sweeps}


if __name__ == "__main__":
    sys.exit(main())
