"""Nodes as processes of their own, on free ports."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHORT = {
    "PASEO_RELAY_SYNC_AGAIN_MS": "1000",
    "PASEO_RELAY_CONTROL_UNRESPONSIVE_MS": "500",
    "PASEO_RELAY_DATA_ATTACH_TIMEOUT_MS": "1500",
}
"""The specification's timers of 10, 5 and 15 seconds of a WebSocket, a tenth as long."""


@dataclass(frozen=True, slots=True)
class Running:
    """A node that runs."""

    port: int
    process: subprocess.Popen[str]

    def terminate(self) -> None:
        """Ask it to stop."""
        self.process.send_signal(signal.SIGTERM)


StartNode = Callable[..., Running]


@pytest.fixture(scope="module")
def start_node() -> Iterator[StartNode]:
    with ExitStack() as ending:

        def start(**settings: object) -> Running:
            given = {f"PASEO_RELAY_{name.upper()}": str(value) for name, value in settings.items()}
            environment = {**os.environ, **SHORT, "PASEO_RELAY_PORT": "0", **given}
            process = subprocess.Popen(
                [sys.executable, "-m", "chalicelib.node"],
                cwd=ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
            )
            ending.callback(_end, process)
            assert process.stdout is not None
            line = process.stdout.readline()
            return Running(int(line.rsplit(":", 1)[1].split("/")[0]), process)

        yield start


@pytest.fixture(scope="module")
def node(start_node: StartNode) -> Running:
    return start_node()


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait(10)
    if process.stdout is not None:
        process.stdout.close()
