"""Accepting events in DynamoDB: subscriptions, the capture transaction, later fan-outs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from chalicelib.adapters.dynamodb import keys, rows
from chalicelib.adapters.dynamodb.known_filters import KnownFilters
from chalicelib.adapters.dynamodb.records import Delete, Insert, Merge, Put, Tables, Update, Write
from chalicelib.adapters.dynamodb.seen_gates import SeenGates
from chalicelib.application.ports import (
    Capture,
    Fanout,
    Idempotency,
    Owing,
    StoredEvent,
    Subscriber,
    Unavailable,
)
from chalicelib.domain import ids, retention
from chalicelib.domain.change import Change, Op, Test
from chalicelib.domain.event import matching_patterns
from chalicelib.domain.gate import Gate
from chalicelib.domain.pattern import Pattern

TRANSACTION_MAX = 100
ARM_AHEAD_MS = 70 * 60_000
ARM_ENOUGH_MS = 10 * 60_000
_ROUNDS = 5
_ARMED_KNOWN_MAX = 50_000


class DynamoCapturing:
    """The store of ingest; remembers for an hour what it has armed and which hours it has listed."""

    def __init__(self, tables: Tables) -> None:
        """Write to these tables."""
        self._tables = tables
        self._armed_until: dict[tuple[str, str], int] = {}
        self._listed: set[tuple[str, int]] = set()
        self._seen = SeenGates()
        self._filters = KnownFilters(tables)

    def subscribers(
        self, tenant: str, event_types: Iterable[str], now_ms: int = 0
    ) -> dict[str, tuple[Subscriber, ...]]:
        """Read strongly consistent who takes each type, every endpoint once, ordered by id.

        The gates of those who took it before are read along, once a second.
        """
        patterns = {each: tuple(matching_patterns(each)) for each in event_types}
        wanted = {keys.subscription(tenant, name) for names in patterns.values() for name in names}
        looked_at = self._seen.due(tenant, patterns, now_ms, len(wanted))
        found = self._tables.get([*wanted, *looked_at])
        self._seen.put({key: found.get(key) for key in looked_at}, now_ms)
        packed = {key.pk: rows.subscribers_of(found[key]) for key in wanted if key in found}
        merged = {
            event_type: _merged(packed.get(keys.subscription(tenant, name).pk, []) for name in names)
            for event_type, names in patterns.items()
        }
        self._seen.remember(tenant, merged)
        return merged

    def filters(self, tenant: str, subscribers: Iterable[Subscriber]) -> dict[str, Pattern]:
        """Give the filters of those subscribers that have one, by endpoint id; known ones cost no call."""
        return self._filters.of(tenant, subscribers)

    def gates_seen(self, endpoints: Iterable[tuple[str, str]], now_ms: int) -> dict[tuple[str, str], Gate]:
        """Give the gates of (tenant, endpoint) pairs that were seen in the last moments."""
        return self._seen.gates(endpoints, now_ms)

    def any_ordered(self, tenant: str) -> bool:
        """Say whether a tenant has ordered endpoints, without its subscriptions."""
        at = keys.ordered_count(tenant)
        record = self._tables.get([at]).get(at)
        return record is not None and record["endpoints"] > 0

    def take_numbers(self, tenant: str, counts: Mapping[str, int], now_us: int) -> dict[str, int]:
        """Take so many numbers in a row for each ordered endpoint, and give the first of each.

        A new endpoint counts from 1. A counter that was lost counts on from the microsecond it is missed
        in: no endpoint gets a million events a second, so that is beyond whatever it had given.
        """
        firsts: dict[str, int] = {}
        for _ in range(_ROUNDS):
            left = [each for each in counts if each not in firsts]
            steps = [
                Update(keys.sequence(tenant, each), Change((), {}, {"taken": counts[each]})) for each in left
            ]
            made = dict(zip(left, self._tables.each(steps), strict=True))
            firsts |= {
                each: one.record["taken"] - counts[each] + 1
                for each, one in made.items()
                if one.done and one.record
            }
            lost = [each for each in left if each not in firsts]
            if not lost:
                return firsts
            self._tables.each([Insert(keys.sequence(tenant, each), {"taken": now_us}) for each in lost])
        raise Unavailable("a counter of events came and went")

    def arm(self, endpoints: Iterable[tuple[str, str]], now_ms: int) -> None:
        """Make sure that reconcile looks at each (tenant, endpoint) for ten minutes and more."""
        due = [each for each in endpoints if self._armed_until.get(each, 0) < now_ms + ARM_ENOUGH_MS]
        if not due:
            return
        if len(self._armed_until) > _ARMED_KNOWN_MAX:
            self._armed_until.clear()
        until_ms = now_ms + ARM_AHEAD_MS
        self._tables.each([_arming(tenant, endpoint_id, until_ms) for tenant, endpoint_id in due])
        self._armed_until.update(dict.fromkeys(due, until_ms))

    def commit(self, captures: Sequence[Capture], now_s: int) -> list[Idempotency | Unavailable | None]:
        """Write each capture, all or nothing; an answer is the earlier claim or the failure in its way."""
        self._list_hours(captures)
        answers: list[Idempotency | Unavailable | None] = [None] * len(captures)
        for places in _packed(captures):
            try:
                self._commit_together(places, captures, answers, now_s)
            except Unavailable as error:
                for place in places:
                    answers[place] = error
        failed = [each for each in answers if isinstance(each, Unavailable)]
        if failed and len(failed) == len(captures):
            raise failed[0]
        return answers

    def claimed(self, tenant: str, key: str, now_s: int) -> Idempotency | None:
        """Read an unexpired claim."""
        at = keys.idempotency(tenant, key)
        record = self._tables.get([at]).get(at)
        claim = rows.idempotency_of(record) if record else None
        return claim if claim and claim.expires_s > now_s else None

    def _commit_together(
        self,
        places: list[int],
        captures: Sequence[Capture],
        answers: list[Idempotency | Unavailable | None],
        now_s: int,
    ) -> None:
        expired: set[int] = set()
        for _ in range(_ROUNDS):
            writes = [
                (place, each)
                for place in places
                for each in _writes(captures[place], place in expired, now_s)
            ]
            if not writes:
                return
            refused = {writes[at][0] for at in self._tables.together([each for _, each in writes])}
            if not refused:
                return
            for place in sorted(refused):
                earlier = self._standing_claim(captures[place], now_s)
                if earlier is None:
                    # In turn written over and inserted: the store deletes an expired row at any moment.
                    expired ^= {place}
                else:
                    answers[place] = earlier
                    places.remove(place)
        raise Unavailable("an idempotency key changed hands too often")

    def _standing_claim(self, capture: Capture, now_s: int) -> Idempotency | None:
        if capture.claim is None:
            raise Unavailable("a new event's id was already taken")
        return self.claimed(capture.stored.event.tenant, capture.claim.key, now_s)

    def _list_hours(self, captures: Sequence[Capture]) -> None:
        hours = {(each.stored.event.tenant, keys.hour_of(each.stored.event.received_ms)) for each in captures}
        for tenant, hour in hours - self._listed:
            until_s = retention.payload_until_s(keys.hour_end_ms(hour))
            self._tables.together([Merge(keys.listed_hour(tenant, hour), {"ttl": until_s})])
            self._listed.add((tenant, hour))


class DynamoFanningOut:
    """The store of later fan-outs."""

    def __init__(self, tables: Tables) -> None:
        """Write to these tables."""
        self._tables = tables

    def event(self, tenant: str, event_id: str) -> StoredEvent | None:
        """Read an event; None when it is gone."""
        at = keys.event(tenant, event_id)
        record = self._tables.get([at]).get(at)
        return rows.event_of(record) if record else None

    def pending(self, tenant: str, event_id: str) -> Fanout | None:
        """Read a fan-out still to be done."""
        at = keys.fanout(tenant, event_id)
        record = self._tables.get([at]).get(at)
        return rows.fanout_of(record) if record else None

    def waiting(self, older_than_ms: int) -> Iterator[Fanout]:
        """Walk the fan-outs of events received before a moment."""
        for record in self._tables.walk(keys.FANOUTS):
            if record["pk"] == keys.INSTALLATION:
                continue
            fanout = rows.fanout_of(record)
            if ids.created_ms(fanout.event_id) < older_than_ms:
                yield fanout

    def advance(self, fanout: Fanout, owing: Sequence[Owing], after: Fanout | None) -> bool:
        """Write a chunk's rows and how the fan-out is after it (None: done) in one transaction.

        False when another got there first.
        """
        at = keys.fanout(fanout.tenant, fanout.event_id)
        same = Test("cursor", Op.EQ, fanout.cursor)
        step: Write = Delete(at, (same,))
        if after is not None:
            moved = {"cursor": after.cursor, **rows.pace_row(after.pace)}
            step = Update(at, Change((same,), moved, {}))
        return not self._tables.together([step, *(each for one in owing for each in _owing_writes(one))])


def _merged(packed: Iterable[list[Subscriber]]) -> tuple[Subscriber, ...]:
    by_id = {each.endpoint_id: each for row in packed for each in row}
    return tuple(by_id[endpoint_id] for endpoint_id in sorted(by_id))


def _arming(tenant: str, endpoint_id: str, until_ms: int) -> Update:
    armed = {"armed_shard": keys.armed_shard(endpoint_id), "armed_until": until_ms}
    return Update(keys.gate(tenant, endpoint_id), Change((), armed, {}))


def _packed(captures: Sequence[Capture]) -> Iterator[list[int]]:
    """Bring captures together up to a transaction's size, never two with one idempotency key."""
    places: list[int] = []
    size = 0
    claimed: set[str] = set()
    for place, capture in enumerate(captures):
        key = capture.claim.key if capture.claim else ""
        needs = 2 + 2 * len(capture.owing) + (capture.stored.fan_out == "later")
        if places and (size + needs > TRANSACTION_MAX or (key and key in claimed)):
            yield places
            places, size, claimed = [], 0, set()
        places.append(place)
        size += needs
        claimed.add(key)
    if places:
        yield places


def _writes(capture: Capture, expired: bool, now_s: int) -> list[Write]:  # noqa: FBT001 - one of two shapes of a claim
    stored = capture.stored
    event = stored.event
    writes: list[Write] = [Insert(keys.event(event.tenant, event.id), rows.event_row(stored))]
    for one in capture.owing:
        writes += _owing_writes(one)
    if stored.fan_out == "later":
        fanout = Fanout(event.tenant, event.id, event.type, pace=capture.pace)
        writes.append(Insert(keys.fanout(event.tenant, event.id), rows.fanout_row(fanout)))
    if capture.claim is not None:
        at = keys.idempotency(event.tenant, capture.claim.key)
        row = rows.idempotency_row(capture.claim)
        old = (Test("ttl", Op.LE, now_s),)
        writes.append(Put(at, row, old) if expired else Insert(at, row))
    return writes


def _owing_writes(owing: Owing) -> list[Write]:
    """Write a new delivery; the event's or the cursor's condition in the same transaction guards it."""
    owed, created = owing.owed, owing.created
    lane = owed.lane
    at = keys.attempt(lane.tenant, lane.endpoint_id, (owed.delivery_id, owed.generation, 0))
    return [Put(keys.owed(owed), rows.owed_row(owed)), Put(at, rows.created_row(created))]
