"""Lambda: copies of a function, cold and warm, and the pollers that hand it what its queue has."""

from collections.abc import Callable
from typing import Generic, TypeVar

from tests.simulation.figures import Figures
from tests.simulation.loop import Loop
from tests.simulation.numbers import MS, SECOND, Platform
from tests.simulation.queues import RECEIVED_MAX, FifoQueue, Message

Copy = TypeVar("Copy")
STARTS_WITHIN = 10 * SECOND
GATHERS = 40 * MS


class Function(Generic[Copy]):
    """One function's copies: warm ones are used again, the last first; new ones start at Lambda's pace."""

    def __init__(  # noqa: PLR0913 - what a function is
        self,
        name: str,
        loop: Loop,
        figures: Figures,
        platform: Platform,
        most: int,
        make: Callable[[], Copy],
    ) -> None:
        """Have no copy yet."""
        self.name = name
        self.busy = self.copies = 0
        self._busy_us, self._counted_at = 0, loop.now
        self.most = most
        self._loop = loop
        self._figures = figures
        self._platform = platform
        self._make = make
        self._warm: list[Copy] = []
        self._starts_paid = 0

    def take(self) -> tuple[Copy, int] | None:
        """Take a copy, and say how long it takes to start; None when there may be no further one now."""
        if self._warm:
            copy, starts = self._warm.pop(), 0
        elif self.copies < self.most and self._may_start():
            copy, starts = self._make(), self._platform.cold_start
            self.copies += 1
            self._figures.count(f"starts {self.name}", self._loop.now)
        else:
            self._figures.count(f"throttled {self.name}", self._loop.now)
            return None
        self.spent_us()
        self.busy += 1
        self._figures.most(f"busy {self.name}", self._loop.now, self.busy)
        return copy, starts

    def give_back(self, copy: Copy) -> None:
        """Have a copy rest."""
        self.spent_us()
        self.busy -= 1
        self._warm.append(copy)

    def spent_us(self) -> int:
        """Add up how long copies were at work until now."""
        now = self._loop.now
        self._busy_us += self.busy * (now - self._counted_at)
        self._counted_at = now
        return self._busy_us

    def _may_start(self) -> bool:
        """Say whether Lambda starts another copy now: a thousand at once, and then as many in ten seconds."""
        price = STARTS_WITHIN // self._platform.starts_per_10_s
        now = self._loop.now
        if self._starts_paid > now + STARTS_WITHIN - price:
            return False
        self._starts_paid = max(self._starts_paid, now) + price
        return True


class Mapping(Generic[Copy]):
    """The pollers of one queue: each receives, invokes and waits; more come while bells wait."""

    def __init__(
        self,
        queue: FifoQueue,
        function: Function[Copy],
        platform: Platform,
        handle: Callable[[Copy, FifoQueue, list[Message]], None],
        loop: Loop,
    ) -> None:
        """Begin with as many pollers as Lambda does."""
        self.queue = queue
        self.function = function
        self.pollers = 0
        self._loop = loop
        self._platform = platform
        self._handle = handle
        self._idle = 0
        queue.wake = self._wake
        self._grow_to(min(function.most, platform.pollers_at_first))
        self._step = 60 * SECOND // platform.pollers_a_minute
        loop.at(loop.now + self._step, self._look)

    def _grow_to(self, pollers: int) -> None:
        self._idle += pollers - self.pollers
        self.pollers = pollers
        for _ in range(min(self._idle, self.queue.ready)):
            self._wake()

    def _look(self) -> None:
        """Add a poller while all are at work and more is there."""
        if not self._idle and self.queue.ready and self.pollers < self.function.most:
            self._grow_to(self.pollers + 1)
        self._loop.at(self._loop.now + self._step, self._look)

    def _wake(self) -> None:
        if self._idle:
            self._idle -= 1
            self._loop.start(self._poll)

    def _poll(self) -> None:
        self._loop.spend(self._platform.receive)
        while batch := self.queue.receive():
            self._invoke(batch)
            self._loop.spend(self._platform.receive)
        self._idle += 1

    def _invoke(self, batch: list[Message]) -> None:
        while (taken := self.function.take()) is None:
            self._loop.pause(SECOND)
        copy, starts = taken
        self._loop.pause(self._platform.handover + starts)
        self._handle(copy, self.queue, batch)
        self.function.give_back(copy)


class LocalMapping(Mapping[Copy]):
    """The one loop of the local runtime: it rests after a batch that was not full, and never waits."""

    def _poll(self) -> None:
        self._loop.spend(self._platform.receive)
        while batch := self.queue.receive():
            self._loop.start(self._invoke, batch)
            full = len(batch) == RECEIVED_MAX
            self._loop.pause(0 if full else GATHERS)
            self._loop.spend(self._platform.receive)
        self._idle += 1
