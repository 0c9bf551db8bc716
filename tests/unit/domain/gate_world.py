"""One gate, the workers who ask at it, and an onlooker who knows the true time and what must be true.

Workers decide from what they last saw, by clocks that differ. The record is changed only as a store would:
all of a change when its tests hold, else nothing. The onlooker keeps breaker, pace, holds and queue in other
words than the gate's own, and objects as soon as the gate does what it may not.
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
    Leaving,
    Occasion,
    Queue,
    Rules,
    Spell,
    Told,
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
ORDERED, REPLAYS = "o0", "r0"
QUICK = Told(Evidence.ALIVE, quick=True)
LATE = Told(Evidence.ALIVE)
ERROR = Told(Evidence.FAILING, quick=True)
HANGS = Told(Evidence.FAILING, timed_out=True)
SILENT = Told(Evidence.NONE)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a lane is asked for: its rows, whether it has more, leaves a bell, or was held before."""

    rows: int
    more: bool = False
    quiet: bool = False
    waited: bool = False


@dataclass(frozen=True, slots=True)
class Manner:
    """How a visit ends: by the gate as it is now, as its worker last saw it or not; its lane is empty."""

    sight: str = "fresh"
    last: bool = False


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
    """The breaker as its moves were seen, and what was told in a row."""

    state: Breaker = Breaker.CLOSED
    turns: int = 0
    fails: int = 0
    cooldown: int = RULES.cooldown
    opens_again: int = 0
    probed_at: int | None = None
    timeouts: int = 0
    answers: int = 0

    def saw_opening(self, local: int, cooldown: int) -> None:
        self.state, self.turns, self.cooldown = Breaker.OPEN, self.turns + 1, cooldown
        self.opens_again, self.probed_at = local + cooldown, None

    def saw_closing(self) -> None:
        self.state, self.turns, self.cooldown = Breaker.CLOSED, self.turns + 1, RULES.cooldown
        self.fails, self.probed_at = 0, None

    def saw_new_url(self) -> None:
        self.saw_closing()
        self.timeouts = 0

    def saw_probe(self, moment: int) -> None:
        self.state, self.turns, self.probed_at = Breaker.HALF_OPEN, self.turns + 1, moment

    def heard(self, told: list[Told]) -> None:
        """Count evidence one by one, as it was completed."""
        for each in told:
            if each.evidence is Evidence.ALIVE:
                self.fails = 0
            elif each.evidence is Evidence.FAILING:
                self.fails += 1

    def timed(self, told: list[Told]) -> None:
        """Count timeouts and quick answers in a row."""
        for each in told:
            self.timeouts = self.timeouts + 1 if each.timed_out else 0
            self.answers = self.answers + 1 if each.quick else 0

    def queue_after(self, queue: Queue) -> Queue:
        """Say where an endpoint rings now that rang there: three timeouts, ten quick answers."""
        if queue is Queue.SLOW:
            return Queue.SHARD if self.answers >= 10 else Queue.SLOW
        return Queue.SLOW if self.timeouts >= 3 else queue


@dataclass(slots=True)
class Admissions:
    """When each request may go since the rate or the burst last changed."""

    rate: int
    burst: int
    moments: list[int] = field(default_factory=list)

    def keep_to_the_pace(self, spread: int) -> bool:
        """Say whether no window holds more than burst + rate x time; clocks may differ by a spread."""
        room = (self.burst - 1) * SECOND + self.rate * spread
        least: int | None = None
        for number, moment in enumerate(sorted(self.moments)):
            level = number * SECOND - self.rate * moment
            least = level if least is None else min(least, level)
            if level - least > room:
                return False
        return True


@dataclass(slots=True)
class Account:
    """How long the endpoint was held in true time, the spells that ended, and those that history has."""

    since: int
    held: int = 0
    begun: int = 0
    blinks: int = 0
    ended: list[Spell] = field(default_factory=list)
    history: dict[int, Spell] = field(default_factory=dict)
    premature: set[int] = field(default_factory=set)
    unseen: int = 0
    late: int = 0

    def passes(self, held: int) -> None:
        self.held += held

    def saw(self, before: Gate, after: Gate) -> None:
        """See what a change did to the holds."""
        past, new = before.held_past, after.held_past
        if new != past:
            assert new[:-1] == (*past, new[-1])[-len(new) : -1], "an old spell is not what it was"
            (spell,) = new[-1:]
            assert spell.since < spell.until
            assert not self.ended or self.ended[-1].until <= spell.since, "two spells at a time"
            self.ended.append(spell)
        if after.held_for is not None and after.held_from != before.held_from:
            assert not self.ended or self.ended[-1].until <= after.held_from, "two spells at a time"
            self.begun += 1
        self.blinks += before.enabled is not after.enabled

    def note(self, spells: tuple[Spell, ...]) -> list[int]:
        """Write spells into history, where the first to write one wins; give those that were not there."""
        new = [each.since for each in spells if each.since not in self.history]
        self.history |= {each.since: each for each in spells if each.since in new}
        return new


class World:
    """Everything that can happen to one gate; a step that breaks a promise fails."""

    def __init__(self, limits: Limits, clocks: tuple[int, ...]) -> None:
        """Begin with a new gate, seen by workers whose clocks are off by so many microseconds."""
        self.now = BEGAN
        self.clocks = clocks
        self.spread = max(*clocks, 0) - min(*clocks, 0)
        self.limits = limits
        self.configured = 0
        self.record = gates.new_record(
            limits.rate_per_second, limits.burst, limits.max_concurrency, rules=RULES
        )
        self.known = [self.gate] * len(clocks)
        self.admissions = Admissions(limits.rate_per_second, limits.burst)
        self.onlooker = Onlooker()
        self.account = Account(BEGAN)
        self.visits: list[Visit] = []
        self.holders: dict[tuple[int, str], str] = {}
        self.names = 0
        self.held_until = 0
        self.off_since: int | None = None
        self.url = 0

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
        self._held_until_now()
        as_it_was, given = deepcopy(self.record), self.record
        self.record = applied(change, given)
        assert given == as_it_was
        self.account.saw(gates.read(given), self.gate)
        return True

    def decide(self, worker: int, lane: str, wish: Wish, *, same_visit: bool = False) -> Decision | None:
        """Let a worker ask for a lane on which it is not at work; None when it has to wait."""
        if any(each.worker == worker and each.claim.lane == lane for each in self.visits):
            return None
        holder = self._holder(worker, lane, same_visit=same_visit)
        keys = tuple(f"{holder}:{number}" for number in range(wish.rows))
        asked = Ask(lane, holder, keys, wish.more, wish.quiet, lane == ORDERED, wish.waited, lane == REPLAYS)
        local, seen = self.local(worker), self.known[worker]
        answer = gates.ask(seen, asked, local, RULES)
        if isinstance(answer, Hold):
            self._check_hold(answer, seen, worker)
            self._note_hold(answer, seen, lane, worker)
            return None
        return Decision(worker, asked, local, self.now, self.configured, seen, answer)

    def commit(self, decision: Decision) -> Visit | None:
        """Try to make what was decided; give the visit if somebody was let in."""
        as_decided = decision.seen == self.gate
        self.account.late += self.now - decision.decided_at
        made = self.change(decision.answer.change)
        assert made or not as_decided, "what rests on the gate as it is can be made"
        self.look(decision.worker)
        if made and isinstance(decision.answer, Turn) and decision.answer.opens:
            self._check_opening(decision.local)
        elif made and isinstance(decision.answer, Grant):
            visit = self._check_grant(decision, decision.answer)
            paced = gates.moments(visit.claim, self.gate, decision.local)[-1] > decision.local
            if paced and as_decided and not visit.claim.probe:
                assert self.gate.held_for is not None, "who is paced is held"
            return visit
        return None

    def ask(self, worker: int, lane: str, wish: Wish, *, same_visit: bool = False) -> Visit | None:
        """Look and ask, wait if told so, and turn the breaker on the way if it must be."""
        for _ in range(3):
            self.look(worker)
            decision = self.decide(worker, lane, wish, same_visit=same_visit)
            if decision is None:
                self.now = max(self.now, self.held_until)
            elif (visit := self.commit(decision)) is not None:
                return visit
        return None

    def end(self, visit: Visit, told: list[Told], manner: Manner = Manner()) -> None:
        """Settle a visit, or what is left to settle of it, and move its endpoint if it behaved so."""
        self.visits.remove(visit)
        claim, local = visit.claim, self.local(visit.worker)
        told = told[: len(claim.lease.keys)]
        before = self.record
        still_his = self._stored(claim.lane) == (claim.lease.holder, claim.lease.until)
        if self._settle(visit, told, manner):
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
        self._move()
        self.look(visit.worker)

    def drain(self, worker: int, lane: str) -> None:
        """Find nothing left in a quiet lane."""
        seen, local = self.known[worker], self.local(worker)
        change = gates.drained(seen, lane, local)
        if change is None:
            assert lane not in seen.quiet
            return
        as_it_is = seen == self.gate
        ends = "held_past" in change.sets
        noted = self.account.note(gates.not_noted(seen, local, ending=True)) if ends else []
        if self.change(change):
            assert lane not in self.gate.quiet
        else:
            assert not as_it_is
            self.account.premature |= set(noted[-1:])
        self.look(worker)

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

    def reconfigure(self, limits: Limits, *, enabled: bool, moved: bool = False) -> None:
        """Change limits, switch and URL; the owner's clock is right, and the gate is not read."""
        before, self.limits, self.configured = self.limits, limits, self.configured + 1
        if not enabled and self.off_since is None:
            self.off_since = self.now
        occasion = Occasion(self.now, self.off_since, moved)
        assert self.change(gates.reconfigured(limits, before, enabled=enabled, occasion=occasion))
        if enabled:
            self.off_since = None
        if (limits.rate_per_second, limits.burst) != (before.rate_per_second, before.burst):
            self.admissions = Admissions(limits.rate_per_second, limits.burst)
        if moved:
            self.onlooker.saw_new_url()
            assert self.record["ramp_from"] == self.now

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
        self._check_holds()

    def check_somebody_is_let_in(self) -> None:
        """Check that with all faults over, whoever asks is soon let in, and history knows of every hold."""
        self.reconfigure(self.limits, enabled=True)
        self.now += RULES.lease + TAKE_OVER_GRACE + self.spread
        self.visits.clear()
        self.look(0)
        self.sweep(0)
        visit = self.ask(0, "0", Wish(1)) or self.ask(0, "0", Wish(1))
        assert visit, "nobody is let in any more"
        self.end(visit, [QUICK])
        self.check()
        self._check_history()

    def _settle(self, visit: Visit, told: list[Told], manner: Manner) -> bool:
        """Settle as the delivery plane does: holds into history first, and again by the gate as it is."""
        claim, local = visit.claim, self.local(visit.worker)
        if manner.sight == "none":
            self.account.unseen += 1
            return self.change(gates.settle(claim, told, local, RULES))
        sights = [self.known[visit.worker]] if manner.sight == "known" else []
        for gate in (*sights, self.gate):
            leaving = Leaving(gate, manner.last)
            ending = gates.ends_hold(leaving, claim, told)
            noted = self.account.note(gates.not_noted(gate, local, ending=ending))
            if self.change(gates.settle(claim, told, local, RULES, leaving)):
                assert not ending or gate.held_for is None or self.gate.held_for is None
                return True
            if ending and gate.held_for is not None:
                self.account.premature |= set(noted[-1:])
        return False

    def _move(self) -> None:
        before = self.gate
        expected = self.onlooker.queue_after(before.queue)
        assert gates.queue_for(before) is expected
        change = gates.moved(before)
        assert (change is None) is (before.queue is expected)
        if change is not None:
            assert self.change(change)
            assert not self.change(change)
            assert (self.gate.queue, self.gate.leases, self.gate.slots) == (
                expected,
                before.leases,
                before.slots,
            )

    def _note_hold(self, hold: Hold, seen: Gate, lane: str, worker: int) -> None:
        """Note that somebody has to wait, and when the bell is due that is left with its lane."""
        local = self.local(worker)
        due = hold.until or local
        if hold.alone:
            self._note_bell(seen, lane, due)
            return
        change = gates.hold_begun(seen, hold.reason, local, lane=lane, due=due)
        if change is None:
            assert hold.reason is HoldReason.DISABLED or seen.held_for is not None
            return
        assert self.change(change) or seen != self.gate
        self.look(worker)

    def _note_bell(self, seen: Gate, lane: str, due: int) -> None:
        """Note when the bell of a lane of replays is due that waits alone: that is no hold."""
        assert lane == REPLAYS
        change = gates.bell_due(seen, lane, due)
        if change is not None:
            assert self.change(change)
            assert self.gate.quiet[lane] == due

    def _held_until_now(self) -> None:
        held = self.record["held_from"] > 0 or not self.record["on"]
        self.account.passes(self.now - self.account.since if held else 0)
        self.account.since = self.now

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
            assert answer.until <= seen.tat, "so late that the bucket overflows meanwhile"
            slowest = max(10, seen.burst) * SECOND // seen.rate
            assert answer.until - local <= slowest + RULES.reserve + self.spread, (
                "longer than what is reserved"
            )

    def _check_opening(self, local: int) -> None:
        assert self.onlooker.state is Breaker.CLOSED
        assert self.onlooker.fails >= RULES.threshold
        self.onlooker.saw_opening(local, RULES.cooldown)
        assert self.record["open_until"] == self.onlooker.opens_again
        assert self.gate.held_for is HoldReason.BREAKER_OPEN

    def _check_grant(self, decision: Decision, grant: Grant) -> Visit:
        lease, wish = grant.claim.lease, decision.wish
        assert 1 <= len(lease.keys) <= min(10, len(wish.keys))
        assert lease.keys == wish.keys[: len(lease.keys)]
        assert lease.count == (1 if wish.in_turn else len(lease.keys))
        assert lease.until == decision.local + RULES.lease
        assert self._stored(grant.claim.lane) == (wish.holder, lease.until)
        assert decision.configured == self.configured, "let in by limits that hold no more"
        assert self.record["on"] == 1
        assert self.record["hold_until"] <= decision.local
        assert self.record["slots"] >= 0
        assert not wish.quiet or self.gate.quiet[wish.lane] == decision.local
        self._check_nobody_believes(grant.claim.lane)
        self._check_breaker_let_in(grant.claim, decision)
        self._check_pace(grant.claim, decision)
        if wish.replay and not grant.claim.probe:
            self._check_what_is_left(grant.claim, decision)
        visit = Visit(decision.worker, grant.claim, self.onlooker.turns)
        self.visits.append(visit)
        return visit

    def _check_what_is_left(self, claim: Claim, decision: Decision) -> None:
        """Check that a replay has left first attempts half of what there was."""
        gate = self.gate
        if not gate.ramp_from or decision.local >= gate.ramp_from + RULES.ramp:
            assert gate.slots >= gate.cap // 2
        half = gate.burst * -(-SECOND // gate.rate) // 2
        assert gate.tat <= decision.local + max(claim.bucket.cost, half)

    def _check_pace(self, claim: Claim, decision: Decision) -> None:
        when = gates.moments(claim, self.gate, decision.local)
        assert len(when) == len(claim.lease.keys)
        assert list(when) == sorted(when)
        assert decision.local <= when[0]
        assert when[-1] <= decision.local + RULES.reserve, "reserved further ahead than may be"
        clock = self.clocks[decision.worker]
        self.admissions.moments += [each - clock for each in when]
        assert self.admissions.keep_to_the_pace(self.spread), "faster than the pace"

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
        assert len(claim.lease.keys) == claim.lease.count == 1
        if seen.probed_at is None:
            assert decision.local >= seen.opens_again, "probed before the cooldown was over"
        else:
            assert decision.decided_at - seen.probed_at >= RULES.request_timeout, "two probes at once"
        seen.saw_probe(decision.decided_at)

    def _check_settled(self, claim: Claim, told: list[Told], local: int) -> None:
        seen = self.onlooker
        seen.timed(told)
        evidence = {each.evidence for each in told}
        if not claim.probe:
            seen.heard(told)
        elif Evidence.ALIVE in evidence:
            seen.saw_closing()
            assert self.record["ramp_from"] == local
        else:
            longer = min(seen.cooldown * 2, RULES.max_cooldown)
            seen.saw_opening(local, longer if Evidence.FAILING in evidence else seen.cooldown)
            assert self.record["open_until"] == seen.opens_again

    def _check_holds(self) -> None:
        """Check that the gate's sum is the time that it was held, and no time is counted twice."""
        self._held_until_now()
        gate, account = self.gate, self.account
        summed, passed = gates.held_sum(gate, self.now), self.now - BEGAN
        unsure = 2 * self.spread * (1 + account.blinks)
        assert summed <= passed + unsure + account.begun, "held for longer than time has passed"
        unsure = 2 * self.spread * (1 + account.blinks + account.begun)
        assert abs(summed - account.held) <= unsure + account.begun + account.late, (
            "not the time that it was held"
        )
        for ago in (0, SECOND, 30 * SECOND):
            held, reason = gates.held_between(gate, self.now - ago, self.now)
            assert 0 <= held <= ago, "held for longer than was asked about"
            assert (reason is None) is (held == 0)
        current = gates.current_hold(gate, self.now)
        if current is not None:
            assert (current.reason is HoldReason.DISABLED) is not gate.enabled
            assert current.reason is not HoldReason.BREAKER_OPEN or gate.state is not Breaker.CLOSED

    def _check_history(self) -> None:
        """Check that history has every spell that ended, as it was."""
        account = self.account
        assert gates.not_noted(self.gate, self.now) == ()
        lost = [each for each in account.ended if each.since not in account.history]
        assert lost == [] or account.unseen, "an end that nobody wrote down"
        for spell in account.ended:
            if spell.since not in account.premature:
                assert account.history[spell.since] == spell
