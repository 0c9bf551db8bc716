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
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from socket import socket
from types import TracebackType
from typing import Any, Self

READY_WITHIN_S = 60
AS_SHIPPED = bool(os.environ.get("RELAYBENCH_AS_SHIPPED"))
COUNTED = "tests.bench.counted_app:app"
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Costs:
    """What was used so far: CPU seconds of each process, AWS calls by name, write units, visits."""

    cpu_s: Mapping[str, float]
    calls: Counter[str] = field(default_factory=Counter)
    write_units: float = 0.0
    admitted: int = 0
    granted: int = 0

    def since(self, earlier: "Costs") -> "Costs":
        """Give what was used in between."""
        return Costs(
            {name: used - earlier.cpu_s[name] for name, used in self.cpu_s.items()},
            self.calls - earlier.calls,
            self.write_units - earlier.write_units,
            self.admitted - earlier.admitted,
            self.granted - earlier.granted,
        )


class BenchStack:
    """One `make dev` on free ports and an own state folder, its functions counted."""

    def __init__(self, *, slots: int = 64, app: str = COUNTED, schedule_speed: float = 1.0) -> None:
        """Choose ports; entering starts it, with schedules so many times as often as deployed."""
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
            "--emulator-port", str(self._emulator_port), "--state-dir", str(self.state / "relay"),
            "--slots", str(self._slots), "--app", self._app,
            "--schedule-speed", str(self._schedule_speed),
            *([] if AS_SHIPPED else ["--fast-emulator"]),
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "RELAYBENCH_COUNTS": str(counts)},
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
        calls: Counter[str] = Counter()
        totals = Counter[str]()
        for path in (self.state / "counts").glob("*.json"):
            counts = json.loads(path.read_text())
            calls.update(counts.pop("calls"))
            totals.update(counts)
        return Costs(cpu_s, calls, totals["write_units"], totals["admitted"], totals["granted"])

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
