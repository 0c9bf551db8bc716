"""Questions: what happened to an event or a delivery, told from history."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, pairwise
from typing import assert_never

from chalicelib.application.endpoints import not_found
from chalicelib.application.ports import (
    Clock,
    Endpoints,
    Extent,
    Generations,
    GivenUp,
    Health,
    Page,
    Payloads,
    Reading,
    StoredEvent,
)
from chalicelib.domain import ids
from chalicelib.domain.delivery import Attempt, Created, Ended, HistoryRow, Status, status_of
from chalicelib.domain.ending import ending_of
from chalicelib.domain.endpoint import Endpoint
from chalicelib.domain.gate import Spell, Tally
from chalicelib.domain.outcome import DeathReason

HOLDS_SHOWN = 20
_PAGES_SIFTED = 4


@dataclass(frozen=True, slots=True)
class Delivery:
    """One generation of a delivery as its owner sees it; `next_ms` is when it is tried again (Unix ms).

    `ending` is how it is bound to end, though nobody has come to it yet. `replayed_ms` is when the next
    generation began, 0 for the newest; `earlier` are those before it.
    """

    delivery_id: str
    endpoint_id: str
    event_id: str
    event_type: str
    generation: int
    status: Status
    created_ms: int
    attempts: tuple[Attempt, ...]
    ended: Ended | None
    next_ms: int
    generations: tuple[int, ...]
    hold: Spell | None = None
    ending: DeathReason | None = None
    replayed_ms: int = 0
    earlier: tuple["Delivery", ...] = ()

    @property
    def waits(self) -> bool:
        """Say whether it has not come to an end yet."""
        return self.status in {Status.PENDING, Status.INFLIGHT}


@dataclass(frozen=True, slots=True)
class Questions:
    """Answers what owners ask."""

    reading: Reading
    endpoints: Endpoints
    payloads: Payloads
    clock: Clock

    def event(self, tenant: str, event_id: str) -> StoredEvent:
        """Read an event, or raise RelayError."""
        found = None
        if ids.is_id(event_id, "evt"):
            found = self.reading.event(tenant, event_id, self.clock.now_ms())
        if found is None:
            raise not_found("event", event_id)
        return found

    def payload(self, tenant: str, event_id: str) -> tuple[StoredEvent, bytes]:
        """Read an event's exact bytes, or raise RelayError."""
        stored = self.event(tenant, event_id)
        if not stored.payload_key:
            return stored, stored.event.body
        body = self.payloads.get(stored.payload_key)
        if body is None:
            raise not_found("payload of event", event_id)
        return stored, body

    def events(self, tenant: str, extent: Extent) -> Page[StoredEvent]:
        """List events of a time, newest first."""
        return self.reading.events(tenant, extent, self.clock.now_ms())

    def delivery(self, tenant: str, delivery_id: str) -> Delivery:
        """Read a delivery's newest generation, or raise RelayError."""
        told = newest(self.generations(tenant, delivery_id))
        return self._bound(told, lambda: self.endpoints.get(tenant, told.endpoint_id))

    def generations(self, tenant: str, delivery_id: str) -> Generations:
        """Read all that history has of a delivery, or raise RelayError."""
        if ids.is_id(delivery_id):
            for endpoint_id in self.endpoints.tagged(tenant, ids.tag_of(delivery_id)):
                found = self.reading.delivery(tenant, endpoint_id, delivery_id, self.clock.now_us())
                if found is not None:
                    return found
        raise not_found("delivery", delivery_id)

    def deliveries(
        self, tenant: str, endpoint_id: str, extent: Extent, status: Status | None = None
    ) -> Page[Delivery]:
        """List an endpoint's deliveries, newest event first; a deleted endpoint's too.

        With a status the page may be short, or empty: there is more as long as it can be continued. What is
        rare among many is looked up where it is listed, not looked for.
        """
        endpoint = self._endpoint(tenant, endpoint_id)
        match status:
            case None:
                return self._walked(endpoint, extent)
            case Status.SUCCEEDED:
                return self._sifted(endpoint, extent, status)
            case Status.PENDING:
                owed = self.reading.owed(endpoint, extent.limit)
                if owed is None:
                    return self._sifted(endpoint, extent, status)
                return self._looked_up(endpoint, extent, owed, status)
            case Status.INFLIGHT:
                leased = self.reading.leased(tenant, endpoint_id, self.clock.now_us())
                return self._looked_up(endpoint, extent, leased, status)
            case Status.DEAD:
                letters = self.reading.dead_letters(tenant, endpoint_id, extent, self.clock.now_ms())
                dead = dict.fromkeys(each.ended.delivery_id for each in letters.items)
                return Page(tuple(self._told(endpoint, list(dead), status)), letters.after)
            case _:
                assert_never(status)

    def _walked(self, endpoint: Endpoint, extent: Extent) -> Page[Delivery]:
        page = self.reading.deliveries(endpoint.tenant, endpoint.id, extent, self.clock.now_us())
        return Page(tuple(self._bound(newest(each), lambda: endpoint) for each in page.items), page.after)

    def _sifted(self, endpoint: Endpoint, extent: Extent, status: Status) -> Page[Delivery]:
        """Walk on until a page is full of what has a status, a few pages' way at most."""
        found: list[Delivery] = []
        for _ in range(_PAGES_SIFTED):
            page = self._walked(endpoint, extent)
            found += (each for each in page.items if each.status is status)
            if len(found) >= extent.limit:
                found = found[: extent.limit]
                return Page(tuple(found), found[-1].delivery_id)
            extent = replace(extent, after=page.after)
            if not page.after:
                break
        return Page(tuple(found), extent.after)

    def _looked_up(
        self, endpoint: Endpoint, extent: Extent, among: Collection[str], status: Status
    ) -> Page[Delivery]:
        """Look up the deliveries of a few that have a status."""
        since, until = ids.first_of(extent.since_ms), ids.last_before(extent.until_ms)
        fitting = (each for each in among if since <= each <= until)
        below = sorted((each for each in fitting if not extent.after or each < extent.after), reverse=True)
        taken = below[: extent.limit]
        after = taken[-1] if len(below) > len(taken) else ""
        return Page(tuple(self._told(endpoint, taken, status)), after)

    def _told(self, endpoint: Endpoint, delivery_ids: Sequence[str], status: Status) -> Iterator[Delivery]:
        for found in self.reading.named(endpoint.tenant, endpoint.id, delivery_ids, self.clock.now_us()):
            told = newest(found)
            if told.status is status:
                yield self._bound(told, lambda: endpoint)

    def attempts(self, tenant: str, endpoint_id: str, extent: Extent) -> Page[Attempt]:
        """List an endpoint's attempts of a time, newest event first; a deleted endpoint's too."""
        self._endpoint(tenant, endpoint_id)
        return self.reading.attempts(tenant, endpoint_id, extent, self.clock.now_us())

    def dead_letters(self, tenant: str, endpoint_id: str, extent: Extent) -> Page[GivenUp]:
        """List an endpoint's dead letters, newest event first; a deleted endpoint's too."""
        self._endpoint(tenant, endpoint_id)
        return self.reading.dead_letters(tenant, endpoint_id, extent, self.clock.now_ms())

    def hours(self, tenant: str, endpoint_id: str, before: int, limit: int) -> Page[Tally]:
        """List what an endpoint's hours came to, newest first, from below an hour on; raises RelayError.

        Hours in which nothing was sent are left out; `after` is the last hour of the page.
        """
        self._endpoint(tenant, endpoint_id)
        found = self.reading.hours(tenant, endpoint_id, before, limit + 1, self.clock.now_ms())
        more = len(found) > limit
        return Page(tuple(found[:limit]), str(found[limit - 1].hour) if more else "")

    def health(self, tenant: str, endpoint_id: str) -> tuple[Endpoint, Health]:
        """Read how an endpoint does, or raise RelayError."""
        endpoint = self._endpoint(tenant, endpoint_id)
        found = self.reading.health(tenant, endpoint_id, HOLDS_SHOWN, self.clock.now_ms())
        if found is None:
            raise not_found("endpoint", endpoint_id)
        return endpoint, found

    def deliveries_of_event(
        self, tenant: str, event_id: str, after: str, limit: int, status: Status | None = None
    ) -> Page[Delivery]:
        """List an event's deliveries by endpoint, newest first, those of deleted ones too.

        `after` is the last endpoint id of the page before. With a status the page may be short, or empty.
        """
        stored = self.event(tenant, event_id)
        found: list[Delivery] = []
        last = ""
        for looked, (endpoint_id, told) in enumerate(self._owing(tenant, stored, after)):
            if len(found) == limit or looked == limit * _PAGES_SIFTED:
                return Page(tuple(found), last)
            last = endpoint_id
            if status in {None, told.status}:
                found.append(self._bound(told, partial(self.endpoints.get, tenant, endpoint_id)))
        return Page(tuple(found))

    def _owing(self, tenant: str, stored: StoredEvent, after: str) -> Iterator[tuple[str, Delivery]]:
        for endpoint_id in self._candidates(tenant, stored, after):
            delivery_id = ids.delivery_id(stored.event.id, endpoint_id)
            rows = self.reading.delivery(tenant, endpoint_id, delivery_id, self.clock.now_us())
            if rows is not None:
                yield endpoint_id, newest(rows)

    def _endpoint(self, tenant: str, endpoint_id: str) -> Endpoint:
        endpoint = self.endpoints.get(tenant, endpoint_id) if ids.is_id(endpoint_id, "ep") else None
        if endpoint is None:
            raise not_found("endpoint", endpoint_id)
        return endpoint

    def _bound(self, told: Delivery, asked: Callable[[], Endpoint | None]) -> Delivery:
        """Say of a delivery that waits how it is bound to end; then nothing else awaits it."""
        endpoint = asked() if told.status is Status.PENDING else None
        if endpoint is None:
            return told
        now_ms = self.clock.now_ms()
        reason = ending_of(endpoint, told.delivery_id, told.generation, told.created_ms, now_ms)
        return replace(told, ending=reason, hold=None, next_ms=0) if reason else told

    def _candidates(self, tenant: str, stored: StoredEvent, after: str) -> Iterator[str]:
        if stored.fan_out == "later":
            return self.reading.takers(tenant, stored.event.id, after)
        return (each for each in sorted(stored.matched, reverse=True) if not after or each < after)


def newest(found: Generations) -> Delivery:
    """Tell a delivery's newest generation from its rows, with those before it."""
    by_generation = {number: tuple(rows) for number, rows in groupby(found.rows, lambda row: row.generation)}
    *before, last = sorted(by_generation)
    begun_ms = {number: rows[0].at_ms for number, rows in by_generation.items()}
    earlier = tuple(
        replace(_told(found, by_generation[number]), replayed_ms=begun_ms[following])
        for number, following in pairwise((*before, last))
    )
    return replace(
        _told(found, by_generation[last]), generations=tuple(sorted(by_generation)), earlier=earlier
    )


def _told(found: Generations, rows: tuple[HistoryRow, ...]) -> Delivery:
    attempts = tuple(row for row in rows if isinstance(row, Attempt))
    status = status_of(rows, leased=found.leased)
    first = rows[0]
    owed = status in {Status.PENDING, Status.INFLIGHT}
    return Delivery(
        found.delivery_id,
        found.endpoint_id,
        first.event_id,
        first.event_type if isinstance(first, Created) else "",
        first.generation,
        status,
        first.at_ms,
        attempts,
        next((row for row in rows if isinstance(row, Ended)), None),
        (attempts[-1].next_ms if attempts else first.at_ms) if owed else 0,
        (first.generation,),
        found.hold if status is Status.PENDING else None,
    )
