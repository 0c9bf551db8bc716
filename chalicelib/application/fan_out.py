"""Fan-out: one event becomes one delivery per subscribed endpoint.

The plan is pure; `FanOutLater` works off what ingest could not do at once, in resumable chunks.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from types import MappingProxyType
from typing import Any

from chalicelib.application.filtering import Members, passing
from chalicelib.application.pacing import Pacing
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
from chalicelib.domain.allowance import Pace
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
    return tuple(
        _owing(tenant, event_id, event_type, each, numbers[each.endpoint_id] if each.ordered else 0)
        for each in subscribers
        if takes(each, event_id)
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
class _Part:
    """What comes next of a fan-out: who is left, who of them is looked at, and who wants the event."""

    left: tuple[Subscriber, ...]
    looked_at: tuple[Subscriber, ...]
    passed: tuple[Subscriber, ...]

    @property
    def wanted(self) -> int:
        """Count the deliveries to be paid for: all that is left, or as far as filters are known."""
        return len(self.passed) if any(each.filter for each in self.left) else len(self.left)

    def taken(self, most: int) -> tuple[tuple[Subscriber, ...], str | None]:
        """Give so many of those who want it at most, and the id after which it goes on; None at the end."""
        if len(self.passed) > most:
            return self.passed[:most], self.passed[most - 1].endpoint_id
        more = len(self.left) > len(self.looked_at)
        return self.passed, self.looked_at[-1].endpoint_id if more else None


@dataclass(frozen=True, slots=True)
class FanOutLater:
    """Does the fan-outs that ingest left, one chunk and one transaction at a time.

    Ordered endpoints it leaves out: ingest has done them, or their tenant had none to be done. With `pacing`
    it makes only what the tenant's budget has been charged for, and comes back for the rest when that is due.
    """

    store: FanningOut
    capturing: Capturing
    payloads: Payloads
    bells: Bells
    clock: Clock
    pacing: Pacing | None = None

    def run(self, tenant: str, event_id: str, due_ms: int = 0) -> int:
        """Fan one event out from where it was left; the number of deliveries written by this run.

        Killed anywhere, or run twice at once, it neither loses nor doubles. `due_ms` is the moment it was
        called for; when it goes at another one, somebody else was called for that.
        """
        members = cache(partial(self._members, tenant, event_id))
        written = 0
        fanout = self.store.pending(tenant, event_id)
        while fanout is not None:
            look = cache(partial(self._look, fanout, members))
            pace = self._pace(fanout, look)
            if pace.paid and pace.due_ms > self.clock.now_ms():
                self._wait(fanout, pace, due_ms)
                return written
            owing, after = self._planned(fanout, look(), pace)
            self.capturing.arm((owner_of(each) for each in owing), self.clock.now_ms())
            if not self.store.advance(fanout, owing, after):
                return written
            self._ring(owing)
            written += len(owing)
            fanout = after
        return written

    def run_waiting(self, older_than_ms: int) -> WorkedOff:
        """Fan out every event that waits since before a moment; one that fails waits on, and stops none.

        One whose moment is to come waits on too, unless its tenant's budget has grown since.
        """
        written = failed = 0
        for each in self.store.waiting(older_than_ms):
            try:
                if each.pace.due_ms <= older_than_ms or self._moved(each):
                    written += self.run(each.tenant, each.event_id, each.pace.due_ms)
            except Unavailable:
                failed += 1
        return WorkedOff(written, failed)

    def _pace(self, fanout: Fanout, look: Callable[[], _Part]) -> Pace:
        if self.pacing is None:
            return Pace(CHUNK)
        return self.pacing.go_on(fanout.tenant, fanout.pace, lambda: look().wanted)

    def _moved(self, fanout: Fanout) -> bool:
        return self.pacing is not None and self.pacing.moved(fanout.tenant, fanout.pace)

    def _wait(self, fanout: Fanout, pace: Pace, called_for_ms: int) -> None:
        """See to it that somebody comes back when the next part is due."""
        if pace != fanout.pace:
            if not self.store.advance(fanout, (), replace(fanout, pace=pace)):
                return
        elif pace.due_ms != called_for_ms:
            return
        call_later(self.bells, (fanout.tenant, fanout.event_id), pace, self.clock.now_ms())

    def _planned(self, fanout: Fanout, part: _Part, pace: Pace) -> tuple[tuple[Owing, ...], Fanout | None]:
        """Plan what is written next, and say how the fan-out is after it; None when it is done."""
        chunk, cursor = part.taken(pace.paid)
        owing = plan(fanout.tenant, fanout.event_id, fanout.event_type, chunk)
        if cursor is None:
            return owing, None
        return owing, replace(fanout, cursor=cursor, pace=pace.less(len(chunk)))

    def _look(self, fanout: Fanout, members: Members) -> _Part:
        now_ms = self.clock.now_ms()
        found = self.capturing.subscribers(fanout.tenant, [fanout.event_type], now_ms)[fanout.event_type]
        unordered = (each for each in found if each.endpoint_id > fanout.cursor and not each.ordered)
        left = tuple(each for each in unordered if takes(each, fanout.event_id))
        looked_at = left[:CHUNK]
        filters = self.capturing.filters(fanout.tenant, looked_at)
        return _Part(left, looked_at, passing(members, looked_at, filters))

    def _ring(self, owing: Sequence[Owing]) -> None:
        now_ms = self.clock.now_ms()
        seen = self.capturing.gates_seen({owner_of(each) for each in owing}, now_ms)
        self.bells.ring(bells_for(owing, now_ms, seen))

    def _members(self, tenant: str, event_id: str) -> Mapping[str, Any] | None:
        """Read what filters are held to; an event or a body that is gone passes none of them."""
        stored = self.store.event(tenant, event_id)
        if stored is None or not stored.payload_key:
            return members_of(stored.event) if stored else None
        body = self.payloads.get(stored.payload_key)
        return None if body is None else members_of(replace(stored.event, body=body))


def call_later(bells: Bells, event: tuple[str, str], pace: Pace, now_ms: int) -> None:
    """Call for the fan-out of an event (tenant, id) when its next part is due."""
    bells.call_fan_out(*event, pace.due_ms, -(-max(0, pace.due_ms - now_ms) // 1000))


def takes(subscriber: Subscriber, event_id: str) -> bool:
    """Say whether a subscriber was there when an event came."""
    return subscriber.created_ms <= ids.created_ms(event_id)


def _owing(tenant: str, event_id: str, event_type: str, subscriber: Subscriber, sequence: int) -> Owing:
    delivery = ids.delivery_id(event_id, subscriber.endpoint_id)
    received_ms = ids.created_ms(event_id)
    number = ORDERED_LANE if subscriber.ordered else str(int(delivery[-8:], 16) % subscriber.lanes)
    lane = Lane(tenant, subscriber.endpoint_id, number)
    owed = Owed(lane, delivery, event_id, received_ms, sequence=sequence)
    return Owing(owed, Created(delivery, 0, event_id, event_type, number, received_ms, sequence))
