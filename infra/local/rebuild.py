"""Rebuilds a stopped local run: `python -m infra.local.rebuild`, which is `make rebuild`.

It starts the emulator on the state that `make dev` left, makes what is derived again from history, and
stops it.
"""

import argparse
import sys
from pathlib import Path

from infra.local.dev import emulator_name, only_one
from infra.local.emulator import DEFAULT_PORT, Emulator, EmulatorName, default_venv
from infra.local.plan import Plan
from infra.local.processes import ROOT, CannotRunError, Child, Leash, Program, Start

_READY_WITHIN_S = 60.0
_DONE_WITHIN_S = 3_600.0


def main() -> int:
    """Rebuild what the options name, and say what was done; the exit code says how it went."""
    options = _options()
    state = (ROOT / options.state_dir).resolve()
    emulator = Emulator(emulator_name(), options.emulator_port, state, default_venv())
    plan = Plan(emulator, 0, 0, 0, options.prefix, "app:app", 1.0)
    try:
        sys.stdout.write(_rebuilt(plan))
    except CannotRunError as error:
        sys.stderr.write(f"{error}\n")
        return error.code
    return 0


def _rebuilt(plan: Plan) -> str:
    """Run the emulator and the rebuild one after the other, and give what the rebuild said."""
    _refuse_nothing(plan)
    plan.logs.mkdir(parents=True, exist_ok=True)
    with only_one(plan.state), Leash() as leash:
        emulator = _started(plan, leash)
        try:
            _run(plan.prepare(), leash)
            return _run(plan.rebuild(), leash)
        finally:
            if emulator is not None:
                emulator.stop()


def _refuse_nothing(plan: Plan) -> None:
    """Raise CannotRunError when there is no state to work on."""
    if plan.emulator.name is EmulatorName.MOTO:
        raise CannotRunError("moto forgets everything when it stops, so there is nothing to rebuild.", 2)
    if plan.emulator.ours and not (plan.state / "emulator").is_dir():
        raise CannotRunError(
            f"There is nothing to rebuild in {plan.state}; `make dev` leaves its state there.", 2
        )


def _started(plan: Plan, leash: Leash) -> Child | None:
    if not plan.emulator.ours:
        if not plan.emulator.answers():
            raise CannotRunError(f"No {plan.emulator.name} answers at {plan.emulator.endpoint_url}.", 2)
        return None
    child = plan.emulator.start(leash, plan.logs)
    if child.wait_ready(plan.emulator.answers, _READY_WITHIN_S, lambda: None) is not Start.READY:
        child.stop()
        raise CannotRunError(
            f"The emulator did not start: {child.last_words()}. Its log is {child.program.log}."
        )
    return child


def _run(program: Program, leash: Leash) -> str:
    """Run a program to its end and give what it said; CannotRunError when it failed."""
    program.log.unlink(missing_ok=True)
    child = Child(program, leash)
    child.wait_ready(lambda: False, _DONE_WITHIN_S, lambda: None)
    child.stop()
    if child.exit_code != 0:
        raise CannotRunError(f"The {program.name} failed: {child.last_words()} Its log is {program.log}.")
    return program.log.read_text(encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m infra.local.rebuild", description=__doc__)
    parser.add_argument("--emulator-port", type=int, default=DEFAULT_PORT)
    parser.add_argument(
        "--state-dir", type=Path, default=Path(".relay"), help="where `make dev` left its state"
    )
    parser.add_argument("--prefix", default="relay-", help="what the names of all resources begin with")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
