"""Holds by example: when an endpoint counts as held, why, for how long, and that each hold is told once."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from chalicelib.domain.change import Change, applied, holds
from chalicelib.domain.endpoint import Limits
from chalicelib.domain.gate import (
    SECOND,
    Ask,
    Breaker,
    Claim,
    Gate,
    Grant,
    HoldReason,
    Leaving,
    Occasion,
    Rules,
    Spell,
    Told,
    ask,
    current_hold,
    drained,
    ends_hold,
    held_between,
    held_sum,
    hold_begun,
    hold_until,
    new_record,
    not_noted,
    opening,
    read,
    reconfigured,
    settle,
)
from chalicelib.domain.outcome import Evidence

NOW = 1_764_000_000 * SECOND
RULES = Rules()
LIMITS = Limits(10, 20, 8)
ROWS = tuple(f"row-{number}" for number in range(12))
OK, ERROR = Told(Evidence.ALIVE), Told(Evidence.FAILING)
CAP, RATE, OPEN = HoldReason.ENDPOINT_CAP, HoldReason.RATE_LIMIT, HoldReason.BREAKER_OPEN


class Store:
    """One gate in a store, at seconds after the beginning."""

    def __init__(self, limits: Limits = LIMITS, **more: Any) -> None:  # noqa: ANN401 - any attribute
        self.limits = limits
        self.off_since: int | None = None
        self.record: dict[str, Any] = (
            new_record(limits.rate_per_second, limits.burst, limits.max_concurrency, rules=RULES) | more
        )

    @property
    def gate(self) -> Gate:
        return read(self.record)

    def make(self, change: Change | None) -> bool:
        assert change is not None
        if not holds(change, self.record):
            return False
        self.record = applied(change, self.record)
        return True

    def held(self, reason: HoldReason, at: int, lane: str = "", due: int = 0) -> bool:
        return self.make(hold_begun(self.gate, reason, us(at), lane=lane, due=us(due) if due else 0))

    def admit(self, at: int, lane: str = "0", rows: int = 1, *, more: bool = False) -> Claim:
        answer = ask(self.gate, Ask(lane, f"{lane} at {at}", ROWS[:rows], more), us(at), RULES)
        assert isinstance(answer, Grant)
        assert self.make(answer.change)
        return answer.claim

    def settle(self, claim: Claim, at: int, *told: Told, last: bool = True) -> tuple[Spell, ...]:
        """Settle by the gate as it is; give what history is told before."""
        leaving = Leaving(self.gate, last)
        noting = not_noted(self.gate, us(at), ending=ends_hold(leaving, claim, told))
        assert self.make(settle(claim, told, us(at), RULES, leaving))
        return noting

    def switch(self, at: int, *, enabled: bool) -> None:
        if not enabled:
            self.off_since = us(at)
        occasion = Occasion(us(at), self.off_since)
        assert self.make(reconfigured(self.limits, self.limits, enabled=enabled, occasion=occasion))

    def break_open(self, at: int) -> None:
        self.record["fails"] = RULES.threshold
        assert self.make(opening(self.gate, us(at), RULES))

    def sum_s(self, at: int) -> float:
        return held_sum(self.gate, us(at)) / SECOND


def us(at: int) -> int:
    """Give the moment so many seconds after the beginning."""
    return NOW + at * SECOND


def spell(reason: HoldReason, since: int, until: int) -> Spell:
    return Spell(reason, us(since), us(until))


def test_a_hold_begins_with_who_is_refused_and_ends_when_nothing_waits_any_more() -> None:
    store = Store()
    assert store.held(RATE, 0)
    assert current_hold(store.gate, us(3)) == Spell(RATE, NOW, 0)
    assert store.sum_s(3) == 3
    claim = store.admit(5, rows=2)
    assert store.settle(claim, 6, OK, OK) == (spell(RATE, 0, 5),)
    assert current_hold(store.gate, us(7)) is None
    assert store.sum_s(60) == 5
    assert not_noted(store.gate, us(60)) == ()


def test_what_goes_out_at_the_pace_does_not_end_a_hold_while_more_waits() -> None:
    store = Store()
    store.held(RATE, 0)
    first = store.admit(2, rows=3, more=True)
    assert store.settle(first, 3, OK, last=False) == ()
    second = store.admit(4, rows=3)
    assert store.settle(second, 5, OK) == (spell(RATE, 0, 4),)


def test_who_gets_less_at_once_than_it_has_is_held_for_as_long_as_that_lasts() -> None:
    store = Store(Limits(10, 2, 8))
    claim = store.admit(0, rows=3)
    assert current_hold(store.gate, us(0)) == Spell(RATE, NOW, 0)
    assert store.settle(claim, 1, OK, OK, OK) == (spell(RATE, 0, 1),)


def test_a_lane_let_in_at_once_does_not_end_the_hold_of_another_that_waits() -> None:
    store = Store()
    store.held(RATE, 0, "0", due=9)
    claim = store.admit(2, "1")
    assert store.gate.held_for is RATE
    assert store.settle(claim, 3, OK) == ()
    assert store.gate.held_from == NOW
    claim = store.admit(9, "0")
    assert store.settle(claim, 10, OK) == (spell(RATE, 0, 9),)


def test_of_two_reasons_one_ends_where_the_other_begins() -> None:
    store = Store()
    store.held(RATE, 0)
    assert hold_begun(store.gate, RATE, us(1)) is None
    store.held(CAP, 4)
    claim = store.admit(6)
    assert store.settle(claim, 7, OK) == (spell(RATE, 0, 4), spell(CAP, 4, 6))
    assert store.sum_s(9) == 6


def test_an_outage_is_one_hold_whatever_lanes_are_told_meanwhile() -> None:
    store = Store()
    store.held(RATE, 0)
    store.break_open(10)
    for reason in (CAP, RATE, OPEN):
        assert hold_begun(store.gate, reason, us(20)) is None
    assert current_hold(store.gate, us(20)) == Spell(OPEN, us(10), us(40))
    probe = store.admit(40)
    assert current_hold(store.gate, us(41)) == Spell(OPEN, us(10), 0)
    assert store.settle(probe, 45, ERROR) == (spell(RATE, 0, 10),)
    probe = store.admit(105)
    assert store.settle(probe, 110, OK) == (spell(OPEN, 10, 110),)
    assert (store.gate.state, store.gate.held_for) == (Breaker.CLOSED, None)
    assert store.sum_s(999) == 110


@pytest.mark.parametrize("reason", [RATE, HoldReason.RAMP, CAP])
def test_a_probe_that_succeeds_ends_a_hold_of_another_kind_too(reason: HoldReason) -> None:
    store = Store()
    store.break_open(0)
    store.record["held_for"] = reason.value
    probe = store.admit(30)
    assert store.settle(probe, 32, OK) == (spell(reason, 0, 32),)
    assert store.gate.held_for is None


def test_a_breaker_that_a_new_url_closed_is_not_shown_as_a_hold() -> None:
    store = Store()
    store.break_open(0)
    occasion = Occasion(us(5), moved=True)
    assert store.make(reconfigured(LIMITS, LIMITS, enabled=True, occasion=occasion))
    assert current_hold(store.gate, us(6)) is None
    claim = store.admit(8)
    assert store.settle(claim, 9, OK) == (spell(OPEN, 0, 8),)
    assert store.gate.ramp_from == us(5)


def test_a_429_says_until_when() -> None:
    store = Store()
    assert store.make(hold_until(us(7)))
    store.held(RATE, 1)
    assert current_hold(store.gate, us(2)) == Spell(RATE, us(1), us(7))
    assert current_hold(store.gate, us(8)) == Spell(RATE, us(1), 0)


def test_the_owners_switch_is_held_time_and_shown_before_all_else() -> None:
    store = Store()
    store.held(RATE, 0)
    store.switch(10, enabled=False)
    assert hold_begun(store.gate, HoldReason.DISABLED, us(11)) is None
    assert current_hold(store.gate, us(12)) == Spell(HoldReason.DISABLED, us(10), 0)
    store.switch(30, enabled=True)
    assert held_between(store.gate, us(15), us(20)) == (5 * SECOND, RATE)
    assert store.sum_s(40) == 40


def test_time_held_and_disabled_is_counted_once_though_the_owner_blinks_often() -> None:
    store = Store()
    store.held(RATE, 0)
    for at in (10, 30, 50):
        store.switch(at, enabled=False)
        assert store.sum_s(at + 5) == at + 5
        store.switch(at + 10, enabled=True)
        assert store.sum_s(at + 15) == at + 15
    claim = store.admit(80)
    store.settle(claim, 81, OK)
    assert store.sum_s(99) == 80


def test_a_hold_that_ends_while_disabled_is_counted_once() -> None:
    store = Store()
    store.held(RATE, 0)
    claim = store.admit(1, rows=1, more=True)
    store.switch(10, enabled=False)
    assert store.settle(claim, 20, OK) == (spell(RATE, 0, 20),)
    assert store.sum_s(25) == 25
    store.switch(30, enabled=True)
    assert store.sum_s(50) == 30


def test_a_hold_that_begins_while_disabled_is_counted_once() -> None:
    store = Store()
    store.switch(0, enabled=False)
    store.break_open(10)
    assert store.sum_s(20) == 20
    store.switch(30, enabled=True)
    probe = store.admit(40)
    store.settle(probe, 41, OK)
    assert store.sum_s(60) == 41


def test_who_did_not_see_the_switch_turn_ends_no_hold() -> None:
    store = Store()
    store.held(RATE, 0)
    claim = store.admit(1, more=True)
    stale = Leaving(store.gate, last=True)
    store.switch(2, enabled=False)
    assert not store.make(settle(claim, [OK], us(3), RULES, stale))
    assert store.make(settle(claim, [OK], us(3), RULES, Leaving(store.gate, last=True)))
    assert (store.sum_s(5), store.gate.slots) == (5, 8)


@pytest.mark.parametrize("behind", [1, 1_000, 2 * SECOND])
def test_f134_holds_noted_by_clocks_that_differ_do_not_overlap(behind: int) -> None:
    store = Store()
    for number in range(6):
        now = NOW + number * 100
        assert store.make(hold_begun(store.gate, RATE, now))
        assert store.make(hold_begun(store.gate, CAP, now - behind))
        store.record["held_noted"] = store.gate.held_past[-1].since
        claim = store.admit(0)
        assert store.make(settle(claim, [OK], now - behind, RULES, Leaving(store.gate, last=True)))
    past = store.gate.held_past
    assert all(one.since < one.until <= other.since for one, other in pairwise(past))
    assert held_sum(store.gate, NOW) <= past[-1].until - NOW


def test_a_hold_of_which_somebody_saw_nothing_is_not_begun_anew() -> None:
    store = Store()
    stale = store.gate
    store.held(RATE, 0)
    claim = store.admit(1)
    store.settle(claim, 2, OK)
    assert store.gate.held_for is None
    assert not store.make(hold_begun(stale, CAP, us(0)))
    assert store.held(CAP, 0)
    assert store.gate.held_from == us(1), "it begins when the one before ended"


def test_a_hold_that_ended_meanwhile_is_not_ended_again() -> None:
    store = Store(LIMITS)
    store.held(RATE, 0)
    one, other = store.admit(1, "0", more=True), store.admit(1, "1", more=True)
    stale = Leaving(store.gate, last=True)
    assert store.settle(one, 2, OK) == (spell(RATE, 0, 2),)
    assert not store.make(settle(other, [OK], us(3), RULES, stale))
    assert store.settle(other, 4, OK) == ()
    assert store.sum_s(9) == 2


def test_history_is_told_of_every_hold_though_reasons_alternate_while_nobody_settles() -> None:
    store = Store()
    for at in range(20):
        change = hold_begun(store.gate, (RATE, CAP)[at % 2], us(at))
        assert change is None or store.make(change)
    store.break_open(30)
    assert [each.reason for each in store.gate.held_past] == [RATE, CAP, RATE, CAP]
    probe = store.admit(60)
    told = store.settle(probe, 61, OK)
    assert told[0].since == NOW
    assert all(one.until == other.since for one, other in pairwise(told))
    assert told[-1] == spell(OPEN, 30, 61)


def test_a_drained_lane_is_rung_again_and_history_told_once() -> None:
    store = Store()
    store.held(RATE, 0, "0", due=5)
    assert drained(store.gate, "1", us(4)) is None
    stale = store.gate
    assert store.make(drained(store.gate, "0", us(4)))
    assert (store.gate.quiet, store.gate.held_for) == ({}, None)
    assert store.gate.held_past == (spell(RATE, 0, 4),)
    assert not_noted(store.gate, us(5)) == ()
    assert not store.make(drained(stale, "0", us(5)))


def test_the_hold_goes_on_until_the_last_quiet_lane_is_drained() -> None:
    store = Store()
    store.held(RATE, 0, "0", due=90)
    store.make(hold_begun(store.gate, RATE, us(1), lane="1", due=us(95)))
    assert store.make(drained(store.gate, "0", us(4)))
    assert store.gate.held_for is RATE
    assert store.make(drained(store.gate, "1", us(6)))
    assert store.sum_s(9) == 6


def test_a_drained_lane_ends_no_outage() -> None:
    store = Store()
    store.break_open(0)
    store.make(hold_begun(store.gate, OPEN, us(1), lane="0", due=us(90)))
    assert store.make(drained(store.gate, "0", us(4)))
    assert store.gate.held_for is OPEN


def test_a_delivery_was_held_for_no_longer_than_it_waited_and_for_the_last_reason() -> None:
    store = Store()
    store.held(RATE, 10)
    store.held(CAP, 20)
    claim = store.admit(30)
    store.settle(claim, 31, OK)
    gate = store.gate
    assert held_between(gate, us(0), us(5)) == (0, None)
    assert held_between(gate, us(0), us(15)) == (5 * SECOND, RATE)
    assert held_between(gate, us(12), us(18)) == (6 * SECOND, RATE)
    assert held_between(gate, us(0), us(99)) == (20 * SECOND, CAP)
    assert held_between(gate, us(99), us(0)) == (0, None)
    off = replace(gate, off_past=(us(12), us(28)))
    assert held_between(off, us(12), us(28)) == (16 * SECOND, HoldReason.DISABLED), "counted once"
