"""The emulator of AWS's primitives: which one, at which address, and how it is started and stopped.

`EMULATOR=ministack|moto|localstack` changes the endpoint and nothing else; the endpoint is built by
localstack-client. ministack keeps its state between runs, moto forgets it, LocalStack is started by others.
"""

import os
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import assert_never

from localstack_client.config import get_service_endpoint  # type: ignore[import-untyped]

from infra.local.processes import ROOT, CannotRunError, Child, Leash, Program, Start

HOST = "127.0.0.1"
DEFAULT_PORT = 4566
_READY_WITHIN_S = 30.0
# Everything is written to disk at the end, which takes a while after a long run.
_FLUSH_WITHIN_S = 60.0
_LAST = 9
# Never by way of a proxy that the environment may name.
_DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class EmulatorName(StrEnum):
    """The emulators Relay runs on."""

    MINISTACK = "ministack"
    MOTO = "moto"
    LOCALSTACK = "localstack"


@dataclass(frozen=True, slots=True)
class Emulator:
    """One emulator at one address; it may keep things under `state`.

    `fast` means ministack with its linear scans mended, `enforcing` one that holds roles to their policies.
    """

    name: EmulatorName
    port: int
    state: Path
    venv: Path
    fast: bool = False
    enforcing: bool = False

    @property
    def endpoint_url(self) -> str:
        """The one address of all its services."""
        return _ours(self.port) if self.ours else _theirs(self.port)

    @property
    def ours(self) -> bool:
        """Whether it is started and stopped here."""
        return self.name is not EmulatorName.LOCALSTACK

    def answers(self) -> bool:
        """Say whether it serves requests now."""
        try:
            with _DIRECTLY.open(self.endpoint_url + self._health_path(), timeout=2) as response:
                return bool(response.status == HTTPStatus.OK)
        except (OSError, urllib.error.URLError):
            return False

    def program(self, logs: Path) -> Program:
        """Say how to run it; CannotRunError when its environment is missing."""
        return Program(
            name="emulator",
            command=self._command(),
            environment={**os.environ, **self._environment()},
            log=logs / "emulator.log",
            rank=_LAST,
            grace_s=_FLUSH_WITHIN_S,
        )

    def start(self, leash: Leash, logs: Path) -> Child:
        """Start it without waiting; CannotRunError when its port is taken."""
        refuse_taken_port("emulator", self.port, "--emulator-port")
        for folder in (self.state / "emulator", self.state / "payloads", self.state / "tmp", logs):
            folder.mkdir(parents=True, exist_ok=True)
        return Child(self.program(logs), leash)

    def _health_path(self) -> str:
        match self.name:
            case EmulatorName.MINISTACK:
                return "/_ministack/health"
            case EmulatorName.MOTO:
                return "/moto-api/data.json"
            case EmulatorName.LOCALSTACK:
                return "/_localstack/health"
            case _:
                assert_never(self.name)

    def _command(self) -> tuple[str, ...]:
        if self.name is EmulatorName.MOTO:
            return (sys.executable, "-m", "infra.local.moto_server", "--port", str(self.port))
        python = self.venv / "bin" / "python"
        if not python.exists():
            raise CannotRunError(
                f"The emulator's environment {self.venv} is missing; `make dev` makes it.", 2
            )
        return (str(python), "-m", self._module())

    def _module(self) -> str:
        """Name the module that runs ministack."""
        if self.enforcing:
            return "infra.local.ministack_enforcing"
        return "infra.local.ministack_fast" if self.fast else "ministack"

    def _environment(self) -> Mapping[str, str]:
        if self.name is not EmulatorName.MINISTACK:
            return {}
        return {
            "BIND_HOST": HOST,
            "GATEWAY_PORT": str(self.port),
            "PERSIST_STATE": "1",
            "STATE_DIR": str(self.state / "emulator"),
            "S3_PERSIST": "1",
            "S3_DATA_DIR": str(self.state / "payloads"),
            "TMPDIR": str(self.state / "tmp"),
            "LOG_LEVEL": "WARNING",
            # Two listeners on fixed ports that nothing here uses and that keep two runs from coexisting.
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
        }


def refuse_taken_port(what: str, port: int, option: str) -> None:
    """Raise CannotRunError when something listens on the port already."""
    with socket.socket() as probe, socket.socket() as caller:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise CannotRunError(_taken(what, port, option)) from error
        if caller.connect_ex((HOST, port)) == 0:
            raise CannotRunError(_taken(what, port, option))


def free_port() -> int:
    """Find a port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def default_venv() -> Path:
    """Where ministack is installed, unless EMULATOR_VENV says otherwise."""
    return ROOT / os.environ.get("EMULATOR_VENV", ".venv-emulator")


@cache
def _ours(port: int) -> str:
    """Build the endpoint of an emulator started here, wherever the environment may point."""
    elsewhere = os.environ.pop("AWS_ENDPOINT_URL", None)
    try:
        return str(get_service_endpoint("sqs", localstack_host=f"{HOST}:{port}"))
    finally:
        if elsewhere is not None:
            os.environ["AWS_ENDPOINT_URL"] = elsewhere


def _theirs(port: int) -> str:
    """Build the endpoint of an emulator started elsewhere: AWS_ENDPOINT_URL and LOCALSTACK_HOST say where."""
    host = None if "LOCALSTACK_HOST" in os.environ else f"{HOST}:{port}"
    return str(get_service_endpoint("sqs", localstack_host=host))


@contextmanager
def running(
    name: EmulatorName, state: Path, port: int, *, fast: bool = False, enforcing: bool = False
) -> Iterator[str]:
    """Run an emulator of one's own for a while and give its endpoint; for tests.

    It ends with this process, whatever becomes of it.
    """
    emulator = Emulator(name, port, state, default_venv(), fast, enforcing)
    logs = state / "logs"
    with Leash() as leash:
        child = emulator.start(leash, logs)
        try:
            if child.wait_ready(emulator.answers, _READY_WITHIN_S, lambda: None) is not Start.READY:
                raise CannotRunError(f"The emulator did not start: {child.last_words()}.")
            yield emulator.endpoint_url
        finally:
            child.stop()


def _taken(what: str, port: int, option: str) -> str:
    return f"Port {port} of the {what} is taken; stop what uses it, or choose another with {option}."
