"""The gate under everything that happens to it at once, as a state machine over one record.

Workers decide from what they last saw, by clocks that differ; holders die; the owner changes limits. The
record is changed only as a store would: when the tests hold. What must be true is kept here in other words
than the gate's own.
"""

from copy import deepcopy
from dataclasses import dataclass, field

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

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
WORKERS = 3
LANES = ("0", "1", "2")
BREAKER_FIELDS = ("st", "epoch", "fails", "open_until", "cooldown", "probe_until", "ramp_from")
FAILING, ALIVE, NONE = Evidence.FAILING, Evidence.ALIVE, Evidence.NONE

rarely = st.sampled_from([False, False, True])
workers = st.integers(0, WORKERS - 1)
lanes = st.sampled_from(LANES)
limits = st.tuples(
    st.sampled_from([1, 3, 10, 100]), st.sampled_from([1, 5, 20]), st.sampled_from([1, 4, 8, 25])
)
skews = st.sampled_from([(0, 0, 0), (-SECOND, 0, SECOND), (SECOND, SECOND, -SECOND), (7, -40_000, 900_000)])
evidence = st.sampled_from(
    [[FAILING] * 10, [ALIVE] * 10, [ALIVE] + [FAILING] * 9, [FAILING, FAILING, ALIVE], [NONE], []]
) | st.lists(st.sampled_from([FAILING, ALIVE, NONE]), max_size=10)


@dataclass(slots=True)
class Visit:
    """A holder at work: what it may send, and how often the breaker had turned when it was let in."""

    worker: int
    claim: Claim
    turns: int


@dataclass(slots=True)
class Witness:
    """What an onlooker who knows the true time has seen of the breaker."""

    state: Breaker = Breaker.CLOSED
    turns: int = 0
    fails: int = 0
    cooldown: int = RULES.cooldown
    opens_again: int = 0
    probed_at: int | None = None

    def opened(self, local: int, cooldown: int) -> None:
        self.state, self.turns, self.cooldown = Breaker.OPEN, self.turns + 1, cooldown
        self.opens_again, self.probed_at = local + cooldown, None

    def closed(self) -> None:
        self.state, self.turns, self.cooldown = Breaker.CLOSED, self.turns + 1, RULES.cooldown
        self.fails, self.probed_at = 0, None

    def probed(self, now: int) -> None:
        self.state, self.turns, self.probed_at = Breaker.HALF_OPEN, self.turns + 1, now

    def counted(self, told: list[Evidence]) -> None:
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

    def add(self, now: int, count: int) -> None:
        self.made.append((now, count))

    def worst_excess(self, spread: int) -> int:
        """Give the most by which a window up to now passed the pace, in millionths of an admission."""
        latest = self.made[-1][0]
        admitted, worst = 0, -self.burst * SECOND
        for moment, count in reversed(self.made):
            admitted += count
            allowed = self.burst * SECOND + self.rate * (latest - moment + spread)
            worst = max(worst, admitted * SECOND - allowed)
        return worst


class GateMachine(RuleBasedStateMachine):
    """One gate and everything that happens to it."""

    def __init__(self) -> None:
        """Start without a gate."""
        super().__init__()
        self.now = BEGAN
        self.held_until = 0
        self.names = 0
        self.visits: list[Visit] = []
        self.holders: dict[tuple[int, str], str] = {}
        self.witness = Witness()

    @initialize(given=limits, clocks=skews)
    def create(self, given: tuple[int, int, int], clocks: tuple[int, int, int]) -> None:
        rate, burst, cap = given
        self.clocks = clocks
        self.spread = max(clocks) - min(clocks)
        self.record = gates.new_record(rate, burst, cap, rules=RULES)
        self.known: list[Gate] = [gates.read(self.record)] * WORKERS
        self.admissions = Admissions(rate, burst)

    @rule(step=st.sampled_from([1_000, 60_000, SECOND, 2 * SECOND, 6 * SECOND, 12 * SECOND, 25 * SECOND]))
    def time_passes(self, step: int) -> None:
        self.now += step

    @rule()
    def the_last_hold_ends(self) -> None:
        self.now = max(self.now, self.held_until)

    @rule(worker=workers, lane=lanes, rows=st.integers(1, 12), stale=rarely, same_visit=st.booleans())
    def ask(self, worker: int, lane: str, rows: int, *, stale: bool, same_visit: bool) -> None:
        if not stale:
            self.look(worker)
        self.try_to_be_let_in(worker, lane, rows, same_visit=same_visit)

    @rule(
        worker=workers,
        lane=lanes,
        rows=st.integers(1, 12),
        told=evidence,
        took=st.sampled_from([1_000, SECOND]),
    )
    def send(self, worker: int, lane: str, rows: int, told: list[Evidence], took: int) -> None:
        """Go through one visit from its peek to its end, the breaker turned on the way if it must be."""
        for _ in range(2):
            self.look(worker)
            visit = self.try_to_be_let_in(worker, lane, rows, same_visit=False)
            if visit is not None:
                self.now += took
                self.end(visit, told)
                return

    @rule(worker=workers, lane=lanes)
    def outage(self, worker: int, lane: str) -> None:
        """Fail until the breaker is open, if it can be brought to that now."""
        for _ in range(RULES.threshold):
            self.send(worker, lane, 10, [FAILING] * 10, 1_000)
        self.send(worker, lane, 10, [FAILING] * 10, 1_000)

    @rule(worker=workers, lane=lanes, told=evidence, early=st.sampled_from([0, 0, 1_000]))
    def cooldown_ends(self, worker: int, lane: str, told: list[Evidence], early: int) -> None:
        """Come when the breaker may be tried again, or just before."""
        if self.witness.state is not Breaker.CLOSED:
            self.now = max(self.now, self.record["open_until"] - self.clocks[worker] - early)
            self.send(worker, lane, 1, told, 1_000)

    @rule(which=st.integers(0, 8), told=evidence)
    def finish(self, which: int, told: list[Evidence]) -> None:
        if self.visits:
            self.end(self.visits[which % len(self.visits)], told)

    @rule(which=st.integers(0, 8))
    def die(self, which: int) -> None:
        if self.visits:
            visit = self.visits.pop(which % len(self.visits))
            self.holders.pop((visit.worker, visit.claim.lane), None)

    @rule(worker=workers)
    def look(self, worker: int) -> None:
        self.known[worker] = gates.read(self.record)

    @rule(worker=workers)
    def sweep(self, worker: int) -> None:
        """Settle expired leases, as reconcile does, from what was read some time ago."""
        for lane, lease in self.known[worker].leases.items():
            if lease.until + TAKE_OVER_GRACE <= self.local(worker) and self.change(
                gates.release(lease, lane)
            ):
                self.nobody_believes(lane, worker)

    @rule(given=limits)
    def limits_change(self, given: tuple[int, int, int]) -> None:
        rate, burst, cap = given
        self.change(gates.reconfigured(Limits(rate, burst, cap), self.limits, enabled=self.enabled))
        if (rate, burst) != (self.admissions.rate, self.admissions.burst):
            self.admissions = Admissions(rate, burst)

    @rule(worker=workers, seconds=st.sampled_from([0, 1, 7]))
    def endpoint_is_held(self, worker: int, seconds: int) -> None:
        before = self.record["hold_until"]
        moment = self.local(worker) + seconds * SECOND
        self.change(gates.hold_until(moment))
        assert self.record["hold_until"] == max(before, moment)

    @rule(on=st.sampled_from([0, 1, 1]))
    def owner_switches(self, on: int) -> None:
        self.switch(enabled=bool(on))

    @property
    def enabled(self) -> bool:
        return bool(self.record["on"] == 1)

    @property
    def limits(self) -> Limits:
        return Limits(self.record["rate"], self.record["burst"], self.record["cap"])

    def switch(self, *, enabled: bool) -> None:
        self.change(gates.reconfigured(self.limits, self.limits, enabled=enabled))

    @invariant()
    def slots_and_leases_add_up_to_the_cap(self) -> None:
        if self.clocks_known():
            taken = sum(each["n"] for name, each in self.record.items() if name.startswith("L"))
            assert self.record["slots"] + taken == self.record["cap"]

    @invariant()
    def the_breaker_is_where_the_witness_saw_it_go(self) -> None:
        if self.clocks_known():
            assert self.record["st"] == self.witness.state
            if self.witness.state is Breaker.CLOSED:
                assert self.record["fails"] == self.witness.fails

    def teardown(self) -> None:
        """With faults stopped, whoever asks is soon let in."""
        if not self.clocks_known():
            return
        self.switch(enabled=True)
        self.now += RULES.lease + TAKE_OVER_GRACE + self.spread
        self.visits.clear()
        for lane, lease in gates.read(self.record).leases.items():
            self.change(gates.release(lease, lane))
        for _ in range(5):
            self.look(0)
            answer = gates.ask(self.known[0], Ask("0", "last", ("row",)), self.local(0), RULES)
            if isinstance(answer, Hold):
                self.check_hold(answer, self.known[0], 0)
                self.the_last_hold_ends()
                continue
            assert self.change(answer.change)
            if isinstance(answer, Grant):
                return
        raise AssertionError("nobody is let in any more")

    def try_to_be_let_in(self, worker: int, lane: str, rows: int, *, same_visit: bool) -> Visit | None:
        if any(each.worker == worker and each.claim.lane == lane for each in self.visits):
            return None
        holder = self.holder(worker, lane, same_visit=same_visit)
        wish = Ask(lane, holder, tuple(f"{holder}:{number}" for number in range(rows)))
        local, seen = self.local(worker), self.known[worker]
        answer = gates.ask(seen, wish, local, RULES)
        if isinstance(answer, Hold):
            self.check_hold(answer, seen, worker)
            return None
        made = self.change(answer.change)
        assert made or seen != self.known_now(), "what rests on the gate as it is can be made"
        self.look(worker)
        if made and isinstance(answer, Turn):
            self.check_opening(local)
        elif made and isinstance(answer, Grant):
            return self.check_grant(answer, wish, worker)
        return None

    def end(self, visit: Visit, told: list[Evidence]) -> None:
        self.visits.remove(visit)
        claim, local = visit.claim, self.local(visit.worker)
        told = told[: claim.lease.count]
        before = dict(self.record)
        still_his = self.stored_holder(claim.lane) == (claim.lease.holder, claim.lease.until)
        if self.change(gates.settle(claim, tuple(told), local, RULES)):
            assert still_his
            assert visit.turns == self.witness.turns
            self.check_settled(claim, told, local)
        elif self.change(gates.release(claim.lease, claim.lane)):
            assert still_his
            assert visit.turns != self.witness.turns
            assert [self.record[name] for name in BREAKER_FIELDS] == [before[name] for name in BREAKER_FIELDS]
        else:
            assert not still_his
            assert self.record == before
        self.look(visit.worker)

    def known_now(self) -> Gate:
        return gates.read(self.record)

    def clocks_known(self) -> bool:
        return hasattr(self, "clocks")

    def local(self, worker: int) -> int:
        return self.now + self.clocks[worker]

    def holder(self, worker: int, lane: str, *, same_visit: bool) -> str:
        if not same_visit or (worker, lane) not in self.holders:
            self.names += 1
            self.holders[worker, lane] = f"holder-{self.names}"
        return self.holders[worker, lane]

    def stored_holder(self, lane: str) -> tuple[str, int] | None:
        lease = self.record.get(f"L{lane}")
        return (lease["h"], lease["u"]) if lease else None

    def change(self, change: Change) -> bool:
        """Make a change as a store does: all of it when every test holds, else nothing."""
        if not holds(change, self.record):
            return False
        as_it_was, given = deepcopy(self.record), self.record
        self.record = applied(change, given)
        assert given == as_it_was
        return True

    def check_hold(self, answer: Hold, seen: Gate, worker: int) -> None:
        if answer.until is None:
            assert answer.reason is HoldReason.DISABLED
            assert not seen.enabled
        else:
            assert answer.until > self.local(worker), "a hold that is over already would spin"
            self.held_until = answer.until - self.clocks[worker]
        if answer.reason is HoldReason.RATE_LIMIT and seen.hold_until <= self.local(worker):
            wait = (answer.until or 0) - self.local(worker)
            assert wait <= 10 * SECOND // seen.rate + self.spread, "longer than a token takes in the ramp"

    def check_opening(self, local: int) -> None:
        assert self.witness.state is Breaker.CLOSED
        assert self.witness.fails >= RULES.threshold
        self.witness.opened(local, RULES.cooldown)
        assert self.record["open_until"] == self.witness.opens_again

    def check_grant(self, grant: Grant, wish: Ask, worker: int) -> Visit:
        claim, local = grant.claim, self.local(worker)
        lease = claim.lease
        assert 1 <= lease.count <= min(10, len(wish.keys))
        assert lease.keys == wish.keys[: lease.count]
        assert lease.until == local + RULES.lease
        assert self.record["on"] == 1
        assert self.record["hold_until"] <= local
        assert self.record["slots"] >= 0
        self.nobody_believes(claim.lane, worker)
        self.check_breaker_let_in(claim, local)
        self.admissions.add(self.now, lease.count)
        assert self.admissions.worst_excess(self.spread) <= 0, "faster than the pace"
        self.visits.append(Visit(worker, claim, self.witness.turns))
        return self.visits[-1]

    def nobody_believes(self, lane: str, but: int) -> None:
        """No other holder of a lane still thinks, by its own clock, that it may send."""
        for each in self.visits:
            if each.claim.lane == lane and each.worker != but:
                assert self.local(each.worker) >= each.claim.lease.until, "two live leases"

    def check_breaker_let_in(self, claim: Claim, local: int) -> None:
        witness = self.witness
        assert claim.probe is (witness.state is not Breaker.CLOSED)
        if not claim.probe:
            assert witness.fails < RULES.threshold
            return
        assert claim.lease.count == 1
        if witness.probed_at is None:
            assert local >= witness.opens_again, "probed before the cooldown was over"
        else:
            assert self.now - witness.probed_at >= RULES.request_timeout, "two probes at once"
        witness.probed(self.now)

    def check_settled(self, claim: Claim, told: list[Evidence], local: int) -> None:
        witness = self.witness
        if not claim.probe:
            witness.counted(told)
        elif ALIVE in told:
            witness.closed()
            assert self.record["ramp_from"] == local
        else:
            longer = min(witness.cooldown * 2, RULES.max_cooldown)
            witness.opened(local, longer if FAILING in told else witness.cooldown)
            assert self.record["open_until"] == witness.opens_again


TestGateUnderEverythingAtOnce = GateMachine.TestCase
TestGateUnderEverythingAtOnce.settings = settings(
    max_examples=80,
    stateful_step_count=60,
    phases=(Phase.reuse, Phase.generate, Phase.shrink),  # explaining a failure takes minutes here
)
