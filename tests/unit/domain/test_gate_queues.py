"""Queues by behaviour: timeouts move an endpoint to `slow`, very many sends to a `hot` one, and back."""

from itertools import count
from typing import Any

import pytest

from chalicelib.domain.bucket import bucket_of
from chalicelib.domain.change import Change, applied, holds
from chalicelib.domain.endpoint import Limits
from chalicelib.domain.gate import (
    SECOND,
    Ask,
    Claim,
    Gate,
    Grant,
    Leaving,
    Occasion,
    Queue,
    Rules,
    Told,
    ask,
    moved,
    new_record,
    queue_for,
    read,
    reconfigured,
    settle,
)
from chalicelib.domain.outcome import Evidence

NOW = 1_764_000_000 * SECOND
RULES = Rules(breaker=False)
LIMITS = Limits(1_000, 1_000, 100)
HANGS = Told(Evidence.FAILING, timed_out=True)
QUICK, LATE, ERROR = Told(Evidence.ALIVE, quick=True), Told(Evidence.ALIVE), Told(Evidence.FAILING)


class Store:
    """One gate in a store, whose endpoint moves when it should as soon as a lease is settled."""

    def __init__(self, **more: Any) -> None:  # noqa: ANN401 - any attribute
        self.record: dict[str, Any] = new_record(1_000, 1_000, 100, rules=RULES) | more
        self.names = count()

    @property
    def gate(self) -> Gate:
        return read(self.record)

    def make(self, change: Change) -> bool:
        if not holds(change, self.record):
            return False
        self.record = applied(change, self.record)
        return True

    def admit(self, rows: int, now: int = NOW) -> Claim:
        lane = str(next(self.names))
        answer = ask(self.gate, Ask(lane, "me", tuple(map(str, range(rows)))), now, RULES)
        assert isinstance(answer, Grant)
        assert self.make(answer.change)
        return answer.claim

    def settle(self, claim: Claim, *told: Told, now: int = NOW, gate: Gate | None = None) -> Queue:
        assert self.make(settle(claim, told, now, RULES, Leaving(gate or self.gate)))
        change = moved(self.gate)
        if change is not None:
            assert self.make(change)
        return self.gate.queue

    def send(self, *told: Told, now: int = NOW) -> Queue:
        return self.settle(self.admit(len(told), now), *told, now=now)

    def minute(self, per_s: int, began: int) -> Queue:
        """Send so many a second for a minute, and the first of the next; told of in lots of five seconds."""
        for second in range(0, 60, 5):
            self.settle(self.admit(1, began), *[LATE] * (per_s * 5), now=began + second * SECOND)
        return self.send(LATE, now=began + 60 * SECOND)


@pytest.mark.parametrize(
    "told, queue",
    [
        ([HANGS] * 2, Queue.SHARD),
        ([HANGS] * 3, Queue.SLOW),
        ([HANGS, HANGS, QUICK, HANGS], Queue.SHARD),
        ([HANGS, HANGS, ERROR, HANGS], Queue.SHARD),
        ([QUICK, HANGS, HANGS, HANGS], Queue.SLOW),
        ([HANGS, HANGS, HANGS, LATE], Queue.SHARD),
    ],
)
def test_three_timeouts_in_a_row_move_an_endpoint_to_slow(told: list[Told], queue: Queue) -> None:
    assert Store().send(*told) is queue
    store = Store()
    assert [store.send(each) for each in told][-1] is (Queue.SLOW if told[:3] == [HANGS] * 3 else queue)


def test_ten_quick_answers_in_a_row_move_it_back() -> None:
    store = Store()
    store.send(*[HANGS] * 3)
    assert [store.send(QUICK) for _ in range(9)] == [Queue.SLOW] * 9
    assert store.send(LATE) is Queue.SLOW
    assert store.send(*[QUICK] * 9) is Queue.SLOW
    assert store.send(QUICK) is Queue.SHARD
    assert store.send(HANGS, HANGS) is Queue.SHARD
    assert store.send(HANGS) is Queue.SLOW


def test_timeouts_of_lanes_let_in_before_the_move_do_not_move_it_back() -> None:
    store = Store()
    claims = [store.admit(10) for _ in range(3)]
    assert [store.settle(each, *[HANGS] * 10) for each in claims] == [Queue.SLOW] * 3


def test_quick_answers_of_lanes_let_in_before_the_move_count_towards_the_way_back() -> None:
    store = Store()
    early = store.admit(10)
    assert store.send(*[HANGS] * 3) is Queue.SLOW
    assert store.settle(early, *[QUICK] * 10) is Queue.SHARD


def test_a_new_url_starts_with_no_timeouts() -> None:
    store = Store()
    store.send(HANGS, HANGS)
    assert store.make(reconfigured(LIMITS, LIMITS, enabled=True, occasion=Occasion(NOW, moved=True)))
    store.record["ramp_from"] = 0
    assert store.send(HANGS) is Queue.SHARD


def test_more_than_two_hundred_a_second_over_a_minute_are_hot_and_less_than_a_hundred_are_not() -> None:
    store = Store()
    assert store.minute(200, NOW) is Queue.SHARD
    assert store.minute(210, NOW + 60 * SECOND) is Queue.HOT
    assert store.minute(100, NOW + 120 * SECOND) is Queue.HOT
    assert store.minute(90, NOW + 180 * SECOND) is Queue.SHARD


def test_a_burst_after_an_idle_hour_is_not_hot() -> None:
    store = Store()
    store.send(LATE)
    for second in range(3_600, 3_630):
        claim = store.admit(1, NOW + second * SECOND)
        assert store.settle(claim, *[LATE] * 600, now=NOW + second * SECOND) is Queue.SHARD


def test_who_saw_the_gate_long_ago_does_not_make_an_endpoint_hot() -> None:
    store = Store()
    store.minute(150, NOW)
    store.minute(150, NOW + 60 * SECOND)
    long, seen = store.admit(1, NOW + 121 * SECOND), store.gate
    for second in range(121, 190):
        claim = store.admit(1, NOW + second * SECOND)
        assert store.settle(claim, *[LATE] * 150, now=NOW + second * SECOND) is Queue.SHARD
        if second == 185:
            store.settle(long, LATE, now=NOW + second * SECOND, gate=seen)
    assert store.minute(150, NOW + 190 * SECOND) is Queue.SHARD
    assert 140 <= store.gate.per_s <= 160


def test_a_hot_endpoint_whose_rate_is_lowered_does_not_stay_hot() -> None:
    store = Store()
    store.minute(300, NOW)
    assert store.minute(300, NOW + 60 * SECOND) is Queue.HOT
    lower = Limits(90, 90, 100)
    assert store.make(reconfigured(lower, LIMITS, enabled=True))
    assert store.minute(80, NOW + 120 * SECOND) is Queue.SHARD


def test_an_endpoint_that_can_never_be_hot_counts_no_minutes() -> None:
    store = Store(rate=200)
    store.send(LATE, now=NOW + 61 * SECOND)
    assert store.gate.minute_from == 0


def test_a_hot_endpoint_that_hangs_is_slow() -> None:
    store = Store(queue=Queue.HOT.value, per_s=300, minute_from=NOW)
    assert store.send(*[HANGS] * 3) is Queue.SLOW
    assert store.send(*[QUICK] * 10) is Queue.SHARD
    assert queue_for(store.gate) is Queue.HOT, "one step at a time"


def test_a_move_loses_no_lease_and_no_slot_and_is_made_once() -> None:
    store = Store()
    store.admit(7)
    claim = store.admit(3)
    assert store.make(settle(claim, [HANGS] * 3, NOW, RULES))
    before, change = store.gate, moved(store.gate)
    assert change is not None
    assert store.make(change)
    assert not store.make(change)
    after = store.gate
    assert (after.leases, after.slots, after.tat, after.epoch) == (
        before.leases,
        before.slots,
        before.tat,
        before.epoch,
    )
    assert moved(after) is None


def test_a_claim_remembers_where_its_endpoint_rang() -> None:
    claim = Store(queue=Queue.SLOW.value).admit(1)
    assert (claim.queue, claim.bucket) == (Queue.SLOW, bucket_of(1_000, 1_000, 1_000))
