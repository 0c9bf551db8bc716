"""The limiter over tables in memory: what processes let through together, what they ask, what they tell."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.adapters.dynamodb.limiting import DynamoAllowances
from chalicelib.application.limiter import ON_ITS_OWN, Limiter, Need
from chalicelib.application.ports import Allowance
from chalicelib.domain.bucket import SECOND
from tests.fakes.fixed_clock import FixedClock
from tests.fakes.memory_tables import MemoryTables
from tests.unit.domain.examples import FEW

EVENTS = Allowance("acme", "events")
REQUESTS = Allowance("acme", "key-1")


class Several:
    """Several processes at one store, and the moments at which they let something through."""

    def __init__(self, processes: int = 1) -> None:
        self.clock = FixedClock()
        first = MemoryTables()
        self.tables = [first, *(MemoryTables(first.records) for _ in range(processes - 1))]
        self.limiters = [Limiter(DynamoAllowances(each), self.clock) for each in self.tables]
        self.passed: list[int] = []

    def ask(self, need: Need, of: int = 0, ahead: Iterable[Need] = ()) -> int:
        """Let a process take; what it says of when to come again (0: all was there)."""
        granted = self.limiters[of].take(need, tuple(ahead))
        self.passed += [self.clock.now_us()] * granted.count
        assert (granted.count == need.count) == (granted.retry_after_s == 0)
        return granted.retry_after_s

    @property
    def calls(self) -> int:
        return sum(len(each.faults.steps) for each in self.tables)


def most_in_any_window(moments: list[int], per_second: int) -> bool:
    """Say whether in no T seconds more than rate * (T + 2) went through."""
    return all(
        count + 1 <= per_second * ((moments[first + count] - moments[first]) / SECOND + 2)
        for first in range(len(moments))
        for count in range(len(moments) - first)
    )


@FEW
@given(
    per_second=st.integers(1, 40),
    steps=st.lists(
        st.tuples(st.integers(0, 4), st.integers(1, 12), st.integers(0, 2 * SECOND)), min_size=1, max_size=80
    ),
)
def test_processes_never_let_more_through_together_than_is_allowed(
    per_second: int, steps: list[tuple[int, int, int]]
) -> None:
    several = Several(5)
    for process, count, wait in steps:
        several.ask(Need(EVENTS, per_second, count), process)
        several.clock.advance(us=wait)
    assert most_in_any_window(several.passed, per_second)


@FEW
@given(
    per_second=st.integers(1, 40),
    steps=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 12), st.integers(0, SECOND)), max_size=30),
    count=st.integers(1, 50),
    process=st.integers(0, 3),
)
def test_when_nobody_else_asks_a_request_passes_after_the_time_it_was_told(
    per_second: int, steps: list[tuple[int, int, int]], count: int, process: int
) -> None:
    several = Several(4)
    for one, some, wait in steps:
        several.ask(Need(EVENTS, per_second, some), one)
        several.clock.advance(us=wait)
    granted = several.limiters[process].take(Need(EVENTS, per_second, count))
    left = min(count - granted.count, per_second)
    several.clock.advance(ms=granted.retry_after_s * 1000)
    if left:
        assert granted.retry_after_s >= 1
        assert several.ask(Need(EVENTS, per_second, left), process) == 0


def test_what_a_second_brings_may_go_at_once() -> None:
    several = Several()
    assert [several.ask(Need(EVENTS, 5)) for _ in range(6)] == [0, 0, 0, 0, 0, 1]


def test_a_rate_of_one_a_second_is_kept_to_the_second() -> None:
    several = Several(3)
    for _ in range(100):
        for process in range(3):
            several.ask(Need(EVENTS, 1), process)
        several.clock.advance(ms=100)
    assert len(several.passed) == 10


def test_an_idle_process_asks_once_a_request() -> None:
    several = Several()
    for _ in range(20):
        several.ask(Need(REQUESTS, 100), ahead=[Need(EVENTS, 200)])
        several.ask(Need(EVENTS, 200))
        several.clock.advance(ms=2_000)
    assert several.calls <= 20 + 1


def test_a_busy_process_asks_a_few_times_a_second() -> None:
    several = Several()
    for _ in range(10_000):
        several.ask(Need(REQUESTS, 2_000))
        several.clock.advance(ms=1)
    assert len(several.passed) == 10_000
    assert several.calls <= 10 * 5


def test_a_flood_that_is_refused_costs_a_few_calls_a_second() -> None:
    several = Several()
    for _ in range(5_000):
        several.ask(Need(REQUESTS, 10))
        several.clock.advance(ms=1)
    assert len(several.passed) <= 10 * (5 + 2)
    assert several.calls <= 5 * 10 + 10


def test_a_saturated_allowance_is_used_to_the_full() -> None:
    several = Several(4)
    for turn in range(20_000):
        several.ask(Need(EVENTS, 100), turn % 4)
        several.clock.advance(ms=1)
    assert len(several.passed) >= 100 * 20 * 0.9


def test_tokens_that_nobody_used_lapse() -> None:
    several = Several()
    for _ in range(8):
        several.ask(Need(EVENTS, 80))
    several.clock.advance(ms=10)
    before = several.calls
    several.ask(Need(EVENTS, 80))
    assert several.calls == before
    several.clock.advance(ms=1_000)
    several.ask(Need(EVENTS, 80))
    assert several.calls > before


def test_a_batch_gets_what_there_is_and_hears_when_the_rest_can_go() -> None:
    several = Several()
    assert several.limiters[0].take(Need(EVENTS, 10, 25)).count == 10
    refused = several.limiters[0].take(Need(EVENTS, 10, 15))
    assert (refused.count, refused.retry_after_s) == (0, 1)


def test_a_changed_quota_counts_from_the_next_request_on() -> None:
    several = Several()
    assert several.ask(Need(EVENTS, 1)) == 0
    assert several.ask(Need(EVENTS, 1)) == 1
    several.clock.advance(ms=500)
    assert several.ask(Need(EVENTS, 100)) == 0


def test_a_store_that_fails_turns_nobody_away_and_each_process_keeps_the_limit_by_itself() -> None:
    several = Several(2)
    several.tables[0].faults.fail_next(5)
    for _ in range(50):
        several.ask(Need(EVENTS, 10), 0)
    assert len(several.passed) == 10


def test_a_store_that_failed_is_left_alone_for_a_while() -> None:
    several = Several()
    several.tables[0].faults.fail_next(1)
    for _ in range(5):
        assert several.ask(Need(EVENTS, 10)) == 0
    assert several.calls == 1
    several.clock.advance(us=ON_ITS_OWN)
    assert several.ask(Need(EVENTS, 10)) == 0
    assert several.calls > 1
