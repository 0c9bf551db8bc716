"""The whole pipeline as a state machine: it may lose bells, time, processes and answers, but no delivery.

The invariants of DESIGN §9 hold after every step, and once the faults stop everything ends within
two sweeps.
"""

import json
from contextlib import suppress
from dataclasses import replace
from functools import partial

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from chalicelib.adapters.dynamodb import keys
from chalicelib.application.ingest import Accepted
from chalicelib.application.ports import Unavailable
from chalicelib.domain import ids
from chalicelib.domain.bulk_replay import BulkState, Wanted
from chalicelib.domain.delivery import Ended, Status
from chalicelib.domain.endpoint import Backlog, EndpointState, Limits, Ordering
from chalicelib.domain.errors import RelayError
from chalicelib.domain.gate import SECOND, TAKE_OVER_GRACE, Rules
from chalicelib.domain.outcome import Outcome
from chalicelib.domain.request import Request
from tests.fakes.scripted_sender import DIES, HANGS, Answer, Script, in_turn, status
from tests.unit.application.interruptions import at_call, fail
from tests.unit.application.invariants import (
    check,
    check_first_receipts,
    check_pace,
    check_turn,
    unknowns,
)
from tests.unit.application.process import Process
from tests.unit.application.world import (
    BY,
    FAILS,
    LIMITS,
    MINUTE_MS,
    OK,
    TAKE_OVER_MS,
    TENANT,
    World,
    generation_of,
    posted,
)

RULES = Rules(threshold=4, cooldown=5 * SECOND, max_cooldown=40 * SECOND, ramp=30 * SECOND)
ENDPOINTS = (
    (("a", "all"), Limits(rate_per_second=2, burst=3, max_concurrency=2), Ordering.NONE),
    (("b", "ab", "all"), Limits(rate_per_second=50, burst=20, max_concurrency=12), Ordering.NONE),
    (("a", "ab", "all"), Limits(rate_per_second=10, burst=5, max_concurrency=8), Ordering.NONE),
    (("a", "ab", "all", "line"), Limits(rate_per_second=10, burst=5, max_concurrency=3), Ordering.ENDPOINT),
)
EVENT_TYPES = ("a", "b", "ab", "all", "line", "nobody")
ANSWERS = (
    OK,
    FAILS,
    HANGS,
    DIES,
    status(404),
    status(410),
    status(200, took_ms=300),
    status(429, headers=(("Retry-After", "3"),)),
    status(503, headers=(("Retry-After", "70"),)),
)
PASSING_MS = (1, 300, 2_000, 5_000, TAKE_OVER_MS, MINUTE_MS, 7 * MINUTE_MS)

ENDED = (Status.SUCCEEDED, Status.DEAD)

Misfortune = tuple[str, int] | None

answers = st.lists(st.sampled_from(ANSWERS), min_size=1, max_size=4)
misfortunes = st.none() | st.tuples(
    st.sampled_from(
        ["dies before", "dies after", "fails before", "fails after", "stands still", "others come"]
    ),
    st.integers(1, 12),
)


class Pipeline(RuleBasedStateMachine):
    """Producers, functions, endpoints and misfortunes, in any order."""

    @initialize()
    def begin(self) -> None:
        self.world = World(RULES, replace(LIMITS, inline_fan_out_max=2))
        self.endpoints = [
            self.world.endpoint(*types, limits=limits, ordering=ordering)
            for types, limits, ordering in ENDPOINTS
        ]
        self.accepted: list[tuple[str, str]] = []
        self.troubles = 0

    @rule(event_type=st.sampled_from(EVENT_TYPES), count=st.integers(1, 4), misfortune=misfortunes)
    def post(self, event_type: str, count: int, misfortune: Misfortune) -> None:
        results = None
        with suppress(Unavailable):
            results = self.world.accept([posted(event_type)] * count, self.process(misfortune))
        accepted = [each.answer for each in results or () if isinstance(each, Accepted)]
        self.accepted += [(event_type, json.loads(answer)["event_id"]) for answer in accepted]

    @rule(answers=answers, misfortune=misfortunes)
    def deliver(self, answers: list[Answer], misfortune: Misfortune) -> None:
        self.world.sender.script = self.within_caps(in_turn(answers))
        self.world.ring_due()
        self.world.deliver(self.process(misfortune))

    @rule(answers=answers)
    def work_off(self, answers: list[Answer]) -> None:
        self.world.sender.script = self.within_caps(in_turn([*answers, OK]))
        self.world.work_off(for_ms=1_000)

    @rule(misfortune=misfortunes)
    def fan_out(self, misfortune: Misfortune) -> None:
        with suppress(Unavailable):
            self.world.fan_out_called(self.process(misfortune))

    @rule(which=st.integers(0, 200), misfortune=misfortunes)
    def replay(self, which: int, misfortune: Misfortune) -> None:
        """Press replay for some delivery, whatever has become of it."""
        created = sorted({each.delivery_id for each in self.world.all_history()})
        if created:
            delivery = created[which % len(created)]
            with suppress(Unavailable, RelayError):
                self.world.run(lambda it: it.replay.run(TENANT, delivery, BY), self.process(misfortune))

    @rule(which=st.integers(0, len(ENDPOINTS) - 1), misfortune=misfortunes)
    def try_an_endpoint(self, which: int, misfortune: Misfortune) -> None:
        owner = self.endpoints[which].id
        with suppress(Unavailable, RelayError):
            self.world.run(lambda it: it.try_endpoint.run(TENANT, owner), self.process(misfortune))

    @rule(which=st.integers(0, len(ENDPOINTS) - 1), status=st.sampled_from(sorted(ENDED)))
    def replay_in_bulk(self, which: int, status: Status) -> None:
        wanted = Wanted(0, self.world.clock.now_ms() + 1, status)
        owner = self.endpoints[which].id
        self.world.run(lambda it: it.order_replays.begin((TENANT, owner), wanted, None, BY), self.world.usual)

    @rule(misfortune=misfortunes)
    def go_on_with_replays(self, misfortune: Misfortune) -> None:
        self.world.call_replays()
        with suppress(Unavailable):
            self.world.replays_called(self.process(misfortune))

    @rule(misfortune=misfortunes)
    def sweep(self, misfortune: Misfortune) -> None:
        with suppress(Unavailable):
            self.world.sweep(self.process(misfortune))

    @rule(passing_ms=st.sampled_from(PASSING_MS))
    def let_time_pass(self, passing_ms: int) -> None:
        self.world.clock.advance(ms=passing_ms)

    @rule(count=st.integers(1, 3))
    def lose_bells(self, count: int) -> None:
        self.world.losing += count

    @rule()
    def empty_the_queues(self) -> None:
        self.world.purge()

    @rule(which=st.integers(0, len(ENDPOINTS) - 1))
    def disable(self, which: int) -> None:
        if self.world.now(self.endpoints[which]).state is EndpointState.ENABLED:
            self.world.change(self.endpoints[which], state=EndpointState.DISABLED)

    @rule()
    def enable(self) -> None:
        for endpoint in self.endpoints:
            if self.world.now(endpoint).state is EndpointState.DISABLED:
                self.world.change(endpoint, state=EndpointState.ENABLED)

    @rule(
        which=st.integers(0, len(ENDPOINTS) - 1), back_ms=st.sampled_from(PASSING_MS), misfortune=misfortunes
    )
    def skip(self, which: int, back_ms: int, misfortune: Misfortune) -> None:
        """Disable an endpoint, and enable it with what waits skipped but for the last moments."""
        endpoint, world = self.endpoints[which], self.world
        from_ms = world.clock.now_ms() - back_ms
        with suppress(Unavailable, RelayError):
            world.run(lambda it: it.manage.disable(TENANT, endpoint.id, BY), self.process(misfortune))
            enable = partial(self.resume, endpoint.id, from_ms)
            world.run(enable, self.process(misfortune))

    @staticmethod
    def resume(endpoint_id: str, from_ms: int, process: Process) -> None:
        process.manage.enable(TENANT, endpoint_id, (Backlog.RESUME_FROM, from_ms), BY)

    @rule(misfortune=misfortunes)
    def end_what_is_skipped(self, misfortune: Misfortune) -> None:
        self.world.call_endings()
        with suppress(Unavailable):
            self.world.endings_called(self.process(misfortune))

    @invariant()
    def holds(self) -> None:
        check(self.world)
        for endpoint in self.endpoints:
            if endpoint.ordered:
                check_first_receipts(self.world, endpoint)
                told = unknowns(self.world, endpoint)
                assert told <= self.troubles, "more unknown attempts than holders that died"

    def teardown(self) -> None:
        self.world.losing = 0
        self.world.sender.script = self.within_caps(lambda _: OK)
        self.enable()
        self.world.clock.advance_to(self.waits_end_ms())
        self.end_the_replays()
        self.end_beside()
        for _ in range(2):
            self.world.work_off(for_ms=MINUTE_MS)
            self.world.sweep()
        self.world.work_off(for_ms=MINUTE_MS)
        check(self.world)
        assert self.world.owed() == [], "something is still owed after two sweeps"
        for endpoint in self.endpoints:
            check_pace(self.world, endpoint)
        self.every_accepted_event_reached_everybody()

    def end_the_replays(self) -> None:
        """Let bulk replays come to their end; nothing is to be sent meanwhile but what they begin."""
        for _ in range(20):
            if all(each["stage"] == BulkState.DONE for each in self.world.records_of(keys.REPLAYS)):
                return
            self.world.clock.advance(ms=MINUTE_MS)
            self.world.call_replays()
            self.world.work_off(for_ms=1_000)
        raise AssertionError("a bulk replay does not end")

    def every_accepted_event_reached_everybody(self) -> None:
        ended = {
            each.delivery_id
            for each in self.world.all_history()
            if isinstance(each, Ended) or getattr(each, "outcome", None) is Outcome.SUCCESS
        }
        for event_type, event_id in self.accepted:
            for endpoint in self.endpoints:
                if event_type in endpoint.event_types:
                    assert ids.delivery_id(event_id, endpoint.id) in ended, "an accepted delivery is lost"

    def process(self, misfortune: Misfortune) -> Process:
        """Give the process to whom a misfortune happens at its n-th call or write, if it comes that far."""
        if misfortune is None:
            return self.world.usual
        what, number = misfortune
        self.troubles += 1
        process = Process(self.world)
        match what:
            case "dies before" | "dies after":
                process.faults.kill_at(number, after=what == "dies after")
            case "fails before" | "fails after":
                at_call(process, number, fail, after=what == "fails after")
            case "others come":
                at_call(process, number, self.others_come)
            case _:
                at_call(process, number, self.others_go_on)
        return process

    def others_come(self) -> None:
        """Let every lane be visited, as for bells of another queue, while a process is at work."""
        for lane in {each.lane for each in self.world.owed()}:
            self.world.visit(lane, Process(self.world))
        self.end_beside()

    def end_beside(self) -> None:
        """Let what is skipped be ended while a process is at work."""
        self.world.call_endings(Process(self.world))
        self.world.endings_called(Process(self.world))

    def others_go_on(self) -> None:
        """Let every lane be visited while a process stands still for longer than its lease."""
        sender = self.world.sender
        standing, sender.in_flight[:] = list(sender.in_flight), []
        self.world.clock.advance(ms=TAKE_OVER_MS)
        for lane in {each.lane for each in self.world.owed()}:
            self.world.visit(lane, Process(self.world))
        self.end_beside()
        sender.in_flight[:] = standing

    def within_caps(self, script: Script) -> Script:
        """Answer as a script does, and hold what is in flight to the endpoint's cap, or to its order."""
        by_url = {each.url: each for each in self.endpoints}

        def answer(request: Request) -> Answer:
            endpoint = by_url[request.url]
            tag = ids.endpoint_tag(endpoint.id)
            in_flight = [each for each in self.world.sender.in_flight if ids.tag_of(each) == tag]
            assert len(in_flight) <= endpoint.limits.max_concurrency, "more in flight than the cap"
            if endpoint.ordered and not generation_of(self.world.sender.sent[-1]):
                first = [each for each in in_flight if each not in self.replaying()]
                assert len(first) <= 1, "two at once of one line"
            if endpoint.ordered:
                check_turn(self.world, endpoint)
            given = script(request)
            self.troubles += given.dies
            return given

        return answer

    def replaying(self) -> set[str]:
        """Name the deliveries of which a replay is owed."""
        return {each.delivery_id for each in self.world.owed() if each.lane.replay}

    def waits_end_ms(self) -> int:
        """Say when nothing waits any more for a retry, a lease, a hold, the breaker or a dead batch."""
        moments_us = [each.ready_ms * 1_000 for each in self.world.owed()]
        moments_us += [each.visible_ms * 1_000 for each in self.world.waiting]
        for endpoint in self.endpoints:
            gate = self.world.gate(endpoint)
            moments_us += [gate.hold_until, gate.open_until, gate.probe_until]
            moments_us += [each.until + TAKE_OVER_GRACE for each in gate.leases.values()]
        return max(moments_us, default=0) // 1_000 + 1


TestPipeline = Pipeline.TestCase
TestPipeline.settings = settings(
    max_examples=60,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
