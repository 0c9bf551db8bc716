"""A sender that answers as a test wrote it; time passes only on the clock that it moves."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Self

from chalicelib.application.ports import Finished
from chalicelib.domain.outcome import Fault, Reply
from chalicelib.domain.request import Request
from tests.fakes.faults import Killed
from tests.fakes.fixed_clock import FixedClock

FOREVER_MS = 10**12


@dataclass(frozen=True, slots=True)
class Answer:
    """What becomes of one send: a reply after a while, or the death of the process that sent it."""

    reply: Reply = field(default_factory=lambda: Reply(status=200))
    took_ms: int = 5
    dies: bool = False


HANGS = Answer(took_ms=FOREVER_MS)
DIES = Answer(dies=True)
Script = Callable[[Request], Answer]


def status(code: int, *, took_ms: int = 5, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    """Answer with a status."""
    return Answer(Reply(status=code, headers=headers), took_ms)


def in_turn(answers: Iterable[Answer]) -> Script:
    """Give one answer after another, whatever is asked; the last one for ever."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that left, and when (Unix ms)."""

    key: str
    request: Request
    at_ms: int

    @property
    def delivery_id(self) -> str:
        """Read whose delivery it was, in either header form."""
        headers = {name.lower(): value for name, value in self.request.headers}
        return headers.get("relay-delivery-id") or headers["webhook-id"]


class ScriptedSender:
    """Implements `Sender`. A send that takes longer than the total timeout ends there with that fault.

    `sent` has every request that left; `doubled` the deliveries that were in flight twice at once.
    """

    def __init__(
        self, clock: FixedClock, script: Script = lambda _: Answer(), timeout_ms: int = 10_000
    ) -> None:
        """Move this clock; answer by a function of the request."""
        self.clock = clock
        self.script = script
        self.timeout_ms = timeout_ms
        self.sent: list[Sent] = []
        self.in_flight: list[str] = []
        self.doubled: list[str] = []

    def outbox(self) -> "ScriptedOutbox":
        """Open a place for the sends of one visit."""
        return ScriptedOutbox(self)

    def leave(self, sent: Sent) -> None:
        """Let a request leave, and note when its delivery is in flight already."""
        self.sent.append(sent)
        if sent.delivery_id in self.in_flight:
            self.doubled.append(sent.delivery_id)
        self.in_flight.append(sent.delivery_id)


@dataclass(frozen=True, slots=True)
class _Running:
    sent: Sent
    answer: Answer
    ends_ms: int


class ScriptedOutbox:
    """Implements `Outbox`; `cancelled` has the keys that were still running when it was left."""

    def __init__(self, sender: ScriptedSender) -> None:
        """Send for a scripted sender."""
        self._sender = sender
        self._running: list[_Running] = []
        self.cancelled: list[str] = []

    def start(self, key: str, request: Request) -> None:
        """Begin a send; it is with the endpoint from now on."""
        now_ms = self._sender.clock.now_ms()
        sent = Sent(key, request, now_ms)
        self._sender.leave(sent)
        answer = self._within_deadline(self._sender.script(request))
        self._running.append(_Running(sent, answer, now_ms + answer.took_ms))

    def finished(self, timeout_s: float) -> list[Finished]:
        """Move the clock to the next end, or by the timeout, and give all that have ended by then."""
        clock = self._sender.clock
        patience_ms = clock.now_ms() + int(timeout_s * 1000)
        clock.advance_to(min([each.ends_ms for each in self._running] + [patience_ms]))
        ended = sorted(
            (each for each in self._running if each.ends_ms <= clock.now_ms()), key=lambda each: each.ends_ms
        )
        return [self._end(each) for each in ended]

    def __enter__(self) -> Self:
        """Open the outbox."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Cancel what runs and wait until it has stopped."""
        self.cancelled += [each.sent.key for each in self._running]
        for each in self._running:
            self._sender.in_flight.remove(each.sent.delivery_id)
        self._running.clear()

    def _within_deadline(self, answer: Answer) -> Answer:
        if answer.took_ms <= self._sender.timeout_ms:
            return answer
        late = Reply(fault=Fault.TIMEOUT, detail="no answer within the total timeout")
        return replace(answer, reply=late, took_ms=self._sender.timeout_ms)

    def _end(self, running: _Running) -> Finished:
        if running.answer.dies:
            raise Killed
        self._running.remove(running)
        self._sender.in_flight.remove(running.sent.delivery_id)
        reply = replace(running.answer.reply, total_ms=running.answer.took_ms)
        return Finished(running.sent.key, reply, running.sent.at_ms, running.ends_ms)
