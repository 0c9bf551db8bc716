"""A sender that answers as a test wrote it; time passes only on the clock that it moves."""

import math
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
        """Read whose delivery it was, in either header form; a chat is not told, so its row says it."""
        headers = {name.lower(): value for name, value in self.request.headers}
        return headers.get("relay-delivery-id") or headers.get("webhook-id") or self.key


class ScriptedSender:
    """Implements `Sender`. A send that takes longer than the total timeout ends there with that fault.

    At most `max_in_flight` of an outbox run at once. `sent` has every request that left; `doubled` the
    deliveries that were in flight twice at once.
    """

    def __init__(
        self,
        clock: FixedClock,
        script: Script = lambda _: Answer(),
        timeout_ms: int = 10_000,
        max_in_flight: int = 64,
    ) -> None:
        """Move this clock; answer by a function of the request."""
        self.clock = clock
        self.script = script
        self.timeout_ms = timeout_ms
        self.max_in_flight = max_in_flight
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
class _Waiting:
    key: str
    request: Request
    begins_ms: int
    latest_ms: float


@dataclass(frozen=True, slots=True)
class _Running:
    sent: Sent
    answer: Answer
    ends_ms: int


class ScriptedOutbox:
    """Implements `Outbox`; `cancelled` has the keys that ran or waited when it was left.

    A send whose moment the clock has passed began at that moment, as on a loop of its own.
    """

    def __init__(self, sender: ScriptedSender) -> None:
        """Send for a scripted sender."""
        self._sender = sender
        self._waiting: list[_Waiting] = []
        self._running: list[_Running] = []
        self._given_up: list[Finished] = []
        self.cancelled: list[str] = []

    def start(self, key: str, request: Request, after_s: float = 0.0, within_s: float = math.inf) -> None:
        """Begin a send after so many seconds, as soon as there is room for it then."""
        now_ms = self._sender.clock.now_ms()
        self._waiting.append(
            _Waiting(key, request, now_ms + math.ceil(after_s * 1000), now_ms + within_s * 1000)
        )
        self._waiting.sort(key=lambda each: each.begins_ms)
        self._begin_due()

    def finished(self, timeout_s: float) -> list[Finished]:
        """Move the clock to the next end, or by the timeout, and give all that have ended by then."""
        clock = self._sender.clock
        patience_ms = clock.now_ms() + int(timeout_s * 1000)
        while True:
            self._begin_due()
            ended = self._collect()
            if ended or clock.now_ms() >= patience_ms:
                return ended
            clock.advance_to(self._next_moment(patience_ms))

    def __enter__(self) -> Self:
        """Open the outbox."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Cancel what runs and what waits."""
        self._begin_due()
        self.cancelled += [each.sent.key for each in self._running]
        self.cancelled += [each.key for each in self._waiting]
        for each in self._running:
            self._sender.in_flight.remove(each.sent.delivery_id)
        self._running.clear()
        self._waiting.clear()

    def _begin_due(self) -> None:
        """Begin or give up what has come to that by now, one after another in the order of the moments."""
        while self._waiting:
            begins_ms, gives_up_ms = self._next_begin(), self._next_latest()
            if min(begins_ms, gives_up_ms) > self._sender.clock.now_ms():
                return
            if begins_ms <= gives_up_ms:
                self._begin(self._waiting.pop(0), begins_ms)
            else:
                self._give_up(min(self._waiting, key=lambda each: each.latest_ms))

    def _begin(self, waiting: _Waiting, moment_ms: int) -> None:
        sent = Sent(waiting.key, waiting.request, moment_ms)
        self._sender.leave(sent)
        answer = self._within_deadline(self._sender.script(waiting.request))
        self._running.append(_Running(sent, answer, moment_ms + answer.took_ms))

    def _give_up(self, waiting: _Waiting) -> None:
        self._waiting.remove(waiting)
        at_ms = int(waiting.latest_ms)
        self._given_up.append(Finished(waiting.key, Reply(), at_ms, at_ms, begun=False))

    def _next_begin(self) -> int:
        """Say when the first of those that wait has both its moment and room."""
        limit = self._sender.max_in_flight
        begins_ms = self._waiting[0].begins_ms
        ends = sorted(each.ends_ms for each in self._running if each.ends_ms > begins_ms)
        return begins_ms if len(ends) < limit else ends[len(ends) - limit]

    def _next_latest(self) -> float:
        return min(each.latest_ms for each in self._waiting)

    def _next_moment(self, patience_ms: int) -> int:
        """Say when something happens next, or when patience ends."""
        moments: list[float] = [patience_ms, *(each.ends_ms for each in self._running)]
        if self._waiting:
            moments += [self._next_begin(), self._next_latest()]
        return int(min(moments))

    def _collect(self) -> list[Finished]:
        now_ms = self._sender.clock.now_ms()
        done = sorted(
            (each for each in self._running if each.ends_ms <= now_ms), key=lambda each: each.ends_ms
        )
        given_up, self._given_up = self._given_up, []
        return [*given_up, *(self._end(each) for each in done)]

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
