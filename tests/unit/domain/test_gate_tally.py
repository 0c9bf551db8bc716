"""What an endpoint's requests came to: by the hour, lately, and since the last that succeeded."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain import gate as gates
from chalicelib.domain.change import applied, holds
from chalicelib.domain.endpoint import Limits
from chalicelib.domain.gate import (
    HOUR,
    SECOND,
    Ask,
    Gate,
    Grant,
    Health,
    Leaving,
    Occasion,
    Rules,
    Tally,
    Told,
)
from chalicelib.domain.outcome import Evidence

START = 1_700_000_000 * SECOND
MINUTE, DAY = 60 * SECOND, 24 * HOUR
RULES = Rules(breaker=False)
LIMITS = Limits(100_000, 100_000, 100)
OK = Told(Evidence.ALIVE, quick=True)
REFUSED = Told(Evidence.ALIVE, quick=True, failed=True)
ERROR = Told(Evidence.FAILING, failed=True)
HANGS = Told(Evidence.FAILING, timed_out=True, failed=True)


OWN = ("failed", "timeouts", "bad", "bad_from", "hour", "hour_base", "hour_past", "standings")


class Endpoint:
    """A gate that requests are settled at, and the statistics that whoever settles hands hours on to."""

    def __init__(self, rules: Rules = RULES) -> None:
        self.rules = rules
        self.record = gates.new_record(100_000, 100_000, 100, rules=rules)
        self.stats: dict[int, Tally] = {}
        self.visits = 0

    @property
    def gate(self) -> Gate:
        return gates.read(self.record)

    def settle(
        self, told: Sequence[Told], now: int, *, known: bool = True, stale: Gate | None = None
    ) -> bool:
        """Send and settle by what was read of the gate; whether that was made."""
        self.visits += 1
        wish = Ask(f"{self.visits % 7}", f"v{self.visits}", tuple(f"k{n}" for n in range(10)))
        grant = gates.ask(self.gate, wish, now, self.rules)
        assert isinstance(grant, Grant)
        self.record = applied(grant.change, self.record)
        read = stale or self.gate
        if read.hour_past:
            self.stats.setdefault(read.hour_past.hour, read.hour_past)
        change = gates.settle(grant.claim, told, now, self.rules, Leaving(read) if known else None)
        made = holds(change, self.record)
        if made:
            self.record = applied(change, self.record)
        return made

    def health(self, now: int) -> Health:
        return gates.health_of(self.gate, now, enabled=True)


@pytest.fixture
def endpoint() -> Endpoint:
    return Endpoint()


class TestAPlainSuccess:
    def test_it_writes_nothing_here_but_once_an_hour_and_every_ten_minutes(self, endpoint: Endpoint) -> None:
        endpoint.settle([OK] * 10, START)
        for second in range(1, 599):
            before = endpoint.record
            endpoint.settle([OK] * 10, START + second * SECOND)
            assert all(endpoint.record.get(name) == before.get(name) for name in OWN), second
        endpoint.settle([OK], START + 600 * SECOND)
        assert len(endpoint.gate.standings) == 2

    def test_the_record_stays_small(self, endpoint: Endpoint) -> None:
        for n in range(500):
            endpoint.settle([OK, ERROR] * 5, START + n * MINUTE)
        assert len(endpoint.gate.standings) <= 8


class TestInARow:
    def test_failures_of_any_kind_count_and_since_when(self, endpoint: Endpoint) -> None:
        endpoint.settle([OK, REFUSED, ERROR], START)
        endpoint.settle([HANGS], START + MINUTE)
        assert (endpoint.gate.bad, endpoint.gate.bad_from) == (3, START)
        assert (endpoint.gate.failed, endpoint.gate.timeouts, endpoint.gate.sent) == (3, 1, 4)

    def test_one_success_ends_them(self, endpoint: Endpoint) -> None:
        endpoint.settle([ERROR] * 5, START)
        endpoint.settle([OK], START + MINUTE)
        assert (endpoint.gate.bad, endpoint.gate.bad_from) == (0, 0)
        endpoint.settle([ERROR], START + 2 * MINUTE)
        assert (endpoint.gate.bad, endpoint.gate.bad_from) == (1, START + 2 * MINUTE)

    def test_nothing_is_lost_when_the_gate_was_not_known(self, endpoint: Endpoint) -> None:
        endpoint.settle([ERROR] * 3, START, known=False)
        endpoint.settle([OK], START + 1, known=False)
        endpoint.settle([ERROR], START + 2, known=False)
        assert (endpoint.gate.bad, endpoint.gate.failed) == (1, 4)
        assert endpoint.gate.bad_from == START + 2

    def test_nothing_told_changes_nothing(self, endpoint: Endpoint) -> None:
        endpoint.settle([ERROR], START)
        endpoint.settle([], START + 1)
        assert (endpoint.gate.bad, endpoint.gate.sent) == (1, 1)


class TestHopeless:
    def failing(self, times: int, since: int = START, rules: Rules = RULES) -> Endpoint:
        endpoint = Endpoint(rules)
        for n in range(times):
            endpoint.settle([ERROR], since + n)
        return endpoint

    @pytest.mark.parametrize(
        "times, later, expected",
        [(12, 72 * HOUR, True), (12, 72 * HOUR - 1, False), (11, 80 * HOUR, False), (500, 71 * HOUR, False)],
    )
    def test_it_takes_long_enough_and_often_enough(self, times: int, later: int, expected: bool) -> None:  # noqa: FBT001 - what is expected
        gate = self.failing(times).gate
        assert gates.hopeless(gate, START + later, RULES) is expected

    def test_f071_one_failure_then_refusals_for_two_hours_are_not_enough(self) -> None:
        endpoint = self.failing(1)
        for minute in range(120):
            endpoint.settle([REFUSED], START + minute * MINUTE)
            assert not gates.hopeless(endpoint.gate, START + minute * MINUTE, RULES)

    def test_f071_a_silence_between_is_no_failing(self) -> None:
        """What succeeded long ago and fails twelve times now has failed for no time at all."""
        endpoint = Endpoint()
        endpoint.settle([OK], START)
        for n in range(30):
            endpoint.settle([ERROR], START + 10 * DAY + n)
        assert not gates.hopeless(endpoint.gate, START + 10 * DAY + 30, RULES)

    def test_a_success_in_between_begins_anew(self) -> None:
        endpoint = self.failing(40)
        endpoint.settle([OK], START + 71 * HOUR)
        endpoint.settle([ERROR] * 10, START + 73 * HOUR)
        endpoint.settle([ERROR] * 10, START + 74 * HOUR)
        assert not gates.hopeless(endpoint.gate, START + 75 * HOUR, RULES)

    def test_one_that_is_disabled_or_may_not_be_is_not(self) -> None:
        gate = self.failing(20).gate
        later = START + 100 * HOUR
        assert gates.hopeless(gate, later, RULES)
        assert not gates.hopeless(replace(gate, enabled=False), later, RULES)
        assert not gates.hopeless(gate, later, replace(RULES, auto_disable=False))

    @pytest.mark.parametrize(
        "occasion", [Occasion(now=START, moved=True), Occasion(now=START, off_since=START - 1)]
    )
    def test_a_new_url_and_an_enabling_begin_anew(self, occasion: Occasion) -> None:
        endpoint = self.failing(20, START - 100 * HOUR)
        change = gates.reconfigured(LIMITS, LIMITS, enabled=True, occasion=occasion)
        gate = gates.read(applied(change, endpoint.record))
        assert (gate.bad, gate.bad_from) == (0, 0)

    def test_another_change_does_not(self) -> None:
        endpoint = self.failing(20)
        change = gates.reconfigured(LIMITS, LIMITS, enabled=True, occasion=Occasion(now=START))
        assert gates.read(applied(change, endpoint.record)).bad == 20


class TestHours:
    def test_an_hour_is_handed_on_by_who_settles_in_a_later_one(self, endpoint: Endpoint) -> None:
        hour = START // HOUR
        endpoint.settle([OK] * 3 + [HANGS], START)
        assert gates.this_hour(endpoint.gate, START) == Tally(hour, 4, 1, 1)
        endpoint.settle([OK], START + 5 * HOUR)
        assert endpoint.gate.hour_past == Tally(hour, 4, 1, 1)
        assert gates.this_hour(endpoint.gate, START) == Tally(hour + 5, 1, 0, 0)
        endpoint.settle([OK], START + 5 * HOUR + 1)
        assert endpoint.stats == {hour: Tally(hour, 4, 1, 1)}
        assert endpoint.gate.hour_past is None

    def test_an_hour_that_ends_before_the_last_was_handed_on_hands_on_both(self, endpoint: Endpoint) -> None:
        hour = START // HOUR
        for n in range(3):
            endpoint.settle([OK], START + n * HOUR)
        assert sorted(endpoint.stats) == [hour]
        assert endpoint.gate.hour_past == Tally(hour + 1, 1, 0, 0)

    def test_a_clock_that_is_behind_opens_no_hour_again(self, endpoint: Endpoint) -> None:
        turn = (START // HOUR + 1) * HOUR
        endpoint.settle([OK], turn)
        endpoint.settle([OK], turn - SECOND // 2)
        assert gates.this_hour(endpoint.gate, START) == Tally(turn // HOUR, 2, 0, 0)

    def test_who_read_the_gate_before_the_hour_turned_settles_again(self, endpoint: Endpoint) -> None:
        endpoint.settle([OK], START)
        read = endpoint.gate
        endpoint.settle([OK], START + HOUR)
        assert not endpoint.settle([OK], START + HOUR, stale=read)

    @given(
        st.lists(
            st.tuples(
                st.integers(0, 3 * HOUR), st.lists(st.sampled_from([OK, REFUSED, ERROR, HANGS]), max_size=10)
            ),
            max_size=30,
        )
    )
    def test_every_attempt_is_in_one_hour(self, visits: list[tuple[int, list[Told]]]) -> None:
        endpoint, now = Endpoint(), START
        for later, told in visits:
            now += later
            assert endpoint.settle(told, now)
        gate = endpoint.gate
        tallies = [
            *endpoint.stats.values(),
            gates.this_hour(gate, now),
            *([gate.hour_past] if gate.hour_past else []),
        ]
        distinct = {each.hour: each for each in tallies}
        every = [each for _, told in visits for each in told]
        assert sum(each.attempts for each in distinct.values()) == len(every)
        assert sum(each.failed for each in distinct.values()) == sum(each.failed for each in every)
        assert sum(each.timed_out for each in distinct.values()) == sum(each.timed_out for each in every)


class TestLately:
    def test_nothing_was_sent_so_all_is_well(self, endpoint: Endpoint) -> None:
        assert gates.lately(endpoint.gate, START) == (0, 0)
        assert endpoint.health(START) is Health.HEALTHY

    @pytest.mark.parametrize("failed, expected", [(2, Health.HEALTHY), (3, Health.DEGRADED)])
    def test_under_95_percent_of_the_last_50_is_degraded(
        self, endpoint: Endpoint, failed: int, expected: Health
    ) -> None:
        endpoint.settle([OK] * 10, START)
        for n in range(failed):
            endpoint.settle([ERROR], START + n + 1)
        endpoint.settle([OK] * (40 - failed), START + 10)
        assert gates.lately(endpoint.gate, START + 20) == (50, failed)
        assert endpoint.health(START + 20) is expected

    def test_after_a_thousand_that_were_well_the_last_50_count(self, endpoint: Endpoint) -> None:
        for n in range(100):
            endpoint.settle([OK] * 10, START + n)
        endpoint.settle([ERROR] * 3 + [OK] * 7, START + 100)
        assert gates.lately(endpoint.gate, START + 101) == (50, 3)
        for n in range(6):
            endpoint.settle([OK] * 10, START + 102 + n)
        assert gates.lately(endpoint.gate, START + 110) == (50, 0)
        assert endpoint.health(START + 110) is Health.HEALTHY

    def test_what_is_an_hour_old_counts_no_more(self, endpoint: Endpoint) -> None:
        endpoint.settle([ERROR] * 5, START)
        assert endpoint.health(START + 50 * MINUTE) is Health.DEGRADED
        assert endpoint.health(START + HOUR + 1) is Health.HEALTHY

    def test_a_few_attempts_are_judged_by_themselves(self, endpoint: Endpoint) -> None:
        endpoint.settle([OK, ERROR, OK], START)
        assert gates.lately(endpoint.gate, START) == (3, 1)
        assert endpoint.health(START) is Health.DEGRADED

    @given(st.lists(st.lists(st.sampled_from([OK, ERROR]), min_size=1, max_size=10), min_size=1, max_size=40))
    def test_it_is_never_off_by_more_than_one_stretch(self, visits: list[list[Told]]) -> None:
        endpoint = Endpoint()
        for n, told in enumerate(visits):
            endpoint.settle(told, START + n)
        every = [each.failed for told in visits for each in told]
        attempts, failures = gates.lately(endpoint.gate, START + len(visits))
        assert attempts <= min(50, len(every))
        covered = min(50, len(every))
        assert attempts >= min(covered, 50) or len(every) < 80
        assert sum(every[-attempts:]) <= failures <= sum(every[-(attempts + 20) :])


class TestHealth:
    def test_twenty_in_a_row_are_failing(self, endpoint: Endpoint) -> None:
        endpoint.settle([REFUSED] * 10, START)
        endpoint.settle([REFUSED] * 9, START + 1)
        assert endpoint.health(START + 2) is Health.DEGRADED
        endpoint.settle([REFUSED], START + 2)
        assert endpoint.health(START + 3) is Health.FAILING
        assert endpoint.health(START + 9 * HOUR) is Health.FAILING

    def test_an_open_breaker_is_failing_and_a_closed_one_is_not_for_long(self) -> None:
        endpoint = Endpoint(Rules())
        endpoint.settle([ERROR] * 10, START)
        endpoint.settle([ERROR] * 10, START + 1)
        opening = gates.opening(endpoint.gate, START + 2, endpoint.rules)
        opened = gates.read(applied(opening, endpoint.record))
        assert gates.health_of(replace(opened, bad=0), START + 3, enabled=True) is Health.FAILING
        endpoint.record = {**endpoint.record, "fails": 0}
        for n in range(7):
            endpoint.settle([OK] * 10, START + n + 10)
        assert endpoint.health(START + 20) is Health.HEALTHY

    def test_a_disabled_endpoint_is_that_whatever_else(self, endpoint: Endpoint) -> None:
        assert gates.health_of(endpoint.gate, START, enabled=False) is Health.DISABLED
