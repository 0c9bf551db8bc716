"""FIFO queues with SQS's promises: a group at a time, and a hidden bell blocks its group."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from chalicelib.application.ports import Bell
from chalicelib.domain.delivery import Lane
from tests.simulation.loop import Loop
from tests.simulation.numbers import SECOND

RECEIVED_MAX = 10
Group = tuple[Lane, bool]


@dataclass(slots=True)
class Message:
    """A bell in a queue."""

    bell: Bell
    receipt: str
    received: int = 0
    hidden: bool = False

    @property
    def as_received(self) -> Bell:
        """Give the bell as the deliver function's handler does: once given back it names no rows."""
        return self.bell if self.received == 1 else replace(self.bell, hints=(), came_back=True)


@dataclass(slots=True)
class _Line:
    """A group's messages: those that can be received, in order, and how many are in flight."""

    waiting: deque[Message] = field(default_factory=deque)
    in_flight: int = 0


class FifoQueue:
    """One queue; `wake` is called when somebody could receive something."""

    def __init__(self, name: str, loop: Loop, looked_among: int) -> None:
        """Begin empty."""
        self.name = name
        self.wake: Callable[[], None] = lambda: None
        self.depth = self.in_flight = self.starved = 0
        self._loop = loop
        self._looked_among = looked_among
        self._lines: dict[Group, _Line] = {}
        self._ready: deque[Group] = deque()
        self._flying: dict[str, Message] = {}
        self._number = 0

    @property
    def ready(self) -> int:
        """Count the groups of which something can be received."""
        return len(self._ready)

    def put(self, bell: Bell) -> None:
        """Take a bell in."""
        self._number += 1
        group = (bell.lane, bell.apart)
        line = self._lines.setdefault(group, _Line())
        line.waiting.append(Message(bell, f"{self.name}-{self._number}"))
        self.depth += 1
        # What stands behind so many is not looked at, even of a group that is free.
        self.starved += self.depth > self._looked_among
        if not line.in_flight and len(line.waiting) == 1:
            self._free(group)

    def receive(self) -> list[Message]:
        """Give at most ten: of the group that is free the longest all there are, then of the next."""
        taken: list[Message] = []
        while self._ready and len(taken) < RECEIVED_MAX:
            line = self._lines[self._ready.popleft()]
            while line.waiting and len(taken) < RECEIVED_MAX:
                message = line.waiting.popleft()
                message.received += 1
                line.in_flight += 1
                self._flying[message.receipt] = message
                taken.append(message)
        self.in_flight += len(taken)
        self.depth -= len(taken)
        return taken

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete received bells; one that is gone already is no error."""
        for receipt in receipts:
            message = self._flying.get(receipt)
            if message is not None and not message.hidden:
                self._land(receipt)

    def hide(self, receipts: Sequence[str], seconds: int) -> None:
        """Keep received bells out of sight; their groups wait for them."""
        for receipt in receipts:
            self._flying[receipt].hidden = True
            self._loop.at(self._loop.now + seconds * SECOND, self._show, receipt)

    def _show(self, receipt: str) -> None:
        message = self._flying[receipt]
        message.hidden = False
        self._lines[message.bell.lane, message.bell.apart].waiting.appendleft(message)
        self.depth += 1
        self._land(receipt)

    def _land(self, receipt: str) -> None:
        bell = self._flying.pop(receipt).bell
        group = (bell.lane, bell.apart)
        line = self._lines[group]
        line.in_flight -= 1
        self.in_flight -= 1
        if not line.in_flight:
            if line.waiting:
                self._free(group)
            else:
                del self._lines[group]

    def _free(self, group: Group) -> None:
        self._ready.append(group)
        self.wake()
