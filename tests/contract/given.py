"""What the contract tests start from: endpoints, events and what they owe, made from small numbers."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pytest

from chalicelib.adapters.dynamodb.auditing import DynamoAuditing
from chalicelib.adapters.dynamodb.bulk_replays import DynamoBulkReplays
from chalicelib.adapters.dynamodb.capturing import DynamoCapturing, DynamoFanningOut
from chalicelib.adapters.dynamodb.counting import DynamoCounters
from chalicelib.adapters.dynamodb.endpoints import DynamoEndpoints
from chalicelib.adapters.dynamodb.noticing import DynamoNoticing
from chalicelib.adapters.dynamodb.reading import DynamoReading
from chalicelib.adapters.dynamodb.records import Tables
from chalicelib.adapters.dynamodb.replaying import DynamoReplaying
from chalicelib.adapters.dynamodb.trusting import DynamoKeys, DynamoSecondFactors, DynamoTenants
from chalicelib.adapters.dynamodb.work import DynamoGates, DynamoWatching, DynamoWork
from chalicelib.application import fan_out
from chalicelib.application.ports import Capture, Idempotency, Owing, StoredEvent, Subscriber
from chalicelib.domain import audit, ids
from chalicelib.domain.audit import Action, Actor, ActorKind, Record
from chalicelib.domain.bulk_replay import BulkReplay
from chalicelib.domain.counts import NOTHING, Counts
from chalicelib.domain.delivery import Attempt, Lane, Owed
from chalicelib.domain.endpoint import Endpoint, Limits, WrappedSecret
from chalicelib.domain.event import Event
from chalicelib.domain.gate import Rules
from chalicelib.domain.outcome import Outcome
from chalicelib.domain.secret import Secret
from chalicelib.domain.tenant import QUOTAS_MAX
from infra.local.emulator import EmulatorName
from tests.fakes.faults import Killed

TENANT, STRANGER = "acme", "other"
NOW_MS = 1_700_000_000_000
NOW_S, NOW_US = NOW_MS // 1000, NOW_MS * 1000
HOUR_MS = 3_600_000
RULES = Rules()
MEMORY = "memory"
EMULATORS = [EmulatorName.MINISTACK.value, EmulatorName.MOTO.value]
everywhere = [MEMORY, *EMULATORS]
without_moto = pytest.mark.parametrize("tables", [MEMORY, EmulatorName.MINISTACK.value], indirect=True)
"""Many records take moto seconds, and threads it takes in turn."""
LIMITS = Limits()


BY = Actor(ActorKind.KEY, "key_1", "203.0.113.9")
_NUMBERS = itertools.count(1)


def uncounted(*rows: Owed) -> list[tuple[Owed, Counts]]:
    """Give rows that go, and count for nothing."""
    return [(row, NOTHING) for row in rows]


def audited(action: Action = Action.ENDPOINT_CHANGED, subject: str = "ep_1", tenant: str = TENANT) -> Record:
    """Make a record of the audit, each with an id of its own."""
    return Record(tenant, ids.new_id(audit.PREFIX, NOW_MS, next(_NUMBERS)), NOW_MS, action, subject, BY)


class EndpointsOfTests(DynamoEndpoints):
    """The store of endpoints; where a test does not say who changes one, some record goes with it."""

    def create(
        self, endpoint: Endpoint, record: Record | None = None, at_most: int = QUOTAS_MAX.endpoints
    ) -> bool:
        """Write a new endpoint."""
        return super().create(endpoint, record or audited(Action.ENDPOINT_CREATED, endpoint.id), at_most)

    def replace(self, old: Endpoint, new: Endpoint, record: Record | None = None) -> bool:
        """Write a changed endpoint."""
        return super().replace(old, new, record or audited(subject=old.id))


class ReplayingOfTests(DynamoReplaying):
    """The store of replays, likewise."""

    def begin(self, owing: Owing, now_ms: int, record: Record | None = None) -> bool:
        """Write a next generation."""
        return super().begin(owing, now_ms, record or audited(Action.DELIVERY_REPLAYED))


class BulkReplaysOfTests(DynamoBulkReplays):
    """The store of bulk replays, likewise."""

    def start(self, replay: BulkReplay, record: Record | None = None) -> None:
        """Write a new one."""
        super().start(replay, record or audited(Action.REPLAY_BEGUN, replay.id))


@dataclass(frozen=True, slots=True)
class Stores:
    """Every semantic store over the same tables."""

    tables: Tables
    capturing: DynamoCapturing
    fanning_out: DynamoFanningOut
    work: DynamoWork
    gates: DynamoGates
    watching: DynamoWatching
    endpoints: "EndpointsOfTests"
    keys: DynamoKeys
    tenants: DynamoTenants
    second_factors: DynamoSecondFactors
    reading: DynamoReading
    replaying: "ReplayingOfTests"
    bulk_replays: "BulkReplaysOfTests"
    noticing: DynamoNoticing
    auditing: DynamoAuditing


def stores_over(tables: Tables) -> Stores:
    """Make the stores of one process, its caches empty."""
    return Stores(
        tables,
        DynamoCapturing(tables),
        DynamoFanningOut(tables),
        DynamoWork(tables, DynamoCounters(tables, next(_NUMBERS))),
        DynamoGates(tables),
        DynamoWatching(tables),
        EndpointsOfTests(tables, RULES),
        DynamoKeys(tables),
        DynamoTenants(tables),
        DynamoSecondFactors(tables),
        DynamoReading(tables),
        ReplayingOfTests(tables),
        BulkReplaysOfTests(tables),
        DynamoNoticing(tables),
        DynamoAuditing(tables),
    )


def endpoint(
    number: int = 0,
    event_types: tuple[str, ...] = ("order.paid",),
    limits: Limits = LIMITS,
    tenant: str = TENANT,
) -> Endpoint:
    """Make the endpoint with a number, an hour old; higher numbers are newer."""
    created_ms = NOW_MS - HOUR_MS + number
    return Endpoint(
        tenant,
        ids.new_id("ep", created_ms, number),
        f"https://receiver.example/{number}",
        event_types,
        created_ms,
        description="orders",
        limits=limits,
        headers=(("X-Team", Secret("blue")),),
        secrets=(WrappedSecret(b"\0wrapped"), WrappedSecret(b"\xffolder", NOW_S + 60)),
    )


def event(
    number: int = 0, *, at_ms: int = NOW_MS, event_type: str = "order.paid", body: bytes = b'{"a":1}'
) -> Event:
    """Make the event with a number, received then; the number's last four bits choose its partition."""
    event_id = ids.new_id("evt", at_ms, number)
    return Event(TENANT, event_id, event_type, "application/json", body, at_ms)


def subscriber(of: Endpoint) -> Subscriber:
    """Say of an endpoint what its subscription row says."""
    return Subscriber(of.id, of.limits.lanes, of.created_ms, of.ordered, of.filter_mark)


def owing(posted: Event, endpoints: Iterable[Endpoint], sequence: int = 0) -> tuple[Owing, ...]:
    """Plan what an event owes to endpoints, under one number for all that are ordered."""
    subscribers = [subscriber(each) for each in endpoints]
    numbers = dict.fromkeys((each.endpoint_id for each in subscribers), sequence)
    return fan_out.plan(posted.tenant, posted.id, posted.type, subscribers, numbers)


def capture(posted: Event, endpoints: Sequence[Endpoint] = (), claim: Idempotency | None = None) -> Capture:
    """Make what one accepted event writes."""
    owed = owing(posted, endpoints)
    matched = tuple(each.id for each in endpoints)
    stored = StoredEvent(posted, len(posted.body), "", "inline" if owed else "none", matched)
    return Capture(stored, owed, claim)


def later(posted: Event, claim: Idempotency | None = None) -> Capture:
    """Make what an event writes that is fanned out later."""
    return Capture(StoredEvent(posted, len(posted.body), "", "later"), (), claim)


def claim(
    key: str = "key-1", answer: str = '{"event_id":"1"}', expires_s: int = NOW_S + 86_400
) -> Idempotency:
    """Make the claim of an idempotency key."""
    return Idempotency(key, "fingerprint of " + answer, answer, expires_s)


def posted(stores: Stores, number: int, to: Endpoint, at_ms: int = NOW_MS) -> Owed:
    """Accept the event with a number for one endpoint and give what is owed."""
    one = capture(event(number, at_ms=at_ms), [to])
    assert stores.capturing.commit([one], at_ms // 1000) == [None]
    return one.owing[0].owed


def success(of: Owed, at_ms: int = NOW_MS) -> Attempt:
    """Make the next attempt of a delivery, one that arrived."""
    return Attempt(
        of.delivery_id, of.generation, of.next_number, of.event_id, Outcome.SUCCESS, at_ms, status=200
    )


def failure(of: Owed, at_ms: int = NOW_MS) -> Attempt:
    """Make the next attempt of a delivery, one that failed."""
    return Attempt(
        of.delivery_id,
        of.generation,
        of.next_number,
        of.event_id,
        Outcome.RETRYABLE,
        at_ms,
        status=503,
        response=b"\xffbusy",
        truncated=True,
        total_ms=12,
    )


def lane_of(of: Endpoint, number: str = "0") -> Lane:
    """Name a lane of an endpoint."""
    return Lane(of.tenant, of.id, number)


def accept(capturing: DynamoCapturing, to: Endpoint, one: Capture) -> None:
    """Do as ingest does: arm, then commit."""
    capturing.arm([(to.tenant, to.id)], NOW_MS)
    capturing.commit([one], NOW_S)


def run_until_killed(run: Callable[[], object]) -> None:
    """Run something whose process may die on the way."""
    with suppress(Killed):
        run()
