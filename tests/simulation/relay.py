"""A whole Relay in simulated time, or the part of it that some of its shards are."""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

from chalicelib.application.ports import Bell, Watched
from chalicelib.application.reconcile import LOOKED_AT_ONCE, Reconcile, Swept
from chalicelib.application.visit import Visit
from chalicelib.domain import gate as gates
from chalicelib.domain import ids
from chalicelib.domain.delivery import Lane
from chalicelib.domain.gate import Gate, Queue, Rules
from tests.simulation.crowd import Crowd
from tests.simulation.delivering import Bells, Dice, Process
from tests.simulation.figures import Figures
from tests.simulation.functions import Function, LocalMapping, Mapping
from tests.simulation.ingest import Api, Ingest, Producers
from tests.simulation.loop import Loop
from tests.simulation.numbers import MS, SECOND, SHARDS, Numbers
from tests.simulation.queues import FifoQueue, Message
from tests.simulation.receivers import Letter, Receiver, population
from tests.simulation.store import Store
from tests.simulation.sweeping import NoFanOuts

BEGAN = 1_800_000_000 * SECOND
Copied = TypeVar("Copied")
WATCHED_FROM = 20.0
SWEEPS_EVERY = 60 * SECOND
RELAYED = 30 * MS
"""What the function behind the delay queue takes, from due to rung."""


class Relay:
    """Everything of a run: endpoints, store, queues, functions, and what is counted."""

    def __init__(self, numbers: Numbers, part: int = 0) -> None:
        """Build it; nothing has happened yet."""
        self.numbers = numbers
        self.part = part
        self.rules = Rules()
        self.loop = Loop(BEGAN, one_machine=numbers.platform.local)
        self.figures = Figures(BEGAN)
        self.dice = Dice(f"{numbers.seed} part {part}")
        self.producers_dice = random.Random(f"{numbers.seed} producers")
        self.store = Store(self.loop, numbers.latencies, self.figures)
        self.no_endpoints = cast("Any", None)
        self.receivers = population(numbers)
        self.letters = {each.endpoint.id: Letter.to(each) for each in self.receivers}
        self._shard = {each.endpoint.id: _shard_of(each) for each in self.receivers}
        self._register()
        self.crowd = Crowd(self, [each for each in self.receivers if each.in_crowd])
        self.queues: dict[str, FifoQueue] = {}
        self.mappings: list[Mapping[Process]] = []
        self.functions: list[Function[Any]] = []
        for shard in range(part, SHARDS, numbers.parts):
            self._serve(f"shard-{shard}", numbers.most_shard)
        self._serve("slow", max(1, numbers.most_slow // numbers.parts))
        self._serve("hot-0", max(1, numbers.most_hot // numbers.parts))
        self._api = Function(
            "api", self.loop, self.figures, numbers.platform, numbers.most_api, self._made_by(Api)
        )
        self.functions.append(self._api)
        self._ingest = Ingest(self)
        self._spent_us: dict[str, int] = {}
        self.producers = Producers(self)
        self.posting = True
        self.loop.at(BEGAN + SWEEPS_EVERY // 2, self._sweep)

    def run(self, seconds: int | None = None) -> Figures:
        """Let so many seconds pass, by default all, and note each second how full everything is."""
        for _ in range(self.numbers.seconds if seconds is None else seconds):
            self.loop.run(self.loop.now + SECOND)
            self._note(self.loop.now - 1)
        self.check()
        return self.figures

    def _note(self, at: int) -> None:
        for mapping in self.mappings:
            self.figures.most(f"depth {mapping.queue.name}", at, mapping.queue.depth)
            self.figures.most(f"pollers {mapping.queue.name}", at, mapping.pollers)
        for function in self.functions:
            spent, before = function.spent_us(), self._spent_us.get(function.name, 0)
            self._spent_us[function.name] = spent
            self.figures.most(f"mean busy {function.name}", at, round((spent - before) / SECOND))
        self.figures.most("owed", at, self.store.owed + self.crowd.owed)

    def check(self) -> None:
        """Hold what is left to Relay's invariants: nothing lost, and every slot free or leased."""
        store, crowd = self.store, self.crowd
        if store.created != store.succeeded + store.dead + store.owed or store.owed != len(store.owing()):
            raise AssertionError("a delivery was lost or doubled")
        if crowd.created != crowd.succeeded + crowd.dead + crowd.owed:
            raise AssertionError("a delivery of the crowd was lost or doubled")
        for owner in store.records:
            gate = store.gate(owner)
            if gate.slots + gate.held_slots != gate.cap:
                raise AssertionError("a slot was lost or doubled")

    def mine(self, receiver: Receiver) -> bool:
        """Say whether an endpoint's shard is of this part."""
        return self._shard[receiver.endpoint.id] % self.numbers.parts == self.part

    def drain(self, seconds: int) -> None:
        """Have nothing more posted, and let that many seconds pass."""
        self.posting = False
        self.run(seconds)

    def request(self, posted: Sequence[tuple[int, list[Receiver]]]) -> None:
        """Take a producer's request."""
        if not self.posting:
            return
        now = self.loop.now
        taken = self._api.take()
        if taken is None:
            self.figures.count("refused requests", now)
            return
        copy, starts = taken
        self.figures.count("requests", now)
        tenant = posted[0][1][0].endpoint.tenant
        if tenant in self.producers.watched:
            self.figures.spent("allowances", tenant, 1, now)
        took = self._ingest.accept(copy, posted, starts)
        self.loop.at(now + took, self._answered, copy)

    def _answered(self, copy: Api) -> None:
        self._api.give_back(copy)
        self.producers.answered()

    def posted(self, tenant: str) -> None:
        """Count an event."""
        self.figures.count("events", self.loop.now)
        self.figures.units["events"] += self.numbers.load.event_units
        if tenant in self.producers.watched:
            self.figures.spent("events", tenant, self.numbers.load.event_units, self.loop.now)

    def gate_seen(self, receiver: Receiver) -> Gate | None:
        """Give a gate as ingest reads it, if it says anything but that its lanes are rung on their shard."""
        record = self.store.records[receiver.owner]
        plain = record["queue"] == "" and record["on"] and not any(name[0] == "Q" for name in record)
        return None if plain else gates.read(record)

    def by_queue(self, bells: Sequence[Bell]) -> dict[str, list[Bell]]:
        """Sort bells by the queue they ring on."""
        found: dict[str, list[Bell]] = {}
        for each in bells:
            name = each.queue.value if each.queue is not Queue.SHARD else self._shard_name(each.lane)
            found.setdefault(name, []).append(each)
        return found

    def ring(self, queue: str, bells: Sequence[Bell], why: str) -> None:
        """Have bells arrive in a queue."""
        self.figures.count(why, self.loop.now, len(bells))
        for each in bells:
            self.queues[queue].put(each)

    def ring_later(self, lane: Lane, delay_s: int, queue: Queue) -> None:
        """Have a bell go round by the delay queue."""
        self.figures.count("delayed bells", self.loop.now)
        self.loop.at(self.loop.now + delay_s * SECOND + RELAYED, self._due, lane, queue)

    def admitted(self, visit: Visit) -> None:
        """Take note of a visit that was let in; here that is of no interest."""

    def sent(self, receiver: Receiver, key: str, began: int) -> None:
        """Count an attempt that begins at a moment."""
        self.count_attempt(receiver, began, int(key[:15]) * MS, first=key.endswith("#0001"))

    def count_attempt(self, receiver: Receiver, began: int, ready: int, *, first: bool) -> None:
        """Count an attempt, and how long it waited from when it was ready."""
        waited_ms = max(0, began - ready) // MS
        kind = f"{receiver.kind} (crowd)" if receiver.in_crowd else receiver.kind.value
        self.figures.count("attempts", began)
        self.figures.waited(kind, waited_ms, first=first)
        self.producers.arrived()
        if first:
            self.figures.by_endpoint[receiver.number].add(waited_ms)
        else:
            self.figures.count("retries", began)

    def _sweep(self) -> None:
        self.loop.start(self._reconcile)
        self.loop.at(self.loop.now + SWEEPS_EVERY, self._sweep)

    def _reconcile(self) -> None:
        began = self.loop.now
        bells, no_fan_outs = cast("Any", Bells(self)), cast("Any", NoFanOuts())
        reconcile = Reconcile(
            self.store, self.store, self.store, bells, no_fan_outs, self.loop, self._together
        )
        swept = reconcile.run()
        self.figures.counts["sweeps"] += 1
        self.figures.counts["watched"] += swept.watched
        self.figures.counts["rescued"] += swept.rung
        self.figures.counts["sweeping ms"] += (self.loop.now - began) // MS

    def _together(self, look: Callable[[Watched], Swept], some: Sequence[Watched]) -> Iterable[Swept]:
        return self.loop.together(look, some, LOOKED_AT_ONCE)

    def _due(self, lane: Lane, queue: Queue) -> None:
        bell = Bell(lane, self.loop.now_ms(), queue=queue)
        for name in self.by_queue([bell]):
            self.figures.counts["send"] += 1
            self.ring(name, [bell], "relayed bells")

    def _register(self) -> None:
        for each in self.receivers:
            if self.mine(each) and not each.in_crowd:
                limits = each.endpoint.limits
                record = gates.new_record(
                    limits.rate_per_second, limits.burst, limits.max_concurrency, rules=self.rules
                )
                record["lanes"] = limits.lanes
                watched_as = f"endpoint {each.number + 1}" if each.per_s >= WATCHED_FROM else ""
                self.store.register(each.endpoint, record, watched_as)

    def _serve(self, name: str, most: int) -> None:
        queue = FifoQueue(name, self.loop, self.numbers.platform.looked_among)
        self.queues[name] = queue
        function = Function(
            name, self.loop, self.figures, self.numbers.platform, most, self._made_by(Process)
        )
        self.functions.append(function)
        kind = LocalMapping if self.numbers.platform.local else Mapping
        self.mappings.append(kind(queue, function, self.numbers.platform, _handle, self.loop))

    def _made_by(self, of: Callable[["Relay"], Copied]) -> Callable[[], Copied]:
        """Say how copies of a function are made; on one machine one process is all of them."""
        if not self.numbers.platform.local:
            return lambda: of(self)
        only = of(self)
        return lambda: only

    def _shard_name(self, lane: Lane) -> str:
        return f"shard-{self._shard[lane.endpoint_id]}"


def _handle(process: Process, queue: FifoQueue, batch: Sequence[Message]) -> None:
    process.handle(queue, batch)


def _shard_of(receiver: Receiver) -> int:
    return int(ids.endpoint_tag(receiver.endpoint.id), 16) % SHARDS
