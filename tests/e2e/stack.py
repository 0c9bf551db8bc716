"""A whole Relay of a test's own: `make dev` on free ports with a state folder of its own.

It stops with the test process, however that ends: `make dev` watches the pipe that is its standard input.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import boto3
from botocore.exceptions import BotoCoreError

from infra.local.emulator import EmulatorName, free_port
from infra.local.processes import ROOT
from tests import egress
from tests.leaks.tables import watch_tables
from tests.leaks.watch import Watch

START_WITHIN_S = 90.0
STOP_WITHIN_S = 90.0
_NOT_OURS = frozenset({"receiver.log"})
"""What belongs to the other side, which may know its own secrets."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the parts of a stack listen; any free ports unless given."""

    api: int = field(default_factory=free_port)
    receiver: int = field(default_factory=free_port)
    emulator: int = field(default_factory=free_port)
    node: int = 0
    """Where the relay node listens; there is none unless a test needs it."""


PLATFORMS = ("telegram", "discord", "slack")
"""The chat platforms that the receiver stands in for."""


class StackError(Exception):
    """The stack did not come up; the message is what it said."""


class RelayStack:
    """One local run: `with RelayStack(tmp_path) as stack: httpx.get(stack.api_url + "/healthz")`.

    `arguments` are further options of `python -m infra.local.dev`; `settings` are further environment
    variables (RELAY_… included). Starting again on the same `state` finds everything again.
    """

    def __init__(
        self,
        state: Path,
        *arguments: str,
        emulator: EmulatorName = EmulatorName.MINISTACK,
        ports: Ports | None = None,
        settings: dict[str, str] | None = None,
    ) -> None:
        self.state = state
        self.ports = ports or Ports()
        self.emulator = emulator
        self.prefix = "relay-"
        self._arguments = arguments
        self._settings = settings or {}
        self.watch = Watch()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def api_url(self) -> str:
        return f"http://127.0.0.1:{self.ports.api}"

    @property
    def receiver_url(self) -> str:
        return f"http://127.0.0.1:{self.ports.receiver}"

    @property
    def endpoint_url(self) -> str:
        return f"http://127.0.0.1:{self.ports.emulator}"

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        """The process of `make dev` itself."""
        assert self._process is not None, "the stack was not started"
        return self._process

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._watch_tables()
        self.stop()
        assert self.went_past_the_guard() == ""
        self.no_secret_has_leaked()

    def no_secret_has_leaked(self) -> None:
        """Look for every secret of the stack's customers in its logs, its tables and its answers."""
        for path in (*self.state.glob("*.out"), *self.state.glob("*.err"), *self.state.glob("logs/*.log")):
            if path.name not in _NOT_OURS:
                self.watch.seen(path.name, path.read_bytes())
        leaks = self.watch.leaks()
        self.watch.clear()
        assert not leaks, "secrets have leaked:\n" + "\n".join(dict.fromkeys(leaks))

    def _watch_tables(self) -> None:
        """Read every table, where there is a secret to look for and the emulator still answers."""
        if self.watch.knows_any and self._process is not None and self._process.poll() is None:
            client = self.client("dynamodb")
            with suppress(BotoCoreError):
                watch_tables(self.watch, client, client.list_tables()["TableNames"])

    def start(self) -> None:
        """Start everything and wait until it serves; StackError with its own words when it does not."""
        self.begin()
        self.until(lambda: self.process.poll() is not None or self.is_up(), START_WITHIN_S)
        if self.process.poll() is not None:
            self._close_input()
            raise StackError(self.errors())

    def begin(self) -> None:
        """Start everything without waiting."""
        self.state.mkdir(parents=True, exist_ok=True)
        with (self.state / "dev.out").open("wb") as out, (self.state / "dev.err").open("wb") as err:
            self._process = subprocess.Popen(
                self._command("--stop-with-stdin"),
                cwd=ROOT,
                env={
                    **os.environ,
                    "EMULATOR": self.emulator,
                    egress.VARIABLE: str(self._egress),
                    **{f"RELAY_{each.upper()}_ORIGIN": f"{self.receiver_url}/{each}" for each in PLATFORMS},
                    **self._settings,
                },
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def stop(self) -> int:
        """Press Ctrl-C and wait; the exit code comes back."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(STOP_WITHIN_S)
        finally:
            self.process.kill()
            self._close_input()

    def restart_api(self) -> "subprocess.CompletedProcess[str]":
        """Restart the API alone, as `make api-restart` does."""
        return subprocess.run(
            self._command("--restart-api"), cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
        )

    def is_up(self) -> bool:
        """Say whether everything of this run serves."""
        return self.written().get("pid") == self.process.pid

    def written(self) -> dict[str, Any]:
        """Give what the run has written down about itself."""
        try:
            written: dict[str, Any] = json.loads((self.state / "dev.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        return written

    def pid(self, name: str) -> int:
        """Give the process id of `api`, `workers`, `receiver` or `emulator`."""
        return int(self.written()["children"][name])

    def kill(self, name: str) -> None:
        """Kill one process of the stack, as a crash would."""
        os.kill(self.pid(name), signal.SIGKILL)

    def output(self) -> str:
        """Give what `make dev` has said."""
        return (self.state / "dev.out").read_text(encoding="utf-8")

    def errors(self) -> str:
        """Give what `make dev` has complained of."""
        return (self.state / "dev.err").read_text(encoding="utf-8")

    def log(self, name: str) -> str:
        """Give the log of `api`, `workers`, `receiver`, `emulator` or `preparation`."""
        return (self.state / "logs" / f"{name}.log").read_text(encoding="utf-8")

    @property
    def _egress(self) -> Path:
        return self.state / "egress.txt"

    def went_past_the_guard(self) -> str:
        """Give a line for each connection of a function that neither AWS nor the guard explains."""
        return self._egress.read_text(encoding="utf-8") if self._egress.exists() else ""

    def client(self, service: str) -> Any:  # noqa: ANN401 - boto3 makes its clients at run time
        """Make a client of the stack's emulator."""
        session: Any = boto3.Session(
            aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1"
        )
        return session.client(service, endpoint_url=self.endpoint_url)

    def until(self, condition: Callable[[], bool], within_s: float = 10.0) -> None:
        """Wait for something to become true; an AssertionError when it does not in time."""
        until(condition, within_s)

    def _command(self, *more: str) -> list[str]:
        ports = (
            ("--api-port", self.ports.api),
            ("--receiver-port", self.ports.receiver),
            ("--node-port", self.ports.node),
        )
        options = (*ports, ("--emulator-port", self.ports.emulator), ("--state-dir", self.state))
        named = [str(part) for option in options for part in option]
        watched = [] if "--app" in self._arguments else ["--app", "tests.e2e.watched_app:app"]
        return [sys.executable, "-m", "infra.local.dev", *named, *watched, *self._arguments, *more]

    def _close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()


def until(condition: Callable[[], bool], within_s: float = 10.0) -> None:
    """Wait for something to become true; an AssertionError when it does not in time."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"it did not happen within {within_s} s"
        time.sleep(0.02)
