"""What comes in between: deaths at every write, failures and other processes at every call."""

import itertools
from collections.abc import Callable, Iterator

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Insert
from chalicelib.application.ports import Unavailable
from tests.fakes.faults import Step
from tests.unit.application.process import Process
from tests.unit.application.world import World


class Death:
    """A death that was ordered: at one write, before its effect or right after it."""

    def __init__(self, write: int, *, after: bool) -> None:
        self.write = write
        self.after = after

    def process(self, world: World) -> Process:
        """Start the process that dies this death, if it comes that far."""
        process = Process(world)
        process.faults.kill_at(self.write, after=self.after)
        self._process = process
        return process

    @property
    def happened(self) -> bool:
        """Say whether the process has died."""
        return self._process.faults.killed


def deaths(at_least: int, *, after: bool = False) -> Iterator[Death]:
    """Order one death after another, before each write or right after it, until a process outlives them.

    A send, for one, is between the death after one write and the death before the next.
    """
    for write in itertools.count(1):
        death = Death(write, after=after)
        yield death
        if not death.happened:
            assert write > at_least, "there are fewer writes than thought"
            return


def meanwhile(process: Process, act: Callable[[], object], at: Callable[[Step], bool]) -> None:
    """Let others act once, just before a process makes the call that is meant."""

    def before(step: Step) -> None:
        if at(step):
            process.faults.before = lambda _: None
            act()

    process.faults.before = before


def at_call(
    process: Process, number: int, act: Callable[[], object], *, after: bool = False
) -> Callable[[], bool]:
    """Act once around a process's call with a number, from 1; what is given says if it came that far."""
    calls = itertools.count(1)
    reached: list[Step] = []

    def hook(step: Step) -> None:
        if next(calls) == number:
            reached.append(step)
            act()

    if after:
        process.faults.after = hook
    else:
        process.faults.before = hook
    return lambda: bool(reached)


def fail() -> None:
    """Fail as a store, a queue or a key service does."""
    raise Unavailable("ordered")


def tells_of_attempts(step: Step) -> bool:
    """Mean the call that writes down what sends came to."""
    return any(isinstance(each, Insert) and each.key.table == keys.HISTORY for each in step.writes)
