"""Sending: what lanes were admitted for is re-read under their leases, signed and started.

A changed URL, an unsubscribe or a delete binds here, from the moment it was acknowledged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from chalicelib.application.authorizing import opened
from chalicelib.application.ports import (
    Clock,
    Outbox,
    Payloads,
    Reread,
    StoredEvent,
    Unavailable,
    Work,
)
from chalicelib.application.settlement import Arrival, Settlement
from chalicelib.application.signing_keys import SigningKeys
from chalicelib.application.visit import TOGETHER_US, Attempted, Underway, Visit
from chalicelib.domain import gate as gates
from chalicelib.domain import metrics
from chalicelib.domain import request as requests
from chalicelib.domain.chat import message
from chalicelib.domain.chat.platform import OFFICIAL, Origins, is_chat
from chalicelib.domain.cloud import message as errands
from chalicelib.domain.cloud.address import in_cloud
from chalicelib.domain.delivery import Again, Dead, Lane, Owed, after_unknown, owed_of_key
from chalicelib.domain.ending import decided
from chalicelib.domain.endpoint import Endpoint, EndpointState
from chalicelib.domain.event import matching_patterns
from chalicelib.domain.gate import Lease
from chalicelib.domain.outcome import DeathReason, Outcome, unsendable

MARGIN_MS = 2_000
TEST_KEPT_MS = 15 * 60_000
"""How long a test may wait for its endpoint: later nobody looks at it any more."""


@dataclass(slots=True)
class Started:
    """What starting came to: rows whose attempts had arrived already, and failures of our own."""

    arrived: list[Arrival] = field(default_factory=list)
    failures: list[Unavailable] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Row:
    owed: Owed
    moment_us: int
    taken_us: int


@dataclass(frozen=True, slots=True)
class Sending:
    """Starts the sends of admitted lanes: those over HTTP, or with `cloud` those to AWS alone."""

    work: Work
    settlement: Settlement
    payloads: Payloads
    keys: SigningKeys
    clock: Clock
    request_timeout_ms: int
    payload_max: int
    origins: Origins = OFFICIAL
    cloud: bool = False

    def start(self, visits: Sequence[Visit], outbox: Outbox) -> Started:
        """Re-read what the visits may start now and start each send that may still be made."""
        started = Started()
        now_us = self.clock.now_us()
        taken = [(visit, *each) for visit in visits for each in visit.take(now_us)]
        if not taken:
            return started
        found = self.work.reread([row for _, row, _ in taken])
        for visit, row, moment_us in taken:
            owed, attempt = found.owed.get(row.key), found.attempts.get(row.key)
            if owed is None:
                continue
            if attempt is not None and attempt.outcome is Outcome.SUCCESS:
                started.arrived.append((owed, attempt))
            elif attempt is not None or owed.made != row.made:
                visit.more = True
                visit.stop()
            elif not visit.stuck:
                self._start_alone(visit, _Row(owed, moment_us, now_us), found, outbox, started)
        return started

    def bury(self, visit: Visit, dead: Lease) -> list[Attempted]:
        """Tell of what a dead holder had in flight; the lane is then looked at anew.

        Of an ordered lane that was one delivery at most: the first that is still owed.
        """
        held_ms = self.settlement.holding.sum_ms(visit)
        told = self.settlement.bury(left_behind(self.work, visit.lane, dead, self.clock.now_ms(), held_ms))
        visit.buried = dead.holder
        return told

    def _start_alone(self, visit: Visit, row: _Row, found: Reread, outbox: Outbox, started: Started) -> None:
        """Start a send; when its body or its secrets cannot be had, what was started goes on."""
        try:
            self._start(visit, row, found, outbox)
        except Unavailable as error:
            started.failures.append(error)
            visit.stuck = True
            visit.stop()

    def _start(self, visit: Visit, row: _Row, found: Reread, outbox: Outbox) -> None:
        owed = row.owed
        stored = found.events.get((owed.lane.tenant, owed.event_id))
        endpoint = found.endpoints.get(visit.gate_key)
        reason = _must_end(owed, stored, endpoint, self.clock.now_ms())
        if reason is not None:
            if stored is None and reason is DeathReason.EXPIRED:
                self.settlement.counting.count(metrics.PAYLOADS_LOST)
            self.settlement.give_up(visit, owed, reason)
            return
        if stored is None or endpoint is None or endpoint.state is EndpointState.DISABLED:
            visit.granted = []
            return
        if in_cloud(endpoint.transport) is not self.cloud:
            visit.pass_on()
            return
        request = self._request(stored, endpoint, owed)
        if isinstance(request, DeathReason):
            self.settlement.give_up(visit, owed, request)
            return
        moment_us = _paced(visit, row.moment_us, self.clock.now_us(), endpoint.limits.max_concurrency)
        if moment_us > self.clock.now_us() + TOGETHER_US:
            visit.granted.insert(0, (owed, moment_us))
            return
        after_s, within_s = self._when(visit, moment_us)
        if after_s <= within_s:
            visit.last_us = max(moment_us, self.clock.now_us())
            kept = requests.kept(endpoint, request)
            visit.sending[owed.key] = Underway(owed, endpoint, request, row.taken_us, moment_us, kept)
            outbox.start(owed.key, request, after_s, within_s)
        else:
            visit.more = True
            visit.stop()

    def _request(self, stored: StoredEvent, endpoint: Endpoint, owed: Owed) -> requests.Request | DeathReason:
        event = stored.event
        body = self.payloads.get(stored.payload_key) if stored.payload_key else event.body
        if body is None or len(body) != stored.size:
            self.settlement.counting.count(metrics.PAYLOADS_LOST)
            return DeathReason.EXPIRED
        reason = unsendable(len(body), self.payload_max)
        if reason is not None:
            return reason
        whole = replace(event, body=body)
        if in_cloud(endpoint.transport):
            return errands.build(endpoint, whole, owed)
        now_s = self.clock.now_ms() // 1000
        if is_chat(endpoint.transport):
            (sealed,) = endpoint.live_secrets(now_s)
            return message.build(endpoint, whole, self.keys.credential(event.tenant, sealed), self.origins)
        keys = [self.keys.open(event.tenant, each) for each in endpoint.live_secrets(now_s)]
        built = requests.build(endpoint, whole, owed, keys, now_s)
        return requests.authorized(built, opened(self.keys, endpoint))

    def _when(self, visit: Visit, moment_us: int) -> tuple[float, float]:
        """Say in how many seconds a send may begin, and in how many it must have: its lease outlasts it."""
        now_us = self.clock.now_us()
        until_us = visit.claim.lease.until if visit.claim else now_us
        within_us = until_us - now_us - (self.request_timeout_ms + MARGIN_MS) * 1000
        return max(0, moment_us - now_us) / gates.SECOND, within_us / gates.SECOND


def left_behind(
    work: Work, lane: Lane, dead: Lease, now_ms: int, held_sum_ms: int
) -> list[tuple[Owed, Again | Dead]]:
    """Say what becomes of deliveries that a dead holder may have been sending, if nobody has told yet."""
    rows = [owed_of_key(lane, key) for key in dead.keys]
    found = work.reread(rows)
    owing = [(row, found.owed[row.key]) for row in rows if row.key in found.owed]
    return [
        (owed, after_unknown(owed, now_ms, held_sum_ms))
        for row, owed in (owing[:1] if lane.ordered else owing)
        if owed.made == row.made and row.key not in found.attempts
    ]


def _paced(visit: Visit, moment_us: int, now_us: int, cap: int) -> int:
    """Give the moment of a send: in a line that was kept for long, a request's price after the one before.

    What its head kept was paid for long ago, and the bucket has refilled since: sent at once, and the next
    grant with it, that would be more than burst, rate and cap allow.
    """
    price_us = visit.claim.bucket.cost if visit.claim else 0
    if not visit.lane.ordered or now_us - moment_us <= cap * price_us:
        return moment_us
    return max(moment_us, visit.last_us + price_us)


def _must_end(
    owed: Owed, stored: StoredEvent | None, endpoint: Endpoint | None, now_ms: int
) -> DeathReason | None:
    if endpoint is None:
        return DeathReason.ENDPOINT_DELETED
    reason = decided(endpoint, owed.delivery_id, owed.generation)
    if reason is not None:
        return reason
    if stored is None:
        return DeathReason.EXPIRED
    if owed.test:
        return DeathReason.EXPIRED if now_ms - stored.event.received_ms > TEST_KEPT_MS else None
    if not set(endpoint.event_types).intersection(matching_patterns(stored.event.type)):
        return DeathReason.UNSUBSCRIBED
    return None
