"""Nodes as processes of their own, on free ports."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from infra.local.emulator import EmulatorName, default_venv, free_port, running
from infra.local.provision import REGION, provision

LEASE_S = 2.0
"""How long a lease lasts here; ten seconds elsewhere."""
_NAMES = count()
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
StartShared = Callable[..., Running]


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


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not (default_venv() / "bin" / "python").exists() and not os.environ.get("CI"):
        pytest.skip("ministack is not there: `make test` installs it into .venv-emulator")
    with running(EmulatorName.MINISTACK, tmp_path_factory.mktemp("ministack"), free_port()) as url:
        yield url


@pytest.fixture
def start_shared(start_node: StartNode, store: str, monkeypatch: pytest.MonkeyPatch) -> StartShared:
    """Start nodes that share a registry nobody else has."""
    prefix = f"n{next(_NAMES)}-"
    for name, value in (("REGION", REGION), ("ACCESS_KEY_ID", "test"), ("SECRET_ACCESS_KEY", "test")):
        monkeypatch.setenv(f"AWS_{name}".replace("AWS_REGION", "AWS_DEFAULT_REGION"), value)
    provision(store, prefix, tables_only=True)
    monkeypatch.setenv("RELAY_RESOURCE_PREFIX", prefix)

    def start(target: str, *, store_port: int = 0, **settings: object) -> Running:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{store_port}" if store_port else store)
        shared = {
            "lease_ms": int(LEASE_S * 1000),
            "lease_renewal_ms": 400,
            "clock_skew_ms": 500,
            "owner_idle_ms": 500,
        }
        return start_node(registry="dynamodb", ownership_target=target, **shared, **settings)

    return start


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait(10)
    if process.stdout is not None:
        process.stdout.close()
