"""The gate by example: who is let in, who waits and why, and what breaker, ramp and leases do."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.bucket import bucket_of
from chalicelib.domain.change import Change, applied, holds
from chalicelib.domain.endpoint import Limits
from chalicelib.domain.gate import (
    LANE_BUSY_WAIT,
    SECOND,
    TAKE_OVER_GRACE,
    Ask,
    Breaker,
    Claim,
    Gate,
    Grant,
    Hold,
    HoldReason,
    Lease,
    Occasion,
    Rules,
    Told,
    Turn,
    ask,
    hold_until,
    moments,
    new_record,
    opening,
    overfull,
    read,
    reconfigured,
    release,
    settle,
)
from chalicelib.domain.outcome import Evidence

NOW = 1_764_000_000 * SECOND
RULES = Rules()
ALIVE, FAILING, NONE = Evidence.ALIVE, Evidence.FAILING, Evidence.NONE
ROWS = tuple(f"row-{number}" for number in range(12))


class Store:
    """One gate in a store that changes it only when every test holds."""

    def __init__(self, rate: int = 10, burst: int = 20, cap: int = 8, **more: Any) -> None:  # noqa: ANN401 - any attribute
        self.record: dict[str, Any] = new_record(rate, burst, cap, rules=RULES) | more

    @property
    def gate(self) -> Gate:
        return read(self.record)

    def make(self, change: Change) -> bool:
        if not holds(change, self.record):
            return False
        self.record = applied(change, self.record)
        return True

    def admit(self, lane: str = "0", now: int = NOW, rows: int = 12, holder: str = "") -> Claim:
        answer = self.ask(lane, now, rows, holder)
        assert isinstance(answer, Grant)
        assert self.make(answer.change)
        return answer.claim

    def ask(self, lane: str = "0", now: int = NOW, rows: int = 12, holder: str = "") -> Grant | Turn | Hold:
        return ask(self.gate, Ask(lane, holder or f"holder of {lane}", ROWS[:rows]), now, RULES)

    def settle(self, claim: Claim, *evidence: Evidence, now: int = NOW) -> bool:
        return self.make(settle(claim, [Told(each) for each in evidence], now, RULES))

    def break_open(self, now: int = NOW) -> None:
        self.record["fails"] = RULES.threshold
        assert self.make(opening(self.gate, now, RULES))


def hold(until: int | None, reason: HoldReason) -> Hold:
    return Hold(until, reason)


@pytest.mark.parametrize(
    "rate, burst, cap, rows, admitted",
    [(10, 20, 8, 12, 8), (10, 20, 100, 12, 10), (1, 3, 100, 12, 5), (10, 20, 8, 2, 2), (1, 1, 1, 12, 1)],
)
def test_ten_are_let_in_or_as_many_as_rows_cap_and_the_tokens_of_two_seconds_allow(
    rate: int, burst: int, cap: int, rows: int, admitted: int
) -> None:
    store = Store(rate, burst, cap)
    claim = store.admit(rows=rows)
    assert claim.lease == Lease("holder of 0", NOW + 45 * SECOND, admitted, ROWS[:admitted], 0)
    assert not claim.probe
    assert store.gate.leases == {"0": claim.lease}
    assert (store.gate.slots, store.gate.held_slots) == (cap - admitted, admitted)
    assert store.record["seen"] == NOW


HELD = {"hold_until": NOW + 7 * SECOND}
OPEN = {"st": "open", "epoch": 1, "open_until": NOW + 30 * SECOND}
COOLED = OPEN | {"open_until": NOW}
PROBED = {"st": "half_open", "epoch": 2, "probe_until": NOW + 12 * SECOND}
BUSY = {"L0": Lease("another", NOW + 45 * SECOND, 1, ("a",), 0).record()}
EMPTY = {"tat": NOW + 4 * SECOND}  # spent, and all that drips in within two seconds reserved
FULL = {"slots": 0}


@pytest.mark.parametrize(
    "there_is, expected",
    [
        ({"on": 0} | HELD | OPEN | BUSY | EMPTY | FULL, hold(None, HoldReason.DISABLED)),
        (HELD | OPEN | BUSY | EMPTY | FULL, hold(NOW + 7 * SECOND, HoldReason.RATE_LIMIT)),
        (OPEN | BUSY | EMPTY | FULL, hold(NOW + LANE_BUSY_WAIT, HoldReason.ENDPOINT_CAP)),
        (OPEN | EMPTY | FULL, hold(NOW + 30 * SECOND, HoldReason.BREAKER_OPEN)),
        (PROBED | EMPTY | FULL, hold(NOW + 10 * SECOND, HoldReason.BREAKER_OPEN)),
        (COOLED | EMPTY | FULL, hold(NOW + LANE_BUSY_WAIT, HoldReason.BREAKER_OPEN)),
        (COOLED | EMPTY, hold(NOW + 2_100_000, HoldReason.RATE_LIMIT)),
        (PROBED | {"probe_until": NOW + 3}, hold(NOW + 3, HoldReason.BREAKER_OPEN)),
        (EMPTY | FULL, hold(NOW + LANE_BUSY_WAIT, HoldReason.ENDPOINT_CAP)),
        (EMPTY, hold(NOW + 2_100_000, HoldReason.RATE_LIMIT)),
        (EMPTY | {"ramp_from": NOW}, hold(NOW + 3 * SECOND, HoldReason.RAMP)),
        ({"slots": 7, "ramp_from": NOW}, hold(NOW + LANE_BUSY_WAIT, HoldReason.RAMP)),
    ],
)
def test_who_is_not_let_in_is_told_the_first_reason_and_when_to_come_back(
    there_is: dict[str, Any], expected: Hold
) -> None:
    assert Store(**there_is).ask() == expected


def sent_at(store: Store, claim: Claim, now: int = NOW) -> list[int]:
    """Say how many microseconds from now on each request of a claim just admitted may go."""
    return [each - now for each in moments(claim, store.gate, now)]


def test_what_is_let_in_ahead_of_its_tokens_goes_when_they_are_there() -> None:
    store = Store(burst=3, cap=100)
    assert sent_at(store, store.admit("0", rows=5)) == [0, 0, 0, 100_000, 200_000]
    assert sent_at(store, store.admit("1", rows=2)) == [300_000, 400_000]
    late = NOW + 450_000
    assert sent_at(store, store.admit("2", rows=2, now=late), late) == [50_000, 150_000]


def test_no_tokens_are_reserved_that_come_later_than_two_seconds_ahead() -> None:
    store = Store(rate=2, burst=1, cap=100)
    assert sent_at(store, store.admit()) == [0, 500_000, SECOND, 1_500_000, 2 * SECOND]
    assert isinstance(store.ask("1", rows=1), Hold)


def test_without_a_token_it_is_all_within_two_seconds_or_nothing() -> None:
    store = Store(burst=1, cap=100)
    store.record["tat"] = NOW + 1_100_000  # ten come within two seconds
    assert isinstance(store.ask(rows=10), Grant)
    assert isinstance(store.ask(rows=10, now=NOW - 1), Hold)
    assert isinstance(store.ask(rows=9, now=NOW - 1), Grant)


@pytest.mark.parametrize(
    "rate, burst, rows, more, tokens",
    [
        (10, 20, 8, False, 1),  # the rest comes within two seconds
        (10, 20, 8, True, 1),
        (2, 20, 8, False, 4),
        (2, 20, 8, True, 16),
        (1, 20, 8, True, 18),
        (1, 10, 8, True, 9),  # no token must be lost to a full bucket
        (1, 1, 8, True, 1),
        (1, 2, 2, False, 1),
        (4, 3, 1, False, 1),
    ],
)
def test_who_is_held_comes_back_when_a_full_batch_can_go(
    rate: int, burst: int, rows: int, tokens: int, *, more: bool
) -> None:
    store = Store(rate, burst, 100, tat=NOW + 2 * SECOND + burst * SECOND // rate)
    answer = ask(store.gate, Ask("0", "me", ROWS[:rows], more=more), NOW, RULES)
    assert answer == hold(NOW + 2 * SECOND + tokens * SECOND // rate, HoldReason.RATE_LIMIT)
    assert isinstance(store.ask(rows=rows, now=NOW + 2 * SECOND + tokens * SECOND // rate), Grant)


def test_who_was_held_takes_what_there_is_and_comes_when_there_is_any() -> None:
    store = Store(rate=5, burst=5, cap=100, tat=NOW + 2_400_000)
    again = Ask("0", "me", ROWS, more=True, waited=True)
    assert isinstance(ask(store.gate, replace(again, waited=False), NOW, RULES), Hold)
    answer = ask(store.gate, again, NOW, RULES)
    assert isinstance(answer, Grant)
    assert store.make(answer.change)
    assert sent_at(store, answer.claim) == [1_600_000, 1_800_000, 2 * SECOND]
    wait = ask(store.gate, replace(again, lane="1"), NOW, RULES)
    assert wait == hold(NOW + 200_000, HoldReason.RATE_LIMIT)
    assert isinstance(ask(store.gate, replace(again, lane="1"), NOW + 200_000, RULES), Grant)


@pytest.mark.parametrize("rate, burst", [(1, 1), (2, 5), (5, 5), (1, 20), (10, 20)])
@pytest.mark.parametrize("late", [0, 300_000, SECOND])
def test_a_lane_is_not_kept_out_for_ever_by_one_that_always_comes_at_the_right_moment(
    rate: int, burst: int, late: int
) -> None:
    """Two lanes with a backlog; the bell of one comes as late as a hidden one does."""
    store = Store(rate, burst, 20)
    due, held = {"prompt": NOW, "late": NOW + 1}, dict.fromkeys(("prompt", "late"), False)
    sent = dict.fromkeys(due, 0)
    while (now := min(due.values())) < NOW + 120 * SECOND:
        lane = min(due, key=due.__getitem__)
        wish = Ask(lane, f"{lane} at {now}", ROWS[:11], more=True, waited=held[lane])
        answer = ask(store.gate, wish, now, RULES)
        held[lane] = isinstance(answer, Hold)
        if isinstance(answer, Hold):
            assert answer.until is not None
            assert answer.until > now
            due[lane] = answer.until + (late if lane == "late" else 0)
            continue
        assert isinstance(answer, Grant)
        assert store.make(answer.change)
        sent[lane] += len(answer.claim.lease.keys)
        due[lane] = moments(answer.claim, store.gate, now)[-1] + 50_000
        assert store.settle(answer.claim, ALIVE, now=now)
    assert sum(sent.values()) >= rate * 120 * 95 // 100
    assert min(sent.values()) >= sum(sent.values()) // 12


def test_an_empty_bucket_lets_somebody_in_when_it_says() -> None:
    store = Store(cap=100, **EMPTY)
    wait = store.ask("2", rows=1)
    assert wait == hold(NOW + 2_100_000, HoldReason.RATE_LIMIT)
    assert sent_at(store, store.admit("2", now=NOW + 2_100_000, rows=1), NOW) == [2_100_000]


def test_a_lane_in_turn_needs_one_slot_for_many_attempts() -> None:
    store = Store(rate=10, burst=3, cap=1)
    answer = ask(store.gate, Ask("o0", "me", ROWS, in_turn=True), NOW, RULES)
    assert isinstance(answer, Grant)
    assert store.make(answer.change)
    assert answer.claim.lease == Lease("me", NOW + 45 * SECOND, 1, ROWS[:10], 0)
    assert store.gate.slots == 0
    assert sent_at(store, answer.claim) == [0, 0, 0, *(n * 100_000 for n in range(1, 8))]
    assert store.settle(answer.claim, *[ALIVE] * 10)
    assert store.gate.slots == 1


def test_a_lane_in_turn_takes_over_for_one_slot_what_a_dead_holder_had_for_ten() -> None:
    store = Store(cap=10)
    dead = store.admit(holder="dead")
    late = dead.lease.until + TAKE_OVER_GRACE
    answer = ask(store.gate, Ask("0", "heir", ROWS, in_turn=True), late, RULES)
    assert isinstance(answer, Grant)
    assert store.make(answer.change)
    assert (store.gate.slots, store.gate.held_slots) == (9, 1)


def test_f126_those_who_waited_together_go_at_the_pace_and_not_at_once() -> None:
    store = Store(cap=100, burst=5)
    assert store.make(hold_until(NOW + 5 * SECOND))
    sent: list[int] = []
    for tick in range(2_000):
        now, lane = NOW + tick * 10_000, str(tick)
        answer = store.ask(lane, now, 1)
        if isinstance(answer, Grant):
            assert store.make(answer.change)
            sent += moments(answer.claim, store.gate, now)
            assert store.settle(answer.claim, ALIVE, now=now)
    assert min(sent) == NOW + 5 * SECOND
    assert len([each for each in sent if each < NOW + 6 * SECOND]) == 5 + 9
    assert len([each for each in sent if each < NOW + 20 * SECOND]) == 5 + 149


def test_f126_a_hundred_told_to_wait_five_seconds_go_at_the_pace_and_each_lane_in_its_order() -> None:
    store = Store(rate=10, burst=5, cap=40)
    assert store.make(hold_until(NOW + 5 * SECOND))
    left = {lane: list(range(25)) for lane in ("0", "1", "2", "o0")}
    due, went = dict.fromkeys(left, NOW), []
    while any(left.values()):
        lane = min((lane for lane in left if left[lane]), key=due.__getitem__)
        keys = tuple(map(str, left[lane]))
        wish = Ask(lane, "me", keys[:11], more=len(keys) > 11, in_turn=lane == "o0")
        answer = ask(store.gate, wish, due[lane], RULES)
        if isinstance(answer, Hold):
            assert answer.until is not None
            due[lane] = answer.until
            continue
        assert isinstance(answer, Grant)
        assert store.make(answer.change)
        when = moments(answer.claim, store.gate, due[lane])
        went += [(moment, lane, int(key)) for moment, key in zip(when, answer.claim.lease.keys, strict=True)]
        left[lane] = left[lane][len(when) :]
        due[lane] = when[-1]
        assert store.settle(answer.claim, *[ALIVE] * len(when), now=when[-1])
    moments_s = sorted((moment - NOW) / SECOND for moment, _, _ in went)
    assert moments_s == [5] * 5 + [5 + number / 10 for number in range(1, 96)]
    for lane in left:
        assert [number for _, of, number in sorted(went) if of == lane] == list(range(25))


@pytest.mark.parametrize(
    "moved",
    [
        {"epoch": 1},
        HELD,
        OPEN,
        {"fails": 20},
    ],
)
def test_what_was_decided_on_a_gate_that_has_moved_on_cannot_be_made(moved: dict[str, Any]) -> None:
    answer = Store().ask()
    assert isinstance(answer, Grant)
    assert Store().make(answer.change)
    assert not Store(**moved).make(answer.change)


LIMITS = Limits(10, 20, 8)


@pytest.mark.parametrize(
    "limits, enabled",
    [(Limits(9, 20, 8), True), (Limits(10, 19, 8), True), (Limits(10, 20, 9), True), (LIMITS, False)],
)
def test_what_was_decided_before_the_owner_changed_limits_or_switch_cannot_be_made(
    limits: Limits, *, enabled: bool
) -> None:
    store = Store()
    answer = store.ask()
    assert isinstance(answer, Grant)
    assert store.make(reconfigured(limits, LIMITS, enabled=enabled))
    assert not store.make(answer.change)


def test_a_probe_decided_before_the_endpoint_was_held_cannot_be_made() -> None:
    store = Store()
    store.break_open()
    answer = store.ask(now=NOW + 30 * SECOND)
    assert isinstance(answer, Grant)
    assert store.make(hold_until(NOW + 31 * SECOND))
    assert not store.make(answer.change)


def test_a_probe_decided_before_the_last_one_came_back_cannot_be_made() -> None:
    store = Store(cap=30)
    store.break_open()
    late = NOW + 43 * SECOND
    (slow,) = probes(store, NOW + 30 * SECOND, "0")
    answer = store.ask("1", now=late)
    assert isinstance(answer, Grant)
    assert store.settle(slow, ALIVE, now=late)
    assert not store.make(answer.change)
    assert store.gate.state is Breaker.CLOSED


def test_a_probe_decided_before_the_owner_changed_limits_or_switch_cannot_be_made() -> None:
    store = Store()
    store.break_open()
    answer = store.ask(now=NOW + 30 * SECOND)
    assert isinstance(answer, Grant)
    assert store.make(reconfigured(LIMITS, LIMITS, enabled=False))
    assert not store.make(answer.change)


def test_new_limits_and_the_switch_are_laid_on_the_gate_and_the_slots_follow() -> None:
    store = Store()
    store.admit(rows=3)
    assert store.make(reconfigured(Limits(7, 9, 5), LIMITS, enabled=False))
    gate = store.gate
    assert (gate.rate, gate.burst, gate.cap, gate.enabled) == (7, 9, 5, False)
    assert (gate.slots, gate.held_slots) == (2, 3)
    assert store.ask("1") == hold(None, HoldReason.DISABLED)
    assert store.make(reconfigured(LIMITS, Limits(7, 9, 5), enabled=True))
    assert store.admit("1").lease.count == 5


@pytest.mark.parametrize("limits", [Limits(100, 100, 8), Limits(1, 100_000, 8), Limits(1, 1, 8)])
def test_a_new_rate_or_burst_keeps_nobody_waiting_for_what_the_old_one_spent(limits: Limits) -> None:
    before = Limits(1, 86_400, 8)
    store = Store(1, 86_400, 8, tat=NOW + 86_400 * SECOND)
    assert store.ask() == hold(NOW + 6 * SECOND, HoldReason.RATE_LIMIT)
    assert store.make(reconfigured(limits, before, enabled=True))
    assert store.admit().lease.count >= 1


def test_a_new_cap_or_the_switch_gives_no_tokens() -> None:
    for limits, enabled in ((Limits(10, 20, 9), True), (LIMITS, False)):
        store = Store(**EMPTY)
        assert store.make(reconfigured(limits, LIMITS, enabled=enabled))
        assert store.make(reconfigured(limits, limits, enabled=True))
        assert store.ask() == hold(NOW + 2_100_000, HoldReason.RATE_LIMIT)


@pytest.mark.parametrize(
    "store, first, second",
    [
        pytest.param(Store(cap=8, burst=100, tat=NOW + 1), 5, 3, id="slots"),
        pytest.param(Store(rate=1, burst=6, cap=100), 5, 3, id="tokens of an idle bucket"),
        pytest.param(Store(rate=1, burst=7, cap=100, tat=NOW + 1), 5, 3, id="tokens of a busy bucket"),
        pytest.param(Store(100_000, 100_000, 60, tat=NOW + 1, ramp_from=NOW), 5, 1, id="slots of a ramp"),
    ],
)
def test_two_who_saw_the_same_slots_or_tokens_do_not_both_get_them(
    store: Store, first: int, second: int
) -> None:
    one, other = store.ask("0", rows=5), store.ask("1", rows=5)
    assert isinstance(one, Grant)
    assert isinstance(other, Grant)
    assert store.make(one.change)
    before = dict(store.record)
    assert not store.make(other.change)
    assert store.record == before
    assert one.claim.lease.count == first
    assert store.admit("1", rows=5).lease.count == second


def test_two_who_saw_a_lane_free_do_not_both_get_it() -> None:
    store = Store(cap=100)
    first, second = store.ask(holder="a", rows=1), store.ask(holder="b", rows=1)
    assert isinstance(first, Grant)
    assert isinstance(second, Grant)
    assert store.make(first.change)
    assert not store.make(second.change)


def test_a_lowered_cap_lets_nobody_in_until_enough_have_come_back() -> None:
    store = Store(cap=8)
    claim = store.admit(rows=6)
    store.record |= {"cap": 2, "slots": store.record["slots"] - 6}
    assert store.gate.slots == -4
    assert store.ask("1") == hold(NOW + LANE_BUSY_WAIT, HoldReason.ENDPOINT_CAP)
    assert store.settle(claim, ALIVE)
    assert store.admit("1").lease.count == 2


@pytest.mark.parametrize("late, free", [(0, False), (2 * SECOND - 1, False), (2 * SECOND, True)])
def test_f134_a_dead_holders_lane_is_taken_over_two_seconds_late(late: int, *, free: bool) -> None:
    store = Store()
    dead = store.admit(rows=5, holder="dead")
    now = dead.lease.until + late
    answer = store.ask(holder="heir", now=now, rows=3)
    if not free:
        assert answer == hold(
            min(now + LANE_BUSY_WAIT, dead.lease.until + 2 * SECOND), HoldReason.ENDPOINT_CAP
        )
        return
    assert isinstance(answer, Grant)
    assert answer.takes_over == dead.lease
    assert store.make(answer.change)
    assert (store.gate.slots, store.gate.held_slots) == (5, 3)


def test_a_dead_holder_who_was_only_slow_changes_nothing_any_more() -> None:
    store = Store()
    slow = store.admit(holder="slow")
    store.admit(holder="heir", now=slow.lease.until + TAKE_OVER_GRACE, rows=3)
    before = dict(store.record)
    assert not store.settle(slow, ALIVE, FAILING)
    assert not store.make(release(slow.lease, "0"))
    assert store.record == before


def holder_of_two_leases() -> tuple[Store, Gate, Lease]:
    """Let one holder have ten slots, then two; give the store, and gate and lease as they first were."""
    store = Store(cap=12, burst=50)
    first = store.admit(holder="same")
    seen = store.gate
    assert store.settle(first, ALIVE, now=NOW + SECOND)
    store.admit(holder="same", now=NOW + SECOND, rows=2)
    return store, seen, first.lease


def test_a_lease_is_not_taken_over_for_an_older_one_of_the_same_holder() -> None:
    store, seen, _ = holder_of_two_leases()
    late = NOW + 100 * SECOND
    answer = ask(seen, Ask("0", "heir", ROWS), late, RULES)
    assert isinstance(answer, Grant)
    assert not store.make(answer.change)
    heir = store.ask(holder="heir", now=late)
    assert isinstance(heir, Grant)
    assert store.make(heir.change)
    assert store.gate.slots + store.gate.held_slots == 12


def test_a_lease_is_not_given_back_for_that_of_another_which_ends_at_the_same_moment() -> None:
    store = Store()
    lease = store.admit(holder="mine").lease
    assert not store.make(release(replace(lease, holder="yours"), "0"))
    assert store.make(release(lease, "0"))


def test_a_lease_is_not_given_back_for_an_older_one_of_the_same_holder() -> None:
    store, _, older = holder_of_two_leases()
    claim = Claim("0", older, 0, probe=False, bucket=bucket_of(10, 50, 1_000))
    assert not store.make(release(older, "0"))
    assert not store.make(settle(claim, [Told(FAILING)], NOW, RULES))
    assert store.gate.slots + store.gate.held_slots == 12


@pytest.mark.parametrize(
    "before, evidence, after",
    [
        (3, [], 3),
        (3, [NONE, NONE], 3),
        (3, [FAILING], 4),
        (3, [FAILING, NONE, FAILING], 5),
        (3, [ALIVE], 0),
        (3, [FAILING, ALIVE], 0),
        (3, [ALIVE, FAILING], 1),
        (3, [FAILING, ALIVE, FAILING, FAILING, NONE], 2),
        (3, [ALIVE, FAILING, ALIVE, FAILING], 1),
    ],
)
def test_evidence_counts_in_the_order_of_completion(
    before: int, evidence: list[Evidence], after: int
) -> None:
    store = Store(fails=before)
    assert store.settle(store.admit(), *evidence, now=NOW + SECOND)
    assert (store.gate.fails, store.record["seen"]) == (after, NOW + SECOND)
    assert (store.gate.slots, store.gate.leases) == (8, {})


def test_evidence_of_two_lanes_adds_up_whoever_read_what() -> None:
    store = Store(cap=100)
    one, other = store.admit("0", rows=3), store.admit("1", rows=3)
    assert store.settle(other, FAILING, FAILING, FAILING)
    assert store.settle(one, FAILING, FAILING)
    assert store.gate.fails == 5


def test_nineteen_failures_are_a_blip_and_twenty_open_the_breaker() -> None:
    store = Store(fails=19)
    assert not overfull(store.gate, RULES)
    assert isinstance(store.ask(), Grant)
    store.record["fails"] = 20
    assert overfull(store.gate, RULES)
    turn = store.ask()
    assert isinstance(turn, Turn)
    assert store.make(turn.change)
    assert not store.make(turn.change)
    gate = store.gate
    assert (gate.state, gate.epoch, gate.open_until) == (Breaker.OPEN, 1, NOW + 30 * SECOND)
    assert not overfull(gate, RULES)
    assert store.ask() == hold(NOW + 30 * SECOND, HoldReason.BREAKER_OPEN)


def test_a_breaker_that_recovered_meanwhile_is_not_opened() -> None:
    store = Store(fails=20)
    turn = store.ask()
    store.record["fails"] = 0
    assert isinstance(turn, Turn)
    assert not store.make(turn.change)


def test_a_breaker_that_was_open_meanwhile_is_opened_only_by_who_has_seen_that() -> None:
    store = Store(fails=20)
    stale = store.ask()
    assert isinstance(stale, Turn)
    store.record |= {"epoch": 3}
    assert not store.make(stale.change)
    fresh = store.ask()
    assert isinstance(fresh, Turn)
    assert store.make(fresh.change)


@pytest.mark.parametrize("state", list(Breaker))
def test_without_the_breaker_nothing_is_ever_open(state: Breaker) -> None:
    store = Store(st=state.value, fails=99, open_until=NOW + SECOND, probe_until=NOW + SECOND)
    rules = Rules(breaker=False)
    answer = ask(store.gate, Ask("0", "me", ROWS), NOW, rules)
    assert isinstance(answer, Grant)
    assert store.make(answer.change)
    assert not answer.claim.probe
    assert not overfull(store.gate, rules)


def test_outcomes_of_requests_let_in_before_the_breaker_opened_change_nothing() -> None:
    for evidence in ([ALIVE], [FAILING] * 5, [ALIVE, FAILING]):
        store = Store()
        early = store.admit()
        store.break_open()
        gate = store.gate
        assert not store.settle(early, *evidence)
        assert store.make(release(early.lease, "0"))
        assert (store.gate.state, store.gate.epoch, store.gate.fails) == (gate.state, gate.epoch, gate.fails)
        assert (store.gate.open_until, store.gate.slots) == (gate.open_until, 8)


def probes(store: Store, now: int, lanes: Iterable[str]) -> list[Claim]:
    """Let many ask at once, all from the same sight of the gate; give those who were let in."""
    answers = [ask(store.gate, Ask(lane, f"of {lane}", ROWS), now, RULES) for lane in lanes]
    return [each.claim for each in answers if isinstance(each, Grant) and store.make(each.change)]


@pytest.mark.parametrize("tat", [0, NOW + 30_500_000])
def test_f124_of_a_thousand_who_waited_one_probes_with_one_request(tat: int) -> None:
    store = Store(cap=1_000, tat=tat)
    store.break_open()
    lanes = [str(number) for number in range(100)]
    assert probes(store, NOW + 30 * SECOND - 1, lanes) == []
    (probe,) = probes(store, NOW + 30 * SECOND, lanes)
    assert probe.probe
    assert (probe.lease.count, store.gate.state) == (1, Breaker.HALF_OPEN)
    assert probes(store, NOW + 31 * SECOND, lanes) == []
    assert store.settle(probe, ALIVE, now=NOW + 31 * SECOND)
    assert (store.gate.state, store.gate.fails) == (Breaker.CLOSED, 0)
    assert store.record["seen"] == NOW + 31 * SECOND


def test_f123_a_probe_that_died_is_followed_by_one_other() -> None:
    store = Store(cap=30)
    store.break_open()
    start = NOW + 30 * SECOND
    (dead,) = probes(store, start, "012")
    deadline = start + RULES.request_timeout + TAKE_OVER_GRACE
    assert probes(store, deadline - 1, "012") == []
    (second,) = probes(store, deadline, "012")
    assert second.lane != dead.lane
    before = dict(store.record)
    assert not store.settle(dead, ALIVE, now=deadline + 1)
    assert store.record == before
    assert store.settle(second, ALIVE, now=deadline + SECOND)
    assert store.gate.state is Breaker.CLOSED


def test_f123_a_probe_that_died_in_the_only_lane_is_followed_when_its_lease_is_over() -> None:
    store = Store(cap=1)
    store.break_open()
    (dead,) = probes(store, NOW + 30 * SECOND, "0")
    assert probes(store, dead.lease.until + TAKE_OVER_GRACE - 1, "0") == []
    (second,) = probes(store, dead.lease.until + TAKE_OVER_GRACE, "0")
    assert second.probe
    assert (store.gate.slots, store.gate.held_slots) == (0, 1)


@pytest.mark.parametrize("cap", [1, 8])
def test_f124_a_lane_in_turn_probes_with_one_request_too(cap: int) -> None:
    store = Store(cap=cap)
    store.break_open()
    answer = ask(store.gate, Ask("o0", "me", ROWS, in_turn=True), NOW + 30 * SECOND, RULES)
    assert isinstance(answer, Grant)
    assert store.make(answer.change)
    assert (answer.claim.probe, answer.claim.lease.keys, answer.claim.lease.count) == (True, ROWS[:1], 1)
    assert store.settle(answer.claim, ALIVE, now=NOW + 31 * SECOND)
    assert (store.gate.state, store.gate.slots) == (Breaker.CLOSED, cap)


@pytest.mark.parametrize("probing", [False, True])
def test_a_new_url_closes_the_breaker_and_what_the_old_one_said_changes_nothing(*, probing: bool) -> None:
    store = Store(cap=30)
    early = store.admit("1", rows=2)
    store.break_open()
    late = probes(store, NOW + 30 * SECOND, "0") if probing else []
    occasion = Occasion(NOW + 31 * SECOND, moved=True)
    assert store.make(reconfigured(LIMITS, LIMITS, enabled=True, occasion=occasion))
    gate = store.gate
    assert (gate.state, gate.fails, gate.ramp_from) == (Breaker.CLOSED, 0, NOW + 31 * SECOND)
    for claim in (early, *late):
        assert not store.settle(claim, FAILING, now=NOW + 32 * SECOND)
        assert store.make(release(claim.lease, claim.lane))
    assert (store.gate.state, store.gate.fails, store.gate.slots) == (Breaker.CLOSED, 0, 30)
    assert store.admit("2", now=NOW + 33 * SECOND).lease.count == 4, "little more than a tenth of the cap"


@pytest.mark.parametrize("evidence", [(), (NONE,)])
def test_f123_a_probe_that_says_nothing_moves_the_breaker_too(evidence: tuple[Evidence, ...]) -> None:
    store = Store()
    store.break_open()
    now = NOW + 30 * SECOND
    (probe,) = probes(store, now, "0")
    assert store.settle(probe, *evidence, now=now)
    gate = store.gate
    assert (gate.state, gate.open_until, gate.cooldown) == (Breaker.OPEN, now + 30 * SECOND, 30 * SECOND)
    assert (gate.slots, gate.leases) == (8, {})


def test_the_cooldown_doubles_up_to_five_minutes_and_starts_over_after_a_success() -> None:
    store, now, cooldowns = Store(), NOW, []
    store.break_open()
    for _ in range(6):
        now = store.gate.open_until
        cooldowns.append((now - NOW) // SECOND)
        (probe,) = probes(store, now, "0")
        assert store.settle(probe, FAILING, now=now)
        assert store.gate.open_until - now == store.gate.cooldown
    waits = [later - earlier for earlier, later in zip([0, *cooldowns], cooldowns, strict=False)]
    assert waits == [30, 60, 120, 240, 300, 300]
    now = store.gate.open_until
    (probe,) = probes(store, now, "0")
    assert store.settle(probe, ALIVE, now=now)
    store.break_open(now + SECOND)
    assert store.gate.open_until == now + 31 * SECOND


def test_a_probe_waits_for_a_token_and_spends_it() -> None:
    store = Store(rate=1, burst=1, tat=NOW + 31 * SECOND)
    store.break_open()
    assert store.ask(now=NOW + 30 * SECOND) == hold(NOW + 31 * SECOND, HoldReason.RATE_LIMIT)
    store.admit(now=NOW + 31 * SECOND)
    assert store.gate.tat == NOW + 32 * SECOND


def recovering(rate: int = 100, burst: int = 100, cap: int = 40) -> Store:
    """Give a gate whose breaker has closed just now."""
    store = Store(rate, burst, cap)
    store.break_open(NOW - 30 * SECOND)
    (probe,) = probes(store, NOW, "0")
    assert store.settle(probe, ALIVE)
    return store


@pytest.mark.parametrize("after_s, slots", [(0, 4), (75, 13), (150, 22), (225, 31), (300, 40), (9_999, 40)])
def test_recovery_gives_back_the_cap_from_a_tenth_to_all_in_five_minutes(after_s: int, slots: int) -> None:
    store = recovering(rate=100_000, burst=100_000)
    taken = 0
    for lane in "01234":
        answer = store.ask(lane, NOW + after_s * SECOND)
        if isinstance(answer, Grant):
            assert store.make(answer.change)
            taken += answer.claim.lease.count
    assert taken == slots


def test_f134_a_clock_that_is_behind_sees_the_beginning_of_a_recovery() -> None:
    store = recovering()
    store.record["tat"] = 0
    assert store.admit(now=NOW - 60 * SECOND).lease.count == 4


def test_recovery_leaves_at_least_one_slot() -> None:
    assert recovering(cap=1).admit().lease.count == 1
    assert recovering(cap=8).admit().lease.count == 1


@pytest.mark.parametrize("after_s, expected", [(0, 115), (150, 565), (290, 985), (300, 1_000)])
def test_recovery_gives_back_the_rate_from_a_tenth_to_all_in_five_minutes(
    after_s: int, expected: int
) -> None:
    """Ask without end for ten seconds, with an empty bucket at first."""
    store = recovering(cap=1_000)
    start = NOW + after_s * SECOND
    store.record["tat"] = start + SECOND
    sent: list[int] = []
    for tick in range(1_000):
        now = start + tick * 10_000
        answer = store.ask("0", now, 12)
        if isinstance(answer, Grant):
            assert store.make(answer.change)
            sent += moments(answer.claim, store.gate, now)
            assert store.settle(answer.claim, ALIVE, now=now)
    made = len([each for each in sent if each < start + 10 * SECOND])
    assert (
        expected - 8 <= made <= expected + 5
    )  # what is reserved is taken at the price of two seconds before


def test_a_recovering_endpoint_is_not_sent_a_whole_burst_at_once() -> None:
    store = recovering(rate=10, burst=20, cap=100)
    sent: list[int] = []
    for number in range(20):
        answer = store.ask(str(number), NOW)
        if isinstance(answer, Grant):
            assert store.make(answer.change)
            sent += sent_at(store, answer.claim)
    assert sent == [0, 100_000, 1_100_000]  # the probe had taken one


def test_a_hold_is_only_ever_lengthened() -> None:
    store = Store()
    assert store.make(hold_until(NOW + 5 * SECOND))
    assert not store.make(hold_until(NOW + 5 * SECOND))
    assert not store.make(hold_until(NOW + SECOND))
    assert store.ask(now=NOW + 5 * SECOND - 1) == hold(NOW + 5 * SECOND, HoldReason.RATE_LIMIT)
    assert isinstance(store.ask(now=NOW + 5 * SECOND), Grant)


def test_a_record_reads_back_as_the_gate_that_was_written() -> None:
    store = Store(7, 9, 3, **BUSY)
    gate = store.gate
    assert (gate.rate, gate.burst, gate.cap, gate.slots, gate.enabled) == (7, 9, 3, 3, True)
    assert gate.state is Breaker.CLOSED
    assert gate.leases["0"].record() == store.record["L0"]
    assert store.record["seen"] == 0


def test_the_defaults_are_those_of_the_documentation() -> None:
    assert (RULES.threshold, RULES.breaker) == (20, True)
    assert 50_000 <= LANE_BUSY_WAIT <= 250_000
    assert [each // SECOND for each in (RULES.cooldown, RULES.max_cooldown, RULES.ramp)] == [30, 300, 300]
    assert [each // SECOND for each in (RULES.lease, RULES.request_timeout, TAKE_OVER_GRACE)] == [45, 10, 2]
    assert RULES.reserve == 2 * SECOND
