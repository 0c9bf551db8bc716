"""What holding costs: a backlog held for a while in simulated time, every AWS call counted by its reason.

A call of the memory tables is a call of DynamoDB, since both split alike. A round that was granted
something counts apart, from its peek to its settle; whatever else is asked of AWS meanwhile is the cost.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Made, Span, Statement, Stretch, Update
from chalicelib.application.deliver import Report
from chalicelib.application.reconcile import Swept
from chalicelib.domain.endpoint import Endpoint, EndpointState, Limits
from tests.fakes.faults import Step
from tests.fakes.memory_bells import MemoryReceipts
from tests.fakes.memory_tables import MemoryTables, Records
from tests.fakes.scripted_sender import HANGS, Answer, status
from tests.unit.application.process import Process
from tests.unit.application.world import MINUTE_MS, Waiting, World, posted

BATCH = 100
TOOK_MS = 20
VISITS_A_MS = 1
OK, FAILS = status(200, took_ms=TOOK_MS), status(500, took_ms=TOOK_MS)


class Cost(StrEnum):
    """What a call was for. All but `ADMITTED` and `WATCHING` are caused by holding."""

    ADMITTED = "admitted_batches"
    REFUSAL = "refusals"
    VISIBILITY = "visibility_changes"
    DELETE = "deletes_of_bells"
    FRESH = "fresh_bells"
    DELAYED = "delayed_bells"
    EVENT_SOURCE = "receives_of_refused_bells"
    RECONCILE = "reconcile"
    WATCHING = "reconcile_of_nothing"


_OF_BELLS = {"ring": Cost.FRESH, "ring_later": Cost.DELAYED, "hide": Cost.VISIBILITY, "delete": Cost.DELETE}
_NOT_HELD = frozenset({Cost.ADMITTED, Cost.WATCHING})
_OF_KEYS = frozenset({"unseal", "seal"})


class Rounds:
    """Splits the calls of an invocation into rounds, by what its statements did to leases."""

    def __init__(self) -> None:
        """Begin with nothing counted."""
        self.costs: Counter[Cost] = Counter()
        self._steps: Sequence[Step] = ()
        self._counted = 0
        self._granted = self._granted_any = False

    def begin(self, steps: Sequence[Step]) -> None:
        """Begin an invocation whose calls are written down there."""
        self._steps, self._counted = steps, len(steps)
        self._granted = self._granted_any = False

    def peeked(self) -> None:
        """A lane is about to be looked at: what came before, without a lease, was for nothing."""
        if not self._granted:
            self._close()

    def changed(self, writes: Sequence[Statement], made: Sequence[Made]) -> None:
        """Statements were made: they may have taken leases, or given them back."""
        done = [
            each
            for each, result in zip(writes, made, strict=True)
            if result.done and isinstance(each, Update)
        ]
        gates = [each.change for each in done if each.key.table == keys.GATES]
        if any(name.startswith("L") for change in gates for name in change.sets):
            self._granted = True
        elif any(name.startswith("L") for change in gates for name in change.removes):
            self._close()

    def end(self) -> bool:
        """End the invocation; whether any of its rounds was granted something."""
        self._close()
        return self._granted_any

    def _close(self) -> None:
        fresh = self._steps[self._counted :]
        self._counted = len(self._steps)
        of_store = [each for each in fresh if each.method not in _OF_BELLS and each.method not in _OF_KEYS]
        self.costs.update(_OF_BELLS[each.method] for each in fresh if each.method in _OF_BELLS)
        self.costs[Cost.ADMITTED if self._granted else Cost.REFUSAL] += len(of_store)
        self._granted_any |= self._granted
        self._granted = False


class WatchedTables(MemoryTables):
    """Tells the rounds of peeks and statements."""

    def __init__(self, records: Records, rounds: Rounds) -> None:
        """Share these records."""
        super().__init__(records)
        self._rounds = rounds

    def query(self, table: str, pk: str, span: Span, limit: int) -> Stretch:
        """Read, after saying that it is a peek."""
        if table == keys.OWED:
            self._rounds.peeked()
        return super().query(table, pk, span, limit)

    def each(self, writes: Sequence[Statement]) -> list[Made]:
        """Write, and say what was done."""
        made = super().each(writes)
        self._rounds.changed(writes, made)
        return made


class HoldingWorld(World):
    """A world whose deliver functions take turns and whose calls are counted, queues' own ones too."""

    def __init__(self, processes: int = 2) -> None:
        """Let that many warm processes deliver, one after the other."""
        super().__init__()
        self.rounds = Rounds()
        self.costs = self.rounds.costs
        self.visits = 0
        self.processes = [Process(self, WatchedTables(self.records, self.rounds)) for _ in range(processes)]
        self._sweeper = Process(self)
        self._deletes = 0

    def deliver(self, process: Process | None = None) -> Report | None:
        """Deliver by the process whose turn it is."""
        process = process or self.processes[self.visits % len(self.processes)]
        self.rounds.begin(process.faults.steps)
        visits = self.visits
        report = super().deliver(process)
        granted = self.rounds.end()
        if self.visits > visits and not granted:
            self.costs[Cost.EVENT_SOURCE] += 1 + self._deletes
        return report

    def ring_due(self) -> None:
        """Ring what is due: received, rung one by one, and deleted."""
        due = sum(each.due_ms <= self.clock.now_ms() for each in self.delayed)
        if due:
            self.costs[Cost.DELAYED] += due + 2
        super().ring_due()

    def sweep(self, process: Process | None = None) -> Swept:
        """Reconcile once, counted."""
        steps = self._sweeper.faults.steps
        before = len(steps)
        swept = super().sweep(process or self._sweeper)
        self.costs[Cost.RECONCILE] += len(steps) - before
        return swept

    def pass_time(self, for_ms: int) -> None:
        """Do all that the queues ask for, for a while; a visit that has begun may end after it."""
        until_ms = self.clock.now_ms() + for_ms
        visits_at_most = self.visits + VISITS_A_MS * for_ms
        while self.clock.now_ms() < until_ms:
            self.ring_due()
            if self.deliver() is None:
                self.clock.advance_to(min(self._next_ms() or until_ms, until_ms))
            assert self.visits <= visits_at_most, "the queues never come to rest"

    @property
    def bells(self) -> int:
        """Count the bells that wait or are on their way."""
        return len(self.waiting) + len(self.delayed)

    def _receive(self) -> list[Waiting]:
        batch = super()._receive()
        self.visits += bool(batch)
        return batch

    def _put_away(self, batch: list[Waiting], receipts: MemoryReceipts, report: Report | None) -> None:
        kept = report.kept if report else frozenset[str]()
        self._deletes = int(any(each.receipt not in kept for each in batch))
        super()._put_away(batch, receipts, report)


@dataclass(frozen=True, slots=True)
class Held:
    """One way to be held: the endpoint's limits, how it answers, and what its owner does to it."""

    limits: Limits = field(default_factory=Limits)
    answer: Answer = OK
    disabled: bool = False


HOLDS: Mapping[str, Held] = {
    "rate": Held(Limits(rate_per_second=1)),
    "breaker_open": Held(answer=FAILS),
    "disabled": Held(disabled=True),
}
ALSO: Mapping[str, Held] = {
    "rate_without_burst": Held(Limits(rate_per_second=1, burst=1)),
    "breaker_open_as_it_hangs": Held(answer=HANGS),
}


@dataclass(frozen=True, slots=True)
class Bill:
    """What a while of holding came to. `bells_at_most` is of its second half."""

    costs: Mapping[Cost, int]
    visits: int
    sent: int
    left: int
    bells_at_most: int

    @property
    def aws_calls(self) -> int:
        """Count the calls that holding caused."""
        return sum(count for cost, count in self.costs.items() if cost not in _NOT_HELD)


def hold(held: Held, deliveries: int, minutes: int, processes: int = 2) -> Bill:
    """Owe an endpoint that many deliveries and hold them that long, with reconcile each minute."""
    world = HoldingWorld(processes)
    world.sender.script = lambda _: held.answer
    endpoint = world.endpoint(limits=held.limits)
    _owe(world, deliveries)
    if held.disabled:
        _disable(world, endpoint)
    bells_at_most = 0
    began_ms = world.clock.now_ms()
    for minute in range(minutes):
        world.sweep()
        world.pass_time(began_ms + (minute + 1) * MINUTE_MS - world.clock.now_ms())
        bells_at_most = max(bells_at_most, world.bells if 2 * minute >= minutes else 0)
    costs = _with_watching_apart(world.costs, minutes)
    return Bill(costs, world.visits, len(world.sender.sent), len(world.owed()), bells_at_most)


def _owe(world: World, deliveries: int) -> None:
    for start in range(0, deliveries, BATCH):
        world.accept([posted()] * min(BATCH, deliveries - start), world.usual)


def _disable(world: World, endpoint: Endpoint) -> None:
    world.change(endpoint, state=EndpointState.DISABLED)


def _with_watching_apart(costs: Mapping[Cost, int], minutes: int) -> dict[Cost, int]:
    """Take what reconcile asks when nothing at all is owed out of what it asked here."""
    empty = HoldingWorld()
    empty.sweep()
    watching = minutes * empty.costs[Cost.RECONCILE]
    told = {cost: costs.get(cost, 0) for cost in Cost}
    return told | {Cost.RECONCILE: told[Cost.RECONCILE] - watching, Cost.WATCHING: watching}
