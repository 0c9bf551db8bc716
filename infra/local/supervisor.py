"""Runs everything of a local run, in order, until it is told to stop or the emulator is gone.

A dead API, worker or receiver is started again; a dead emulator ends the run. What a person should know is
one sentence each, notices too, on standard output while all is well and in CannotRunError when it is not.
"""

import json
import os
import queue
import socket
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import assert_never

from infra.local.emulator import HOST, EmulatorName, refuse_taken_port
from infra.local.notices import Notices
from infra.local.plan import Plan
from infra.local.processes import ROOT, CannotRunError, Child, Leash, Program, Start

_READY_WITHIN_S = 60.0
_LOOK_EVERY_S = 0.25
_LOOK_OUTSIDE_EVERY_S = 5.0
# Dying sooner than this after a start, so many times in a row, is a fault that starting again does not mend.
_TOO_SOON_S = 10.0
_TOO_OFTEN = 3


class Wish(StrEnum):
    """What the supervisor can be asked for."""

    STOP = "stop"
    RESTART_API = "restart-api"


class _StoppedError(Exception):
    """Somebody asked to stop."""


class Supervisor:
    """One local run; `ask` may be called from signal handlers and threads."""

    def __init__(self, plan: Plan, leash: Leash) -> None:
        """Take what to run and the leash that outlives us."""
        self._plan = plan
        self._leash = leash
        self._wishes: queue.SimpleQueue[Wish] = queue.SimpleQueue()
        self._children: dict[str, Child] = {}
        self._soon_dead: dict[str, int] = {}
        self._stopping = False
        self._notices = Notices(
            plan.emulator.endpoint_url, plan.topic_arn, f"{plan.prefix}local-notices", self._say
        )

    def ask(self, wish: Wish) -> None:
        """Ask for something; it happens soon."""
        self._stopping = self._stopping or wish is Wish.STOP
        self._wishes.put(wish)

    def run(self) -> None:
        """Start everything, watch it until asked to stop, stop everything; CannotRunError says why not."""
        try:
            self._start_all()
            self._say(_summary(self._plan))
            self._notices.start()
            self._watch()
        except _StoppedError:
            pass
        finally:
            self._stop_all()

    def _start_all(self) -> None:
        plan = self._plan
        for log in plan.logs.glob("*.log"):
            log.unlink()
        refuse_taken_port("API", plan.api_port, "--api-port")
        refuse_taken_port("receiver", plan.receiver_port, "--receiver-port")
        if plan.node_port:
            refuse_taken_port("relay node", plan.node_port, "--node-port")
        self._start_emulator()
        early = [self._launch(program) for program in (plan.receiver(), plan.api())]
        self._prepare()
        late = [plan.workers(), *([plan.node()] if plan.node_port else [])]
        for child in (*early, *(self._launch(program) for program in late)):
            self._await_ready(child)
        self._write_state()

    def _start_emulator(self) -> None:
        emulator = self._plan.emulator
        if not emulator.ours:
            if not emulator.answers():
                raise CannotRunError(
                    f"No {emulator.name} answers at {emulator.endpoint_url}; start it first.", 2
                )
            return
        child = emulator.start(self._leash, self._plan.logs)
        self._children[child.program.name] = child
        self._await_ready(child)

    def _prepare(self) -> None:
        child = self._launch(self._plan.prepare())
        child.wait_ready(lambda: False, _READY_WITHIN_S, self._check_stop)
        del self._children[child.program.name]
        child.stop()
        if child.exit_code != 0:
            raise CannotRunError(f"Relay could not be prepared: {_sentence(child.last_words())}")

    def _start(self, program: Program) -> None:
        self._await_ready(self._launch(program))

    def _launch(self, program: Program) -> Child:
        child = Child(program, self._leash)
        self._children[program.name] = child
        return child

    def _await_ready(self, child: Child) -> None:
        name, log = child.program.name, child.program.log
        probes = {
            "emulator": self._plan.emulator.answers,
            "receiver": lambda: _listens(self._plan.receiver_port),
            "node": lambda: _listens(self._plan.node_port),
        }
        ready = probes.get(name, child.has_told)
        match child.wait_ready(ready, _READY_WITHIN_S, self._check_stop):
            case Start.DIED:
                words = _sentence(child.last_words())
                raise CannotRunError(f"The {name} ended before it was ready, with: {words} Its log is {log}.")
            case Start.LATE:
                raise CannotRunError(
                    f"The {name} was not ready in {_READY_WITHIN_S:.0f} s. Its log is {log}."
                )
            case Start.READY:
                pass

    def _check_stop(self) -> None:
        if self._stopping:
            raise _StoppedError

    def _watch(self) -> None:
        look_outside_at = time.monotonic() + _LOOK_OUTSIDE_EVERY_S
        while True:
            self._grant(self._next_wish())
            for child in list(self._children.values()):
                if child.exit_code is not None:
                    self._mourn(child)
            if not self._plan.emulator.ours and time.monotonic() > look_outside_at:
                self._look_outside()
                look_outside_at = time.monotonic() + _LOOK_OUTSIDE_EVERY_S

    def _next_wish(self) -> Wish | None:
        try:
            return self._wishes.get(timeout=_LOOK_EVERY_S)
        except queue.Empty:
            return None

    def _grant(self, wish: Wish | None) -> None:
        self._check_stop()
        if wish is Wish.RESTART_API:
            self._children[self._plan.api().name].stop()
            self._start(self._plan.api())
            self._say("The API was started again; deliveries went on.")
            self._write_state()

    def _mourn(self, child: Child) -> None:
        name = child.program.name
        if name == "emulator":
            lost = "; what it had not written to disk is lost" if child.exit_code else ""
            log = child.program.log
            raise CannotRunError(
                f"The emulator ended{_how(child)}, so Relay stopped{lost}. Its log is {log}."
            )
        soon = time.monotonic() - child.started < _TOO_SOON_S
        self._soon_dead[name] = self._soon_dead.get(name, 0) + 1 if soon else 0
        if self._soon_dead[name] >= _TOO_OFTEN:
            raise CannotRunError(f"The {name} keeps ending{_how(child)}. Its log is {child.program.log}.")
        child.stop()
        self._start(child.program)
        self._say(f"The {name} ended{_how(child)}; it was started again.")
        self._write_state()

    def _look_outside(self) -> None:
        emulator = self._plan.emulator
        if not emulator.answers():
            raise CannotRunError(f"{emulator.name} at {emulator.endpoint_url} is gone, so Relay stopped.")

    def _stop_all(self) -> None:
        if self._children:
            self._say("Stopping.")
        self._notices.stop()
        for child in sorted(self._children.values(), key=lambda child: child.program.rank):
            if not child.stop():
                self._say(
                    f"The {child.program.name} did not end in {child.program.grace_s:.0f} s and was killed."
                )
        self._plan.state.joinpath("dev.json").unlink(missing_ok=True)

    def _write_state(self) -> None:
        """Write down what runs, for `--restart-api` and for tests."""
        state = {
            "pid": os.getpid(),
            "children": {name.lower(): child.pid for name, child in self._children.items()},
            "api": self._plan.api_url,
            "receiver": self._plan.receiver_url,
            "emulator": self._plan.emulator.endpoint_url,
            "node": self._plan.node_url,
        }
        path = self._plan.state / "dev.json"
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(state), encoding="utf-8")
        fresh.replace(path)

    def _say(self, text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def _listens(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex((HOST, port)) == 0


def _how(child: Child) -> str:
    code = child.exit_code
    return f" by signal {-code}" if code is not None and code < 0 else f" with exit code {code}"


def _sentence(words: str) -> str:
    return words if words.endswith((".", "!", "?")) else f"{words}."


def _summary(plan: Plan) -> str:
    emulator = plan.emulator
    mended = ", with its linear scans mended" if emulator.fast else ""
    endpoint = json.dumps({"url": f"{plan.receiver_url}/verify", "event_types": ["order.*"]})
    return "\n".join(
        (
            "Relay runs on this machine:",
            f"  API       {plan.api_url}",
            f"  receiver  {plan.receiver_url}",
            *([f"  node      {plan.node_url} (WebSockets, and `relay listen`)"] if plan.node_port else []),
            f"  emulator  {emulator.endpoint_url} ({emulator.name}{mended}; {_kept(plan)})",
            f"  logs      {_short(plan.logs)}",
            "Next, in another terminal:",
            f"  curl -s {plan.api_url}/v1/endpoints -H 'Content-Type: application/json' -d '{endpoint}'",
            "Ctrl-C stops all of it.",
        ),
    )


def _kept(plan: Plan) -> str:
    match plan.emulator.name:
        case EmulatorName.MINISTACK:
            return f"state in {_short(plan.state)}, kept until `make clean`"
        case EmulatorName.MOTO:
            return "forgets everything at the end"
        case EmulatorName.LOCALSTACK:
            return "started by others"
        case _:
            assert_never(plan.emulator.name)


def _short(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
