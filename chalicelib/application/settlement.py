"""Settlement: what a send came to is made durable, then the lane's lease goes back.

Attempts first, owed rows only for attempts that are in, lease and breaker last: killed between
any two writes, the next holder finishes what is left. A failure is one transaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import assert_never

from chalicelib.application.auditing import Recorder
from chalicelib.application.counting import Counting
from chalicelib.application.gatekeeper import Gatekeeper
from chalicelib.application.holding import Holding, Noted
from chalicelib.application.lane_bells import LaneBells
from chalicelib.application.ports import Changed, Clock, Dice, Endpoints, Finished, Work
from chalicelib.application.visit import Attempted, Visit
from chalicelib.domain import audited, counts, metrics
from chalicelib.domain import gate as gates
from chalicelib.domain.audit import RELAY, Action
from chalicelib.domain.backoff import RETRY_AFTER_CEILING
from chalicelib.domain.change import Change
from chalicelib.domain.chat.waits import heard
from chalicelib.domain.delivery import (
    Again,
    Arrived,
    Attempt,
    Dead,
    Owed,
    Status,
    Step,
    Timing,
    after_send,
    given_up,
    tried_once,
)
from chalicelib.domain.endpoint import GONE_REASON, Endpoint, EndpointState
from chalicelib.domain.gate import (
    QUICK_MS,
    Breaker,
    Claim,
    Gate,
    HoldReason,
    Leaving,
    Rules,
    Told,
)
from chalicelib.domain.metrics import ProbeResult
from chalicelib.domain.outcome import DeathReason, Fault, Outcome, Reply, Verdict, judge
from chalicelib.domain.request import event_time, without_echo
from chalicelib.domain.trace import Steps

Arrival = tuple[Owed, Attempt]
"""A delivery whose attempt has succeeded and is in history, with its row as it was before."""
TRIES = 4
UNHEARD_US = 60 * gates.SECOND
"""How long an endpoint is held to which nobody listens, unless somebody comes before."""
TIMEOUTS = frozenset({Fault.TIMEOUT, Fault.CONNECT_TIMEOUT})


@dataclass(frozen=True, slots=True)
class Result:
    """A send that ended, judged: where it belongs and what follows."""

    visit: Visit
    owed: Owed
    endpoint: Endpoint
    verdict: Verdict
    step: Step
    steps: Steps


@dataclass(frozen=True, slots=True)
class Settlement:
    """Writes down what became of deliveries."""

    work: Work
    keeper: Gatekeeper
    holding: Holding
    bells: LaneBells
    endpoints: Endpoints
    clock: Clock
    dice: Dice
    rules: Rules
    counting: Counting

    def judged(self, visit: Visit, finished: Finished) -> Result | None:
        """Take a finished send out of its visit and decide what it means; None: it never began."""
        sent = visit.sending.pop(finished.key)
        owed, endpoint = sent.owed, sent.endpoint
        if not finished.begun or finished.reply.unheard:
            visit.more = True
            visit.stop()
            if finished.reply.unheard:
                self.holding.asked(visit, self.clock.now_us() + UNHEARD_US, HoldReason.NO_LISTENER)
            return None
        reply = without_echo(finished.reply, sent.request)
        now = datetime.fromtimestamp(finished.ended_ms / 1000, UTC)
        verdict = judge(heard(endpoint.transport, finished.reply, now), now)
        held = self.holding.of(visit, sent, finished.began_ms)
        turn_ms = -(-max(sent.turn_us, sent.paced_us) // 1000)
        timing = Timing(finished.began_ms, finished.ended_ms, self.dice.jitter(), held, turn_ms, sent.kept)
        step = after_send(owed, reply, verdict, endpoint.retry_profile, timing)
        # A test that fails says nothing of its endpoint; one that succeeds may end what is held against it.
        if not owed.test or verdict.outcome is Outcome.SUCCESS:
            times_ms = (reply.total_ms, max(0, finished.began_ms - owed.ready_ms))
            visit.told.append(replace(told_of(verdict, reply), times_ms=times_ms))
        if owed.test:
            step = tried_once(step, finished.ended_ms)
        if isinstance(step, Again):
            visit.stop()
            visit.blocked = visit.lane.ordered
        if isinstance(step, Dead) and not step.quiet:
            visit.died = True
            visit.refused |= step.ended.reason is DeathReason.REFUSED
        times_us = (finished.began_ms * 1000, finished.ended_ms * 1000)
        steps = Steps(visit.asked_us, sent.turn_us, *times_us, times_us[-1], times_us[-1])
        return Result(visit, owed, endpoint, verdict, step, steps)

    def wave(self, results: Sequence[Result], over: Sequence[Visit]) -> list[Attempted]:
        """Settle what has ended, and the leases of the visits that have nothing left in flight."""
        settling_us = self.clock.now_us()
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
        self._close(self._removable(settled), over, now_us)
        self._hold_endpoints(results)
        self._disable_hopeless(over)
        settled_us = self.clock.now_us()
        return [_sent(each, settling_us, settled_us) for each in settled]

    def _removable(self, settled: Sequence[Result]) -> list[Arrival]:
        """Say which rows go; those of a lease that has run out its taker may have removed, and counted."""
        now_us = self.clock.now_us()
        removable = []
        for each in settled:
            if not isinstance(each.step, Arrived):
                continue
            if each.visit.claim is not None and now_us < each.visit.claim.lease.until:
                removable.append((each.owed, each.step.attempt))
            else:
                each.visit.more = True
                each.visit.stop()
        return removable

    def close(self, arrived: Sequence[Arrival], over: Sequence[Visit]) -> None:
        """Remove owed rows whose attempts are in, and give back the leases of visits that send no more."""
        now_us = self.clock.now_us()
        self.holding.note(self._not_noted(over, now_us))
        self._close(arrived, over, now_us)

    def _close(self, arrived: Sequence[Arrival], over: Sequence[Visit], now_us: int) -> None:
        leaving = [self.holding.leaving(visit) for visit in over]
        changes = [
            (visit.gate_key, self._settled(visit, each, now_us))
            for visit, each in zip(over, leaving, strict=True)
        ]
        if not arrived and not changes:
            return
        counted = [(owed, counts.of_attempt(owed, attempt)) for owed, attempt in arrived]
        answers = self.counting.along(lambda beside: self.work.close(counted, changes, beside))
        for visit, answer in zip(over, answers, strict=True):
            self.keeper.seen(visit, self._after_settling(visit, answer))
            visit.claim = None
            visit.told.clear()
            visit.died = visit.refused = False

    def bury(self, moves: Sequence[tuple[Owed, Again | Dead]]) -> list[Attempted]:
        """Record what ended or moved without a send of this visit, and give the attempts among it."""
        told = []
        for (owed, step), made in zip(moves, self.work.move(moves) if moves else (), strict=True):
            self.counting.add(counts.of_move(owed, step) if made else counts.NOTHING)
            told += [_attempted(owed, step)] if made and step.attempt else []
        return told

    def give_up(self, visit: Visit, owed: Owed, reason: DeathReason) -> None:
        """End a delivery that must not be sent any more."""
        step = given_up(owed, reason, self.clock.now_ms())
        visit.died |= not step.quiet
        self.bury([(owed, step)])

    def _moved(self, results: Sequence[Result]) -> list[Result]:
        moves = [(each.owed, each.step) for each in results if not isinstance(each.step, Arrived)]
        if not moves:
            return []
        moved = []
        for each, (owed, step), made in zip(results, moves, self.work.move(moves), strict=True):
            each.visit.more |= not made
            moved += [each] if made else []
            self.counting.add(counts.of_move(owed, step) if made else counts.NOTHING)
            if made and isinstance(each.step, Again):
                ready_ms = each.step.owed.ready_ms
                each.visit.next_ms = min(each.visit.next_ms or ready_ms, ready_ms)
        return moved

    def _not_noted(self, over: Sequence[Visit], now_us: int) -> list[Noted]:
        found = (self.holding.not_noted(visit, self.holding.leaving(visit), now_us) for visit in over)
        return [each for some in found for each in some]

    def _settled(self, visit: Visit, leaving: Leaving | None, now_us: int) -> Change:
        if visit.claim is None:
            raise RuntimeError("a visit without a lease has nothing to settle")
        change = gates.settle(visit.claim, visit.told, now_us, self.rules, leaving)
        return gates.and_alert(change, now_us, refused=visit.refused) if visit.died else change

    def _after_settling(self, visit: Visit, answer: Changed) -> Gate | None:
        gate = answer.gate
        claim = visit.claim
        if gate is None or claim is None:
            return None
        if not answer.made:
            return self._settle_again(visit, claim, gate) if _holds(claim, gate) else self._lost(claim, gate)
        if claim.probe and visit.told:
            closed = gate.state is Breaker.CLOSED
            self.counting.count(metrics.PROBES, ProbeResult.SUCCEEDED if closed else ProbeResult.FAILED)
        if claim.probe and gate.state is Breaker.CLOSED:
            self.bells.ring_all(visit, gate)
        return self._moved_on(visit, self._open(visit, gate) if gates.overfull(gate, self.rules) else gate)

    def _lost(self, claim: Claim, gate: Gate) -> Gate:
        """Count a lease that ran out under its holder; one that is gone before was given back already."""
        if self.clock.now_us() >= claim.lease.until:
            self.counting.count(metrics.LEASES_LOST)
        return gate

    def _settle_again(self, visit: Visit, claim: Claim, gate: Gate) -> Gate | None:
        """Settle by the gate as it is now; only when the breaker has turned are the words lost.

        The last try does without durations, of which many at once may keep beginning buckets.
        """
        for left in reversed(range(TRIES)):
            if gate.epoch != claim.lease.epoch:
                break
            if not left:
                visit.told = [replace(each, times_ms=None) for each in visit.told]
            now_us = self.clock.now_us()
            self.holding.note(self.holding.not_noted(visit, Leaving(gate), now_us))
            change = self._settled(visit, Leaving(gate), now_us)
            (answer,) = self.keeper.gates.change([(visit.gate_key, change)])
            if answer.made or answer.gate is None or not _holds(claim, answer.gate):
                return self._after_settling(visit, answer)
            gate = answer.gate
        released = gates.release(claim.lease, claim.lane)
        now_us = self.clock.now_us()
        return self.keeper.change(visit, gates.and_alert(released, now_us, refused=True))

    def _open(self, visit: Visit, overfull: Gate) -> Gate | None:
        gate: Gate | None = overfull
        while gate is not None and gates.overfull(gate, self.rules):
            opening = gates.opening(gate, self.clock.now_us(), self.rules)
            gate = self.keeper.change(visit, opening)
            if gate is not None and gate.open_until == opening.sets["open_until"]:
                self.counting.count(metrics.BREAKER_TRIPS)
                self.bells.ring_when_it_cools(visit)
        return gate

    def _moved_on(self, visit: Visit, gate: Gate | None) -> Gate | None:
        """Let an endpoint ring where its behaviour says it should."""
        change = gates.moved(gate) if gate else None
        return self.keeper.change(visit, change) if change else gate

    def _disable_gone(self, results: Sequence[Result]) -> None:
        """Disable the endpoints that said they are gone; before that is recorded, or a kill could lose it."""
        for each in results:
            gone = each.verdict.disables_endpoint and not _quiet(each.step)
            endpoint: Endpoint | None = each.endpoint if gone else None
            while endpoint is not None and endpoint.state is EndpointState.ENABLED:
                if self._disable(endpoint, GONE_REASON):
                    break
                endpoint = self.endpoints.get(endpoint.tenant, endpoint.id)

    def _disable_hopeless(self, over: Sequence[Visit]) -> None:
        """Disable the endpoints that have failed for too long, each once: its version is what guards it.

        The endpoint is read before the gate: whoever changes what it is judged by changes both.
        """
        for visit in over:
            gate = self.keeper.of(visit)
            while gate is not None and gates.hopeless(gate, self.clock.now_us(), self.rules):
                endpoint = self.endpoints.get(*visit.gate_key)
                gate = self.keeper.read(visit)
                now_us = self.clock.now_us()
                if endpoint is None or endpoint.state is not EndpointState.ENABLED:
                    break
                if gate is None or not gates.hopeless(gate, now_us, self.rules):
                    break
                if self._disable(endpoint, hopeless_reason(gate)):
                    gate = self.keeper.read(visit)

    def _disable(self, endpoint: Endpoint, reason: str) -> bool:
        """Disable an endpoint as Relay itself; False when it has changed since it was read."""
        off = endpoint.disabled(self.clock.now_ms(), reason)
        change = audited.endpoint_change(endpoint, off)
        of = (endpoint.tenant, endpoint.id)
        recorder = Recorder(self.clock, self.dice)
        return self.endpoints.replace(
            endpoint, off, recorder.record(RELAY, Action.ENDPOINT_DISABLED, of, change)
        )

    def _hold_endpoints(self, results: Sequence[Result]) -> None:
        """Hold the endpoints that asked for time, for as long as they asked and an hour at most."""
        for each in results:
            asked = each.verdict.retry_after
            if each.verdict.holds_endpoint and asked:
                wait_us = min(asked, RETRY_AFTER_CEILING) // timedelta(microseconds=1)
                self.holding.asked(each.visit, self.clock.now_us() + wait_us)


def _holds(claim: Claim, gate: Gate) -> bool:
    lease = gate.leases.get(claim.lane)
    return lease is not None and lease.holder == claim.lease.holder


def hopeless_reason(gate: Gate) -> str:
    """Say why an endpoint was disabled that has failed for too long."""
    since = event_time(gate.bad_from // 1000)
    return f"no attempt has succeeded since {since}; the last {gate.bad} failed"


def told_of(verdict: Verdict, reply: Reply) -> Told:
    """Say what one answer tells of its endpoint."""
    timed_out = reply.fault in TIMEOUTS
    quick = reply.status is not None and reply.total_ms < QUICK_MS
    return Told(verdict.evidence, timed_out, quick, verdict.outcome is not Outcome.SUCCESS)


def _quiet(step: Step) -> bool:
    return isinstance(step, Dead) and step.quiet


def _attempt(step: Step) -> Attempt:
    attempt = step.attempt
    if attempt is None:
        raise RuntimeError("a delivery that ended without an attempt has none to insert")
    return attempt


def _sent(result: Result, settling_us: int, settled_us: int) -> Attempted:
    told = _attempted(result.owed, result.step)
    steps = result.steps._replace(settling_us=settling_us, settled_us=settled_us)
    return replace(told, steps=steps, rung_in=result.visit.call.rung_in.get(told.delivery_id, ""))


def _attempted(owed: Owed, step: Step) -> Attempted:
    attempt = _attempt(step)
    match step:
        case Arrived():
            became, reason = Status.SUCCEEDED, ""
        case Again():
            became, reason = Status.PENDING, ""
        case Dead(ended=ended):
            became, reason = Status.DEAD, ended.reason.value
        case _:
            assert_never(step)
    return Attempted(
        owed.lane.tenant,
        owed.lane.endpoint_id,
        owed.lane.name,
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
        attempt.held_ms,
        attempt.held_for.value if attempt.held_for else "",
        attempt.total_ms,
    )
