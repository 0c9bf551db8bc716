"""Faults on order: calls that fail before or after their effect, a process that dies between two writes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from chalicelib.application.ports import Unavailable


class Killed(BaseException):
    """The process ended here; a BaseException, so that no handler of errors goes on."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a port: its method, and what it was to write (nothing for a read)."""

    method: str
    writes: tuple[object, ...] = ()


Hook = Callable[[Step], None]


def _nothing(_: Step) -> None:
    """Let a step pass."""


@dataclass(slots=True)
class _Failure:
    times: int
    method: str
    after: bool


class Faults:
    """What goes wrong next, and a record of every call. Nothing goes wrong unless it was ordered.

    `before` and `after` are called around every call, outside every lock: they may raise, and they may
    write for somebody else. Failures of one fake are ordered on its own `faults`.
    """

    def __init__(self) -> None:
        """Let everything pass."""
        self._lock = Lock()
        self.steps: list[Step] = []
        self.clear()

    def clear(self) -> None:
        """Let everything pass from now on; a killed process lives again."""
        self.before: Hook = _nothing
        self.after: Hook = _nothing
        self._failures: list[_Failure] = []
        self._left: int | None = None
        self._dies_after = False
        self._dead = False

    def fail_next(self, times: int = 1, *, method: str = "", after: bool = False) -> None:
        """Raise Unavailable from the next calls, of one method if named, after their effect if asked."""
        self._failures.append(_Failure(times, method, after))

    def kill_at(self, write: int, *, after: bool) -> None:
        """Die at a write, counted from 1: before its effect or right after. The dead do nothing more.

        Every statement of a batch is a write of its own, a transaction is one.
        """
        self._left = write
        self._dies_after = after

    @property
    def killed(self) -> bool:
        """Say whether the ordered death has come."""
        return self._dead

    @contextmanager
    def around(self, step: Step) -> Iterator[None]:
        """Surround one call with what was ordered for it."""
        self._live()
        with self._lock:
            self.steps.append(step)
        self._fail(step, after=False)
        self.before(step)
        yield
        self.after(step)
        self._fail(step, after=True)

    @contextmanager
    def write(self) -> Iterator[None]:
        """Surround one write of a call with the death that was ordered for it."""
        self._live()
        with self._lock:
            if self._left is not None:
                self._left -= 1
            mine = self._left == 0
        if mine and not self._dies_after:
            self.die()
        yield
        if mine and self._dies_after:
            self.die()

    def die(self) -> None:
        """Die here and now."""
        self._dead = True
        raise Killed

    def _live(self) -> None:
        if self._dead:
            raise Killed

    def _fail(self, step: Step, *, after: bool) -> None:
        with self._lock:
            fitting = (
                each
                for each in self._failures
                if each.times and each.after is after and each.method in {"", step.method}
            )
            failure = next(fitting, None)
            if failure is None:
                return
            failure.times -= 1
        raise Unavailable(f"ordered: {step.method} fails {'after' if after else 'before'} its effect")
