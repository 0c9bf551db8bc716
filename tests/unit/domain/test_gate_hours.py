"""What an hour came to besides counts: durations in buckets and holds by reason, in the gate till it ends."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.adapters.aws_limits.dynamodb_values import item_size
from chalicelib.adapters.dynamodb.render import attributes
from chalicelib.domain import gate as gates
from chalicelib.domain.change import Change, applied, holds
from chalicelib.domain.endpoint import Limits
from chalicelib.domain.gate import (
    HOUR,
    SECOND,
    Ask,
    Gate,
    Grant,
    HoldReason,
    Leaving,
    Occasion,
    Rules,
    Tally,
    Told,
)
from chalicelib.domain.gate import holds as spells
from chalicelib.domain.histogram import bucket_of
from chalicelib.domain.outcome import Evidence

START = 1_700_000_000 * SECOND // HOUR * HOUR
RULES = Rules(breaker=False)
LIMITS = Limits(100_000, 100_000, 100)
KEY = "000001700000000#018bcfe5-6800-717c-b063-ce35eb43fdfb#0000#0001"
WRITE_UNIT = 1_024
REASONS = [each for each in HoldReason if each is not HoldReason.DISABLED]


def told(took_ms: int, waited_ms: int) -> Told:
    return Told(Evidence.ALIVE, quick=True, times_ms=(took_ms, waited_ms))


@dataclass
class Endpoint:
    """A gate that lanes settle at side by side, each by what it has read, and the hours handed on."""

    record: dict[str, Any] = field(
        default_factory=lambda: gates.new_record(100_000, 100_000, 100, rules=RULES)
    )
    stats: dict[int, Tally] = field(default_factory=dict)
    visits: int = 0

    @property
    def gate(self) -> Gate:
        return gates.read(self.record)

    def make(self, change: Change) -> bool:
        made = holds(change, self.record)
        if made:
            self.record = applied(change, self.record)
        return made

    def admit(self, now: int, rows: int = 10) -> tuple[gates.Claim, Gate]:
        self.visits += 1
        wish = Ask(f"{self.visits}", f"holder-{self.visits:020d}", tuple([KEY] * rows))
        grant = gates.ask(self.gate, wish, now, RULES)
        assert isinstance(grant, Grant)
        assert self.make(grant.change)
        return grant.claim, self.gate

    def settle(self, claim: gates.Claim, read: Gate, some: Sequence[Told], now: int) -> int:
        """Settle by what was read, and by what is there as long as that was another; how often."""
        for times in range(1, 10):
            if read.hour_past:
                self.stats.setdefault(read.hour_past.hour, read.hour_past)
            if self.make(gates.settle(claim, some, now, RULES, Leaving(read))):
                return times
            read = self.gate
        raise AssertionError("it is not settled")

    def hours(self, now: int) -> dict[int, Tally]:
        gate = self.gate
        running = [gates.this_hour(gate, now), *([gate.hour_past] if gate.hour_past else [])]
        return {each.hour: each for each in running} | self.stats


durations = st.tuples(st.integers(0, 20_000), st.integers(0, 10_000_000))
visits = st.tuples(st.integers(0, HOUR), st.lists(durations, max_size=6))


@given(st.lists(st.lists(visits, min_size=1, max_size=4), max_size=12))
def test_every_duration_is_in_one_hour_however_many_settle_at_once(rounds: list[list[Any]]) -> None:
    """Lanes of a round have all read the gate before the first of them settles."""
    endpoint, now = Endpoint(), START
    every: list[tuple[int, int]] = []
    for together in rounds:
        claims = [endpoint.admit(now) for _ in together]
        for (claim, read), (later, some) in zip(claims, together, strict=True):
            now += later // len(together)
            endpoint.settle(claim, read, [told(*each) for each in some], now)
            every += some
    told_of = list(endpoint.hours(now).values())
    for place, of in enumerate(("took", "waited")):
        counted: Counter[int] = Counter()
        for each in told_of:
            counted.update(getattr(each, of))
        assert +counted == Counter(bucket_of(each[place]) for each in every)
    assert all(sum(each.took.values()) == sum(each.waited.values()) == each.attempts for each in told_of)


def test_a_bucket_that_nothing_fell_into_for_an_hour_goes() -> None:
    endpoint, now = Endpoint(), START
    for number, took_ms in enumerate((10, 500, 500, 500)):
        now = START + number * HOUR
        endpoint.settle(*endpoint.admit(now), [told(took_ms, took_ms)], now)
    assert set(endpoint.gate.took) == set(endpoint.gate.waited) == {bucket_of(500)}
    assert endpoint.hours(now)[START // HOUR].took == {bucket_of(10): 1}


def test_one_that_begins_a_bucket_another_has_begun_settles_again() -> None:
    endpoint = Endpoint()
    first, second = endpoint.admit(START), endpoint.admit(START)
    assert endpoint.settle(*first, [told(10, 10)], START) == 1
    assert endpoint.settle(*second, [told(10, 10)], START) == 2
    third = endpoint.admit(START)
    assert endpoint.settle(*endpoint.admit(START), [told(10, 10)], START) == 1
    assert endpoint.settle(*third, [told(10, 10)], START) == 1, "what is there only grows"


@pytest.mark.parametrize("spread, rows", [((0.4, 0.7), 3), ((0.8, 1.2), 1)], ids=["usual", "wide"])
def test_a_gate_with_the_durations_of_a_busy_hour_is_one_write_unit(
    spread: tuple[float, float], rows: int
) -> None:
    """Half take 150 ms or more, and wait 50 ms or more; one in twenty twice, or four times, as long."""
    endpoint, dice, now = Endpoint(), random.Random(1), START
    for number in range(1_200):
        now = START + number * 9 * SECOND
        took = [(dice.lognormvariate(5, spread[0]), dice.lognormvariate(4, spread[1])) for _ in range(rows)]
        endpoint.settle(*endpoint.admit(now, rows), [told(int(one), int(two)) for one, two in took], now)
    endpoint.admit(now, rows)
    key = {"pk": "tenant_of_some_name#ep_018bcfe5-6800-717c-b063-ce35eb43fdfb"}
    marks = {"armed_shard": "1", "armed_until": now // 1000, "lanes": 1}
    assert item_size(attributes({**key, **marks, **endpoint.record})) < WRITE_UNIT


@given(
    st.lists(
        st.tuples(st.integers(0, HOUR // 2), st.sampled_from([*REASONS, None]), st.booleans()), max_size=20
    )
)
def test_each_hour_says_how_long_each_reason_held(turns: list[tuple[int, HoldReason | None, bool]]) -> None:
    """What goes on changes, or ends, at each turn; at some, and at each fourth, something is sent.

    A gate knows the last four spells: of more without a send between them, the oldest count for no hour.
    """
    endpoint, now = Endpoint(), START + 1
    true: dict[int, Counter[HoldReason]] = {}
    reason: HoldReason | None = None
    for number, (later, following, sends) in enumerate(turns):
        hold_over(true, reason, now, now + later)
        now += later
        gate = endpoint.gate
        begins = spells.begin(gate, following, now) if following else spells.end(gate, now)
        assert endpoint.make(begins)
        reason = following
        if sends or number % 4 == 3:
            endpoint.settle(*endpoint.admit(now), [told(1, 1)], now)
            reason = endpoint.gate.held_for
    for hour, each in endpoint.hours(now).items():
        if each.attempts:
            expected = true.get(hour, Counter())
            for name in REASONS:
                assert abs(each.held_ms.get(name, 0) - expected[name] // 1000) <= 2 * len(turns) + 2


def hold_over(
    true: dict[int, Counter[HoldReason]], reason: HoldReason | None, since: int, until: int
) -> None:
    """Add a hold to the hours it falls into, in µs."""
    while reason is not None and since < until:
        end = min(until, (since // HOUR + 1) * HOUR)
        true.setdefault(since // HOUR, Counter())[reason] += end - since
        since = end


def test_an_hour_says_how_long_the_switch_was_off() -> None:
    endpoint = Endpoint()
    endpoint.settle(*endpoint.admit(START), [told(1, 1)], START)
    off = START + 10 * SECOND
    assert endpoint.make(gates.reconfigured(LIMITS, LIMITS, enabled=False, occasion=Occasion(off)))
    assert gates.this_hour(endpoint.gate, off + 5 * SECOND).held_ms == {HoldReason.DISABLED: 5_000}
    on = Occasion(off + 60 * SECOND, off)
    assert endpoint.make(gates.reconfigured(LIMITS, LIMITS, enabled=True, occasion=on))
    assert gates.this_hour(endpoint.gate, START + 600 * SECOND).held_ms == {HoldReason.DISABLED: 60_000}
    endpoint.settle(*endpoint.admit(START + HOUR), [told(1, 1)], START + HOUR)
    hours = endpoint.hours(START + HOUR + SECOND)
    assert hours[START // HOUR].held_ms == {HoldReason.DISABLED: 60_000}
    assert hours[START // HOUR + 1].held_ms == {}
