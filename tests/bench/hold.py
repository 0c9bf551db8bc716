"""`python -m tests.bench.hold`: what backlogs cost in simulated time: AWS calls while held, bells at work.

Over the memory fakes that pass the contract suite and a given clock; nothing here depends on the machine.
"""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.unit.application.backlog import work_off
from tests.unit.application.holding import ALSO, HOLDS, Cost, Held, hold

TARGET = Path("build/bench/hold.json")
DELIVERIES = int(os.environ.get("RELAYBENCH_HELD", "10000"))
MINUTES = int(os.environ.get("RELAYBENCH_HOLD_MINUTES", "60"))
MOST_CALLS_AN_HOUR = 500
OWED = int(os.environ.get("RELAYBENCH_OWED", "30000"))
SLOW_ENDPOINTS = 20
MOST_BELLS_AN_ATTEMPT = 1.05


def main() -> int:
    """Hold in every way and work off slowly; the exit code is 1 when something that counts costs too much."""
    cases = {name: _case(name, held) for name, held in HOLDS.items()}
    also = {name: _case(name, held) for name, held in ALSO.items()}
    slowly = work_off(SLOW_ENDPOINTS, OWED)
    print("behind slow receivers", slowly, flush=True)
    worst = max(cases, key=lambda name: int(cases[name]["aws_calls"]))
    figures = {
        "deliveries": DELIVERIES,
        "simulated_s": MINUTES * 60,
        "aws_calls": cases[worst]["aws_calls"],
        "worst": worst,
        "counted": "all calls but those of rounds that were granted something, from peek to settle, of empty"
        " receives, and of reconcile when nothing is owed anywhere",
        "cases": cases,
        "also": also,
        "behind_slow_receivers": {**asdict(slowly), "bells_per_attempt": round(slowly.bells_per_attempt, 3)},
    }
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(json.dumps(figures, indent=2) + "\n")
    print(f"worst: {worst}, {figures['aws_calls']} calls; written to {TARGET}")
    dear = cases[worst]["aws_calls"] > MOST_CALLS_AN_HOUR * MINUTES // 60
    return int(dear or slowly.bells_per_attempt > MOST_BELLS_AN_ATTEMPT)


def _case(name: str, held: Held) -> dict[str, Any]:
    bill = hold(held, DELIVERIES, MINUTES)
    costs = {cost.value: count for cost, count in bill.costs.items()}
    with_nothing = bill.aws_calls + bill.costs[Cost.WATCHING]
    others = {key: value for key, value in asdict(bill).items() if key != "costs"}
    told = {"aws_calls": bill.aws_calls, "with_reconcile_of_nothing": with_nothing, **others, "calls": costs}
    print(name, json.dumps(told), flush=True)
    return told


if __name__ == "__main__":
    sys.exit(main())
