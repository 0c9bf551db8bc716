"""What Prometheus reads: every metric of the catalogue, by a reader that is not ours."""

import math
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from chalicelib.domain import counts, metrics
from chalicelib.domain.metrics import BUCKETS_MS, CATALOGUE, Kind, Metric, Reading, Spread
from chalicelib.wire import prometheus

PROMTOOL = shutil.which("promtool")


def samples(reading: Reading) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Read what was written: by name and labels."""
    families = text_string_to_metric_families(prometheus.text(reading))
    return {
        (each.name, tuple(each.labels.items())): each.value for family in families for each in family.samples
    }


def expected(of: Metric) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    if of.kind is Kind.HISTOGRAM:
        bounds = [*(f"{bound / 1000:g}" for bound in BUCKETS_MS), "+Inf"]
        yield from ((f"{of.name}_bucket", (("le", bound),)) for bound in bounds)
        yield from ((f"{of.name}_{each}", ()) for each in ("sum", "count"))
    else:
        yield from ((of.name, ((of.label, value),) if of.label else ()) for value in of.values)


def test_before_anything_has_happened_every_series_is_there() -> None:
    found = samples({})
    assert set(found) == {each for of in CATALOGUE for each in expected(of)}
    gauges = {of.name for of in CATALOGUE if of.kind is Kind.GAUGE}
    assert {name for (name, _), value in found.items() if math.isnan(value)} == gauges
    assert {value for (name, _), value in found.items() if name not in gauges} == {0.0}


def test_types_and_helps_are_told() -> None:
    families = {each.name: each for each in text_string_to_metric_families(prometheus.text({}))}
    for of in CATALOGUE:
        family = families[of.name.removesuffix("_total") if of.kind is Kind.COUNTER else of.name]
        assert (family.type, family.documentation) == (of.kind.value, of.help)


def test_values_come_as_they_are() -> None:
    reading: Reading = {
        (metrics.OLDEST_PENDING.name, ""): 0.25,
        (metrics.DEPTH.name, ""): 3.0,
        (metrics.ATTEMPTS.name, "success"): 10**15,
    }
    found = samples(reading)
    assert found[metrics.OLDEST_PENDING.name, ()] == 0.25
    assert found[metrics.ATTEMPTS.name, (("outcome", "success"),)] == 10**15
    assert found[metrics.ATTEMPTS.name, (("outcome", "unknown"),)] == 0
    assert "relay_queue_depth 3\n" in prometheus.text(reading)


@given(st.lists(st.integers(0, 70_000)))
def test_buckets_count_what_is_no_longer_than_their_bound_in_seconds(durations_ms: list[int]) -> None:
    counted = counts.added(*(counts.lasted(metrics.CONSUMER, each) for each in durations_ms))
    found = samples(counts.reading(counted))
    name = metrics.CONSUMER.name
    for bound in BUCKETS_MS:
        within = sum(each <= bound for each in durations_ms)
        assert found[f"{name}_bucket", (("le", f"{bound / 1000:g}"),)] == within
    assert found[f"{name}_bucket", (("le", "+Inf"),)] == found[f"{name}_count", ()] == len(durations_ms)
    assert found[f"{name}_sum", ()] == pytest.approx(sum(durations_ms) / 1000)


def test_a_spread_of_what_is_no_histogram_is_a_mistake() -> None:
    with pytest.raises(TypeError):
        prometheus.text({(metrics.DEPTH.name, ""): Spread()})


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not there: .ci/tools installs it")
def test_promtool_finds_nothing_to_say_against_it() -> None:
    assert PROMTOOL is not None
    done = subprocess.run(
        [PROMTOOL, "check", "metrics"],
        input=prometheus.text(counts.reading({})),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
