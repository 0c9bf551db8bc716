"""The stack a benchmark runs against, and what its processes cost."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from socket import socket
from types import TracebackType
from typing import Any, Self

from tests.bench.meter import Usage

READY_WITHIN_S = 60
AS_SHIPPED = bool(os.environ.get("RELAYBENCH_AS_SHIPPED"))
COUNTED = "tests.bench.counted_app:app"
FUNCTIONS = frozenset({"api", "workers"})
"""The processes that play functions."""
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Costs:
    """What was used so far: CPU seconds of each process, what each function used, visits, bytes logged."""

    cpu_s: Mapping[str, float]
    used: Mapping[str, Usage] = field(default_factory=dict)
    admitted: int = 0
    granted: int = 0
    log_bytes: int = 0
    functions_cpu_s: float = 0.0

    def since(self, earlier: "Costs") -> "Costs":
        """Give what was used in between."""
        return Costs(
            {name: used - earlier.cpu_s[name] for name, used in self.cpu_s.items()},
            {name: usage - earlier.used.get(name, Usage()) for name, usage in self.used.items()},
            self.admitted - earlier.admitted,
            self.granted - earlier.granted,
            self.log_bytes - earlier.log_bytes,
            self.functions_cpu_s - earlier.functions_cpu_s,
        )

    @property
    def total(self) -> Usage:
        """Give what all functions used together."""
        return sum(self.used.values(), Usage())


class BenchStack:
    """One `make dev` on free ports and an own state folder, its functions counted."""

    def __init__(
        self,
        *,
        slots: int = 64,
        app: str = COUNTED,
        schedule_speed: float = 1.0,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Choose ports; entering starts it, with schedules so many times as often as deployed."""
        self._settings = dict(settings or {})
        self._folder = tempfile.TemporaryDirectory(prefix="relaybench-")
        self.state = Path(self._folder.name)
        self.api_port, self.receiver_port, self._emulator_port = _free_ports(3)
        self._slots = slots
        self._app = app
        self._schedule_speed = schedule_speed
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start the stack and wait until it says that it runs."""
        counts = self.state / "counts"
        counts.mkdir()
        command = [
            sys.executable, "-m", "infra.local.dev", "--stop-with-stdin",
            "--api-port", str(self.api_port), "--receiver-port", str(self.receiver_port),
            "--node-port", "0",
            "--emulator-port", str(self._emulator_port), "--state-dir", str(self.state / "relay"),
            "--slots", str(self._slots), "--app", self._app,
            "--schedule-speed", str(self._schedule_speed),
            *([] if AS_SHIPPED else ["--fast-emulator"]),
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **self._settings, "RELAYBENCH_COUNTS": str(counts)},
        )
        self._wait_ready(self._process)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop everything."""
        process = self._process
        if process is not None and process.stdin is not None:
            with suppress(BrokenPipeError):
                process.stdin.close()
            process.wait(60)
        self._folder.cleanup()

    @property
    def emulator_url(self) -> str:
        """Say where the emulator answers."""
        return f"http://127.0.0.1:{self._emulator_port}"

    def stop_at_once(self) -> None:
        """Kill everything: a polite stop waits for whoever hangs."""
        process = self._process
        if process is None:
            return
        process.kill()
        for pid in self._children().values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait(60)

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        receiver: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 - any JSON
        """Call the API, or the receiver, and give its JSON answer."""
        port = self.receiver_port if receiver else self.api_port
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=data, method=method)
        request.add_header("Content-Type", "application/json")
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - loopback
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode()}") from error

    def costs(self) -> Costs:
        """Read what the functions' processes have used so far."""
        cpu_s = {name: _cpu_s(pid) for name, pid in self._children().items()}
        used: defaultdict[str, Usage] = defaultdict(Usage)
        totals = Usage()
        for path in (self.state / "counts").glob("*.json"):
            counts = json.loads(path.read_text())
            for name, usage in counts.pop("used").items():
                used[name].update(usage)
            totals.update(counts)
        logs = (self.state / "relay" / "logs").glob("*.log")
        log_bytes = sum(path.stat().st_size for path in logs if path.stem in FUNCTIONS)
        visits = (totals["admitted"], totals["granted"])
        return Costs(cpu_s, used, *visits, log_bytes, totals["functions_cpu_s"])

    def _children(self) -> dict[str, int]:
        children: dict[str, int] = json.loads((self.state / "relay" / "dev.json").read_text())["children"]
        return children

    def _wait_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + READY_WITHIN_S
        said = b""
        out = process.stdout
        if out is None:
            raise RuntimeError("the stack has no output")
        while b"stops all of it" not in said:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([out], [], [], left)[0]:
                raise TimeoutError(f"the stack did not start: {said.decode()}")
            piece = os.read(out.fileno(), 4096)
            if not piece:
                raise RuntimeError(f"the stack ended: {said.decode()}")
            said += piece


def machine_cpu_s() -> float:
    """Read the CPU seconds that all processes of the machine have used, stolen ones among them."""
    user, nice, system, _, _, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _free_ports(count: int) -> list[int]:
    sockets = [socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
