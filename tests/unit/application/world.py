"""A whole Relay in memory: queues, processes that can be killed at any call, and what it still owes."""

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from chalicelib.adapters.dynamodb import keys, rows
from chalicelib.adapters.dynamodb.records import Merge
from chalicelib.application.deliver import Report, calls_of
from chalicelib.application.ingest import Accepted, IngestLimits, Post
from chalicelib.application.notify import Notified
from chalicelib.application.ports import Bell, Unavailable
from chalicelib.application.reconcile import Swept
from chalicelib.application.visit import Call
from chalicelib.domain import gate as gates
from chalicelib.domain.audit import Actor, ActorKind
from chalicelib.domain.change import Record
from chalicelib.domain.delivery import Attempt, Ended, HistoryRow, Lane, Owed
from chalicelib.domain.endpoint import Endpoint, Limits
from chalicelib.domain.errors import RelayError
from chalicelib.domain.gate import Gate, Queue, Rules, Spell
from chalicelib.domain.notice import Notice, NoticeRules
from chalicelib.domain.tenant import Quotas
from tests.fakes.faults import Killed
from tests.fakes.fixed_clock import FixedClock, LoadedDice
from tests.fakes.memory_bells import Delayed, FanOutCall, MemoryBells, MemoryReceipts
from tests.fakes.memory_tables import Records
from tests.fakes.scripted_sender import ScriptedSender, Sent, status
from tests.unit.application.process import Admissions, Process

TENANT = "acme"
BY = Actor(ActorKind.KEY, "key_1", "203.0.113.9")
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
FUNCTION_MS = 60_000
VISIBILITY_MS = 6 * FUNCTION_MS
AFTER_FAILURE_MS = 5_000
TAKE_OVER_MS = 47_000
BATCH = 10
BUSY_LIMIT = 2_000
RULES = Rules()
LIMITS = IngestLimits(payload_max=262_144, inline_max=4_096, inline_fan_out_max=40)
AMPLE = Limits(rate_per_second=100_000, burst=100_000, max_concurrency=10)
OK, FAILS = status(200), status(500)
LARGE = json.dumps({"noise": "".join(f"{n * n * 7919 % 104729:05d}" for n in range(4_000))}).encode()

Result = TypeVar("Result")


@dataclass(slots=True)
class Waiting:
    """A bell in the FIFO queue, and when it can be received."""

    bell: Bell
    receipt: str
    visible_ms: int
    received: int = 0

    @property
    def cloud(self) -> bool:
        """Say whether it is on the queue of what is in AWS, whose function alone sends there."""
        return self.bell.queue is Queue.CLOUD

    @property
    def group(self) -> tuple[Lane, bool]:
        """Name its message group."""
        return self.bell.lane, self.bell.apart

    @property
    def as_received(self) -> Bell:
        """Give the bell as the deliver function's handler does: once given back it names no rows."""
        return self.bell if self.received == 1 else replace(self.bell, hints=(), came_back=True)


class World:
    """Everything durable, the queues between the functions, and the endpoints' side of the wire."""

    def __init__(
        self,
        rules: Rules = RULES,
        limits: IngestLimits = LIMITS,
        jitters: Sequence[float] = (0.5,),
        quotas: Quotas | None = None,
    ) -> None:
        self.rules = rules
        self.limits = limits
        self.quotas = quotas
        self.clock = FixedClock()
        self.dice = LoadedDice(jitters)
        self.records = Records()
        self.kept: dict[str, bytes] = {}
        self.heard: list[Notice] = []
        self.notice_rules = NoticeRules()
        self.sender = ScriptedSender(self.clock)
        self.admitted: list[Admissions] = []
        self.waiting: list[Waiting] = []
        self.delayed: list[Delayed] = []
        self.fan_outs: list[FanOutCall] = []
        self.endings: list[tuple[str, str]] = []
        self.replays: list[tuple[str, str, int]] = []
        self.function_ms = FUNCTION_MS
        self.losing = self.bells_rung = self.registered = 0
        self.numbers = itertools.count(1)
        self.identities = itertools.count(keys.COUNTER_SHARDS, keys.COUNTER_SHARDS)
        self.usual = Process(self)

    # What owners and producers do.

    def endpoint(self, *event_types: str, limits: Limits = AMPLE, **changes: Any) -> Endpoint:  # noqa: ANN401 - any field
        """Register an endpoint, a millisecond after the one before."""
        self.registered += 1
        self.clock.advance(ms=1)
        url = f"https://receiver.example/{self.registered}"
        draft = Endpoint(TENANT, "", url, event_types or ("*",), 0, limits=limits, **changes)
        return self.usual.manage.register(draft, BY).endpoint

    def now(self, endpoint: Endpoint) -> Endpoint:
        """Read an endpoint as it is now."""
        found = self.usual.endpoints.get(endpoint.tenant, endpoint.id)
        assert found is not None
        return found

    def change(self, endpoint: Endpoint, **changes: Any) -> None:  # noqa: ANN401 - any field
        """Change an endpoint as it is now."""
        now = self.now(endpoint)
        self.run(lambda process: process.manage.change(now, replace(now, **changes), BY), self.usual)

    def hold(self, endpoint: Endpoint, for_ms: int) -> int:
        """Hold an endpoint as a 429 does; the moment that ends it."""
        until_ms = self.clock.now_ms() + for_ms
        at = keys.gate(endpoint.tenant, endpoint.id)
        self.usual.tables.together([Merge(at, {"hold_until": until_ms * 1000})])
        return until_ms

    def post(self, event_type: str = "order.paid", body: bytes = b'{"n":1}', key: str | None = None) -> Any:  # noqa: ANN401 - the answer's JSON
        """Post an event a millisecond after whatever was last, and give the answer."""
        answer = self.run(
            lambda process: process.ingest.one(posted(event_type, body, key), self.quotas), self.usual
        )
        assert answer is not None
        return json.loads(answer.answer)

    def accept(
        self, posts: Sequence[Post], process: Process | None = None
    ) -> list[Accepted | RelayError] | None:
        """Post a batch, to a new process by default; None when it was killed."""
        return self.run(lambda it: it.ingest.many(posts, self.quotas), process)

    def deliveries(self, count: int) -> list[str]:
        """Post that many events, and give the ids of their deliveries."""
        return [delivery for _ in range(count) for delivery in self.post()["delivery_ids"]]

    # What the functions do.

    def run(self, use: Callable[[Process], Result], process: Process | None = None) -> Result | None:
        """Let a process (a new one by default) do something; None when it was killed on the way."""
        process = process or Process(self)
        process.bells.lose_next(self.losing)
        try:
            return use(process)
        except Killed:
            return None
        finally:
            self._collect(process.bells)

    def deliver(self, process: Process | None = None) -> Report | None:
        """Hand the bells that can be received now, at most ten, to a deliver function.

        None when there was none, or when the process was killed or failed; what it did with each
        bell is done to the queue.
        """
        batch = self._receive()
        if not batch:
            return None
        process = process or self.usual
        process.receipts.deleted.clear()
        process.receipts.hidden.clear()
        ends_ms = self.clock.now_ms() + self.function_ms
        calls = calls_of([(each.as_received, each.receipt) for each in batch])
        cloud = batch[0].cloud

        def work_off(it: Process) -> Report:
            deliver = it.delivering(cloud=cloud)
            return deliver.run(calls, it.receipts, lambda: ends_ms - self.clock.now_ms())

        try:
            report = self.run(work_off, process)
        except Unavailable:
            self._give_back(batch, process.receipts)
            return None
        self._put_away(batch, process.receipts, report)
        return report

    def visit(self, lane: Lane, process: Process | None = None) -> Report | None:
        """Let a process look at a lane for a bell that came by another queue; None when it was killed."""
        ends_ms = self.clock.now_ms() + self.function_ms
        call = Call(lane, 0, (), ("a bell of another queue",))
        return self.run(
            lambda it: it.deliver.run([call], it.receipts, lambda: ends_ms - self.clock.now_ms()), process
        )

    def ring(self, lane: Lane) -> None:
        """Ring a lane by hand."""
        self._enqueue([Bell(lane, self.clock.now_ms())])

    def ring_due(self) -> None:
        """Do what the function behind the delay queue does."""
        now_ms = self.clock.now_ms()
        due = [each for each in self.delayed if each.due_ms <= now_ms]
        self.delayed = [each for each in self.delayed if each.due_ms > now_ms]
        self._enqueue([Bell(each.lane, now_ms, queue=each.queue) for each in due])

    def fan_out_called(self, process: Process | None = None) -> None:
        """Do what the function behind the fan-out queue does with the calls that have arrived."""
        now_ms = self.clock.now_ms()
        called = [each for each in self.fan_outs if each.arrives_ms <= now_ms]
        self.fan_outs = [each for each in self.fan_outs if each.arrives_ms > now_ms]
        for each in called:
            self.fan_out(each.event_id, process or self.usual, each.due_ms)

    def fan_out(self, event_id: str, process: Process | None = None, due_ms: int = 0) -> int | None:
        """Fan an event out; None when the process was killed."""
        return self.run(lambda it: it.fan_out.run(TENANT, event_id, due_ms), process)

    def endings_called(self, process: Process | None = None) -> int:
        """Do what the function behind the queue of endings does, once for each call; the number ended."""
        called, self.endings = self.endings, []
        ended = [self.end_owed(*each, process or self.usual) for each in called]
        return sum(each or 0 for each in ended)

    def end_owed(self, tenant: str, endpoint_id: str, process: Process | None = None) -> int | None:
        """End what an endpoint's endings say; None when the process was killed."""
        return self.run(lambda it: it.end_owed.run(tenant, endpoint_id, lambda: self.function_ms), process)

    def call_endings(self, process: Process | None = None) -> None:
        """Do what the schedule of endings does."""
        self.run(lambda it: it.end_owed.call_waiting(), process)

    def replays_called(self, process: Process | None = None) -> int:
        """Do what the function of bulk replays does, for each call that is due; the number begun."""
        now_ms = self.clock.now_ms()
        due = [each for each in self.replays if each[2] <= now_ms]
        self.replays = [each for each in self.replays if each[2] > now_ms]
        return sum(self.replay_many(name, process or self.usual) or 0 for _, name, _ in due)

    def replay_many(self, replay_id: str, process: Process | None = None) -> int | None:
        """Go on with a bulk replay; None when the process was killed."""
        return self.run(lambda it: it.replay_many.run(TENANT, replay_id, lambda: self.function_ms), process)

    def call_replays(self, process: Process | None = None) -> None:
        """Do what the schedule of bulk replays does."""
        self.run(lambda it: it.replay_many.call_waiting(), process)

    def sweep(self, process: Process | None = None) -> Swept:
        """Reconcile once."""
        swept = self.run(lambda it: it.reconcile.run(), process)
        return swept or Swept()

    def notify(self, process: Process | None = None) -> Notified | None:
        """Tell owners once; None when the process was killed."""
        return self.run(lambda it: it.notify.run(), process)

    def work_off(self, for_ms: int = 0) -> None:
        """Do all that the queues ask for, moving the clock on to what is due within a while."""
        until_ms = self.clock.now_ms() + for_ms
        for _ in range(BUSY_LIMIT):
            self.fan_out_called()
            self.replays_called()
            self.ring_due()
            if self.deliver() is None:
                due_ms = self._next_ms()
                if due_ms is None or due_ms > until_ms:
                    self.clock.advance_to(until_ms)
                    return
                self.clock.advance_to(due_ms)
        raise AssertionError("the queues never come to rest")

    def pass_time(self, for_ms: int) -> None:
        """Do what the queues ask for, for a while, though more is asked; a visit that has begun ends."""
        until_ms = self.clock.now_ms() + for_ms
        while self.clock.now_ms() < until_ms:
            self.fan_out_called()
            self.replays_called()
            self.ring_due()
            if self.deliver() is None:
                self.clock.advance_to(min(self._next_ms() or until_ms, until_ms))

    def purge(self) -> None:
        """Empty every queue."""
        self.waiting.clear()
        self.delayed.clear()
        self.fan_outs.clear()
        self.endings.clear()
        self.replays.clear()

    def _collect(self, bells: MemoryBells) -> None:
        self.losing = max(0, self.losing - len(bells.lost))
        bells.lost.clear()
        self.bells_rung += len(bells.rung) + len(bells.delayed)
        self._enqueue(bells.take_rung())
        self.delayed += bells.delayed
        self.fan_outs += bells.fan_outs
        self.endings += bells.endings
        self.replays += bells.replays
        bells.endings.clear()
        bells.replays.clear()
        bells.delayed.clear()
        bells.fan_outs.clear()

    def _enqueue(self, bells: list[Bell]) -> None:
        self.waiting += [Waiting(each, f"r{next(self.numbers)}", 0) for each in bells]

    def _receive(self) -> list[Waiting]:
        """Receive as a FIFO queue gives: nothing of a group of which something is out of sight."""
        now_ms = self.clock.now_ms()
        blocked = {each.group for each in self.waiting if each.visible_ms > now_ms}
        free = [each for each in self.waiting if each.group not in blocked]
        batch = [each for each in free if each.cloud is free[0].cloud][:BATCH]
        for each in batch:
            each.visible_ms = now_ms + VISIBILITY_MS
            each.received += 1
        return batch

    def _put_away(self, batch: list[Waiting], receipts: MemoryReceipts, report: Report | None) -> None:
        now_ms = self.clock.now_ms()
        for each in batch:
            if each.receipt in receipts.hidden:
                each.visible_ms = now_ms + 1000 * receipts.hidden[each.receipt]
        kept = report.kept if report else {each.receipt for each in batch}
        gone = {each.receipt for each in batch if each.receipt not in kept} | set(receipts.deleted)
        self.waiting = [each for each in self.waiting if each.receipt not in gone]

    def _give_back(self, batch: list[Waiting], receipts: MemoryReceipts) -> None:
        for each in batch:
            each.visible_ms = self.clock.now_ms() + AFTER_FAILURE_MS
        self.waiting = [each for each in self.waiting if each.receipt not in receipts.deleted]

    def _next_ms(self) -> int | None:
        now_ms = self.clock.now_ms()
        dues = [each.due_ms for each in self.delayed] + [each.visible_ms for each in self.waiting]
        dues += [due_ms for _, _, due_ms in self.replays] + [each.arrives_ms for each in self.fan_outs]
        return min((each for each in dues if each > now_ms), default=None)

    # What can be seen.

    def records_of(self, table: str) -> list[Record]:
        """Read a whole table, in order."""
        found = [(key, record) for key, record in self.records.by_key.items() if key.table == table]
        return [record for _, record in sorted(found, key=lambda each: each[0])]

    def owed(self) -> list[Owed]:
        """Read all that is owed."""
        return [rows.owed_of(record) for record in self.records_of(keys.OWED)]

    def gate(self, endpoint: Endpoint) -> Gate:
        """Read a gate."""
        return gates.read(self.records.by_key[keys.gate(endpoint.tenant, endpoint.id)])

    def all_history(self) -> list[HistoryRow]:
        """Read all of history."""
        records = self.records_of(keys.HISTORY)
        return [rows.history_of(each) for each in records if not each["sk"].startswith(keys.HOLDS)]

    def holds(self) -> list[Spell]:
        """Read all holds in history."""
        records = self.records_of(keys.HISTORY)
        return [rows.hold_of(each) for each in records if each["sk"].startswith(keys.HOLDS)]

    def history(self, delivery: str) -> list[HistoryRow]:
        """Read what history has of a delivery."""
        return [each for each in self.all_history() if each.delivery_id == delivery]

    def attempts(self, delivery: str) -> list[Attempt]:
        """Read a delivery's attempts."""
        return [each for each in self.history(delivery) if isinstance(each, Attempt)]

    def outcomes(self, delivery: str) -> list[str]:
        """Tell a delivery's attempts by their outcomes, and its end if it was given up on."""
        told = [each.outcome.value for each in self.attempts(delivery)]
        return told + [each.reason.value for each in self.history(delivery) if isinstance(each, Ended)]

    def sends(self, delivery: str) -> list[Sent]:
        """Give the requests of a delivery that left."""
        return [each for each in self.sender.sent if each.delivery_id == delivery]


def posted(event_type: str = "order.paid", body: bytes = b'{"n":1}', key: str | None = None) -> Post:
    """Make a producer's post."""
    return Post(TENANT, body, "application/json", event_type, key)


def lane_of(endpoint: Endpoint, number: str = "0") -> Lane:
    """Name a lane of an endpoint."""
    return Lane(endpoint.tenant, endpoint.id, number)


def generation_of(sent: Sent) -> int:
    """Read an attempt's generation from its request."""
    return int(dict(sent.request.headers)["Relay-Generation"])


def number_of(sent: Sent) -> int:
    """Read an attempt's number from its request."""
    return int(dict(sent.request.headers)["Relay-Attempt"])
