"""Allowances as values: what is reserved comes in at the rate, and other rates move only what is to come."""

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain import allowance
from chalicelib.domain.allowance import LAPSE, SHARE, UNPACED, Pace, Pocket
from chalicelib.domain.bucket import SECOND
from chalicelib.domain.change import Record, applied, holds
from tests.unit.domain.examples import FEW

NOW = 1_764_000_000 * SECOND
RATES = st.sampled_from([1, 2, 3, 7, 10, 100, 999, 5_000])


def reserved(record: Record, per_second: int, count: int, now: int = NOW) -> Record:
    change = allowance.reserve(allowance.bucket_of(per_second), record, now, count)
    assert holds(change, record)
    return applied(change, record)


@FEW
@given(per_second=RATES, counts=st.lists(st.integers(0, 30), min_size=1, max_size=30))
def test_what_is_reserved_in_turn_is_due_in_turn_and_never_faster_than_the_rate(
    per_second: int, counts: list[int]
) -> None:
    bucket = allowance.bucket_of(per_second)
    record = allowance.new_record(bucket, NOW, sum(counts))
    paces = list(allowance.paces(bucket, record["tat"], counts))
    assert [each.paid for each in paces] == counts
    dues = [max(each.due_ms * 1_000, NOW) for each in paces if each.paid]
    assert dues == sorted(dues)
    done = 0
    for due, count in zip(dues, (each for each in counts if each), strict=True):
        done += count
        assert done <= per_second + per_second * (due - NOW) / SECOND
        assert done > per_second * (due - NOW) / SECOND - per_second * 0.001 - 1


@FEW
@given(per_second=RATES, counts=st.lists(st.integers(1, 30), min_size=1, max_size=10))
def test_reserved_one_by_one_it_is_due_as_if_reserved_together(per_second: int, counts: list[int]) -> None:
    bucket = allowance.bucket_of(per_second)
    record = allowance.new_record(bucket, NOW, counts[0])
    alone = list(allowance.paces(bucket, record["tat"], counts[:1]))
    for count in counts[1:]:
        record = reserved(record, per_second, count)
        alone += allowance.paces(bucket, record["tat"], [count])
    assert alone == list(allowance.paces(bucket, record["tat"], counts))


@FEW
@given(old=RATES, new=RATES, owed=st.integers(0, 5_000), more=st.integers(1, 50))
def test_at_another_rate_as_many_are_owed_as_before(old: int, new: int, owed: int, more: int) -> None:
    record = allowance.new_record(allowance.bucket_of(old), NOW, owed)
    after = reserved(record, new, more)
    cost = allowance.bucket_of(new).cost
    assert after["cost"] == cost
    assert abs((after["tat"] - NOW) / cost - (owed + more)) <= 1
    assert abs((reserved(after, old, 1)["tat"] - NOW) / record["cost"] - (owed + more + 1)) <= 2


def test_what_was_idle_owes_nothing_of_before() -> None:
    record = allowance.new_record(allowance.bucket_of(10), NOW, 10)
    later = NOW + 60 * SECOND
    for per_second in (10, 20):
        bucket = allowance.bucket_of(per_second)
        assert reserved(record, per_second, 5, later)["tat"] == later + 5 * bucket.cost


def test_a_larger_budget_brings_a_moment_nearer_and_a_smaller_one_leaves_it() -> None:
    bucket = allowance.bucket_of(10)
    pace = Pace(5, NOW // 1_000 + 10_000, bucket.cost)
    assert pace.under(allowance.bucket_of(100), NOW).due_ms == NOW // 1_000 + 1_000
    assert pace.under(allowance.bucket_of(1), NOW) == pace
    assert pace.under(bucket, NOW) == pace
    assert UNPACED.under(bucket, NOW) == UNPACED


@FEW
@given(per_second=RATES, waits=st.lists(st.integers(1, 2 * LAPSE), max_size=30))
def test_a_chunk_is_never_more_than_its_share_nor_more_than_twice_the_last(
    per_second: int, waits: list[int]
) -> None:
    bucket = allowance.bucket_of(per_second)
    pocket, now = Pocket(), NOW
    for wait in waits:
        now += wait
        if pocket.left(now):
            pocket = pocket.spent(pocket.left(now))
            continue
        size = pocket.next_chunk(bucket, now)
        assert 1 <= size <= max(1, per_second // SHARE, 1)
        assert size <= 2 * pocket.taken
        pocket = pocket.filled(size, now).spent(1)
