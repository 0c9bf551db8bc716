"""Sending: what lanes were admitted for is re-read under their leases, signed and started.

A changed URL, an unsubscribe or a delete binds here, from the moment it was acknowledged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from chalicelib.application.ports import (
    Clock,
    Outbox,
    Payloads,
    Reread,
    Sealer,
    StoredEvent,
    Unavailable,
    Work,
)
from chalicelib.application.settlement import Settlement
from chalicelib.application.visit import Visit
from chalicelib.domain import request as requests
from chalicelib.domain.delivery import Again, Dead, Owed, after_unknown, owed_of_key
from chalicelib.domain.endpoint import Endpoint, EndpointState
from chalicelib.domain.event import matching_patterns
from chalicelib.domain.gate import Lease
from chalicelib.domain.outcome import DeathReason, Outcome

MARGIN_MS = 2_000


@dataclass(slots=True)
class Started:
    """What starting came to: rows whose attempts had arrived already, and failures of our own."""

    arrived: list[Owed] = field(default_factory=list)
    failures: list[Unavailable] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Sending:
    """Starts the sends of admitted lanes."""

    work: Work
    settlement: Settlement
    payloads: Payloads
    sealer: Sealer
    clock: Clock
    request_timeout_ms: int

    def start(self, visits: Sequence[Visit], outbox: Outbox) -> Started:
        """Re-read what the visits were granted and start each send that may still be made."""
        started = Started()
        granted = [(visit, row) for visit in visits for row in _granted(visit)]
        found = self.work.reread([row for _, row in granted])
        for visit, row in granted:
            owed, attempt = found.owed.get(row.key), found.attempts.get(row.key)
            if owed is None:
                continue
            if attempt is not None and attempt.outcome is Outcome.SUCCESS:
                started.arrived.append(owed)
            elif attempt is not None or owed.made != row.made:
                visit.more = True
            elif not visit.stuck:
                self._start_alone(visit, owed, found, outbox, started)
        return started

    def bury(self, visit: Visit, dead: Lease) -> None:
        """Tell of what a dead holder had in flight; the lane is then looked at anew."""
        rows = [owed_of_key(visit.lane, key) for key in dead.keys]
        found = self.work.reread(rows)
        now_ms = self.clock.now_ms()
        moves: list[tuple[Owed, Again | Dead]] = []
        for row in rows:
            owed = found.owed.get(row.key)
            if owed is not None and owed.made == row.made and row.key not in found.attempts:
                moves.append((owed, after_unknown(owed, now_ms)))
        self.settlement.bury(moves)
        visit.buried = dead.holder

    def _start_alone(self, visit: Visit, owed: Owed, found: Reread, outbox: Outbox, started: Started) -> None:
        """Start a send; when its body or its secrets cannot be had, what was started goes on."""
        try:
            self._start(visit, owed, found, outbox)
        except Unavailable as error:
            started.failures.append(error)
            visit.stuck = True

    def _start(self, visit: Visit, owed: Owed, found: Reread, outbox: Outbox) -> None:
        stored = found.events.get((owed.lane.tenant, owed.event_id))
        endpoint = found.endpoints.get(visit.gate_key)
        reason = _must_end(stored, endpoint)
        if reason is not None:
            self.settlement.give_up(owed, reason)
            return
        if stored is None or endpoint is None or endpoint.state is EndpointState.DISABLED:
            return
        request = self._request(stored, endpoint, owed)
        if request is None:
            self.settlement.give_up(owed, DeathReason.EXPIRED)
        elif self._lease_lasts(visit):
            visit.sending[owed.key] = (owed, endpoint)
            outbox.start(owed.key, request)
        else:
            visit.more = True

    def _request(self, stored: StoredEvent, endpoint: Endpoint, owed: Owed) -> requests.Request | None:
        event = stored.event
        if stored.payload_key:
            body = self.payloads.get(stored.payload_key)
            if body is None:
                return None
            event = replace(event, body=body)
        now_s = self.clock.now_ms() // 1000
        secrets = [self.sealer.unseal(event.tenant, each) for each in endpoint.live_secrets(now_s)]
        return requests.build(endpoint, event, owed, secrets, now_s)

    def _lease_lasts(self, visit: Visit) -> bool:
        if visit.claim is None:
            return False
        left_ms = visit.claim.lease.until // 1000 - self.clock.now_ms()
        return left_ms >= self.request_timeout_ms + MARGIN_MS


def _granted(visit: Visit) -> list[Owed]:
    if visit.claim is None:
        raise RuntimeError("an admitted visit has a lease")
    count = visit.claim.lease.count
    visit.more |= len(visit.wanted) > count
    return visit.wanted[:count]


def _must_end(stored: StoredEvent | None, endpoint: Endpoint | None) -> DeathReason | None:
    if endpoint is None or endpoint.state is EndpointState.DELETED:
        return DeathReason.ENDPOINT_DELETED
    if stored is None:
        return DeathReason.EXPIRED
    if not set(endpoint.event_types).intersection(matching_patterns(stored.event.type)):
        return DeathReason.UNSUBSCRIBED
    return None
