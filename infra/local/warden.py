"""Ends what a supervisor started when the supervisor itself is gone, however it went.

A process of its own, told over its standard input which processes it holds: `hold <pid> <rank> <grace_s>`
and `release <pid>`, one a line. When that input ends it stops what it still holds, the lowest rank first,
politely and then for good.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

_LOOK_EVERY_S = 0.05


@dataclass(frozen=True, slots=True, order=True)
class _Held:
    rank: int
    pid: int
    grace_s: float


def main() -> None:
    """Hold until standard input ends, then end what is held."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    held: dict[int, _Held] = {}
    for line in sys.stdin:
        match line.split():
            case ["hold", pid, rank, grace_s]:
                held[int(pid)] = _Held(int(rank), int(pid), float(grace_s))
            case ["release", pid]:
                held.pop(int(pid), None)
    _end(sorted(held.values()))


def _end(processes: Iterable[_Held]) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGTERM)
            _wait(process)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _wait(process: _Held) -> None:
    """Wait for the process to end; ProcessLookupError when it has."""
    deadline = time.monotonic() + process.grace_s
    while time.monotonic() < deadline:
        os.kill(process.pid, 0)
        time.sleep(_LOOK_EVERY_S)


if __name__ == "__main__":
    main()
