"""One deliver process: the real batch, admission, sending and settlement over the simulated world."""

import heapq
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

from chalicelib.application.admission import Admission, Decisions
from chalicelib.application.batch import Batch
from chalicelib.application.counting import Counting
from chalicelib.application.deliver import HOLDER_BITS, calls_of
from chalicelib.application.gatekeeper import Gatekeeper, KnownGates
from chalicelib.application.holding import Holding
from chalicelib.application.lane_bells import LaneBells
from chalicelib.application.ports import Bell, Finished, Reread, StoredEvent
from chalicelib.application.sending import Sending
from chalicelib.application.settlement import Settlement
from chalicelib.application.visit import Visit
from chalicelib.domain.delivery import Lane, Owed
from chalicelib.domain.endpoint import Endpoint
from chalicelib.domain.gate import Queue
from chalicelib.domain.outcome import DeathReason, Reply
from chalicelib.domain.request import Request
from tests.simulation.numbers import MS, SECOND
from tests.simulation.queues import FifoQueue, Message
from tests.simulation.receivers import TIMEOUT_MS, Letter

if TYPE_CHECKING:
    from tests.simulation.relay import Relay

FUNCTION_US = 60 * SECOND
IN_FLIGHT_MAX = 64
PAYLOAD_MAX = 262_144
SENT_TOGETHER = 10


class Dice:
    """Implements `Dice` from a seed."""

    def __init__(self, seed: str) -> None:
        """Begin."""
        self.random = random.Random(seed)
        self.jitter = self.random.random
        self.bits = self.random.getrandbits
        self.key = self.random.randbytes


@dataclass(frozen=True, slots=True)
class UnsignedSending(Sending):
    """Starts sends as ever, but builds and signs nothing."""

    letters: Any = None

    def _request(self, stored: StoredEvent, endpoint: Endpoint, owed: Owed) -> Request | DeathReason:
        return cast("Letter", self.letters[owed.lane.endpoint_id])


class Outbox:
    """Implements `Outbox`: what was started ends when its receiver answers."""

    def __init__(self, relay: "Relay") -> None:
        """Send for one invocation."""
        self._relay = relay
        self._loop = relay.loop
        self._running: list[tuple[int, int, str, int, Reply]] = []
        self._given_up: list[Finished] = []
        self._number = 0

    def start(self, key: str, request: Request, after_s: float = 0.0, within_s: float = math.inf) -> None:
        """Begin a send after so many seconds, as soon as there is room for it then."""
        begins = self._begins(self._loop.now + math.ceil(after_s * SECOND))
        if begins > self._loop.now + within_s * SECOND:
            at_ms = begins // MS
            self._given_up.append(Finished(key, Reply(), at_ms, at_ms, begun=False))
            return
        receiver = cast("Letter", request).receiver
        reply, took_ms = receiver.answer(self._relay.dice.random, self._relay.numbers.receivers)
        self._relay.sent(receiver, key, begins)
        self._number += 1
        heapq.heappush(self._running, (begins + took_ms * MS, self._number, key, begins, reply))

    def _begins(self, moment: int) -> int:
        ends = sorted(each[0] for each in self._running if each[0] > moment)
        return moment if len(ends) < IN_FLIGHT_MAX else ends[-IN_FLIGHT_MAX]

    def finished(self, timeout_s: float) -> list[Finished]:
        """Wait at most so long for one send to end and give all that have ended."""
        if self._given_up:
            given_up, self._given_up = self._given_up, []
            return given_up
        now = self._loop.now
        until = now + int(timeout_s * SECOND)
        moment = min(until, self._running[0][0]) if self._running else until
        if moment > now:
            self._loop.pause(moment - now)
        ended = []
        while self._running and self._running[0][0] <= self._loop.now:
            ends, _, key, began, reply = heapq.heappop(self._running)
            timed = Reply(reply.status, reply.fault, total_ms=(ends - began) // MS)
            ended.append(Finished(key, timed, began // MS, ends // MS))
        return ended

    def __enter__(self) -> Self:
        """Open the outbox."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing: all that was started has been awaited."""


class Bells:
    """Implements `Bells` for activities: bells arrive as their call returns."""

    def __init__(self, relay: "Relay") -> None:
        """Ring on a run's queues."""
        self._relay = relay

    def ring(self, bells: Sequence[Bell]) -> int:
        """Ring each lane on its endpoint's queue."""
        relay = self._relay
        for queue, some in relay.by_queue(bells).items():
            for start in range(0, len(some), SENT_TOGETHER):
                relay.figures.counts["send"] += 1
                relay.loop.spend(relay.numbers.latencies.send)
                relay.ring(queue, some[start : start + SENT_TOGETHER], "fresh bells")
        return 0

    def ring_later(self, lane: Lane, delay_s: int, queue: Queue = Queue.SHARD) -> int:
        """Ring a lane after a delay."""
        relay = self._relay
        relay.figures.counts["send"] += 1
        relay.loop.spend(relay.numbers.latencies.send)
        relay.ring_later(lane, delay_s, queue)
        return 0


class Receipts:
    """Implements `Receipts` of the queue that an invocation is for."""

    def __init__(self, relay: "Relay", queue: FifoQueue) -> None:
        """Speak to a queue."""
        self._relay = relay
        self._queue = queue

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete bells."""
        self._call("delete")
        self._queue.delete(receipts)

    def hide(self, receipts: Sequence[str], seconds: int) -> None:
        """Keep bells out of sight."""
        self._call("hide")
        self._queue.hide(receipts, seconds)

    def _call(self, name: str) -> None:
        self._relay.figures.counts[name] += 1
        self._relay.loop.spend(self._relay.numbers.latencies.queue_change)


class Process:
    """A copy of a deliver function: what it remembers is its own."""

    def __init__(self, relay: "Relay") -> None:
        """Know nothing yet."""
        self._relay = relay
        store, loop, rules = relay.store, relay.loop, relay.rules
        known = KnownGates()
        keeper = Gatekeeper(store, known)
        holding = Holding(store, keeper, loop)
        bells = LaneBells(cast("Any", Bells(relay)), keeper, loop)
        self._admission = _CountedAdmission(store, known, rules, relay)
        counting = Counting(cast("Any", None), loop)
        self._settlement = Settlement(
            store, keeper, holding, bells, relay.no_endpoints, loop, relay.dice, rules, counting
        )
        self._sending = UnsignedSending(
            cast("Any", _Counted(relay)),
            self._settlement,
            cast("Any", None),
            cast("Any", None),
            loop,
            TIMEOUT_MS,
            PAYLOAD_MAX,
            letters=relay.letters,
        )

    def handle(self, queue: FifoQueue, batch: Sequence[Message]) -> None:
        """Work off a batch of bells, as the deliver function's handler does."""
        relay, loop = self._relay, self._relay.loop
        ends = loop.now + FUNCTION_US
        lanes = {each.bell.lane for each in batch}
        loop.spend(relay.numbers.cost.invocation + relay.numbers.cost.visit * len(lanes))
        crowd = [each for each in batch if each.bell.lane.endpoint_id in relay.crowd]
        crowd_done = relay.crowd.visit(queue, crowd) if crowd else loop.now
        own = [each for each in batch if each.bell.lane.endpoint_id not in relay.crowd]
        calls = calls_of([(each.as_received, each.receipt) for each in own])
        work = Batch(
            [Visit(call, f"{relay.dice.bits(HOLDER_BITS):016x}", held=call.came_back) for call in calls],
            work=relay.store,
            admission=self._admission,
            sending=self._sending,
            settlement=self._settlement,
            clock=loop,
            receipts=Receipts(relay, queue),
            time_left_ms=lambda: (ends - loop.now) // MS,
        )
        work.work_off(Outbox(relay))
        if work.failures:
            raise RuntimeError("nothing fails here") from work.failures[0]
        relay.figures.counts["invocations"] += 1
        relay.figures.counts["lanes handed over"] += len(calls)
        loop.pause(max(0, crowd_done - loop.now))
        loop.spend(relay.numbers.platform.receive)
        queue.delete([each.receipt for each in own if each.receipt not in work.kept])


@dataclass(frozen=True, slots=True)
class _CountedAdmission(Admission):
    """Decides as always, and counts who is let in."""

    relay: Any = None

    def decide(self, visits: Sequence[Visit], now_us: int) -> Decisions:
        """Decide as always."""
        decisions = Admission.decide(self, visits, now_us)
        counts = self.relay.figures.counts
        counts["visits"] += len(decisions.admitted)
        for each in decisions.admitted:
            counts["granted"] += len(each.visit.granted)
            self.relay.admitted(each.visit)
        return decisions


class _Counted:
    """The store as `Sending` uses it: reading again is where an attempt's share of a core is spent."""

    def __init__(self, relay: "Relay") -> None:
        self._relay = relay
        self.peek = relay.store.peek

    def reread(self, owed: Sequence[Owed]) -> Reread:
        self._relay.loop.spend(self._relay.numbers.cost.attempt * len(owed))
        return self._relay.store.reread(owed)
