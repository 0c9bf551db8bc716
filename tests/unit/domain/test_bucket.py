"""The rate bucket against the plainest one there is: tokens that drip in and are taken out."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.bucket import SECOND, bucket_of
from chalicelib.domain.change import applied, holds
from tests.unit.domain.examples import FEW

NOW = 1_764_000_000 * SECOND
EVEN_RATES = (1, 2, 5, 10, 100, 1_000)  # a request's cost in microseconds is a whole number


@FEW
@given(
    rate=st.sampled_from(EVEN_RATES),
    burst=st.integers(1, 50),
    steps=st.lists(st.tuples(st.integers(0, 3 * SECOND), st.integers(1, 10)), max_size=30),
)
def test_it_holds_what_a_bucket_of_dripping_tokens_holds(
    rate: int, burst: int, steps: list[tuple[int, int]]
) -> None:
    bucket = bucket_of(rate, burst, 1_000)
    record, now, dripped = {"tat": 0}, NOW, Fraction(burst)
    for wait, wanted in steps:
        now += wait
        dripped = min(Fraction(burst), dripped + Fraction(rate * wait, SECOND))
        assert bucket.tokens(record["tat"], now) == int(dripped)
        taken = min(wanted, int(dripped))
        if taken:
            change = bucket.spend(record["tat"], now, taken)
            assert holds(change, record)
            record, dripped = applied(change, record), dripped - taken


@FEW
@given(
    rate=st.sampled_from(EVEN_RATES),
    burst=st.integers(1, 50),
    within=st.sampled_from([0, 1, SECOND // 3, 2 * SECOND]),
    steps=st.lists(st.tuples(st.integers(0, 3 * SECOND), st.integers(1, 10)), max_size=30),
)
def test_what_is_taken_ahead_goes_when_a_bucket_of_dripping_tokens_has_it(
    rate: int, burst: int, within: int, steps: list[tuple[int, int]]
) -> None:
    bucket = bucket_of(rate, burst, 1_000)
    record, now, free_at = {"tat": 0}, NOW, NOW
    dripped = Fraction(burst)
    for wait, wanted in steps:
        now += wait
        count = min(wanted, bucket.tokens(record["tat"], now, within))
        if not count:
            assert bucket.tokens(record["tat"], now, within + bucket.cost) >= 1
            continue
        change = bucket.spend(record["tat"], now, count, within)
        assert holds(change, record)
        record = applied(change, record)
        when = [max(now, each) for each in bucket.moments(record["tat"], count)]
        for moment in when:
            arrived = max(moment, free_at)
            dripped = min(Fraction(burst), dripped + Fraction(rate * (arrived - free_at), SECOND))
            free_at = arrived
            assert moment == arrived, "earlier than what was taken before"
            assert dripped >= 1, "earlier than its token"
            dripped -= 1
            assert moment == now or dripped < 1, "later than its token"
        assert when[-1] <= now + within


@FEW
@given(
    rate=st.integers(1, 100_000),
    burst=st.integers(1, 100_000),
    permille=st.integers(100, 1_000),
    ahead=st.integers(0, 200 * SECOND),
    within=st.integers(0, 5 * SECOND),
    count=st.integers(1, 10),
)
def test_what_does_not_fit_within_is_not_given(  # noqa: PLR0913 - a bucket, a moment and a wish
    rate: int, burst: int, permille: int, ahead: int, within: int, count: int
) -> None:
    bucket, tat = bucket_of(rate, burst, permille), NOW + ahead
    fits = bucket.tokens(tat, NOW, within) >= count
    assert holds(bucket.spend(tat, NOW, count, within), {"tat": tat}) is (fits or ahead == 0)
    if fits:
        assert bucket.moments(tat + count * bucket.cost, count)[-1] <= NOW + within


@FEW
@given(rate=st.integers(1, 100_000), burst=st.integers(1, 100_000), permille=st.integers(100, 1_000))
def test_one_request_always_fits_and_a_full_bucket_is_never_more_than_the_burst(
    rate: int, burst: int, permille: int
) -> None:
    assert 1 <= bucket_of(rate, burst, permille).tokens(0, NOW) <= burst


@FEW
@given(
    rate=st.integers(1, 1_000),
    burst=st.integers(1, 100),
    permille=st.integers(100, 1_000),
    ahead=st.integers(0, 100 * SECOND),
)
def test_an_empty_bucket_says_to_the_microsecond_when_it_is_not(
    rate: int, burst: int, permille: int, ahead: int
) -> None:
    bucket, tat = bucket_of(rate, burst, permille), NOW + ahead
    if bucket.tokens(tat, NOW) < 1:
        moment = bucket.refilled(tat)
        assert bucket.tokens(tat, moment - 1) == 0
        assert bucket.tokens(tat, moment) == 1


@pytest.mark.parametrize("permille, every_ms", [(1_000, 100), (550, 182), (100, 1_000)])
def test_a_share_of_the_rate_makes_requests_dearer(permille: int, every_ms: int) -> None:
    assert round(bucket_of(10, 20, permille).cost / 1_000) == every_ms


def test_a_share_of_the_rate_is_no_whole_burst() -> None:
    assert bucket_of(10, 20, 100).tokens(0, NOW) == 2
    assert bucket_of(10, 20, 550).tokens(0, NOW) == 10


@pytest.mark.parametrize("moved", [1, -1, 5 * SECOND])
def test_tokens_that_are_gone_cannot_be_taken(moved: int) -> None:
    bucket = bucket_of(10, 20, 1_000)
    idle = bucket.spend(NOW, NOW, 1)
    assert holds(idle, {"tat": NOW})
    assert holds(idle, {"tat": NOW + moved}) is (moved < 0)
    last = NOW + 2 * SECOND - 100_000
    busy = bucket.spend(last, NOW, 1)
    assert holds(busy, {"tat": last})
    assert holds(busy, {"tat": last + moved}) is (moved < 0)
    assert not holds(busy, {"tat": NOW}), "what is added to a moment that is past is given away"
