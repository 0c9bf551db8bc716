"""What is told of a minute: what has grown, what stands, and how durations were spread."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain import counts, metrics, reporting
from chalicelib.domain.counts import Counts
from chalicelib.domain.metrics import BUCKETS_MS, CATALOGUE, Kind, Metric
from chalicelib.domain.reporting import QUANTILES, SERIES, Sample, grown, quantile_s, samples, series_of

CELLS = [cell for each in counts.GROWING for cell in counts.cells(each)]
SOME = st.dictionaries(st.sampled_from(CELLS), st.integers(0, 1_000))


def told(counted: Counts, metric: Metric) -> dict[str, float]:
    return {each.value: each.number for each in samples(counted, {}) if each.metric is metric}


def test_every_counter_is_told_with_every_value_though_nothing_ever_happened() -> None:
    some = samples({}, {})
    counters = [each for each in CATALOGUE if each.kind is Kind.COUNTER]
    assert {(each.metric.name, each.label, each.value) for each in some} == {
        (of.name, label, value) for of in counters for label, value in series_of(of)
    }
    assert {each.number for each in some} == {0}


def test_what_has_no_value_is_not_told() -> None:
    oldest, depth = (metrics.OLDEST_PENDING.name, ""), (metrics.DEPTH.name, "")
    gauges = {each.metric.name: each.number for each in samples({}, {depth: 3.0})}
    assert gauges[depth[0]] == 3
    assert oldest[0] not in gauges
    assert told({}, metrics.PLATFORM) == {}


def test_durations_are_told_by_two_quantiles_in_seconds() -> None:
    lasted = counts.added(*(counts.lasted(metrics.PLATFORM, 40) for _ in range(98)))
    lasted = counts.added(lasted, *(counts.lasted(metrics.PLATFORM, 4_000) for _ in range(2)))
    values = told(lasted, metrics.PLATFORM)
    assert values.keys() == QUANTILES.keys()
    assert 0.025 < values["p50"] <= 0.05
    assert 2.5 < values["p99"] <= 5
    assert {each.unit for each in samples(lasted, {}) if each.metric is metrics.PLATFORM} == {"Seconds"}


def test_counts_are_told_as_counts() -> None:
    assert Sample(metrics.RESCUED, 1).unit == "Count"


@given(SOME, SOME)
def test_what_was_told_in_parts_adds_up_to_the_whole(first: Counts, more: Counts) -> None:
    totals = counts.added(first, more)
    assert counts.added(grown(first, {}), grown(totals, first)) == counts.added(totals)


def test_counters_that_began_anew_are_told_from_nothing() -> None:
    cell = (metrics.RESCUED.name, "")
    assert grown({cell: 2}, {cell: 50}) == {cell: 2}


@given(st.lists(st.integers(0, 100_000), min_size=1, max_size=200), st.sampled_from([1, 50, 99, 100]))
def test_a_quantile_lies_in_the_bucket_of_the_duration_that_it_stands_for(
    durations: list[int], percent: int
) -> None:
    buckets = [0] * (len(BUCKETS_MS) + 1)
    bounds = (*BUCKETS_MS, None)
    for each in durations:
        buckets[next(at for at, bound in enumerate(bounds) if bound is None or each <= bound)] += 1
    exact = sorted(durations)[max(0, -(-len(durations) * percent // 100) - 1)]
    low = max((bound for bound in BUCKETS_MS if bound < exact), default=0)
    high = min((bound for bound in BUCKETS_MS if bound >= exact), default=BUCKETS_MS[-1])
    assert low <= quantile_s(buckets, percent) * 1000 <= high + 1e-6


def test_what_cloudwatch_bills_for_is_counted() -> None:
    assert sum(len(series_of(each)) for each in CATALOGUE) == SERIES
    assert SERIES <= 100


@pytest.mark.parametrize("metric", CATALOGUE, ids=lambda each: each.name)
def test_no_metric_has_more_than_its_label_beside_the_prefix(metric: Metric) -> None:
    assert {label for label, _ in series_of(metric)} == {
        reporting.QUANTILE if metric.kind is Kind.HISTOGRAM else metric.label
    }
