"""`python -m tests.bench.node`: what a relay node carries and costs, into build/bench/node.json.

Everything runs on this machine: the node, the load client and, for comparison, a bare echo of the library.
"""

import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench import relay_load

TARGET = Path("build/bench/node.json")
PAIRS = int(os.environ.get("RELAYBENCH_PAIRS", "100"))
RATE = 50
STEADY_S = float(os.environ.get("RELAYBENCH_STEADY_S", "60"))
WAVES = int(os.environ.get("RELAYBENCH_WAVES", "5"))
CLAIMS = int(os.environ.get("RELAYBENCH_CLAIMS", "1000"))
IDLE = int(os.environ.get("RELAYBENCH_IDLE", "8000"))
OF_ECHO_MAX = 1.6
IDLE_KIB_MAX = 20
CARRIED_MIN = 0.99


def main() -> int:
    """Run all of it; the exit code is 1 when a bar was missed."""
    figures = run()
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(figures, indent=2))
    missed = list(_missed(figures))
    for each in missed:
        print(f"missed: {each}", file=sys.stderr)
    return int(bool(missed))


def run() -> dict[str, Any]:
    """Give the figures of one run."""
    _many_files()
    with _process("chalicelib.node", PASEO_RELAY_PORT="0") as (pid, port):
        steady = _load(
            pid, port, "sustained", pairs=PAIRS, servers=max(1, PAIRS // 5), rate=RATE, duration=STEADY_S
        )
        waves = _load(pid, port, "reconnect", pairs=PAIRS, servers=max(1, PAIRS // 5), reconnects=WAVES)
        claims = _load(pid, port, "ownership", servers=CLAIMS)
    with _process("chalicelib.node", PASEO_RELAY_PORT="0") as (pid, port):
        idle = _load(pid, port, "idle", pairs=IDLE, servers=IDLE, duration=3.0, ramp=2_000.0)
    with _process("tests.bench.relay_echo") as (pid, port):
        echo = _load(pid, port, "echo", pairs=PAIRS, rate=RATE, duration=min(STEADY_S, 20.0))
    runs = (steady, waves, claims, idle)
    spent = idle["relay_rss_bytes"] - idle["relay_rss_before_bytes"]
    return {
        "pairs": PAIRS,
        "offered_frames_per_s": PAIRS * 2 * RATE,
        "frames_per_s": steady["frames_per_s"],
        "p50_ms": steady["p50_ms"],
        "p99_ms": steady["p99_ms"],
        "cpu_us_per_frame": _us_per_frame(steady),
        "echo_cpu_us_per_frame": _us_per_frame(echo),
        "rss_kib_per_idle_socket": round(spent / 1024 / IDLE, 1),
        "idle_sockets": idle["connections_succeeded"],
        "waves": WAVES,
        "claims": claims["connections_succeeded"],
        "claims_s": claims["setup_s"],
        "connections_failed": sum(each["connections_failed"] for each in runs),
        "cleanup_timeouts": sum(each["cleanup_timeouts"] for each in runs),
        "lost": sum(each["lost"] for each in runs),
        "misordered": sum(each["misordered"] for each in runs),
        "cores": os.cpu_count(),
    }


def _missed(figures: dict[str, Any]) -> Iterator[str]:
    for name in ("lost", "misordered", "connections_failed", "cleanup_timeouts"):
        if figures[name]:
            yield f"{name} is {figures[name]}"
    if figures["frames_per_s"] < figures["offered_frames_per_s"] * CARRIED_MIN:
        yield f"{figures['frames_per_s']} of {figures['offered_frames_per_s']} frames a second were carried"
    if figures["cpu_us_per_frame"] > figures["echo_cpu_us_per_frame"] * OF_ECHO_MAX:
        yield f"a frame costs more than {OF_ECHO_MAX} of an echo's"
    if figures["rss_kib_per_idle_socket"] > IDLE_KIB_MAX:
        yield f"an idle socket takes more than {IDLE_KIB_MAX} KiB"


def _us_per_frame(told: dict[str, Any]) -> float:
    used_s, frames = float(told["relay_cpu_s"]), int(told["frames_received"])
    return round(used_s / frames * 1e6, 2)


def _load(pid: int, port: int, scenario: str, **options: object) -> dict[str, Any]:
    """Run the load client in a process of its own."""
    given = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    command = relay_load.command(scenario, port, pid, "--server-id", scenario, *given)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=STEADY_S + 300, check=False)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@contextmanager
def _process(module: str, **environment: str) -> Iterator[tuple[int, int]]:
    """Run a module that prints its port."""
    command = [sys.executable, "-m", module]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    ) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            yield process.pid, int(re.findall(r"\d+", line.replace("127.0.0.1", ""))[0])
        finally:
            process.kill()


def _many_files() -> None:
    """Allow as many sockets as there may be."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    raise SystemExit(main())
