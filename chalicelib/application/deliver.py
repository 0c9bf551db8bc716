"""Deliver: the lanes of a batch of bells are peeked, admitted, re-read, sent and settled.

One handler for every queue. A bell is a hint: what is owed is read from the store, and a lease at
the gate, not a message, is what allows a send.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from chalicelib.application.admission import Admission, Admitted, Decisions
from chalicelib.application.ports import (
    Bell,
    Bells,
    Clock,
    Dice,
    Finished,
    Outbox,
    Payloads,
    Receipts,
    Reread,
    Sealer,
    Sender,
    StoredEvent,
    Unavailable,
    Work,
)
from chalicelib.application.settlement import Settlement, sending_over
from chalicelib.application.visit import Attempted, Call, Stage, Visit, trusted_ms
from chalicelib.domain import request as requests
from chalicelib.domain.delivery import Again, Dead, Lane, Owed, after_unknown, owed_of_key
from chalicelib.domain.endpoint import Endpoint, EndpointState
from chalicelib.domain.event import matching_patterns
from chalicelib.domain.gate import Hold, Lease
from chalicelib.domain.outcome import DeathReason, Outcome

PEEK = 11
ROUNDS = 5
AHEAD_MS = 1_000
WAVE_S = 0.05
IN_PLACE_MS = 2_000
HIDE_MS = 60_000
MARGIN_MS = 2_000
HOLDER_BITS = 64


@dataclass(frozen=True, slots=True)
class Report:
    """What a batch came to: its attempts, and the receipts of bells that stay in the queue."""

    attempted: tuple[Attempted, ...]
    kept: frozenset[str]


@dataclass(frozen=True, slots=True)
class Deliver:
    """Works off the lanes that bells name."""

    work: Work
    admission: Admission
    settlement: Settlement
    payloads: Payloads
    sealer: Sealer
    sender: Sender
    bells: Bells
    clock: Clock
    dice: Dice
    request_timeout_ms: int

    def run(self, calls: Sequence[Call], receipts: Receipts, time_left_ms: Callable[[], int]) -> Report:
        """Work off a batch, a call per lane; a finished lane's bells are deleted while others work.

        The caller answers the queue with what is kept; the queue deletes the rest.

        When our own infrastructure fails for some lanes, Unavailable is raised after the others are
        done: the failed ones' bells are not deleted, and their leases run out.
        """
        batch = _Batch(self, [self._visit(call) for call in calls], receipts, time_left_ms)
        with self.sender.outbox() as outbox:
            batch.work_off(outbox)
        if batch.failures:
            raise batch.failures[0]
        return Report(tuple(batch.attempted), frozenset(batch.kept))

    def _visit(self, call: Call) -> Visit:
        return Visit(call, f"{self.dice.bits(HOLDER_BITS):016x}")


class _Batch:
    """The lanes of one invocation, side by side."""

    def __init__(
        self, use: Deliver, visits: list[Visit], receipts: Receipts, time_left_ms: Callable[[], int]
    ) -> None:
        self.use = use
        self.open = visits
        self.trusted_ms = trusted_ms(len(visits))
        self.receipts = receipts
        self.time_left_ms = time_left_ms
        self.attempted: list[Attempted] = []
        self.kept: set[str] = set()
        self.failures: list[Unavailable] = []
        self.finished: list[str] = []
        self.sent_by: dict[str, Visit] = {}

    def work_off(self, outbox: Outbox) -> None:
        while self.open:
            now_ms = self.use.clock.now_ms()
            due = [each for each in self.open if each.stage is Stage.WANTING and each.wake_ms <= now_ms]
            self._begin(due, outbox)
            self._end(self._collect(outbox))
            self.open = [each for each in self.open if each.stage is not Stage.DONE]
            if self.open or self.failures:
                self._delete_finished()

    def _begin(self, visits: Sequence[Visit], outbox: Outbox) -> None:
        ready: list[Visit] = []
        for visit in visits:
            with self._alone(visit):
                ready += [visit] if self._peek(visit) else []
        if ready:
            with self._alone(*ready):
                decisions = self.use.admission.decide(ready, self.use.clock.now_us())
                self._act_on(decisions, outbox)

    def _act_on(self, decisions: Decisions, outbox: Outbox) -> None:
        for visit in decisions.opened:
            self.use.settlement.open_bell(visit)
        for visit in decisions.gone:
            self._finish(visit)
        for visit, dead in decisions.dead:
            with self._alone(visit):
                self._bury(visit, dead)
        for visit, hold in decisions.held:
            self._hold(visit, hold)
        if decisions.admitted:
            with self._alone(*(each.visit for each in decisions.admitted)):
                self._send(decisions.admitted, outbox)

    @contextmanager
    def _alone(self, *visits: Visit) -> Iterator[None]:
        """Let a failure of ours end these visits and no other: what they had in flight will be unknown."""
        try:
            yield
        except Unavailable as error:
            self.failures.append(error)
            for visit in visits:
                visit.stage = Stage.DONE

    def _peek(self, visit: Visit) -> bool:
        now_ms = self.use.clock.now_ms()
        visit.more = False
        first = visit.round == 0 and not visit.waited_ms and not visit.buried
        named = visit.call.rows(now_ms, self.trusted_ms) if first else []
        if named:
            visit.wanted = named
            return True
        rows = self.use.work.peek(visit.lane, PEEK)
        visit.wanted = [row for row in rows if row.ready_ms <= now_ms]
        later = [row.ready_ms for row in rows if row.ready_ms > now_ms]
        visit.more = len(visit.wanted) == PEEK
        if visit.wanted:
            visit.next_ms = later[0] if later else 0
            return True
        visit.next_ms = later[0] if later else 0
        if later and later[0] <= now_ms + AHEAD_MS and self._time_for_more():
            visit.wait_until(later[0], now_ms)
        else:
            self._finish(visit)
        return False

    def _hold(self, visit: Visit, hold: Hold) -> None:
        now_ms = self.use.clock.now_ms()
        if hold.until is None:
            visit.next_ms = 0
            self._delete(visit)
            return
        until_ms = -(-hold.until // 1000)
        wait_ms = until_ms - now_ms
        if wait_ms <= IN_PLACE_MS and visit.waited_ms < IN_PLACE_MS and self._time_for_more():
            visit.wait_until(max(until_ms, now_ms), now_ms)
        elif wait_ms <= HIDE_MS:
            self._keep(visit, max(1, -(-wait_ms // 1000)))
        else:
            self.use.settlement.ring_at(visit, min(until_ms, now_ms + HIDE_MS * 15))
            self._delete(visit)

    def _send(self, admitted: Sequence[Admitted], outbox: Outbox) -> None:
        asked = [(each.visit, row) for each in admitted for row in self._granted(each.visit)]
        found = self.use.work.reread([row for _, row in asked])
        arrived = [owed for visit, row in asked for owed in self._send_or_close(visit, row, found, outbox)]
        for each in admitted:
            each.visit.stage = Stage.SENDING
        over = [each.visit for each in admitted if not each.visit.sending]
        with self._alone(*over):
            self.use.settlement.close(arrived, over)
            for visit in over:
                self._next(visit)

    def _send_or_close(self, visit: Visit, row: Owed, found: Reread, outbox: Outbox) -> list[Owed]:
        """Start a row's send; or give it back when the last holder's attempt at it arrived."""
        owed = found.owed.get(row.key)
        attempt = found.attempts.get(row.key)
        if owed is None:
            return []
        if attempt is not None and attempt.outcome is Outcome.SUCCESS:
            return [owed]
        if attempt is None and owed.made == row.made:
            self._try_to_start(visit, owed, found, outbox)
        else:
            visit.more = True
        return []

    def _try_to_start(self, visit: Visit, owed: Owed, found: Reread, outbox: Outbox) -> None:
        """Start a row's send, unless its body or its secrets cannot be had: what was started goes on."""
        if visit.stuck:
            return
        try:
            self._start(visit, owed, found, outbox)
        except Unavailable as error:
            self.failures.append(error)
            visit.stuck = True

    def _granted(self, visit: Visit) -> list[Owed]:
        if visit.claim is None:
            raise RuntimeError("an admitted visit has a lease")
        count = visit.claim.lease.count
        visit.more |= len(visit.wanted) > count
        return visit.wanted[:count]

    def _start(self, visit: Visit, owed: Owed, found: Reread, outbox: Outbox) -> None:
        stored = found.events.get((owed.lane.tenant, owed.event_id))
        endpoint = found.endpoints.get(visit.gate_key)
        reason = _must_end(stored, endpoint)
        if reason is not None:
            self.use.settlement.give_up(owed, reason)
            return
        if stored is None or endpoint is None or endpoint.state is EndpointState.DISABLED:
            return
        request = self._request(stored, endpoint, owed)
        if request is None:
            self.use.settlement.give_up(owed, DeathReason.EXPIRED)
        elif self._lease_lasts(visit):
            visit.sending[owed.key] = (owed, endpoint)
            self.sent_by[owed.key] = visit
            outbox.start(owed.key, request)
        else:
            visit.more = True

    def _request(self, stored: StoredEvent, endpoint: Endpoint, owed: Owed) -> requests.Request | None:
        event = stored.event
        if stored.payload_key:
            body = self.use.payloads.get(stored.payload_key)
            if body is None:
                return None
            event = replace(event, body=body)
        now_s = self.use.clock.now_ms() // 1000
        secrets = [self.use.sealer.unseal(event.tenant, each) for each in endpoint.live_secrets(now_s)]
        return requests.build(endpoint, event, owed, secrets, now_s)

    def _lease_lasts(self, visit: Visit) -> bool:
        if visit.claim is None:
            return False
        left_ms = visit.claim.lease.until // 1000 - self.use.clock.now_ms()
        return left_ms >= self.use.request_timeout_ms + MARGIN_MS

    def _bury(self, visit: Visit, dead: Lease) -> None:
        """Tell of what a dead holder had in flight; the lane is then looked at anew."""
        rows = [owed_of_key(visit.lane, key) for key in dead.keys]
        found = self.use.work.reread(rows)
        now_ms = self.use.clock.now_ms()
        moves: list[tuple[Owed, Again | Dead]] = []
        for row in rows:
            owed = found.owed.get(row.key)
            if owed is not None and owed.made == row.made and row.key not in found.attempts:
                step = after_unknown(owed, now_ms)
                moves.append((owed, step))
        self.use.settlement.bury(moves)
        visit.buried = dead.holder

    def _collect(self, outbox: Outbox) -> list[Finished]:
        if not any(visit.sending for visit in self.open):
            self._idle(outbox)
            return []
        wakes = [visit.wake_ms for visit in self.open if visit.stage is Stage.WANTING]
        now_ms = self.use.clock.now_ms()
        patience_s = max(0.0, (min(wakes) - now_ms) / 1000) if wakes else self.use.request_timeout_ms / 1000
        ended = outbox.finished(patience_s)
        if not ended:
            return []
        wave_over_ms = self.use.clock.now_ms() + int(WAVE_S * 1000)
        pending = sum(len(visit.sending) for visit in self.open)
        while len(ended) < pending:
            left_s = (wave_over_ms - self.use.clock.now_ms()) / 1000
            if left_s <= 0:
                break
            ended += outbox.finished(left_s)
        return ended

    def _idle(self, outbox: Outbox) -> None:
        wakes = [visit.wake_ms for visit in self.open if visit.stage is Stage.WANTING]
        wait_ms = min(wakes) - self.use.clock.now_ms() if wakes else 0
        if wait_ms > 0:
            outbox.finished(wait_ms / 1000)

    def _end(self, ended: Sequence[Finished]) -> None:
        if not ended:
            return
        sent = [(self.sent_by.pop(each.key), each) for each in ended]
        live = [(visit, each) for visit, each in sent if visit.stage is Stage.SENDING]
        results = [self.use.settlement.judged(visit, each) for visit, each in live]
        over = [visit for visit in self.open if sending_over(visit)]
        with self._alone(*(visit for visit, _ in live), *over):
            self.attempted += self.use.settlement.wave(results, over)
            for visit in over:
                self._next(visit)

    def _next(self, visit: Visit) -> None:
        visit.round += 1
        if visit.stuck:
            visit.stage = Stage.DONE
        elif visit.more and visit.round < ROUNDS and self._time_for_more():
            visit.stage = Stage.WANTING
            visit.wake_ms = 0
        else:
            self._finish(visit)

    def _time_for_more(self) -> bool:
        return self.time_left_ms() > self.use.request_timeout_ms + 2 * MARGIN_MS

    def _finish(self, visit: Visit) -> None:
        if visit.more and self.use.bells.ring([Bell(visit.lane, self.use.clock.now_ms())]):
            self._keep(visit, 1)
            return
        if visit.next_ms:
            self.use.settlement.ring_at(visit, visit.next_ms)
        self._delete(visit)

    def _delete(self, visit: Visit) -> None:
        visit.stage = Stage.DONE
        self.finished += visit.call.receipts

    def _delete_finished(self) -> None:
        """Delete the bells of the lanes that are done while others still work, in one call.

        Those done last are deleted by the answer of the invocation. One that cannot be deleted
        comes back and finds nothing to do; that ends nobody's sends.
        """
        if self.finished:
            with suppress(Unavailable):
                self.receipts.delete(self.finished)
            self.finished = []

    def _keep(self, visit: Visit, seconds: int) -> None:
        visit.stage = Stage.DONE
        first, *others = visit.call.receipts
        with suppress(Unavailable):
            self.receipts.hide([first], seconds)
        if others:
            self.finished += others
        self.kept.add(first)


def _must_end(stored: StoredEvent | None, endpoint: Endpoint | None) -> DeathReason | None:
    if endpoint is None or endpoint.state is EndpointState.DELETED:
        return DeathReason.ENDPOINT_DELETED
    if stored is None:
        return DeathReason.EXPIRED
    if not set(endpoint.event_types).intersection(matching_patterns(stored.event.type)):
        return DeathReason.UNSUBSCRIBED
    return None


def calls_of(bells: Sequence[tuple[Bell, str]]) -> list[Call]:
    """Bring the bells of each lane together, newest first, each with its receipt."""
    by_lane: dict[Lane, list[tuple[Bell, str]]] = {}
    for bell, receipt in bells:
        by_lane.setdefault(bell.lane, []).append((bell, receipt))
    return [_call(lane, rung) for lane, rung in by_lane.items()]


def _call(lane: Lane, rung: Sequence[tuple[Bell, str]]) -> Call:
    hints = dict.fromkeys(hint for bell, _ in rung for hint in bell.hints)
    oldest = min(bell.rung_ms for bell, _ in rung)
    complete = all(bell.hints for bell, _ in rung)
    return Call(lane, oldest, tuple(hints) if complete else (), tuple(receipt for _, receipt in rung))
