"""`python -m tests.bench`: run the benchmark and write build/bench/throughput.json."""

import json
import os
import sys
from pathlib import Path

from tests.bench import ingest, throughput
from tests.bench.stack import AS_SHIPPED

TARGET = Path("build/bench/throughput.json")


def main() -> int:
    """Run it; the exit code is 1 when anything was lost or came twice."""
    emulator = "ministack 1.5.33 as shipped" if AS_SHIPPED else "ministack 1.5.33, mended (ministack_fast)"
    figures = {"emulator": emulator, "cores": os.cpu_count(), **throughput.run()}
    if "RELAYBENCH_CASES" not in os.environ:
        figures |= ingest.run()
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(json.dumps(figures, indent=2) + "\n")
    print(f"written to {TARGET}")
    faults = [n for name, n in figures.items() if name.endswith(("lost", "duplicates")) and n]
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
