"""Nodes as processes of their own, on free ports; whatever one says on its standard error fails the test."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import IO

import pytest

from infra.local.emulator import EmulatorName, default_venv, free_port, running
from infra.local.provision import REGION, provision

LEASE_S = 2.0
"""How long a lease lasts here; ten seconds elsewhere."""
_NAMES = count()
ROOT = Path(__file__).parents[2]
SHORT = {
    "PASEO_RELAY_SYNC_AGAIN_MS": "500",
    "PASEO_RELAY_CONTROL_UNRESPONSIVE_MS": "250",
    "PASEO_RELAY_DATA_ATTACH_TIMEOUT_MS": "750",
}
"""The specification's timers of 10, 5 and 15 seconds of a WebSocket, a twentieth as long."""


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
def start_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartNode]:
    with (tmp_path_factory.mktemp("node") / "stderr").open("w+", encoding="utf-8") as stderr:
        with ExitStack() as ending:
            yield partial(_start, ending, stderr)
        stderr.seek(0)
        assert stderr.read() == ""


def _start(
    ending: ExitStack,
    stderr: IO[str],
    environment: Mapping[str, str] | None = None,
    module: str = "chalicelib.node",
    **settings: object,
) -> Running:
    given = {f"PASEO_RELAY_{name.upper()}": str(value) for name, value in settings.items()}
    process = subprocess.Popen(
        [sys.executable, "-m", module],
        cwd=ROOT,
        env={**os.environ, **SHORT, "PASEO_RELAY_PORT": "0", **(environment or {}), **given},
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )
    ending.callback(_end, process)
    assert process.stdout is not None
    line = process.stdout.readline()
    return Running(int(line.rsplit(":", 1)[1].split("/")[0]), process)


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
def start_shared(start_node: StartNode, store: str) -> StartShared:
    """Start nodes that share a registry nobody else has."""
    return sharing(start_node, store)


def sharing(start_node: StartNode, store: str) -> StartShared:
    """Make a registry, and give what starts nodes that share it."""
    prefix = f"n{next(_NAMES)}-"
    provision(store, prefix, tables_only=True)
    environment = {
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "RELAY_RESOURCE_PREFIX": prefix,
    }

    def start(
        target: str, *, store_port: int = 0, also: Mapping[str, str] | None = None, **settings: object
    ) -> Running:
        url = f"http://127.0.0.1:{store_port}" if store_port else store
        shared = {
            "lease_ms": int(LEASE_S * 1000),
            "lease_renewal_ms": 400,
            "clock_skew_ms": 500,
            "owner_idle_ms": 500,
        }
        given = {**environment, "AWS_ENDPOINT_URL": url, **(also or {})}
        return start_node(given, registry="dynamodb", ownership_target=target, **{**shared, **settings})

    return start


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait(10)
    if process.stdout is not None:
        process.stdout.close()
