"""Settlement: what a send came to is made durable, then the lane's lease goes back.

Attempts first, owed rows only for attempts that are in, lease and breaker last: killed between
any two writes, the next holder finishes what is left. A failure is one transaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import assert_never

from chalicelib.application.admission import KnownGates
from chalicelib.application.ports import Bells, Changed, Clock, Dice, Endpoints, Finished, Gates, Work
from chalicelib.application.visit import Attempted, Stage, Visit
from chalicelib.domain import gate as gates
from chalicelib.domain.change import Change
from chalicelib.domain.delivery import (
    Again,
    Arrived,
    Attempt,
    Dead,
    Lane,
    Owed,
    Status,
    Step,
    Timing,
    after_send,
    given_up,
)
from chalicelib.domain.endpoint import Endpoint, EndpointState
from chalicelib.domain.gate import Gate, Rules
from chalicelib.domain.outcome import DeathReason, Verdict, judge

BELL_DELAY_MAX_S = 900
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

    def judged(self, visit: Visit, finished: Finished) -> Result:
        """Take a finished send out of its visit and decide what it means."""
        owed, endpoint = visit.sending.pop(finished.key)
        verdict = judge(finished.reply, datetime.fromtimestamp(finished.ended_ms / 1000, UTC))
        visit.evidence.append(verdict.evidence)
        timing = Timing(finished.began_ms, finished.ended_ms, self.dice.jitter())
        step = after_send(owed, finished.reply, verdict, endpoint.retry_profile, timing)
        return Result(visit, owed, endpoint, verdict, step)

    def wave(self, results: Sequence[Result], over: Sequence[Visit]) -> list[Attempted]:
        """Settle what has ended, and the leases of the visits that have nothing left in flight."""
        arrived = [each for each in results if isinstance(each.step, Arrived)]
        inserted = self.work.insert([(each.owed, _attempt(each.step)) for each in arrived]) if arrived else []
        settled = [each for each, done in zip(arrived, inserted, strict=True) if done]
        for each, done in zip(arrived, inserted, strict=True):
            each.visit.more |= not done
        settled += self._moved([each for each in results if not isinstance(each.step, Arrived)])
        closing = [each.owed for each in settled if isinstance(each.step, Arrived)]
        self.close(closing, over)
        self._tell_endpoints(results)
        return [_attempted(each) for each in settled]

    def close(self, arrived: Sequence[Owed], over: Sequence[Visit]) -> None:
        """Remove owed rows whose attempts are in and give back the leases of finished visits."""
        changes = [(visit.gate_key, self._settled(visit)) for visit in over]
        if not arrived and not changes:
            return
        answers = self.work.close(arrived, changes)
        for visit, answer in zip(over, answers, strict=True):
            self.known.put(visit.gate_key, self._after_settling(visit, answer))
            visit.claim = None
            visit.evidence.clear()

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
        if not self.bells.ring_later(visit.lane, delay_s):
            self.coming_ms[visit.lane] = due_ms

    def open_bell(self, visit: Visit) -> None:
        """Send the one delayed bell of a breaker that has just opened."""
        gate = self.known.get(visit.gate_key)
        if gate is not None:
            self.ring_at(visit, min(gate.open_until // 1000, self.clock.now_ms() + BELL_DELAY_MAX_S * 1000))

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

    def _settled(self, visit: Visit) -> Change:
        if visit.claim is None:
            raise RuntimeError("a visit without a lease has nothing to settle")
        return gates.settle(visit.claim, tuple(visit.evidence), self.clock.now_us(), self.rules)

    def _after_settling(self, visit: Visit, answer: Changed) -> Gate | None:
        gate = answer.gate
        claim = visit.claim
        if gate is None or claim is None:
            return None
        if not answer.made:
            lease = gate.leases.get(claim.lane)
            if lease is None or lease.holder != claim.lease.holder:
                return gate
            return self._change(visit, gates.release(claim.lease, claim.lane))
        return self._open(visit, gate) if gates.overfull(gate, self.rules) else gate

    def _open(self, visit: Visit, overfull: Gate) -> Gate | None:
        opening = gates.opening(overfull, self.clock.now_us(), self.rules)
        gate = self._change(visit, opening)
        self.known.put(visit.gate_key, gate)
        opened_here = gate is not None and gate.open_until == opening.sets["open_until"]
        if opened_here:
            self.open_bell(visit)
        return gate

    def _change(self, visit: Visit, change: Change) -> Gate | None:
        (answer,) = self.gates.change([(visit.gate_key, change)])
        return answer.gate

    def _tell_endpoints(self, results: Sequence[Result]) -> None:
        for each in results:
            if each.verdict.disables_endpoint and each.endpoint.state is EndpointState.ENABLED:
                disabled = replace(
                    each.endpoint,
                    state=EndpointState.DISABLED,
                    state_reason=GONE_REASON,
                    version=each.endpoint.version + 1,
                )
                self.endpoints.replace(each.endpoint, disabled)
            if each.verdict.holds_endpoint and isinstance(each.step, Again):
                until = each.step.owed.ready_ms * 1000
                self._change(each.visit, gates.hold_until(until))


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


def sending_over(visit: Visit) -> bool:
    """Say whether a visit holds a lease and has nothing in flight any more."""
    return visit.stage is Stage.SENDING and not visit.sending
