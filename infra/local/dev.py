"""Runs Relay on one machine: `python -m infra.local.dev`, which is `make dev`."""

import argparse
import fcntl
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from infra.local.emulator import DEFAULT_PORT, Emulator, EmulatorName, default_venv
from infra.local.plan import Plan
from infra.local.processes import ROOT, CannotRunError, Leash
from infra.local.supervisor import Supervisor, Wish

_RESTART_WITHIN_S = 90.0


def main() -> int:
    """Run until Ctrl-C, or ask a running one to restart its API; the exit code says how it went."""
    options = _options()
    try:
        plan = _plan(options)
        if options.restart_api:
            _restart_api(plan)
        else:
            _run(plan, stop_with_stdin=options.stop_with_stdin)
    except CannotRunError as error:
        sys.stderr.write(f"{error}\n")
        return error.code
    return 0


def _run(plan: Plan, *, stop_with_stdin: bool) -> None:
    plan.logs.mkdir(parents=True, exist_ok=True)
    with only_one(plan.state), Leash() as leash:
        supervisor = Supervisor(plan, leash)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: supervisor.ask(Wish.STOP))
        signal.signal(signal.SIGUSR1, lambda *_: supervisor.ask(Wish.RESTART_API))
        if stop_with_stdin:
            threading.Thread(target=_stop_at_end_of_input, args=(supervisor,), daemon=True).start()
        supervisor.run()


def _stop_at_end_of_input(supervisor: Supervisor) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    supervisor.ask(Wish.STOP)


def _restart_api(plan: Plan) -> None:
    """Ask the run on this state folder to restart its API, and wait until it has."""
    before = _running(plan.state)
    os.kill(before["pid"], signal.SIGUSR1)
    deadline = time.monotonic() + _RESTART_WITHIN_S
    while time.monotonic() < deadline:
        time.sleep(0.1)
        if _running(plan.state)["children"]["api"] != before["children"]["api"]:
            sys.stdout.write("The API was started again; deliveries went on.\n")
            return
    raise CannotRunError(f"The API was not started again in {_RESTART_WITHIN_S:.0f} s.")


def _running(state: Path) -> dict[str, Any]:
    """Read what the run on this state folder has written down; CannotRunError when there is none."""
    absent = CannotRunError("Relay does not run here; `make dev` starts it.")
    try:
        with (state / "dev.lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        try:
            written: dict[str, Any] = json.loads((state / "dev.json").read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise CannotRunError("Relay is just starting or stopping here; try again in a moment.") from error
        return written
    except FileNotFoundError as error:
        raise absent from error
    raise absent


@contextmanager
def only_one(state: Path) -> Iterator[None]:
    """Hold the state folder for this run alone."""
    with (state / "dev.lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CannotRunError(f"Relay runs here already, with its state in {state}.") from error
        yield


def _plan(options: argparse.Namespace) -> Plan:
    state = (ROOT / options.state_dir).resolve()
    return Plan(
        emulator=Emulator(
            name=emulator_name(),
            port=options.emulator_port,
            state=state,
            venv=default_venv(),
            fast=options.fast_emulator,
        ),
        api_port=options.api_port,
        receiver_port=options.receiver_port,
        slots=options.slots,
        prefix=options.prefix,
        app=options.app,
        schedule_speed=options.schedule_speed,
        node_port=options.node_port,
    )


def emulator_name() -> EmulatorName:
    """Say which emulator the environment asks for; CannotRunError when it is none."""
    given = os.environ.get("EMULATOR", EmulatorName.MINISTACK)
    try:
        return EmulatorName(given)
    except ValueError as error:
        known = ", ".join(EmulatorName)
        raise CannotRunError(f"EMULATOR={given} is not known; it is one of {known}.", 2) from error


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m infra.local.dev", description=__doc__)
    parser.add_argument("--api-port", type=int, default=8080)
    parser.add_argument("--receiver-port", type=int, default=9099)
    parser.add_argument("--node-port", type=int, default=4000, help="of the relay node; 0 for none")
    parser.add_argument("--emulator-port", type=int, default=DEFAULT_PORT)
    parser.add_argument("--state-dir", default=".relay", help="where state and logs are kept")
    parser.add_argument("--slots", type=int, default=64, help="function invocations at once")
    parser.add_argument("--prefix", default="relay-", help="what the names of all resources begin with")
    parser.add_argument("--app", default="app:app", help="module:attribute of the Chalice app")
    parser.add_argument(
        "--schedule-speed", type=float, default=1.0, help="run schedules so many times as often"
    )
    parser.add_argument("--fast-emulator", action="store_true", help="ministack with its linear scans mended")
    parser.add_argument("--restart-api", action="store_true", help="restart only the API of the running one")
    parser.add_argument("--stop-with-stdin", action="store_true", help="stop when standard input ends")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
