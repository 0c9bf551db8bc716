"""The blows of the chaos run: processes killed inside functions of our choice, queues emptied."""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.e2e.faults import SOON_ENDS, SOON_S, purge
from tests.e2e.stack import RelayStack

TAKEN_WITHIN_S = 20.0
# How many AWS calls a function makes at most before it dies; what makes fewer dies at its end.
CALLS = {"deliver": 8, "ingest": 3, "fan_out": 6, "replay": 8, "replay_many": 8, "reconcile": 12}
# Where most can go wrong, most is killed.
WEIGHTS = {"deliver": 2}
PROCESS_OF = {"ingest": "api", "replay": "api"}
LOOK_EVERY_S = 0.05
# Some of what is owed arrives while queue after queue is emptied.
MORE_THAN_ENOUGH = 1.25


@dataclass(slots=True)
class _Life:
    """A process of the stack: since when it runs as far as seen, and how often it ended soon in a row."""

    since_s: float
    soon: int = 0


@dataclass(slots=True)
class Executioner:
    """Orders deaths, one after the other, never so often that the supervisor gives a process up.

    `provoke` has what makes a function be invoked that otherwise would not be.
    """

    stack: RelayStack
    orders: Path
    dice: Random
    provoke: Mapping[str, Callable[[], None]]
    lives: dict[str, _Life] = field(default_factory=dict)
    tried: Counter[str] = field(default_factory=Counter)
    kills: list[dict[str, Any]] = field(default_factory=list)

    def kill(self) -> bool:
        """Kill a process inside a function, whichever was killed least; False when that was not to be."""
        function = self._next()
        if function is None:
            return False
        self.tried[function] += 1
        process = PROCESS_OF.get(function, "workers")
        order = {"call": self.dice.randint(1, CALLS[function]), "after": self.dice.random() < 0.5}
        before = self.stack.pid(process)
        self._give(function, order)
        self.provoke.get(function, lambda: None)()
        if not self._dies(function, process, before):
            return False
        self._mourn(process, before)
        self.kills.append({"at": time.time(), "function": function, "process": process, **order})
        return True

    def _next(self) -> str | None:
        """Choose a function whose process may die now."""
        may = [each for each in CALLS if self._may_die(PROCESS_OF.get(each, "workers"))]
        return min(may, key=lambda each: self.tried[each] / WEIGHTS.get(each, 1), default=None)

    def _may_die(self, process: str) -> bool:
        life = self.lives.setdefault(process, _Life(time.monotonic()))
        return life.soon < SOON_ENDS or time.monotonic() - life.since_s > SOON_S

    def _mourn(self, process: str, before: int) -> None:
        """Wait until the process runs again."""
        life = self.lives[process]
        life.soon = life.soon + 1 if time.monotonic() - life.since_s <= SOON_S else 0
        self.stack.until(lambda: self.stack.pid(process) != before, within_s=60)
        life.since_s = time.monotonic()

    def by_function(self) -> dict[str, int]:
        """Count the kills so far."""
        return dict(Counter(str(each["function"]) for each in self.kills))

    def _give(self, function: str, order: dict[str, Any]) -> None:
        draft = self.orders / f"{function}.draft"
        draft.write_text(json.dumps(order))
        draft.rename(self.orders / function)

    def _dies(self, function: str, process: str, before: int) -> bool:
        """Wait until the order was carried out; take it back when nobody took it."""
        taken = self.orders / f"taken by {before}"
        if not _until(taken.exists, TAKEN_WITHIN_S):
            try:
                (self.orders / function).unlink()
            except FileNotFoundError:
                pass
            else:
                return False
        return _until(lambda: self.stack.pid(process) != before or not _runs(before), 60)


@dataclass(slots=True)
class Purger:
    """Empties every queue when enough is owed."""

    stack: RelayStack
    owed: Callable[[], int]
    at_least: int
    purges: list[dict[str, Any]] = field(default_factory=list)

    def purge(self) -> bool:
        """Empty them now; False when too little is owed, or was as soon as they were empty."""
        if self.owed() < self.at_least * MORE_THAN_ENOUGH:
            return False
        purge(self.stack)
        owed = self.owed()
        self.purges.append({"at": time.time(), "owed": owed, "counts": owed >= self.at_least})
        return owed >= self.at_least

    def count(self) -> int:
        """Count the purges at which enough was owed."""
        return sum(each["counts"] for each in self.purges)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _until(holds: Callable[[], bool], within_s: float) -> bool:
    deadline_s = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(LOOK_EVERY_S)
    return True
