"""One gate, the workers who ask at it, and an onlooker who knows the true time and what must be true.

Workers decide from what they last saw, by clocks that differ. The record is changed only as a store would:
all of a change when its tests hold, else nothing. The onlooker keeps breaker and pace in other words than the
gate's own, and objects as soon as the gate does what it may not.
"""

from copy import deepcopy
from dataclasses import dataclass, field

from chalicelib.domain import gate as gates
from chalicelib.domain.change import Change, applied, holds
from chalicelib.domain.endpoint import Limits
from chalicelib.domain.gate import (
    SECOND,
    TAKE_OVER_GRACE,
    Ask,
    Breaker,
    Claim,
    Gate,
    Grant,
    Hold,
    HoldReason,
    Rules,
    Turn,
)
from chalicelib.domain.outcome import Evidence

BEGAN = 1_764_000_000 * SECOND
RULES = Rules(
    threshold=3,
    cooldown=5 * SECOND,
    max_cooldown=15 * SECOND,
    ramp=60 * SECOND,
    lease=20 * SECOND,
    request_timeout=10 * SECOND,
)
BREAKER_FIELDS = ("st", "epoch", "fails", "open_until", "cooldown", "probe_until", "ramp_from")
FAILING, ALIVE, NONE = Evidence.FAILING, Evidence.ALIVE, Evidence.NONE


@dataclass(frozen=True, slots=True)
class Decision:
    """What a worker was answered, by its clock and from what it had seen; not yet made."""

    worker: int
    wish: Ask
    local: int
    decided_at: int
    configured: int
    seen: Gate
    answer: Grant | Turn


@dataclass(slots=True)
class Visit:
    """A holder at work: what it may send, and how often the breaker had turned when it was let in."""

    worker: int
    claim: Claim
    turns: int


@dataclass(slots=True)
class Onlooker:
    """The breaker as its moves were seen."""

    state: Breaker = Breaker.CLOSED
    turns: int = 0
    fails: int = 0
    cooldown: int = RULES.cooldown
    opens_again: int = 0
    probed_at: int | None = None

    def saw_opening(self, local: int, cooldown: int) -> None:
        self.state, self.turns, self.cooldown = Breaker.OPEN, self.turns + 1, cooldown
        self.opens_again, self.probed_at = local + cooldown, None

    def saw_closing(self) -> None:
        self.state, self.turns, self.cooldown = Breaker.CLOSED, self.turns + 1, RULES.cooldown
        self.fails, self.probed_at = 0, None

    def saw_probe(self, moment: int) -> None:
        self.state, self.turns, self.probed_at = Breaker.HALF_OPEN, self.turns + 1, moment

    def heard(self, told: list[Evidence]) -> None:
        """Count evidence one by one, as it was completed."""
        for each in told:
            if each is ALIVE:
                self.fails = 0
            elif each is FAILING:
                self.fails += 1


@dataclass(slots=True)
class Admissions:
    """When how many were let in since the rate or the burst last changed."""

    rate: int
    burst: int
    made: list[tuple[int, int]] = field(default_factory=list)

    def keep_to_the_pace(self, spread: int) -> bool:
        """Say whether no window holds more than burst + rate x time; clocks may differ by a spread."""
        made = sorted(self.made)
        for first, (began, _) in enumerate(made):
            admitted = 0
            for moment, count in made[first:]:
                admitted += count
                if (admitted - self.burst) * SECOND > self.rate * (moment - began + spread):
                    return False
        return True


class World:
    """Everything that can happen to one gate; a step that breaks a promise fails."""

    def __init__(self, limits: Limits, clocks: tuple[int, ...]) -> None:
        """Begin with a new gate, seen by workers whose clocks are off by so many microseconds."""
        self.now = BEGAN
        self.clocks = clocks
        self.spread = max(clocks) - min(clocks)
        self.limits = limits
        self.configured = 0
        self.record = gates.new_record(
            limits.rate_per_second, limits.burst, limits.max_concurrency, rules=RULES
        )
        self.known = [self.gate] * len(clocks)
        self.admissions = Admissions(limits.rate_per_second, limits.burst)
        self.onlooker = Onlooker()
        self.visits: list[Visit] = []
        self.holders: dict[tuple[int, str], str] = {}
        self.names = 0
        self.held_until = 0

    @property
    def gate(self) -> Gate:
        return gates.read(self.record)

    def local(self, worker: int) -> int:
        return self.now + self.clocks[worker]

    def look(self, worker: int) -> None:
        self.known[worker] = self.gate

    def change(self, change: Change) -> bool:
        """Make a change as a store does."""
        if not holds(change, self.record):
            return False
        as_it_was, given = deepcopy(self.record), self.record
        self.record = applied(change, given)
        assert given == as_it_was
        return True

    def decide(self, worker: int, lane: str, rows: int, *, same_visit: bool = False) -> Decision | None:
        """Let a worker ask for a lane on which it is not at work; None when it has to wait."""
        if any(each.worker == worker and each.claim.lane == lane for each in self.visits):
            return None
        holder = self._holder(worker, lane, same_visit=same_visit)
        wish = Ask(lane, holder, tuple(f"{holder}:{number}" for number in range(rows)))
        local, seen = self.local(worker), self.known[worker]
        answer = gates.ask(seen, wish, local, RULES)
        if isinstance(answer, Hold):
            self._check_hold(answer, seen, worker)
            return None
        return Decision(worker, wish, local, self.now, self.configured, seen, answer)

    def commit(self, decision: Decision) -> Visit | None:
        """Try to make what was decided; give the visit if somebody was let in."""
        as_decided = decision.seen == self.gate
        made = self.change(decision.answer.change)
        assert made or not as_decided, "what rests on the gate as it is can be made"
        self.look(decision.worker)
        if made and isinstance(decision.answer, Turn):
            self._check_opening(decision.local)
        elif made and isinstance(decision.answer, Grant):
            return self._check_grant(decision, decision.answer)
        return None

    def ask(self, worker: int, lane: str, rows: int, *, same_visit: bool = False) -> Visit | None:
        """Look and ask, wait if told so, and turn the breaker on the way if it must be."""
        for _ in range(3):
            self.look(worker)
            decision = self.decide(worker, lane, rows, same_visit=same_visit)
            if decision is None:
                self.now = max(self.now, self.held_until)
            elif (visit := self.commit(decision)) is not None:
                return visit
        return None

    def end(self, visit: Visit, told: list[Evidence]) -> None:
        """Settle a visit, or what is left to settle of it."""
        self.visits.remove(visit)
        claim, local = visit.claim, self.local(visit.worker)
        told = told[: claim.lease.count]
        before = self.record
        still_his = self._stored(claim.lane) == (claim.lease.holder, claim.lease.until)
        if self.change(gates.settle(claim, tuple(told), local, RULES)):
            assert still_his
            assert visit.turns == self.onlooker.turns
            self._check_settled(claim, told, local)
        elif self.change(gates.release(claim.lease, claim.lane)):
            assert still_his
            assert visit.turns != self.onlooker.turns
            assert [self.record[name] for name in BREAKER_FIELDS] == [before[name] for name in BREAKER_FIELDS]
        else:
            assert not still_his
            assert self.record == before
        self.look(visit.worker)

    def die(self, visit: Visit) -> None:
        """Let a holder stop for ever; nobody is told."""
        self.visits.remove(visit)
        self.holders.pop((visit.worker, visit.claim.lane), None)

    def sweep(self, worker: int) -> None:
        """Settle expired leases, as reconcile does, from what was read some time ago."""
        for lane, lease in self.known[worker].leases.items():
            expired = lease.until + TAKE_OVER_GRACE <= self.local(worker)
            if expired and self.change(gates.release(lease, lane)):
                self._check_nobody_believes(lane)

    def reconfigure(self, limits: Limits, *, enabled: bool) -> None:
        before, self.limits, self.configured = self.limits, limits, self.configured + 1
        assert self.change(gates.reconfigured(limits, before, enabled=enabled))
        if (limits.rate_per_second, limits.burst) != (before.rate_per_second, before.burst):
            self.admissions = Admissions(limits.rate_per_second, limits.burst)

    def hold(self, worker: int, seconds: int) -> None:
        before, moment = self.record["hold_until"], self.local(worker) + seconds * SECOND
        self.change(gates.hold_until(moment))
        assert self.record["hold_until"] == max(before, moment)

    def check(self) -> None:
        """Check what is true at any moment."""
        taken = sum(each["n"] for name, each in self.record.items() if name.startswith("L"))
        assert self.record["slots"] + taken == self.record["cap"] == self.limits.max_concurrency
        assert self.record["st"] == self.onlooker.state
        if self.onlooker.state is Breaker.CLOSED:
            assert self.record["fails"] == self.onlooker.fails

    def check_somebody_is_let_in(self) -> None:
        """Check that with all faults over, whoever asks is soon let in."""
        self.reconfigure(self.limits, enabled=True)
        self.now += RULES.lease + TAKE_OVER_GRACE + self.spread
        self.visits.clear()
        self.look(0)
        self.sweep(0)
        assert self.ask(0, "0", 1) or self.ask(0, "0", 1), "nobody is let in any more"

    def _holder(self, worker: int, lane: str, *, same_visit: bool) -> str:
        if not same_visit or (worker, lane) not in self.holders:
            self.names += 1
            self.holders[worker, lane] = f"holder-{self.names}"
        return self.holders[worker, lane]

    def _stored(self, lane: str) -> tuple[str, int] | None:
        lease = self.record.get(f"L{lane}")
        return (lease["h"], lease["u"]) if lease else None

    def _check_hold(self, answer: Hold, seen: Gate, worker: int) -> None:
        local = self.local(worker)
        if answer.until is None:
            assert answer.reason is HoldReason.DISABLED
            assert not seen.enabled
            return
        assert answer.until > local, "a hold that is over already would spin"
        self.held_until = answer.until - self.clocks[worker]
        if answer.reason is HoldReason.RATE_LIMIT and seen.hold_until <= local:
            slowest = 10 * SECOND // seen.rate
            assert answer.until - local <= slowest + self.spread, "longer than a token takes in the ramp"

    def _check_opening(self, local: int) -> None:
        assert self.onlooker.state is Breaker.CLOSED
        assert self.onlooker.fails >= RULES.threshold
        self.onlooker.saw_opening(local, RULES.cooldown)
        assert self.record["open_until"] == self.onlooker.opens_again

    def _check_grant(self, decision: Decision, grant: Grant) -> Visit:
        lease, rows = grant.claim.lease, decision.wish.keys
        assert 1 <= lease.count <= min(10, len(rows))
        assert lease.keys == rows[: lease.count]
        assert lease.until == decision.local + RULES.lease
        assert self._stored(grant.claim.lane) == (decision.wish.holder, lease.until)
        assert decision.configured == self.configured, "let in by limits that hold no more"
        assert self.record["on"] == 1
        assert self.record["hold_until"] <= decision.local
        assert self.record["slots"] >= 0
        self._check_nobody_believes(grant.claim.lane)
        self._check_breaker_let_in(grant.claim, decision)
        self.admissions.made.append((decision.decided_at, lease.count))
        assert self.admissions.keep_to_the_pace(self.spread), "faster than the pace"
        visit = Visit(decision.worker, grant.claim, self.onlooker.turns)
        self.visits.append(visit)
        return visit

    def _check_nobody_believes(self, lane: str) -> None:
        """No earlier holder of a lane still thinks, by its own clock, that it may send."""
        for each in self.visits:
            if each.claim.lane == lane:
                assert self.local(each.worker) >= each.claim.lease.until, "two live leases"

    def _check_breaker_let_in(self, claim: Claim, decision: Decision) -> None:
        seen = self.onlooker
        assert claim.probe is (seen.state is not Breaker.CLOSED)
        if not claim.probe:
            assert seen.fails < RULES.threshold
            return
        assert claim.lease.count == 1
        if seen.probed_at is None:
            assert decision.local >= seen.opens_again, "probed before the cooldown was over"
        else:
            assert decision.decided_at - seen.probed_at >= RULES.request_timeout, "two probes at once"
        seen.saw_probe(decision.decided_at)

    def _check_settled(self, claim: Claim, told: list[Evidence], local: int) -> None:
        seen = self.onlooker
        if not claim.probe:
            seen.heard(told)
        elif ALIVE in told:
            seen.saw_closing()
            assert self.record["ramp_from"] == local
        else:
            longer = min(seen.cooldown * 2, RULES.max_cooldown)
            seen.saw_opening(local, longer if FAILING in told else seen.cooldown)
            assert self.record["open_until"] == seen.opens_again
