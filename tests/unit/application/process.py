"""One function's process as the tests run it: every use case wired over memory, with faults on order."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chalicelib.adapters.dynamodb.bulk_replays import DynamoBulkReplays
from chalicelib.adapters.dynamodb.capturing import DynamoCapturing, DynamoFanningOut
from chalicelib.adapters.dynamodb.counting import DynamoCounters
from chalicelib.adapters.dynamodb.endings import DynamoEndings
from chalicelib.adapters.dynamodb.endpoints import DynamoEndpoints
from chalicelib.adapters.dynamodb.limiting import DynamoAllowances
from chalicelib.adapters.dynamodb.noticing import DynamoNoticing
from chalicelib.adapters.dynamodb.purging import DynamoPurging
from chalicelib.adapters.dynamodb.reading import DynamoReading
from chalicelib.adapters.dynamodb.rebuilding import DynamoRebuilding
from chalicelib.adapters.dynamodb.replaying import DynamoReplaying
from chalicelib.adapters.dynamodb.retaining import DynamoRetaining
from chalicelib.adapters.dynamodb.work import DynamoGates, DynamoWatching, DynamoWork
from chalicelib.adapters.ed25519 import NaclEd25519
from chalicelib.application.admission import Admission, Decisions
from chalicelib.application.bulk_replay import OrderReplays, ReplayMany
from chalicelib.application.counting import Counting
from chalicelib.application.deliver import Deliver
from chalicelib.application.end_owed import EndOwed
from chalicelib.application.endpoints import ManageEndpoints
from chalicelib.application.fan_out import FanOutLater
from chalicelib.application.gatekeeper import Gatekeeper, KnownGates
from chalicelib.application.holding import Holding
from chalicelib.application.ingest import Ingest
from chalicelib.application.lane_bells import LaneBells
from chalicelib.application.limiter import Limiter
from chalicelib.application.measure_backlog import MeasureBacklog
from chalicelib.application.notify import Notify
from chalicelib.application.pacing import Pacing
from chalicelib.application.ports import Clock
from chalicelib.application.purge import OrderPurges, PurgeAll
from chalicelib.application.questions import Questions
from chalicelib.application.rebuild import Rebuild
from chalicelib.application.reconcile import Reconcile
from chalicelib.application.replay import Replay
from chalicelib.application.retention import Retention
from chalicelib.application.rotate import RotateKeys
from chalicelib.application.settlement import Settlement
from chalicelib.application.signing_keys import SigningKeys
from chalicelib.application.try_endpoint import TryEndpoint
from chalicelib.application.visit import Visit
from chalicelib.domain.target import Policy
from tests.fakes.faults import Faults
from tests.fakes.fixed_clock import BusyPatience
from tests.fakes.memory_announcer import MemoryAnnouncer
from tests.fakes.memory_bells import MemoryBells, MemoryReceipts
from tests.fakes.memory_payloads import MemoryPayloads
from tests.fakes.memory_tables import MemoryTables
from tests.fakes.plain_sealer import PlainSealer

if TYPE_CHECKING:
    from tests.unit.application.world import World


QUIET_MS = 150_000


@dataclass(frozen=True, slots=True)
class Admissions:
    """What an endpoint's gate admitted at a moment (Unix µs)."""

    endpoint_id: str
    at_us: int
    count: int


@dataclass(frozen=True, slots=True)
class WatchedAdmission(Admission):
    """Writes down what it admits, but for probes: those are paced by the breaker."""

    admitted: list[Admissions] = field(default_factory=list)

    def decide(self, visits: Sequence[Visit], now_us: int) -> Decisions:
        """Decide as always."""
        decisions = Admission.decide(self, visits, now_us)
        for each in decisions.admitted:
            claim = each.visit.claim
            if claim is not None and not claim.probe:
                moments = [moment for _, moment in each.visit.granted]
                self.admitted.extend(Admissions(each.visit.lane.endpoint_id, at, 1) for at in moments)
        return decisions


class Process:
    """One function's process: caches and faults are its own, everything durable is the world's."""

    def __init__(
        self, world: "World", tables: MemoryTables | None = None, clock: Clock | None = None
    ) -> None:
        self.world = world
        self.faults = Faults()
        self.tables = tables or MemoryTables(world.records)
        self.bells = MemoryBells(world.clock)
        self.receipts = MemoryReceipts()
        self.payloads = MemoryPayloads()
        self.payloads.kept = world.kept
        self.sealer = PlainSealer()
        self.keys = SigningKeys(self.sealer, NaclEd25519())
        for fake in (self.tables, self.bells, self.receipts, self.payloads, self.sealer):
            fake.faults = self.faults
        counters = DynamoCounters(self.tables, next(world.identities))
        self.counting = Counting(counters, clock or world.clock)
        self.work, self.gates = DynamoWork(self.tables, counters), DynamoGates(self.tables)
        self.endpoints = DynamoEndpoints(self.tables, world.rules)
        self.capturing, self.fanning_out = DynamoCapturing(self.tables), DynamoFanningOut(self.tables)
        clock, dice = clock or world.clock, world.dice
        known, limiter = KnownGates(), Limiter(DynamoAllowances(self.tables), clock)
        self.clock = clock
        self.admission = WatchedAdmission(self.gates, known, world.rules, world.admitted)
        keeper = Gatekeeper(self.gates, known)
        self.settlement = Settlement(
            self.work,
            keeper,
            Holding(self.work, keeper, clock),
            LaneBells(self.bells, keeper, clock),
            self.endpoints,
            clock,
            dice,
            world.rules,
            self.counting,
        )
        self.backlog = MeasureBacklog(self.endpoints, self.gates, self.work, clock)
        self.pacing = Pacing(limiter, clock, self._budget) if world.quotas else None
        self.fan_out = FanOutLater(
            self.fanning_out, self.capturing, self.payloads, self.bells, clock, self.pacing
        )
        self.reconcile = Reconcile(
            DynamoWatching(self.tables), self.work, self.gates, self.bells, self.fan_out, clock
        )
        self.ingest = Ingest(
            self.capturing, self.payloads, self.bells, clock, dice, world.limits, limiter, self.pacing
        )
        self.announcer = MemoryAnnouncer(world.heard)
        self.announcer.faults = self.faults
        self.noticing = DynamoNoticing(self.tables)
        self.notify = Notify(self.noticing, self.announcer, clock, dice, world.notice_rules)
        self.manage = ManageEndpoints(self.endpoints, self.keys, clock, dice, Policy(), self.bells)
        self.rotate = RotateKeys(self.manage)
        self.retaining = DynamoRetaining(self.tables)
        self.retention = Retention(self.retaining, self.payloads, clock, sweeps_rows=True)
        self.questions = Questions(DynamoReading(self.tables), self.endpoints, self.payloads, clock)
        self.replaying = DynamoReplaying(self.tables)
        self.replay = Replay(self.replaying, self.questions, self.bells, clock, dice)
        self.bulk_replays = DynamoBulkReplays(self.tables)
        self.order_replays = OrderReplays(self.bulk_replays, self.endpoints, self.bells, clock, dice)
        self.replay_many = ReplayMany(
            self.bulk_replays, self.replaying, self.endpoints, self.work, self.bells, clock
        )

    def _budget(self, _: str) -> int:
        assert self.world.quotas is not None
        return self.world.quotas.fan_out_per_second

    @property
    def end_owed(self) -> EndOwed:
        """Give the use case that ends deliveries in pages."""
        store = DynamoEndings(self.tables)
        return EndOwed(store, self.endpoints, self.gates, self.work, self.bells, self.clock, self.counting)

    @property
    def rebuild(self) -> Rebuild:
        """Give the use case that makes what is derived again."""
        return Rebuild(DynamoRebuilding(self.tables), self.clock, self.world.rules)

    @property
    def order_purges(self) -> OrderPurges:
        """Give the use case behind the routes that purge."""
        return OrderPurges(DynamoPurging(self.tables), self.endpoints, self.clock, self.manage.dice)

    @property
    def purge_all(self) -> PurgeAll:
        """Give the use case that works purges off."""
        store, dice = DynamoPurging(self.tables), self.manage.dice
        return PurgeAll(store, self.endpoints, self.payloads, self.clock, dice, QUIET_MS)

    @property
    def try_endpoint(self) -> TryEndpoint:
        """Give the use case of which nobody does anything while it waits."""
        patience = BusyPatience(self.world.clock)
        return TryEndpoint(
            self.endpoints,
            self.capturing,
            self.replaying,
            self.questions,
            self.bells,
            self.clock,
            self.world.dice,
            patience,
        )

    @property
    def deliver(self) -> Deliver:
        """Give the use case with the world's sender of this moment."""
        return self.delivering(cloud=False)

    def delivering(self, *, cloud: bool) -> Deliver:
        """Give the use case of the functions that send over HTTP, or of the one that sends to AWS."""
        world = self.world
        return Deliver(
            self.work,
            self.admission,
            self.settlement,
            self.payloads,
            self.keys,
            world.sender,
            self.clock,
            world.dice,
            world.sender.timeout_ms,
            world.limits.payload_max,
            cloud=cloud,
        )
