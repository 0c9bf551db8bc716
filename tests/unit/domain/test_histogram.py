"""Durations in buckets: whatever fell, a percentile is near the true one."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain import histogram
from chalicelib.domain.histogram import WITHIN_PERCENT, bucket_of, middle_ms, percentile_ms

MONTH_MS = 31 * 86_400_000
durations = st.integers(0, MONTH_MS) | st.integers(0, 20_000)


@given(durations)
def test_what_stands_for_a_duration_is_within_the_bound_or_a_millisecond(duration_ms: int) -> None:
    off = abs(middle_ms(bucket_of(duration_ms)) - duration_ms)
    assert off <= 1 or off * 100 <= WITHIN_PERCENT * duration_ms


@given(durations, durations)
def test_buckets_keep_the_order(one_ms: int, other_ms: int) -> None:
    first, second = sorted((one_ms, other_ms))
    assert bucket_of(first) <= bucket_of(second)


@given(st.lists(durations, min_size=1, max_size=200), st.sampled_from([50, 95, 99]))
def test_a_percentile_is_within_the_bound_of_the_true_one(took_ms: list[int], percent: int) -> None:
    true_ms = sorted(took_ms)[-(-len(took_ms) * percent // 100) - 1]
    told_ms = percentile_ms(Counter(bucket_of(each) for each in took_ms), percent)
    assert told_ms is not None
    assert abs(told_ms - true_ms) <= max(1, true_ms * WITHIN_PERCENT / 100)


def test_nothing_has_no_percentile() -> None:
    assert percentile_ms({}, 50) is None
    assert percentile_ms({7: 0}, 99) is None


def test_what_takes_years_has_a_bucket_too() -> None:
    assert middle_ms(bucket_of(10 * 366 * 86_400_000)) > 86_400_000
    assert bucket_of(10**15) < histogram._BUCKETS + 1  # noqa: SLF001 - the number of buckets is no promise
