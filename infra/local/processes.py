"""Child processes that surely end: started apart from the terminal, stopped politely, held by a warden."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import IO, Self

ROOT = Path(__file__).resolve().parents[2]
_LOOK_EVERY_S = 0.05


class CannotRunError(Exception):
    """Why the local run cannot begin or go on: one sentence, and the exit code that goes with it."""

    def __init__(self, sentence: str, code: int = 1) -> None:
        """Take the sentence as a person is to read it."""
        super().__init__(sentence)
        self.code = code


class Start(StrEnum):
    """How the start of a process went."""

    READY = "ready"
    DIED = "died"
    LATE = "late"


class Leash:
    """A warden at work: whatever it holds ends when this process does."""

    def __init__(self) -> None:
        """Start the warden."""
        self._warden = subprocess.Popen(
            [sys.executable, "-m", "infra.local.warden"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Let go: what is still held ends now."""
        with suppress(BrokenPipeError):
            self._pipe.close()
        self._warden.wait()

    def hold(self, pid: int, rank: int, grace_s: float) -> None:
        """End this process with ours, the lowest rank first, and for good after the grace."""
        self._tell(f"hold {pid} {rank} {grace_s}")

    def release(self, pid: int) -> None:
        """Forget a process that has ended."""
        self._tell(f"release {pid}")

    def _tell(self, line: str) -> None:
        with suppress(BrokenPipeError):
            self._pipe.write(line + "\n")
            self._pipe.flush()

    @property
    def _pipe(self) -> IO[str]:
        assert self._warden.stdin is not None  # noqa: S101 - it was asked for above
        return self._warden.stdin


@dataclass(frozen=True, slots=True)
class Program:
    """What to run: its name in sentences, its command and environment, where it writes, and how it stops.

    `rank` orders the end of several, the lowest first. A program that `tells` says on the pipe `--ready-fd`
    that it is ready.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path
    rank: int = 0
    grace_s: float = 10.0
    tells: bool = False


class Child:
    """One run of a program."""

    def __init__(self, program: Program, leash: Leash) -> None:
        """Start it; CannotRunError when there is no such program."""
        self.program = program
        self.started = time.monotonic()
        self._leash = leash
        ready, told = os.pipe()
        self._ready: int | None = ready
        extra = ("--ready-fd", str(told)) if program.tells else ()
        try:
            with program.log.open("ab") as log:
                self._process = subprocess.Popen(
                    [*program.command, *extra],
                    cwd=ROOT,
                    env=dict(program.environment),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    pass_fds=(told,) if program.tells else (),
                    start_new_session=True,
                )
        except OSError as error:
            os.close(ready)
            raise CannotRunError(f"{program.command[0]} cannot be run: {error.strerror}.", 2) from error
        finally:
            os.close(told)
        leash.hold(self.pid, program.rank, program.grace_s)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended, or None while it runs."""
        return self._process.poll()

    def has_told(self) -> bool:
        """Say whether it has told that it is ready."""
        if self._ready is None or not select.select([self._ready], [], [], 0)[0]:
            return False
        return os.read(self._ready, 1) == b"1"

    def wait_ready(self, ready: Callable[[], bool], within_s: float, meanwhile: Callable[[], None]) -> Start:
        """Wait until it is ready, has died, or is late; `meanwhile` is called again and again."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            meanwhile()
            if ready():
                return Start.READY
            if self.exit_code is not None:
                return Start.DIED
            time.sleep(_LOOK_EVERY_S)
        return Start.LATE

    def stop(self) -> bool:
        """End it and wait; False when it had to be killed."""
        polite = True
        if self.exit_code is None:
            self._process.send_signal(signal.SIGTERM)
            polite = self._ended_within(self.program.grace_s)
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._leash.release(self.pid)
        if self._ready is not None:
            os.close(self._ready)
            self._ready = None
        return polite

    def last_words(self) -> str:
        """Give the last line it wrote."""
        lines = self.program.log.read_text(encoding="utf-8", errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "nothing")

    def _ended_within(self, grace_s: float) -> bool:
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            return False
        return True
