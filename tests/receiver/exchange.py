"""One delivery on its way to an answer: all that a misbehaviour may do to the wire."""

from tests.receiver.answer import Answer
from tests.receiver.entry import Entry, Outcome
from tests.receiver.request import Request, Target
from tests.receiver.site import Site
from tests.receiver.wire import Wire


class Exchange:
    """Writes an answer and keeps the log right about it."""

    __slots__ = ("_wire", "entry", "request", "site")

    def __init__(self, site: Site, request: Request, entry: Entry, wire: Wire) -> None:
        """Begin answering `request`, which the log knows as `entry`."""
        self.site = site
        self.request = request
        self.entry = entry
        self._wire = wire

    @property
    def target(self) -> Target:
        """Give what was asked for."""
        return self.request.target

    def answer(self, answer: Answer) -> None:
        """Send a whole answer."""
        entry = self.entry
        entry.status = answer.status
        self._wire.write(answer.data)
        entry.bytes_written += len(answer.data)
        self.site.log.end(entry, Outcome.ANSWERED)
        if answer.close:
            self._wire.close()

    def begin(self, status: int | None) -> None:
        """Say which status the bytes to come carry, and write them in small portions."""
        self.entry.status = status
        self._wire.keep_little_unsent()

    async def send(self, data: bytes) -> None:
        """Send a piece and wait until the socket has it; `bytes_written` counts only what it took."""
        entry = self.entry
        before = entry.bytes_written
        self._wire.write(data)
        if not self._wire.closing:
            entry.bytes_written = before + len(data) - min(len(data), self._wire.unsent)
        await self._wire.drain()
        entry.bytes_written = before + len(data)

    def end(self) -> None:
        """Say that the answer is complete."""
        self.site.log.end(self.entry, Outcome.ANSWERED)

    def cut(self, answer: Answer | None = None) -> None:
        """Close the connection in the middle, after what is given of an answer."""
        if answer is not None:
            self.entry.status = answer.status
            self.entry.bytes_written = len(answer.data)
            self._wire.write(answer.data)
        self.site.log.end(self.entry, Outcome.CUT)
        self._wire.close()

    def reset(self) -> None:
        """Close the connection with a TCP reset."""
        self.site.log.end(self.entry, Outcome.CUT)
        self._wire.reset()

    def close_wire(self) -> None:
        """Close the connection whatever it is doing."""
        self._wire.close()
