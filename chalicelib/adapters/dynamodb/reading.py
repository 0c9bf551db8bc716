"""Questions about events and deliveries, answered from DynamoDB."""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

from chalicelib.adapters.dynamodb import keys, rows
from chalicelib.adapters.dynamodb.records import Key, Span, Tables
from chalicelib.application.ports import Extent, Generations, GivenUp, Health, Page, StoredEvent
from chalicelib.domain import gate as gates
from chalicelib.domain import ids, retention
from chalicelib.domain.change import Record
from chalicelib.domain.delivery import Attempt, HistoryRow, Lane
from chalicelib.domain.ending import lanes_of
from chalicelib.domain.endpoint import Endpoint
from chalicelib.domain.gate import TAKE_OVER_GRACE, Gate, Spell, Tally

_ROWS = 200
_ROWS_EACH = 4
_DELIVERY_ROWS = 1_000
_HOURS = 48
_PAGE_WEIGHT = 2_000
_RESPONSE_BYTES = 256
_CLOCKS_APART_MS = 60_000
_ASKED_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class _Standing:
    """How an endpoint stands: the deliveries that live leases name, and its hold."""

    leased: frozenset[str]
    hold: Spell | None


class DynamoReading:
    """Answers questions about events and deliveries."""

    def __init__(self, tables: Tables) -> None:
        """Read these tables."""
        self._tables = tables

    def event(self, tenant: str, event_id: str, now_ms: int) -> StoredEvent | None:
        """Read an event; one past its retention is absent."""
        at = keys.event(tenant, event_id)
        record = self._tables.get([at]).get(at)
        return rows.event_of(record) if record and _alive(record, now_ms) else None

    def events_named(self, tenant: str, event_ids: Sequence[str], now_ms: int) -> dict[str, StoredEvent]:
        """Read events by id; those past their retention are absent."""
        found = self._tables.get([keys.event(tenant, each) for each in event_ids])
        return {key.sk: rows.event_of(record) for key, record in found.items() if _alive(record, now_ms)}

    def events(self, tenant: str, extent: Extent, now_ms: int) -> Page[StoredEvent]:
        """List a tenant's events of a time, newest first."""
        found: list[StoredEvent] = []
        for record in self._newest_events(tenant, extent):
            if not _alive(record, now_ms):
                continue
            if len(found) == extent.limit:
                return Page(tuple(found), found[-1].event.id)
            found.append(rows.event_of(record))
        return Page(tuple(found))

    def delivery(self, tenant: str, endpoint_id: str, delivery_id: str, now_us: int) -> Generations | None:
        """Read what history has of one delivery."""
        return next(iter(self.named(tenant, endpoint_id, [delivery_id], now_us)), None)

    def named(
        self, tenant: str, endpoint_id: str, delivery_ids: Sequence[str], now_us: int
    ) -> list[Generations]:
        """Read what history has of some of an endpoint's deliveries, in the order asked."""
        partition = keys.endpoint_partition(tenant, endpoint_id)
        histories: dict[str, tuple[HistoryRow, ...]] = {}
        for each in delivery_ids:
            span = Span(f"{each}#", f"{each}#~", backwards=True)
            stretch = self._tables.query(keys.HISTORY, partition, span, _DELIVERY_ROWS)
            histories[each] = _told(stretch.records[::-1], now_us // 1000)
        if not any(histories.values()):
            return []
        standing = self._standing(tenant, endpoint_id, now_us)
        return [_generations(endpoint_id, *each, standing) for each in histories.items() if each[1]]

    def owed(self, endpoint: Endpoint, fewer_than: int) -> frozenset[str] | None:
        """Name all deliveries that an endpoint is owed; None if they are not fewer than that."""
        owner = (endpoint.tenant, endpoint.id)
        at = keys.gate(*owner)
        record = self._tables.get([at]).get(at)
        found: list[str] = []
        for number in lanes_of(endpoint, gates.read(record) if record else None):
            left = fewer_than - len(found)
            stretch = self._tables.query(keys.OWED, keys.lane(Lane(*owner, number)), Span(), left)
            found += [rows.owed_of(each).delivery_id for each in stretch.records]
            if len(found) >= fewer_than:
                return None
        return frozenset(found)

    def leased(self, tenant: str, endpoint_id: str, now_us: int) -> frozenset[str]:
        """Name the deliveries of an endpoint that live leases name."""
        return self._standing(tenant, endpoint_id, now_us).leased

    def deliveries(self, tenant: str, endpoint_id: str, extent: Extent, now_us: int) -> Page[Generations]:
        """List an endpoint's deliveries of events of a time, newest event first."""
        standing = self._standing(tenant, endpoint_id, now_us)
        found: list[Generations] = []
        weight, last = 0, ""
        for delivery_id, group in self._histories(tenant, endpoint_id, extent):
            if len(found) == extent.limit or weight >= _PAGE_WEIGHT:
                return Page(tuple(found), last)
            records, last = list(group), delivery_id
            weight += sum(map(_weight, records))
            told = _told(records[::-1], now_us // 1000)
            if told:
                found.append(_generations(endpoint_id, delivery_id, told, standing))
        return Page(tuple(found))

    def attempts(self, tenant: str, endpoint_id: str, extent: Extent, now_us: int) -> Page[Attempt]:
        """List an endpoint's attempts: newest event first, and of a delivery the newest attempt first."""
        found: list[Attempt] = []
        weight, last = 0, ""
        for delivery_id, group in self._histories(tenant, endpoint_id, _events_before(extent)):
            if weight >= _PAGE_WEIGHT:
                return Page(tuple(found), last)
            records, last = list(group), keys.after_attempts(delivery_id)
            weight += sum(map(_weight, records))
            for each in _attempts_within(extent, _told(records[::-1], now_us // 1000)):
                if len(found) == extent.limit:
                    return Page(tuple(found), found[-1].key)
                found.append(each)
        return Page(tuple(found))

    def takers(self, tenant: str, event_id: str, after: str) -> Iterator[str]:
        """Walk the endpoints that have a delivery of an event, deleted ones too, newest first."""
        too_new = ids.new_id("ep", ids.created_ms(event_id) + 1, 0)
        span = Span("ep_", min(after or too_new, too_new))
        older = (str(record["sk"]) for record in self._newest((keys.ENDPOINTS, tenant), span, _ROWS))
        while some := list(islice(older, _ASKED_AT_ONCE)):
            created = {each: _created(tenant, each, event_id) for each in some}
            found = self._tables.get(list(created.values()))
            yield from (each for each, key in created.items() if key in found)

    def dead_letters(self, tenant: str, endpoint_id: str, extent: Extent, now_ms: int) -> Page[GivenUp]:
        """List an endpoint's dead letters, newest event first; those of one delivery are never parted."""
        at = (keys.DEAD_LETTERS, keys.endpoint_partition(tenant, endpoint_id))
        newest = self._newest(at, keys.deliveries_between(extent), min(_ROWS, extent.limit + 2))
        kept = (each for each in newest if _alive(each, now_ms))
        found: list[Record] = []
        for place, (_, group) in enumerate(groupby(kept, _delivery_of)):
            if place == extent.limit:
                return self._letters(tenant, endpoint_id, found, _delivery_of(found[-1]))
            found += group
        return self._letters(tenant, endpoint_id, found)

    def _letters(
        self, tenant: str, endpoint_id: str, records: list[Record], after: str = ""
    ) -> Page[GivenUp]:
        ended = [rows.dead_letter_of(each) for each in records]
        following = [
            keys.attempt(tenant, endpoint_id, (each.delivery_id, each.generation + 1, keys.CREATED_NUMBER))
            for each in ended
        ]
        begun = self._tables.get(following) if following else {}
        letters = [GivenUp(each, key in begun) for each, key in zip(ended, following, strict=True)]
        return Page(tuple(letters), after)

    def hours(self, tenant: str, endpoint_id: str, before: int, limit: int, now_ms: int) -> list[Tally]:
        """Read what an endpoint's hours came to, newest first, from below an hour on."""
        at = keys.gate(tenant, endpoint_id)
        record = self._tables.get([at]).get(at)
        running = _running(gates.read(record), now_ms * 1000) if record else []
        partition = keys.endpoint_partition(tenant, endpoint_id)
        span = Span("0", f"{before - 1:07d}", backwards=True)
        stretch = self._tables.query(keys.STATS, partition, span, limit)
        stored = [rows.tally_of(each) for each in stretch.records if _alive(each, now_ms)]
        known = {each.hour for each in stored}
        fresh = [each for each in running if each.hour not in known and each.hour < before]
        return sorted([*fresh, *stored], key=lambda each: each.hour, reverse=True)[:limit]

    def health(self, tenant: str, endpoint_id: str, holds: int, now_ms: int) -> Health | None:
        """Read an endpoint's gate and its last few holds, newest first."""
        at = keys.gate(tenant, endpoint_id)
        record = self._tables.get([at]).get(at)
        if record is None:
            return None
        partition = keys.endpoint_partition(tenant, endpoint_id)
        span = Span(keys.HOLDS, f"{keys.HOLDS}~", backwards=True)
        stretch = self._tables.query(keys.HISTORY, partition, span, holds)
        kept = tuple(rows.hold_of(each) for each in stretch.records if _alive(each, now_ms))
        return Health(gates.read(record), kept)

    def _standing(self, tenant: str, endpoint_id: str, now_us: int) -> _Standing:
        at = keys.gate(tenant, endpoint_id)
        record = self._tables.get([at]).get(at)
        if record is None:
            return _Standing(frozenset(), None)
        gate = gates.read(record)
        live = (each for each in gate.leases.values() if each.until + TAKE_OVER_GRACE > now_us)
        leased = frozenset(key.split("#")[1] for lease in live for key in lease.keys)
        return _Standing(leased, gates.current_hold(gate, now_us))

    def _histories(
        self, tenant: str, endpoint_id: str, extent: Extent
    ) -> Iterator[tuple[str, Iterator[Record]]]:
        """Give the rows of each delivery, newest first."""
        at = (keys.HISTORY, keys.endpoint_partition(tenant, endpoint_id))
        at_once = min(_ROWS, _ROWS_EACH * extent.limit + 2)
        return groupby(self._newest(at, keys.deliveries_between(extent), at_once), _delivery_of)

    def _newest_events(self, tenant: str, extent: Extent) -> Iterator[Record]:
        span = keys.events_between(extent)
        at_once = extent.limit // len(keys.NIBBLES) * 2 + 2
        hours = (keys.EVENTS, keys.hours_partition(tenant))
        for listed in self._newest(hours, keys.hours_between(span), _HOURS):
            partitions = (keys.events_partition(tenant, int(listed["sk"]), nibble) for nibble in keys.NIBBLES)
            walks = [self._newest((keys.EVENTS, each), span, at_once) for each in partitions]
            yield from heapq.merge(*walks, key=_sort_key, reverse=True)

    def _newest(self, at: tuple[str, str], span: Span, at_once: int) -> Iterator[Record]:
        """Read a partition backwards, from below its high end as far as asked; at least two at once."""
        high = span.high
        while True:
            stretch = self._tables.query(*at, Span(span.low, high, backwards=True), at_once)
            yield from (record for record in stretch.records if record["sk"] != high)
            if not stretch.more:
                return
            high = stretch.records[-1]["sk"]


def _running(gate: Gate, now_us: int) -> list[Tally]:
    """Give the hours that statistics may lack: the one that goes on, and the one before."""
    hours = (gates.this_hour(gate, now_us), gate.hour_past)
    return [each for each in hours if each is not None and each.attempts]


def _sort_key(record: Record) -> str:
    return str(record["sk"])


def _created(tenant: str, endpoint_id: str, event_id: str) -> Key:
    delivery = ids.delivery_id(event_id, endpoint_id)
    return keys.attempt(tenant, endpoint_id, (delivery, 0, keys.CREATED_NUMBER))


def _weight(record: Record) -> int:
    """Say what a row weighs in a page: one, and more if it has much of a response."""
    return 1 + len(record.get("response", b"")) // _RESPONSE_BYTES


def _events_before(extent: Extent) -> Extent:
    """Give where the events lie of attempts of a time: before its end, as clocks go, maybe long before."""
    delivery = extent.after.partition("#")[0]
    until_ms = min(extent.until_ms + _CLOCKS_APART_MS, ids.END_MS)
    return Extent(f"{delivery}#~" if delivery else "", extent.limit, 0, until_ms)


def _attempts_within(extent: Extent, told: tuple[HistoryRow, ...]) -> Iterator[Attempt]:
    """Give the attempts of a delivery that are of a time and below a place, newest first."""
    for row in reversed(told):
        below = isinstance(row, Attempt) and (not extent.after or row.key < extent.after)
        if isinstance(row, Attempt) and below and extent.since_ms <= row.at_ms < extent.until_ms:
            yield row


def _alive(record: Record, now_ms: int) -> bool:
    return bool(record["ttl"] * 1000 > now_ms)


def _delivery_of(record: Record) -> str:
    return str(record["sk"]).partition("#")[0]


def _told(records: Sequence[Record], now_ms: int) -> tuple[HistoryRow, ...]:
    """Give the rows of a delivery, oldest first, whose retention is not over: generation by generation."""
    kept = [rows.history_of(record) for record in records if _alive(record, now_ms)]
    generations = (tuple(told) for _, told in groupby(kept, lambda row: row.generation))
    return tuple(row for told in generations if retention.told_still(told, now_ms) for row in told)


def _generations(
    endpoint_id: str, delivery_id: str, history: tuple[HistoryRow, ...], standing: _Standing
) -> Generations:
    leased = delivery_id in standing.leased
    return Generations(endpoint_id, delivery_id, history, leased, standing.hold)
