"""Simulated time: events in order of their moments, and activities that wait without holding anybody up.

An activity is a greenlet, so that code which waits in the middle of a call, as the delivery plane does,
runs here as it is written. The same events and the same seed give the same run.
"""

import heapq
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet

Given = TypeVar("Given")
Result = TypeVar("Result")
DELIVERING, ACCEPTING = "delivering", "accepting"


class Loop:
    """Runs what is due, moment by moment; implements `Clock`. Moments are Unix microseconds."""

    def __init__(self, now_us: int, *, one_machine: bool = False) -> None:
        """Begin at a moment; on one machine those who deliver share a core, and those who accept another."""
        self.now = now_us
        self._free = {DELIVERING: now_us, ACCEPTING: now_us} if one_machine else {}
        self._due: list[tuple[int, int, Callable[..., Any], tuple[Any, ...]]] = []
        self._number = 0
        self._hub: Any = None

    def now_ms(self) -> int:
        """Give Unix epoch milliseconds."""
        return self.now // 1000

    def now_us(self) -> int:
        """Give Unix epoch microseconds."""
        return self.now

    def at(self, moment_us: int, call: Callable[..., Any], *given: Any) -> None:  # noqa: ANN401 - whatever it takes
        """Call something at a moment; of one moment in the order asked."""
        self._number += 1
        heapq.heappush(self._due, (moment_us, self._number, call, given))

    def start(self, activity: Callable[..., object], *given: Any) -> None:  # noqa: ANN401 - as above
        """Begin an activity now, after whatever is due already."""
        self.at(self.now, greenlet(activity, self._hub).switch, *given)

    def pause(self, for_us: int) -> None:
        """Let an activity wait."""
        self._number += 1
        heapq.heappush(self._due, (self.now + for_us, self._number, getcurrent().switch, ()))
        self._hub.switch()

    def spend(self, work_us: int) -> None:
        """Let an activity wait for work that takes so long, and for its core first if it shares one."""
        self.pause(self.done_after(work_us, DELIVERING))

    def done_after(self, work_us: int, core: str) -> int:
        """Say how long work that is asked for now takes, with its wait for the core, and give it the core."""
        if not self._free:
            return work_us
        self._free[core] = max(self.now, self._free[core]) + work_us
        return self._free[core] - self.now

    def together(self, call: Callable[[Given], Result], some: Sequence[Given], most: int) -> list[Result]:
        """Call for each of some, so many side by side, and let the activity that asks wait for all."""
        results: dict[int, Result] = {}
        left = iter(enumerate(some))
        asking = getcurrent()

        def work() -> None:
            for place, each in left:
                results[place] = call(each)
            done.append(None)
            if len(done) == most:
                self.at(self.now, asking.switch)

        done: list[None] = []
        for _ in range(most):
            self.start(work)
        self._hub.switch()
        return [results[place] for place in range(len(some))]

    def run(self, until_us: int) -> None:
        """Do everything that is due before a moment."""
        self._hub = getcurrent()
        due, pop = self._due, heapq.heappop
        while due and due[0][0] < until_us:
            self.now, _, call, given = pop(due)
            call(*given)
        self.now = until_us
