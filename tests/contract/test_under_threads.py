"""What must be exact however many ask at once: in memory, and on the emulator that is exact itself."""

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from operator import itemgetter
from threading import Barrier
from typing import TypeVar

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.limiting import DynamoAllowances
from chalicelib.adapters.dynamodb.records import Delete, Insert, Key, Merge, Tables, Update
from chalicelib.application.fan_out import FanOutLater
from chalicelib.application.ingest import Accepted, Ingest, IngestLimits, Post
from chalicelib.application.limiter import Limiter, Need
from chalicelib.application.pacing import Pacing
from chalicelib.application.ports import Allowance, Extent, Wish
from chalicelib.domain import allowance
from chalicelib.domain import gate as gates
from chalicelib.domain.allowance import SHARE
from chalicelib.domain.change import Change, Op, Test
from chalicelib.domain.delivery import Again
from chalicelib.domain.endpoint import (
    ORDERED_LANE,
    ORDERED_MAX,
    Endpoint,
    EndpointState,
    Limits,
    Ordering,
)
from chalicelib.domain.gate import Ask, Claim, Gate, Grant, Leaving, Rules, Tally, Told
from chalicelib.domain.histogram import bucket_of
from chalicelib.domain.outcome import Evidence
from tests.contract.busy_history import BusyHistory, pages, whole
from tests.contract.given import (
    NOW_MS,
    NOW_US,
    TENANT,
    Stores,
    endpoint,
    event,
    failure,
    lane_of,
    later,
    posted,
    stores_over,
    success,
    without_moto,
)
from tests.fakes.fixed_clock import FixedClock, SeededDice
from tests.fakes.memory_bells import MemoryBells
from tests.fakes.memory_payloads import MemoryPayloads

T = TypeVar("T")
AT_ONCE = 16
SECOND = 1_000_000
WITHIN_S = 60.0
pytestmark = without_moto


def at_once(calls: Sequence[Callable[[], T]], threads: int = AT_ONCE) -> list[T]:
    """Make calls, that many side by side from the same moment, and give their answers in order."""
    start = Barrier(threads, timeout=WITHIN_S)

    def share(first: int) -> list[T]:
        start.wait()
        return [call() for call in calls[first::threads]]

    with ThreadPoolExecutor(threads) as pool:
        shares = list(pool.map(share, range(threads), timeout=WITHIN_S))
    return [shares[place % threads][place // threads] for place in range(len(calls))]


@pytest.fixture
def many(tables: Tables) -> list[Stores]:
    """The stores of sixteen processes, each with caches of its own."""
    return [stores_over(tables) for _ in range(AT_ONCE)]


class TestIngest:
    LIMITS = IngestLimits(262_144, 4_096, 40)

    def use_case(self, stores: Stores, bells: MemoryBells, seed: int) -> Ingest:
        return Ingest(
            stores.capturing, MemoryPayloads(), bells, FixedClock(NOW_MS), SeededDice(seed), self.LIMITS
        )

    def test_a_hundred_identical_requests_make_one_event(self, many: list[Stores]) -> None:
        endpoints = [endpoint(number, ("order.*",)) for number in range(3)]
        for each in endpoints:
            many[0].endpoints.create(each)
        bells = MemoryBells()
        post = Post(TENANT, b'{"type":"order.paid"}', "application/json", None, "the-same-key")
        requests = [
            partial(self.use_case(many[number % AT_ONCE], bells, number).one, post) for number in range(100)
        ]
        answers: list[Accepted] = at_once(requests, threads=50)
        assert len({answer.answer for answer in answers}) == 1
        assert sum(not answer.replayed for answer in answers) == 1
        only = json.loads(answers[0].answer)
        listed = many[0].reading.events(TENANT, Extent("", 10), NOW_MS)
        assert [each.event.id for each in listed.items] == [only["event_id"]]
        owed = [row for each in endpoints for row in many[0].work.peek(lane_of(each), 10)]
        assert [row.delivery_id for row in owed] == only["delivery_ids"]
        assert len(bells.rung) == 3

    def test_requests_with_keys_of_their_own_make_an_event_each(self, many: list[Stores]) -> None:
        bells = MemoryBells()
        posts = [
            Post(TENANT, b'{"type":"order.paid"}', "application/json", None, f"key-{number}")
            for number in range(32)
        ]
        calls = [
            partial(self.use_case(many[number % AT_ONCE], bells, number).one, post)
            for number, post in enumerate(posts)
        ]
        answers = at_once(calls)
        assert len({answer.answer for answer in answers}) == 32
        assert not any(answer.replayed for answer in answers)


class TestOrdering:
    """Many producers at once; what one was told before another asked is a moment of one counter."""

    PRODUCERS, POSTS = 8, 12
    LIMITS = IngestLimits(262_144, 4_096, 40)

    def ordered(self, number: int = 0) -> Endpoint:
        return replace(endpoint(number), ordering=Ordering.ENDPOINT)

    def use_case(self, stores: Stores, seed: int) -> Ingest:
        """Make the ingest of a machine whose clock is off by up to a second."""
        clock = FixedClock(NOW_MS + seed * 7_919 % 2_000)
        return Ingest(stores.capturing, MemoryPayloads(), MemoryBells(), clock, SeededDice(seed), self.LIMITS)

    def produce(self, ingest: Ingest, moments: Iterator[int], seed: int) -> list[tuple[int, int, str]]:
        """Post singly and in batches; when each event was posted and when acknowledged, and its id."""
        dice = random.Random(seed)
        done = []
        for _ in range(self.POSTS):
            posts = [Post(TENANT, b'{"type":"order.paid"}', "application/json")] * dice.choice((1, 1, 3))
            posted_at = next(moments)
            results = ingest.many(posts)
            told_at = next(moments)
            assert all(isinstance(each, Accepted) for each in results)
            told = [json.loads(each.answer) for each in results if isinstance(each, Accepted)]
            done += [(posted_at, told_at, each["event_id"]) for each in told]
        return done

    @pytest.mark.parametrize("lost", [False, True], ids=["counter kept", "counter lost on the way"])
    def test_f132_what_was_acknowledged_first_has_the_smaller_number(
        self, many: list[Stores], *, lost: bool
    ) -> None:
        endpoints = [self.ordered(number) for number in range(2)]
        for each in endpoints:
            assert many[0].endpoints.create(each)
        moments = itertools.count()
        running = [
            partial(self.produce, self.use_case(many[number], number), moments, number)
            for number in range(self.PRODUCERS)
        ]

        def lose() -> list[tuple[int, int, str]]:
            while next(moments) < self.PRODUCERS * self.POSTS:
                many[-1].endpoints.get(TENANT, endpoints[0].id)
            many[-1].tables.each([Delete(keys.sequence(TENANT, each.id)) for each in endpoints])
            return []

        shares = at_once([*running, lose] if lost else running, self.PRODUCERS + lost)
        for of in endpoints:
            last = self.in_order(many[0], of, [each for share in shares for each in share])
            assert (last > NOW_US) == lost

    def in_order(self, stores: Stores, of: Endpoint, done: list[tuple[int, int, str]]) -> int:
        """Hold a lane to its promise, and each batch to its own order; the last number given."""
        rows = stores.work.peek(lane_of(of, ORDERED_LANE), 1_000)
        assert len({row.sequence for row in rows}) == len(rows) == len(done)
        times = {event_id: (posted_at, told_at) for posted_at, told_at, event_id in done}
        latest = -1
        for row in rows:
            posted_at, told_at = times[row.event_id]
            assert told_at > latest, "it was acknowledged before one ahead of it was posted"
            latest = max(latest, posted_at)
        place = {row.event_id: number for number, row in enumerate(rows)}
        batches = [[place[each[2]] for each in same] for _, same in itertools.groupby(done, itemgetter(0))]
        assert all(batch == sorted(batch) for batch in batches)
        return rows[-1].sequence

    @pytest.mark.parametrize("there", [0, ORDERED_MAX - 5])
    def test_no_more_than_forty_are_created_however_many_ask_at_once(
        self, many: list[Stores], there: int
    ) -> None:
        count = keys.ordered_count(TENANT)
        if there:
            many[0].tables.together([Merge(count, {"endpoints": there})])
        done = at_once([partial(each.endpoints.create, self.ordered(n)) for n, each in enumerate(many)])
        made = min(AT_ONCE, ORDERED_MAX - there)
        assert sum(done) == made
        assert many[0].tables.get([count])[count]["endpoints"] == there + made
        assert len(many[0].endpoints.page(TENANT, "", 100).items) == made

    def test_one_of_many_gives_a_place_back(self, many: list[Stores]) -> None:
        old = self.ordered()
        for each in (old, self.ordered(1)):
            many[0].endpoints.create(each)
        gone = replace(old, version=2, state=EndpointState.DELETED)
        done = at_once([partial(each.endpoints.replace, old, gone) for each in many])
        count = keys.ordered_count(TENANT)
        assert (sum(done), many[0].tables.get([count])[count]["endpoints"]) == (1, 1)


class TestGate:
    """Sixteen lanes of one endpoint, each a process; the time is given, nobody sleeps."""

    RULES = Rules(breaker=False)

    def limits(self, rate: int, burst: int, cap: int) -> Limits:
        return Limits(rate, burst, cap)

    def opened(self, stores: Stores, limits: Limits) -> tuple[str, str]:
        of = endpoint(limits=limits)
        stores.endpoints.create(of)
        return of.tenant, of.id

    def gate(self, stores: Stores, owner: tuple[str, str]) -> Gate:
        return stores.gates.read([owner])[owner]

    def admit(
        self, stores: Stores, owner: tuple[str, str], lane: str, now: int, rows: int
    ) -> tuple[Claim, Gate] | None:
        """Ask until granted or told to wait, as a deliver function does; the gate as the grant left it."""
        keys = tuple(f"{now:015d}#{lane}#0000#{number:04d}" for number in range(rows))
        gate = self.gate(stores, owner)
        while True:
            answer = gates.ask(gate, Ask(lane, f"{lane}@{now}", keys), now, self.RULES)
            if not isinstance(answer, Grant):
                return None
            (changed,) = stores.gates.change([(owner, answer.change)])
            assert changed.gate is not None
            if changed.made:
                return answer.claim, changed.gate
            gate = changed.gate

    def release(self, stores: Stores, owner: tuple[str, str], claim: Claim) -> None:
        (changed,) = stores.gates.change([(owner, gates.release(claim.lease, claim.lane))])
        assert changed.made

    def test_the_rate_is_kept_whoever_asks(self, many: list[Stores]) -> None:
        """Never more than 50 + 25 T go in any window, and but for a grant's remainder all that may do.

        What is reserved counts at its paced moment: two seconds ahead at most.
        """
        owner = self.opened(many[0], self.limits(25, 50, 1_000))
        going: list[int] = []
        for tenth in range(0, 41, 8):
            now = NOW_US + tenth * SECOND // 10

            def visit(number: int, now: int = now) -> list[int]:
                granted: list[int] = []
                while admitted := self.admit(many[number], owner, str(number), now, 3):
                    claim, gate = admitted
                    granted += gates.moments(claim, gate, now)
                    self.release(many[number], owner, claim)
                return granted

            going += itertools.chain(*at_once([partial(visit, number) for number in range(AT_ONCE)]))
            until = now + self.RULES.reserve
            assert max(going) <= until
            assert 50 + 25 * (until - NOW_US) // SECOND - len(going) in range(3)
        going.sort()
        for first, last in itertools.combinations(range(len(going)), 2):
            assert (last - first + 1 - 50) * SECOND <= 25 * (going[last] - going[first])
        gate = self.gate(many[0], owner)
        assert (gate.slots, gate.leases) == (1_000, {})

    def test_the_cap_is_never_passed_and_no_slot_is_lost(self, many: list[Stores]) -> None:
        """Sixteen lanes want eighty of twenty slots, again and again."""
        owner = self.opened(many[0], self.limits(100_000, 100_000, 20))
        for turn in range(5):
            asking = [
                partial(self.admit, stores, owner, str(lane), NOW_US + turn, 5)
                for lane, stores in enumerate(many)
            ]
            claims = [each[0] for each in at_once(asking) if each is not None]
            assert sum(claim.lease.count for claim in claims) == 20
            gate = self.gate(many[0], owner)
            assert (gate.slots, gate.held_slots) == (0, 20)
            at_once([partial(self.release, many[0], owner, claim) for claim in claims], len(claims))
            gate = self.gate(many[0], owner)
            assert (gate.slots, gate.leases) == (20, {})

    def test_one_lane_has_one_holder(self, many: list[Stores]) -> None:
        owner = self.opened(many[0], self.limits(100_000, 100_000, 100))
        claims = at_once(
            [
                partial(self.admit, stores, owner, "0", NOW_US + number, 3)
                for number, stores in enumerate(many)
            ]
        )
        (winner,) = [each[0] for each in claims if each is not None]
        gate = self.gate(many[0], owner)
        assert gate.leases == {"0": winner.lease}
        assert gate.slots == 100 - winner.lease.count

    def visit(
        self, stores: Stores, owner: tuple[str, str], lane: str, now: int, took_ms: Sequence[int]
    ) -> list[Tally]:
        """Send and settle, again by the gate as it then is while others were first; hours handed on."""
        admitted = self.admit(stores, owner, lane, now, len(took_ms))
        assert admitted is not None
        claim, gate = admitted
        told = [Told(Evidence.ALIVE, times_ms=(each, each)) for each in took_ms]
        noted: list[Tally] = []
        for _ in range(100):
            noted += [gate.hour_past] if gate.hour_past else []
            (made,) = stores.gates.change(
                [(owner, gates.settle(claim, told, now, self.RULES, Leaving(gate)))]
            )
            if made.made:
                return noted
            assert made.gate is not None
            gate = made.gate
        raise AssertionError("it is not settled")

    def test_every_duration_is_in_one_hour(self, many: list[Stores]) -> None:
        """Sixteen lanes begin the same buckets at once, twice, with an hour between."""
        owner = self.opened(many[0], self.limits(100_000, 100_000, 1_000))
        noted: list[Tally] = []
        now = NOW_US
        for hour in range(3):
            now = NOW_US + hour * gates.HOUR
            visits = [
                partial(self.visit, stores, owner, str(lane), now, [3, 50 * (1 + lane % 4), 50])
                for lane, stores in enumerate(many)
            ]
            noted += itertools.chain(*at_once(visits))
        gate = self.gate(many[0], owner)
        last = [gates.this_hour(gate, now), *([gate.hour_past] if gate.hour_past else [])]
        hours = {each.hour: each for each in (*noted, *last)}
        assert [hours[each].attempts for each in sorted(hours)] == [48, 48, 48]
        for each in hours.values():
            assert each.took == each.waited
        in_all: Counter[int] = Counter()
        for each in hours.values():
            in_all.update(each.took)
        took_ms = [3, 50] * AT_ONCE + [50 * (1 + lane % 4) for lane in range(AT_ONCE)]
        assert in_all == Counter(bucket_of(each) for each in took_ms * 3)

    def test_every_update_counts(self, tables: Tables) -> None:
        key = Key("gates", "acme#counter")
        tables.each([Insert(key, {"x": 0, "low": 0})])
        step = Update(key, Change((Test("x", Op.LT, 100),), {}, {"x": 1}))
        made = at_once([partial(tables.each, [step]) for _ in range(160)])
        assert sum(each.done for (each,) in made) == 100
        assert tables.get([key])[key]["x"] == 100


class TestFanOut:
    def use_case(self, stores: Stores, bells: MemoryBells) -> FanOutLater:
        return FanOutLater(stores.fanning_out, stores.capturing, MemoryPayloads(), bells, FixedClock(NOW_MS))

    def test_two_at_once_write_each_delivery_once(self, many: list[Stores]) -> None:
        endpoints = [endpoint(number, ("order.*",)) for number in range(45)]
        for each in endpoints:
            many[0].endpoints.create(each)
        one = event()
        many[0].capturing.commit([later(one)], NOW_MS // 1000)
        bells = MemoryBells()
        runs = [partial(self.use_case(stores, bells).run, TENANT, one.id) for stores in many[:4]]
        written = at_once(runs, threads=4)
        assert sum(written) == 45
        owed = sorted(record["pk"] for record in many[0].tables.walk("owed"))
        assert owed == sorted(lane_of(each).name for each in endpoints)
        assert len(list(many[0].tables.walk("history"))) == 45
        assert many[0].fanning_out.pending(TENANT, one.id) is None

    def test_four_at_once_keep_to_the_budget_and_write_each_delivery_once(self, many: list[Stores]) -> None:
        endpoints = [endpoint(number, ("order.*",)) for number in range(45)]
        for each in endpoints:
            many[0].endpoints.create(each)
        one = event()
        many[0].capturing.commit([later(one)], NOW_MS // 1000)
        bells, clock = MemoryBells(), FixedClock(NOW_MS)
        functions = [
            FanOutLater(
                each.fanning_out,
                each.capturing,
                MemoryPayloads(),
                bells,
                clock,
                Pacing(Limiter(DynamoAllowances(each.tables), clock), clock, lambda _: 10),
            )
            for each in many[:4]
        ]
        seconds = written = 0
        while many[0].fanning_out.pending(TENANT, one.id) is not None:
            due = many[0].fanning_out.pending(TENANT, one.id)
            runs = [partial(each.run, TENANT, one.id, due.pace.due_ms if due else 0) for each in functions]
            written += sum(at_once(runs, threads=4))
            assert written <= 10 * (seconds + 1)
            clock.advance(ms=1_000)
            seconds += 1
            assert seconds < 60, "it does not come to its end"
        owed = sorted(record["pk"] for record in many[0].tables.walk("owed"))
        assert owed == sorted(lane_of(each).name for each in endpoints)
        assert written == 45


class TestLimits:
    def test_threads_of_one_process_share_what_it_takes(self, many: list[Stores]) -> None:
        limiter = Limiter(DynamoAllowances(many[0].tables), FixedClock(NOW_MS))
        need = Need(Allowance(TENANT, "events"), 100)
        passed = at_once([partial(limiter.take, need)] * (20 * AT_ONCE))
        assert 100 - 100 // SHARE <= sum(each.count for each in passed) <= 100

    def test_no_token_is_given_out_twice(self, many: list[Stores]) -> None:
        stores = [DynamoAllowances(each.tables) for each in many]
        wish = Wish(Allowance(TENANT, "events"), allowance.bucket_of(100), 3)
        for _ in range(2):
            answers = at_once([partial(each.take, [wish], NOW_US) for each in stores])
            assert all(taken.count <= wish.count for (taken,) in answers)
        assert sum(taken.count for store in stores for taken in store.take([wish], NOW_US)) <= 4
        (empty,) = stores[0].take([wish], NOW_US)
        assert empty.tat <= NOW_US + SECOND

    def test_processes_let_through_together_what_is_allowed_and_no_more(self, many: list[Stores]) -> None:
        clock = FixedClock(NOW_MS)
        limiters = [Limiter(DynamoAllowances(each.tables), clock) for each in many]
        need = Need(Allowance(TENANT, "events"), 200)
        passed = at_once([partial(limiters[n % AT_ONCE].take, need) for n in range(40 * AT_ONCE)])
        assert 200 - 25 * AT_ONCE < sum(each.count for each in passed) <= 200
        assert {each.retry_after_s for each in passed if not each.count} == {1}

    @pytest.mark.parametrize("there", [0, 95])
    def test_the_quota_of_endpoints_is_exact_however_many_ask_at_once(
        self, many: list[Stores], there: int
    ) -> None:
        count = keys.endpoint_count(TENANT)
        if there:
            many[0].tables.together([Merge(count, {"endpoints": there})])
        create = [partial(each.endpoints.create, endpoint(n), None, 100) for n, each in enumerate(many)]
        made = min(AT_ONCE, 100 - there)
        assert sum(at_once(create)) == made
        assert many[0].endpoints.count(TENANT) == there + made
        assert len(many[0].endpoints.page(TENANT, "", 100).items) == made

    def test_everything_reserved_at_once_is_counted(self, many: list[Stores]) -> None:
        stores = [DynamoAllowances(each.tables) for each in many]
        bucket = allowance.bucket_of(10)
        wish = Wish(Allowance(TENANT, "fan-out"), bucket, 7)
        tats = at_once([partial(each.reserve, wish, NOW_US) for each in stores])
        assert sorted(tats) == [NOW_US + 7 * bucket.cost * (n + 1) for n in range(AT_ONCE)]


class TestWork:
    def owed(self, stores: Stores, of: Endpoint) -> int:
        return len(stores.work.peek(lane_of(of), 100))

    def test_one_of_many_records_an_attempt(self, many: list[Stores]) -> None:
        row = posted(many[0], 1, endpoint())
        done = at_once([partial(each.work.insert, [(row, success(row))]) for each in many])
        assert sum(inserted for (inserted,) in done) == 1

    def test_one_of_many_moves_a_row(self, many: list[Stores]) -> None:
        of = endpoint()
        row = posted(many[0], 1, of)
        steps = [
            Again(failure(row, NOW_MS + wait), replace(row, ready_ms=NOW_MS + wait, made=1))
            for wait in range(1, AT_ONCE + 1)
        ]
        moves = [partial(each.work.move, [(row, step)]) for each, step in zip(many, steps, strict=True)]
        done = [moved for (moved,) in at_once(moves)]
        assert sum(done) == 1
        assert many[0].work.peek(lane_of(of), 100) == [steps[done.index(True)].owed]

    def test_one_of_many_changes_an_endpoint(self, many: list[Stores]) -> None:
        old = endpoint()
        many[0].endpoints.create(old)
        new = [
            replace(old, version=2, description=str(number), limits=Limits(10, 20, 8 + number))
            for number in range(1, AT_ONCE + 1)
        ]
        done = at_once([partial(each.endpoints.replace, old, to) for each, to in zip(many, new, strict=True)])
        assert sum(done) == 1
        winner = new[done.index(True)]
        assert many[0].endpoints.get(TENANT, old.id) == winner
        gate = many[0].gates.read([(TENANT, old.id)])[TENANT, old.id]
        assert gate.slots == gate.cap == winner.limits.max_concurrency


class TestLists:
    """Readers walk while writers write, on one endpoint; what nobody touched is in each walk once."""

    WRITERS, READERS, THERE, ACTS = 4, 4, 40, 12

    def write(self, busy: BusyHistory, seed: int) -> list[Counter[str]]:
        """Do whatever happens to an endpoint, with what this writer has posted itself."""
        dice = random.Random(seed)
        for number in range(self.ACTS):
            busy.made += 100 * seed
            dice.choice((BusyHistory.post, BusyHistory.fail, BusyHistory.arrive, BusyHistory.die))(
                busy, number
            )
        return []

    def read(self, busy: BusyHistory, name: str) -> list[Counter[str]]:
        return [
            Counter(each for page in pages(busy.lists()[name], limit) for each in page) for limit in (3, 7)
        ]

    @pytest.mark.parametrize("name", ["deliveries", "succeeded deliveries", "pending deliveries", "attempts"])
    def test_each_walk_sees_what_stays_as_it_is_exactly_once(self, many: list[Stores], name: str) -> None:
        first = BusyHistory(many[0])
        for number in range(self.THERE):
            first.post(number)
        for number in range(self.THERE // 2):
            first.arrive(number)
        there = set(whole(first.lists()[name]))
        writers = [first.beside(many[1 + number]) for number in range(self.WRITERS)]
        readers = [first.beside(many[8 + number]) for number in range(self.READERS)]
        writing = [partial(self.write, each, 1 + number) for number, each in enumerate(writers)]
        reading = [partial(self.read, each, name) for each in readers]
        walks = [each for some in at_once([*writing, *reading], self.WRITERS + self.READERS) for each in some]
        assert len(walks) == 2 * self.READERS
        for walk in walks:
            assert {each: walk[each] for each in there} == dict.fromkeys(there, 1)
            assert max(walk.values()) == 1
