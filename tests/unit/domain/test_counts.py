"""What is counted: every cell of the catalogue, and what an attempt and an end count for."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain import counts, ids, metrics
from chalicelib.domain.delivery import Again, Attempt, Dead, Lane, Owed, given_up
from chalicelib.domain.metrics import BUCKETS_MS, Kind, Spread
from chalicelib.domain.outcome import DeathReason, Fault, Outcome

ACCEPTED_MS = 1_700_000_000_000
DELIVERY = str(ids.uuid7(ACCEPTED_MS, 1))
OWED = Owed(Lane("acme", "ep_1", "0"), DELIVERY, "evt_1", ACCEPTED_MS + 1_000)
ATTEMPT = Attempt(
    DELIVERY, 0, 1, "evt_1", Outcome.SUCCESS, ACCEPTED_MS + 5_000, queue_ms=4_000, held_ms=3_900, total_ms=40
)


def bucket(of: metrics.Metric, bound: str) -> counts.Cell:
    return (of.name, bound)


def test_what_was_never_counted_stands_at_nothing() -> None:
    stands = counts.reading(counts.NOTHING)
    assert {name for name, _ in stands} == {each.name for each in counts.GROWING}
    assert set(stands.values()) == {0, Spread()}
    assert stands[metrics.ATTEMPTS.name, "permanent"] == 0


@given(st.lists(st.integers(-5, 100_000)))
def test_a_histogram_has_every_duration_in_the_first_bucket_that_holds_it(durations: list[int]) -> None:
    stands = counts.reading(counts.added(*(counts.lasted(metrics.CONSUMER, each) for each in durations)))
    spread = stands[metrics.CONSUMER.name, ""]
    assert isinstance(spread, Spread)
    lasted = [max(0, each) for each in durations]
    up_to = [sum(each <= bound for each in lasted) for bound in BUCKETS_MS]
    assert list(itertools.accumulate(spread.counts)) == [*up_to, len(lasted)]
    assert spread.sum_ms == sum(lasted)


@given(st.lists(st.dictionaries(st.sampled_from(sum(map(counts.cells, counts.GROWING), ())), st.integers(1))))
def test_parting_and_adding_up_lose_nothing(some: list[dict[counts.Cell, int]]) -> None:
    total = counts.added(*some)
    assert counts.added(*counts.of_part(total).values()) == total
    assert sum(total.values()) == sum(sum(each.values()) for each in some)


def test_a_first_attempt_counts_its_outcome_and_three_durations_less_what_it_was_held() -> None:
    assert counts.of_attempt(OWED, ATTEMPT) == {
        (metrics.ATTEMPTS.name, "success"): 1,
        bucket(metrics.PLATFORM, "100"): 1,
        bucket(metrics.PLATFORM, "sum"): 100,
        bucket(metrics.CONSUMER, "50"): 1,
        bucket(metrics.CONSUMER, "sum"): 40,
        bucket(metrics.FIRST_ATTEMPT, "2500"): 1,
        bucket(metrics.FIRST_ATTEMPT, "sum"): 1_100,
    }


@pytest.mark.parametrize("generation, number", [(0, 2), (1, 1)])
def test_retries_and_replays_are_no_first_attempts(generation: int, number: int) -> None:
    later = replace(ATTEMPT, generation=generation, number=number)
    told = counts.of_attempt(replace(OWED, generation=generation, made=number - 1), later)
    assert not [name for name, _ in told if name == metrics.FIRST_ATTEMPT.name]


def test_an_unknown_attempt_says_nothing_of_time() -> None:
    unknown = replace(ATTEMPT, outcome=Outcome.UNKNOWN)
    assert counts.of_attempt(OWED, unknown) == {(metrics.ATTEMPTS.name, "unknown"): 1}


def test_a_refused_request_took_no_endpoint_s_time() -> None:
    refused = replace(ATTEMPT, outcome=Outcome.PERMANENT, fault=Fault.REFUSED)
    told = counts.of_attempt(OWED, refused)
    assert told[metrics.REFUSED.name, ""] == 1
    assert not [name for name, _ in told if name == metrics.CONSUMER.name]


def test_an_end_counts_as_a_dead_letter_unless_it_is_quiet() -> None:
    dead = given_up(OWED, DeathReason.SKIPPED, ACCEPTED_MS)
    letter = {(metrics.DEAD_LETTERS.name, "skipped"): 1}
    assert counts.of_move(OWED, dead) == letter
    assert counts.of_move(OWED, replace(dead, quiet=True)) == {}
    failed = replace(ATTEMPT, outcome=Outcome.PERMANENT)
    both = counts.of_move(OWED, Dead(failed, dead.ended))
    assert both == {**counts.of_attempt(OWED, failed), **letter}
    assert counts.of_move(OWED, Again(failed, OWED)) == counts.of_attempt(OWED, failed)


def test_the_catalogue_s_names_and_units_are_prometheus_s() -> None:
    for each in metrics.CATALOGUE:
        assert each.name.startswith("relay_")
        assert each.name.endswith("_total") is (each.kind is Kind.COUNTER)
        assert each.name.endswith("_seconds") or each.kind is not Kind.HISTOGRAM
        assert each.help.endswith(".")
        assert bool(each.label) is (each.values != ("",))
    assert len({each.name for each in metrics.CATALOGUE}) == len(metrics.CATALOGUE)
