"""Settlement: what a send came to is made durable, then the lane's lease goes back.

Attempts first, owed rows only for attempts that are in, lease and breaker last: killed between
any two writes, the next holder finishes what is left. A failure is one transaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import assert_never

from chalicelib.application.admission import KnownGates
from chalicelib.application.ports import (
    Bell,
    Bells,
    Changed,
    Clock,
    Dice,
    Endpoints,
    Finished,
    Gates,
    Work,
)
from chalicelib.application.visit import Attempted, Visit
from chalicelib.domain import gate as gates
from chalicelib.domain.backoff import RETRY_AFTER_CEILING
from chalicelib.domain.change import Change
from chalicelib.domain.delivery import (
    Again,
    Arrived,
    Attempt,
    Dead,
    Held,
    Lane,
    Owed,
    Status,
    Step,
    Timing,
    after_send,
    given_up,
)
from chalicelib.domain.endpoint import Endpoint, EndpointState, lane_numbers
from chalicelib.domain.gate import (
    QUICK_MS,
    Breaker,
    Claim,
    Gate,
    Hold,
    Leaving,
    Queue,
    Rules,
    Spell,
    Told,
)
from chalicelib.domain.outcome import DeathReason, Fault, Reply, Verdict, judge

TIMEOUTS = frozenset({Fault.TIMEOUT, Fault.CONNECT_TIMEOUT})
BELL_DELAY_MAX_S = 900
# Ingest may have seen a lane quiet just before it was not; by then whatever it did so for is written.
AFTER_QUIET_S = 61
_COMING_MAX = 10_000
GONE_REASON = "the endpoint answered 410 Gone"


@dataclass(frozen=True, slots=True)
class Result:
    """A send that ended, judged: where it belongs and what follows."""

    visit: Visit
    owed: Owed
    endpoint: Endpoint
    verdict: Verdict
    step: Step


@dataclass(frozen=True, slots=True)
class Settlement:
    """Writes down what became of deliveries.

    `coming_ms` is when the delayed bell is due that this process last sent to a lane: whoever
    comes for it sees what is due later.
    """

    work: Work
    gates: Gates
    endpoints: Endpoints
    bells: Bells
    known: KnownGates
    clock: Clock
    dice: Dice
    rules: Rules
    coming_ms: dict[Lane, int] = field(default_factory=dict)

    def judged(self, visit: Visit, finished: Finished) -> Result | None:
        """Take a finished send out of its visit and decide what it means; None: it never began."""
        owed, endpoint = visit.sending.pop(finished.key)
        if not finished.begun:
            visit.more = True
            visit.stop()
            return None
        verdict = judge(finished.reply, datetime.fromtimestamp(finished.ended_ms / 1000, UTC))
        visit.told.append(told_of(verdict, finished.reply))
        held = self._held(visit, owed, finished.began_ms)
        timing = Timing(finished.began_ms, finished.ended_ms, self.dice.jitter(), held)
        step = after_send(owed, finished.reply, verdict, endpoint.retry_profile, timing)
        if isinstance(step, Again):
            visit.stop()
        return Result(visit, owed, endpoint, verdict, step)

    def wave(self, results: Sequence[Result], over: Sequence[Visit]) -> list[Attempted]:
        """Settle what has ended, and the leases of the visits that have nothing left in flight."""
        self._disable_gone(results)
        arrived = [each for each in results if isinstance(each.step, Arrived)]
        attempts = [(each.owed, _attempt(each.step)) for each in arrived]
        now_us = self.clock.now_us()
        holds = self._not_noted(over, now_us)
        inserted = self.work.insert(attempts, holds) if attempts or holds else []
        settled = [each for each, done in zip(arrived, inserted, strict=True) if done]
        for each, done in zip(arrived, inserted, strict=True):
            if not done:
                each.visit.more = True
                each.visit.stop()
        settled += self._moved([each for each in results if not isinstance(each.step, Arrived)])
        closing = [each.owed for each in settled if isinstance(each.step, Arrived)]
        self._close(closing, over, now_us)
        self._hold_endpoints(results)
        return [_attempted(each) for each in settled]

    def close(self, arrived: Sequence[Owed], over: Sequence[Visit]) -> None:
        """Remove owed rows whose attempts are in, and give back the leases of visits that send no more."""
        now_us = self.clock.now_us()
        self._note(self._not_noted(over, now_us))
        self._close(arrived, over, now_us)

    def _close(self, arrived: Sequence[Owed], over: Sequence[Visit], now_us: int) -> None:
        changes = [(visit.gate_key, self._settled(visit, self._leaving(visit), now_us)) for visit in over]
        if not arrived and not changes:
            return
        answers = self.work.close(arrived, changes)
        for visit, answer in zip(over, answers, strict=True):
            self.known.put(visit.gate_key, self._after_settling(visit, answer))
            visit.claim = None
            visit.told.clear()

    def bury(self, moves: Sequence[tuple[Owed, Again | Dead]]) -> None:
        """Record deliveries that ended or moved without a send of this visit."""
        if moves:
            self.work.move(moves)

    def give_up(self, owed: Owed, reason: DeathReason) -> None:
        """End a delivery that must not be sent any more."""
        self.bury([(owed, given_up(owed, reason, self.clock.now_ms()))])

    def ring_at(self, visit: Visit, moment_ms: int) -> None:
        """Send a bell for a later moment, unless this process has sent one that comes no later.

        Beyond the delay queue's reach reconcile will.
        """
        now_ms = self.clock.now_ms()
        delay_s = max(0, -(-(moment_ms - now_ms) // 1000))
        due_ms = now_ms + delay_s * 1000
        on_its_way = now_ms < self.coming_ms.get(visit.lane, 0) <= due_ms
        if delay_s > BELL_DELAY_MAX_S or on_its_way:
            return
        if len(self.coming_ms) >= _COMING_MAX:
            self.coming_ms.clear()
        if not self.bells.ring_later(visit.lane, delay_s, self._queue(visit)):
            self.coming_ms[visit.lane] = due_ms

    def ring_after_quiet(self, visit: Visit) -> None:
        """Send the late bell of a lane that is rung again from now on; no earlier one stands for it."""
        now_ms = self.clock.now_ms()
        lost = self.bells.ring_later(visit.lane, AFTER_QUIET_S, self._queue(visit))
        if not lost and self.coming_ms.get(visit.lane, 0) <= now_ms:
            self.coming_ms[visit.lane] = now_ms + AFTER_QUIET_S * 1000

    def open_bell(self, visit: Visit) -> None:
        """Send the one delayed bell of a breaker that has just opened."""
        gate = self.known.get(visit.gate_key)
        if gate is not None:
            self.ring_at(visit, min(gate.open_until // 1000, self.clock.now_ms() + BELL_DELAY_MAX_S * 1000))

    def ring_again(self, visit: Visit) -> int:
        """Ring a lane that goes on later; the number of bells lost."""
        return self.bells.ring([Bell(visit.lane, self.clock.now_ms(), queue=self._queue(visit))])

    def held(self, visit: Visit, hold: Hold, until_ms: int) -> None:
        """Note that an endpoint is held, and when the bell comes that this lane is left with."""
        gate = self.known.get(visit.gate_key)
        if gate is None:
            return
        number = visit.lane.number
        change = gates.hold_begun(gate, hold.reason, self.clock.now_us(), lane=number, due=until_ms * 1000)
        if change is not None:
            self.known.put(visit.gate_key, self._change(visit, change))

    def held_sum_ms(self, visit: Visit) -> int:
        """Say how long the endpoint of a visit was held in all, as far as this process knows."""
        gate = self.known.get(visit.gate_key)
        return gates.held_sum(gate, self.clock.now_us()) // 1000 if gate else 0

    def is_quiet(self, visit: Visit) -> bool:
        """Say whether nobody rings the lane of a visit, so that it has to leave a bell or end that."""
        gate = self.known.get(visit.gate_key)
        return gate is not None and visit.lane.number in gate.quiet

    def drained(self, visit: Visit, *, known: bool) -> bool:
        """Let a lane with nothing left be rung again; False when it was not quiet.

        `known`: the gate has been read in this visit, or the visit was rung by ingest.
        """
        if not known:
            found = self.gates.read([visit.gate_key])
            self.known.put(visit.gate_key, found.get(visit.gate_key))
        gate = self.known.get(visit.gate_key)
        now_us = self.clock.now_us()
        change = gates.drained(gate, visit.lane.number, now_us) if gate else None
        if gate is None or change is None:
            return False
        if "held_past" in change.sets:
            self._note(_spells(visit, gates.not_noted(gate, now_us, ending=True)))
        self.known.put(visit.gate_key, self._change(visit, change))
        return True

    def _moved(self, results: Sequence[Result]) -> list[Result]:
        moves = [(each.owed, each.step) for each in results if not isinstance(each.step, Arrived)]
        if not moves:
            return []
        moved = []
        for each, made in zip(results, self.work.move(moves), strict=True):
            each.visit.more |= not made
            moved += [each] if made else []
            if made and isinstance(each.step, Again):
                ready_ms = each.step.owed.ready_ms
                each.visit.next_ms = min(each.visit.next_ms or ready_ms, ready_ms)
        return moved

    def _leaving(self, visit: Visit) -> Leaving | None:
        gate = self.known.get(visit.gate_key)
        return Leaving(gate, last=not visit.more) if gate else None

    def _not_noted(self, over: Sequence[Visit], now_us: int) -> list[tuple[tuple[str, str], Spell]]:
        noting = []
        for visit in over:
            leaving = self._leaving(visit)
            if leaving is not None and visit.claim is not None:
                ending = gates.ends_hold(leaving, visit.claim, visit.told)
                noting += _spells(visit, gates.not_noted(leaving.gate, now_us, ending=ending))
        return noting

    def _note(self, holds: Sequence[tuple[tuple[str, str], Spell]]) -> None:
        """Write holds to history; before their gate says that they are there."""
        if holds:
            self.work.insert([], holds)

    def _settled(self, visit: Visit, leaving: Leaving | None, now_us: int) -> Change:
        if visit.claim is None:
            raise RuntimeError("a visit without a lease has nothing to settle")
        return gates.settle(visit.claim, visit.told, now_us, self.rules, leaving)

    def _after_settling(self, visit: Visit, answer: Changed) -> Gate | None:
        gate = answer.gate
        claim = visit.claim
        if gate is None or claim is None:
            return None
        if not answer.made:
            lease = gate.leases.get(claim.lane)
            if lease is None or lease.holder != claim.lease.holder:
                return gate
            return self._settle_again(visit, claim, gate)
        if claim.probe and gate.state is Breaker.CLOSED:
            self._ring_all(visit, gate)
        return self._moved_on(visit, self._open(visit, gate) if gates.overfull(gate, self.rules) else gate)

    def _settle_again(self, visit: Visit, claim: Claim, gate: Gate) -> Gate | None:
        """Settle by the gate as it is now; only when the breaker has turned are the words lost."""
        if gate.epoch == claim.lease.epoch:
            now_us = self.clock.now_us()
            ending = gates.ends_hold(Leaving(gate), claim, visit.told)
            self._note(_spells(visit, gates.not_noted(gate, now_us, ending=ending)))
            change = self._settled(visit, Leaving(gate), now_us)
            (answer,) = self.gates.change([(visit.gate_key, change)])
            if answer.made:
                return self._after_settling(visit, answer)
        return self._change(visit, gates.release(claim.lease, claim.lane))

    def _ring_all(self, visit: Visit, gate: Gate) -> None:
        """Ring every lane of an endpoint that has recovered, but for the one that goes on by itself."""
        now_ms = self.clock.now_ms()
        lane = visit.lane
        names = lane_numbers(gate.lanes, ordered=lane.ordered)
        lanes = [replace(lane, number=each) for each in names]
        going_on = {lane} if visit.more else set()
        self.bells.ring([Bell(each, now_ms, queue=gate.queue) for each in lanes if each not in going_on])

    def _open(self, visit: Visit, overfull: Gate) -> Gate | None:
        gate: Gate | None = overfull
        while gate is not None and gates.overfull(gate, self.rules):
            opening = gates.opening(gate, self.clock.now_us(), self.rules)
            gate = self._change(visit, opening)
            if gate is not None and gate.open_until == opening.sets["open_until"]:
                self.known.put(visit.gate_key, gate)
                self.open_bell(visit)
        return gate

    def _moved_on(self, visit: Visit, gate: Gate | None) -> Gate | None:
        """Let an endpoint ring where its behaviour says it should."""
        change = gates.moved(gate) if gate else None
        return self._change(visit, change) if change else gate

    def _change(self, visit: Visit, change: Change) -> Gate | None:
        (answer,) = self.gates.change([(visit.gate_key, change)])
        return answer.gate

    def _queue(self, visit: Visit) -> Queue:
        gate = self.known.get(visit.gate_key)
        return gate.queue if gate else Queue.SHARD

    def _held(self, visit: Visit, owed: Owed, began_ms: int) -> Held:
        gate = self.known.get(visit.gate_key)
        if gate is None:
            return Held()
        waited = gates.held_between(gate, owed.ready_ms * 1000, began_ms * 1000)
        return Held(waited[0] // 1000, waited[1], gates.held_sum(gate, began_ms * 1000) // 1000)

    def _disable_gone(self, results: Sequence[Result]) -> None:
        """Disable the endpoints that said they are gone; before that is recorded, or a kill could lose it."""
        for each in results:
            endpoint: Endpoint | None = each.endpoint if each.verdict.disables_endpoint else None
            while endpoint is not None and endpoint.state is EndpointState.ENABLED:
                if self.endpoints.replace(endpoint, disabled(endpoint, self.clock.now_ms())):
                    break
                endpoint = self.endpoints.get(endpoint.tenant, endpoint.id)

    def _hold_endpoints(self, results: Sequence[Result]) -> None:
        """Hold the endpoints that asked for time, for as long as they asked and an hour at most."""
        for each in results:
            asked = each.verdict.retry_after
            if each.verdict.holds_endpoint and asked:
                wait_us = min(asked, RETRY_AFTER_CEILING) // timedelta(microseconds=1)
                self._change(each.visit, gates.hold_until(self.clock.now_us() + wait_us))


def disabled(endpoint: Endpoint, now_ms: int) -> Endpoint:
    """Give an endpoint as it is after it answered 410."""
    off = replace(endpoint, state=EndpointState.DISABLED, state_reason=GONE_REASON)
    return off.next_to(endpoint, now_ms)


def told_of(verdict: Verdict, reply: Reply) -> Told:
    """Say what one answer tells of its endpoint."""
    timed_out = reply.fault in TIMEOUTS
    return Told(verdict.evidence, timed_out, reply.status is not None and reply.total_ms < QUICK_MS)


def _spells(visit: Visit, spells: Sequence[Spell]) -> list[tuple[tuple[str, str], Spell]]:
    return [(visit.gate_key, spell) for spell in spells]


def _attempt(step: Step) -> Attempt:
    attempt = step.attempt
    if attempt is None:
        raise RuntimeError("a delivery that ended without an attempt has none to insert")
    return attempt


def _attempted(result: Result) -> Attempted:
    attempt = _attempt(result.step)
    match result.step:
        case Arrived():
            became, reason = Status.SUCCEEDED, ""
        case Again():
            became, reason = Status.PENDING, ""
        case Dead(_, ended):
            became, reason = Status.DEAD, ended.reason.value
        case _:
            assert_never(result.step)
    return Attempted(
        result.owed.lane.name,
        attempt.delivery_id,
        attempt.event_id,
        attempt.generation,
        attempt.number,
        attempt.outcome.value,
        attempt.status,
        attempt.fault.value if attempt.fault else None,
        became,
        reason,
        attempt.queue_ms,
        attempt.total_ms,
    )
