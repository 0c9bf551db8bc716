"""Fan-out: one event becomes one delivery per subscribed endpoint.

The plan is pure; `FanOutLater` works off what ingest could not do at once, in resumable chunks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from types import MappingProxyType
from typing import Any

from chalicelib.application.filtering import passing
from chalicelib.application.ports import (
    Bell,
    Bells,
    Capturing,
    Clock,
    FanningOut,
    Fanout,
    Hint,
    Owing,
    Payloads,
    Subscriber,
    Unavailable,
)
from chalicelib.domain import gate as gates
from chalicelib.domain import ids
from chalicelib.domain.delivery import Created, Lane, Owed
from chalicelib.domain.endpoint import ORDERED_LANE
from chalicelib.domain.gate import Gate, Queue
from chalicelib.domain.pattern import members_of

CHUNK = 40
HINTS_MAX = 10
NO_NUMBERS: Mapping[str, int] = MappingProxyType({})
NOTHING_SEEN: Mapping[tuple[str, str], Gate] = MappingProxyType({})


def plan(
    tenant: str,
    event_id: str,
    event_type: str,
    subscribers: Iterable[Subscriber],
    numbers: Mapping[str, int] = NO_NUMBERS,
) -> tuple[Owing, ...]:
    """Say what an event owes to its subscribers: those created before it, each in one of its lanes.

    `numbers` has the event's sequence for each ordered endpoint by id. Everything else is computed from
    the ids, so that planning twice plans the same.
    """
    received_ms = ids.created_ms(event_id)
    return tuple(
        _owing(tenant, event_id, event_type, each, numbers[each.endpoint_id] if each.ordered else 0)
        for each in subscribers
        if each.created_ms <= received_ms
    )


def owner_of(owing: Owing) -> tuple[str, str]:
    """Name the gate of a new delivery: tenant and endpoint."""
    return owing.owed.lane.tenant, owing.owed.lane.endpoint_id


def bells_for(
    owing: Sequence[Owing], now_ms: int, seen: Mapping[tuple[str, str], Gate] = NOTHING_SEEN
) -> list[Bell]:
    """Make one bell per lane of what has just been written, its rows named unless they are too many.

    None for a lane that was seen to need none.
    Rows of an ordered lane are never named: which one comes first only the lane itself says.
    """
    by_lane: dict[Lane, list[Hint]] = {}
    for each in owing:
        owed = each.owed
        by_lane.setdefault(owed.lane, []).append(Hint(owed.delivery_id, owed.event_id, owed.ready_ms))
    return [
        Bell(lane, now_ms, _named(lane, hints), queue=gate.queue if gate else Queue.SHARD)
        for lane, hints in by_lane.items()
        if (gate := seen.get((lane.tenant, lane.endpoint_id))) is None
        or not gates.expects_bell(gate, lane.number, now_ms * 1000)
    ]


def _named(lane: Lane, hints: Sequence[Hint]) -> tuple[Hint, ...]:
    return () if lane.ordered or len(hints) > HINTS_MAX else tuple(hints)


@dataclass(frozen=True, slots=True)
class WorkedOff:
    """How many deliveries waiting fan-outs came to, and how many fan-outs failed."""

    written: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class FanOutLater:
    """Does the fan-outs that ingest left, one chunk and one transaction at a time.

    Ordered endpoints it leaves out: ingest has done them, or their tenant had none to be done.
    """

    store: FanningOut
    capturing: Capturing
    payloads: Payloads
    bells: Bells
    clock: Clock

    def run(self, tenant: str, event_id: str) -> int:
        """Fan one event out from where it was left; the number of deliveries written by this run.

        Killed anywhere, or run twice at once, it neither loses nor doubles.
        """
        fanout = self.store.pending(tenant, event_id)
        members = cache(partial(self._members, tenant, event_id))
        written = 0
        while fanout is not None:
            chunk, rest = self._chunk(fanout)
            passed = passing(members, chunk, self.capturing.filters(tenant, chunk))
            owing = plan(tenant, event_id, fanout.event_type, passed)
            cursor = chunk[-1].endpoint_id if chunk else fanout.cursor
            self.capturing.arm(((tenant, each.owed.lane.endpoint_id) for each in owing), self.clock.now_ms())
            if not self.store.advance(fanout, owing, cursor, done=not rest):
                return written
            now_ms = self.clock.now_ms()
            seen = self.capturing.gates_seen({owner_of(each) for each in owing}, now_ms)
            self.bells.ring(bells_for(owing, now_ms, seen))
            written += len(owing)
            fanout = replace(fanout, cursor=cursor) if rest else None
        return written

    def run_waiting(self, older_than_ms: int) -> WorkedOff:
        """Fan out every event that waits since before a moment; one that fails waits on, and stops none."""
        written = failed = 0
        for each in self.store.waiting(older_than_ms):
            try:
                written += self.run(each.tenant, each.event_id)
            except Unavailable:
                failed += 1
        return WorkedOff(written, failed)

    def _chunk(self, fanout: Fanout) -> tuple[tuple[Subscriber, ...], bool]:
        now_ms = self.clock.now_ms()
        found = self.capturing.subscribers(fanout.tenant, [fanout.event_type], now_ms)[fanout.event_type]
        left = tuple(each for each in found if each.endpoint_id > fanout.cursor and not each.ordered)
        return left[:CHUNK], len(left) > CHUNK

    def _members(self, tenant: str, event_id: str) -> Mapping[str, Any] | None:
        """Read what filters are held to; an event or a body that is gone passes none of them."""
        stored = self.store.event(tenant, event_id)
        if stored is None or not stored.payload_key:
            return members_of(stored.event) if stored else None
        body = self.payloads.get(stored.payload_key)
        return None if body is None else members_of(replace(stored.event, body=body))


def _owing(tenant: str, event_id: str, event_type: str, subscriber: Subscriber, sequence: int) -> Owing:
    delivery = ids.delivery_id(event_id, subscriber.endpoint_id)
    received_ms = ids.created_ms(event_id)
    number = ORDERED_LANE if subscriber.ordered else str(int(delivery[-8:], 16) % subscriber.lanes)
    lane = Lane(tenant, subscriber.endpoint_id, number)
    owed = Owed(lane, delivery, event_id, received_ms, sequence=sequence)
    return Owing(owed, Created(delivery, 0, event_id, event_type, number, received_ms, sequence))
