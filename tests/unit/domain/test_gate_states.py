"""The gate under everything that happens to it at once, as a state machine.

Several workers with old knowledge and clocks that differ, decisions that meet in the store, holders that die,
an endpoint that fails and recovers, an owner who changes limits, switch and URL. What must hold is in
`gate_world`.
"""

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from chalicelib.domain.endpoint import Limits
from chalicelib.domain.gate import SECOND, TAKE_OVER_GRACE, Breaker, Told
from tests.unit.domain.gate_world import (
    ERROR,
    HANGS,
    LATE,
    ORDERED,
    QUICK,
    REPLAYS,
    RULES,
    SILENT,
    Decision,
    Manner,
    Wish,
    World,
)

BY_SIGHT = Manner()
LANES = ("0", "1", "2", "3", ORDERED, REPLAYS)

Places = tuple[str, str, str]
workers = st.integers(0, 2)
lanes = st.sampled_from(LANES)
places = st.tuples(lanes, lanes, lanes) | lanes.map(lambda lane: (lane, lane, lane))
wishes = st.builds(
    Wish, st.sampled_from([1, 3, 12]), more=st.booleans(), quiet=st.booleans(), waited=st.booleans()
)
manners = st.builds(Manner, st.sampled_from(["fresh", "known", "known", "none"]), last=st.booleans())
limits = st.builds(
    Limits,
    rate_per_second=st.sampled_from([1, 10, 100, 100_000]),
    burst=st.sampled_from([1, 20, 40]),
    max_concurrency=st.sampled_from([1, 8, 30]),
)
skews = st.sampled_from([(0, 0, 0), (-SECOND, 0, SECOND), (SECOND, SECOND, -SECOND), (7, -40_000, 900_000)])
words = st.sampled_from(
    [[ERROR] * 10, [HANGS] * 10, [QUICK] * 10, [LATE] + [HANGS] * 9, [HANGS, HANGS, LATE], [SILENT], []]
) | st.lists(st.sampled_from([ERROR, HANGS, QUICK, LATE, SILENT]), max_size=10)
moments = st.sampled_from([0, 1_000, 60_000, SECOND, 6 * SECOND, 12 * SECOND, 25 * SECOND])


class GateMachine(RuleBasedStateMachine):
    """One gate and everything that happens to it."""

    @initialize(given=limits, clocks=skews, past=st.sampled_from(["none", "busy", "outage", "recovery"]))
    def begin(self, given: Limits, clocks: tuple[int, ...], past: str) -> None:
        self.world = World(given, clocks)
        if past == "busy":
            self.send(0, "0", Wish(1), [QUICK], 0)
        elif past != "none":
            self.outage(0, "0")
        if past == "recovery":
            self.recovery(("0", "1", "2"), [QUICK])

    @rule(step=moments)
    def time_passes(self, step: int) -> None:
        self.world.now += step

    @rule(worker=workers)
    def look(self, worker: int) -> None:
        self.world.look(worker)

    @rule(worker=workers, lane=lanes, wish=wishes, same_visit=st.booleans())
    def ask_with_old_knowledge(self, worker: int, lane: str, wish: Wish, *, same_visit: bool) -> None:
        decision = self.world.decide(worker, lane, wish, same_visit=same_visit)
        if decision is not None:
            self.world.commit(decision)

    @rule(worker=workers, lane=lanes, wish=wishes, same_visit=st.booleans())
    def ask(self, worker: int, lane: str, wish: Wish, *, same_visit: bool) -> None:
        self.world.ask(worker, lane, wish, same_visit=same_visit)

    @rule(
        where=places,
        wish=wishes,
        busy=st.booleans(),
        between=st.sampled_from(
            ["nothing", "time", "end", "end", "limits", "switch", "url", "hold", "death"]
        ),
        told=words,
        given=limits,
    )
    def race(  # noqa: PLR0913 - what comes before, between and after
        self, where: Places, wish: Wish, between: str, told: list[Told], given: Limits, *, busy: bool
    ) -> None:
        """Let all workers decide on the same sight of the gate before any decision is made."""
        if busy:
            self.send(0, where[0], Wish(1), [QUICK], 0)
        if between in {"end", "death"}:
            self.world.ask(0, where[0], Wish(3))
        decisions = self.decisions(where, wish)
        self.meanwhile(between, told, given)
        self.commit(decisions)

    def commit(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            self.world.commit(decision)
            self.world.check()

    def decisions(self, where: Places, wish: Wish) -> list[Decision]:
        for worker in range(3):
            self.world.look(worker)
        asked = [self.world.decide(worker, lane, wish) for worker, lane in enumerate(where)]
        return [decision for decision in asked if decision is not None]

    def meanwhile(self, what: str, told: list[Told], given: Limits) -> None:
        world = self.world
        enabled = world.gate.enabled
        if what == "time":
            world.now += SECOND
        elif what == "limits":
            world.reconfigure(given, enabled=enabled)
        elif what == "switch":
            world.reconfigure(world.limits, enabled=not enabled)
            world.reconfigure(world.limits, enabled=enabled)
        elif what == "url":
            world.reconfigure(world.limits, enabled=enabled, moved=True)
        elif what == "hold":
            world.hold(0, 2)
        elif what == "end" and world.visits:
            world.end(world.visits[0], told)
        elif what == "death" and world.visits:
            world.die(world.visits[0])

    @rule(
        worker=workers,
        lane=lanes,
        wish=wishes,
        told=words,
        took=st.sampled_from([0, 1_000, SECOND]),
        manner=manners,
    )
    def send(  # noqa: PLR0913 - a visit from beginning to end
        self, worker: int, lane: str, wish: Wish, told: list[Told], took: int, manner: Manner = BY_SIGHT
    ) -> None:
        """Go through one visit from its peek to its end."""
        visit = self.world.ask(worker, lane, wish)
        if visit is not None:
            self.world.now += took
            self.world.end(visit, told, manner)

    @rule(lane=lanes, first=wishes, second=wishes, sweeps=st.booleans())
    def two_rounds(self, lane: str, first: Wish, second: Wish, *, sweeps: bool) -> None:
        """Let a visit have two leases and die in the second; who saw only the first comes late."""
        world = self.world
        visit = world.ask(0, lane, first, same_visit=True)
        if visit is None:
            return
        world.look(1)
        world.now += 1_000
        world.end(visit, [QUICK])
        visit = world.ask(0, lane, second, same_visit=True)
        if visit is not None:
            world.die(visit)
            world.now += RULES.lease + TAKE_OVER_GRACE + world.spread
        if sweeps:
            world.sweep(1)
        else:
            self.ask_with_old_knowledge(1, lane, Wish(3), same_visit=False)

    @rule(worker=workers, lane=lanes)
    def outage(self, worker: int, lane: str) -> None:
        """Fail until the breaker is open, if it can be brought to that now."""
        for _ in range(RULES.threshold + 1):
            self.send(worker, lane, Wish(10), [ERROR] * 10, 1_000)

    @rule(where=places, told=words, early=st.sampled_from([0, 0, 1_000]), wait=moments, crossed=st.booleans())
    def recovery(
        self, where: Places, told: list[Told], early: int = 0, wait: int = 0, *, crossed: bool = False
    ) -> None:
        """Let all probe when the cooldown is over or just before, and again while the probe is out."""
        world = self.world
        if world.onlooker.state is Breaker.CLOSED:
            return
        world.now = max(world.now, world.record["open_until"] - min(world.clocks) - early)
        self.commit(self.decisions(where, Wish(12)))
        world.now += wait
        decisions = self.decisions(where[::-1], Wish(12))
        if crossed:
            self.finish(told, 0)
        self.commit(decisions)
        self.finish(told, 0)

    @rule(wish=wishes)
    def heirs_wait(self, wish: Wish) -> None:
        """Let all ask again and again while a lease ends, its holder perhaps still at work."""
        world = self.world
        for lane, lease in world.gate.leases.items():
            began = lease.until - 2 * SECOND
            for step in range(12):
                world.now = max(world.now, began + step * SECOND // 2)
                self.commit(self.decisions((lane, lane, lane), wish))
            return

    @rule(told=words, left=st.sampled_from([0, 0, 1]), manner=manners)
    def finish(self, told: list[Told], left: int, manner: Manner = BY_SIGHT) -> None:
        while len(self.world.visits) > left:
            self.world.end(self.world.visits[0], told, manner)

    @rule(worker=workers, lane=lanes, looks=st.booleans())
    def lane_is_empty(self, worker: int, lane: str, *, looks: bool) -> None:
        if looks:
            self.world.look(worker)
        self.world.drain(worker, lane)

    @rule(lane=lanes, wish=wishes, told=words, manner=manners, ends=st.sampled_from(["settled", "drained"]))
    def waits_while_others_go(
        self, lane: str, wish: Wish, told: list[Told], manner: Manner, ends: str
    ) -> None:
        """Spend what there is, let all lanes be refused, and let one go when its time has come."""
        for each in LANES:
            self.world.look(1)
            self.world.ask(0, each, Wish(12, more=True))
            self.ask_with_old_knowledge(2, each, wish, same_visit=False)
        self.finish(told, 0, manner)
        if ends == "drained":
            self.world.drain(1, lane)
        else:
            self.send(0, lane, wish, told, SECOND, Manner("fresh", last=True))

    @rule(which=st.integers(0, 8))
    def die(self, which: int) -> None:
        if self.world.visits:
            self.world.die(self.world.visits[which % len(self.world.visits)])

    @rule(worker=workers)
    def sweep(self, worker: int) -> None:
        self.world.sweep(worker)

    @rule(given=limits, spent=st.booleans())
    def limits_change(self, given: Limits, *, spent: bool) -> None:
        for lane in LANES if spent else ():
            self.send(0, lane, Wish(12), [QUICK], 0)
        self.world.reconfigure(given, enabled=self.world.gate.enabled)
        self.world.look(0)
        self.ask_with_old_knowledge(0, "0", Wish(1), same_visit=False)

    @rule(worker=workers, seconds=st.sampled_from([0, 1]))
    def endpoint_is_held(self, worker: int, seconds: int) -> None:
        self.world.hold(worker, seconds)

    @rule(worker=workers, lane=lanes)
    def owner_blinks(self, worker: int, lane: str) -> None:
        """Disable, and enable again after somebody has asked."""
        self.world.reconfigure(self.world.limits, enabled=False)
        self.world.ask(worker, lane, Wish(1))
        self.world.reconfigure(self.world.limits, enabled=True)

    @rule(worker=workers, lane=lanes, told=words, off_for=moments, twice=st.booleans(), manner=manners)
    def owner_pauses(  # noqa: PLR0913 - what goes on meanwhile
        self, worker: int, lane: str, told: list[Told], off_for: int, manner: Manner, *, twice: bool
    ) -> None:
        """Disable for a while, once or twice, in which what is in flight ends and old bells come."""
        for _ in range(2 if twice else 1):
            self.world.reconfigure(self.world.limits, enabled=False)
            self.world.now += off_for
            self.finish(told, 0, manner)
            self.world.drain(worker, lane)
            self.world.now += off_for
            self.world.reconfigure(self.world.limits, enabled=True)

    @rule(enabled=st.sampled_from([True, True, False]))
    def new_url(self, *, enabled: bool) -> None:
        self.world.reconfigure(self.world.limits, enabled=enabled, moved=True)

    @invariant()
    def promises_are_kept(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self) -> None:
        """Stop all faults and ask."""
        if hasattr(self, "world"):
            self.world.check_somebody_is_let_in()


TestGateUnderEverythingAtOnce = GateMachine.TestCase
TestGateUnderEverythingAtOnce.settings = settings(
    max_examples=100,
    stateful_step_count=30,
    phases=(Phase.reuse, Phase.generate, Phase.shrink),  # explaining a failure takes minutes here
)
