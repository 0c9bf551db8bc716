"""Backoff: the printed table, the longest spans, and that no attempt number breaks it."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.backoff import RETRY_AFTER_CEILING, SCHEDULES, WINDOW, RetryProfile, wait
from tests.unit.domain.examples import FEW

PROFILES = pytest.mark.parametrize("profile", list(RetryProfile))
CAPS = {
    RetryProfile.DEFAULT: timedelta(hours=6),
    RetryProfile.QUICK: timedelta(minutes=5),
    RetryProfile.PATIENT: timedelta(hours=24),
}

# After failed attempt n (from 0): the shortest, the expected and the longest wait, in seconds.
TABLE = {
    RetryProfile.DEFAULT: [
        (0, 2.5, 5),
        (0, 10, 20),
        (0, 40, 80),
        (0, 160, 320),
        (0, 640, 1_280),
        (0, 2_560, 5_120),
        (0, 10_240, 20_480),
        (0, 10_800, 21_600),
        (0, 10_800, 21_600),
        (0, 10_800, 21_600),
        (0, 10_800, 21_600),
    ],
    RetryProfile.QUICK: [(0, 2.5, 5), (0, 5, 10), (0, 10, 20), (0, 20, 40), (0, 40, 80)],
    RetryProfile.PATIENT: [
        (2.5, 3.75, 5),
        (10, 15, 20),
        (40, 60, 80),
        (160, 240, 320),
        (640, 960, 1_280),
        (2_560, 3_840, 5_120),
        (10_240, 15_360, 20_480),
        (40_000, 60_000, 80_000),
        (40_000, 60_000, 80_000),
        (40_000, 60_000, 80_000),
        (40_000, 60_000, 80_000),
    ],
}


@PROFILES
def test_the_waits_are_those_of_the_printed_table(profile: RetryProfile) -> None:
    rows = [
        tuple(wait(profile, n, jitter).total_seconds() for jitter in (0, 0.5, 1))
        for n in range(SCHEDULES[profile].attempts - 1)
    ]
    assert rows == TABLE[profile]


@pytest.mark.parametrize(
    "profile, attempts, longest",
    [
        (RetryProfile.DEFAULT, 12, timedelta(hours=31, minutes=35, seconds=5)),
        (RetryProfile.QUICK, 6, timedelta(minutes=2, seconds=35)),
        (RetryProfile.PATIENT, 12, timedelta(hours=96, minutes=28, seconds=25)),
    ],
)
def test_the_longest_spans_are_those_of_the_printed_table(
    profile: RetryProfile, attempts: int, longest: timedelta
) -> None:
    assert SCHEDULES[profile].attempts == attempts
    assert SCHEDULES[profile].longest() == longest


def test_the_patient_profiles_last_attempt_comes_after_48_hours_and_within_the_window() -> None:
    assert SCHEDULES[RetryProfile.PATIENT].shortest() == timedelta(hours=48, minutes=14, seconds=12.5)


def test_the_quick_profile_is_over_within_5_minutes_also_if_every_attempt_times_out() -> None:
    schedule = SCHEDULES[RetryProfile.QUICK]
    assert schedule.longest() + schedule.attempts * timedelta(seconds=10) <= timedelta(minutes=5)


def test_the_default_profile_is_over_within_the_window() -> None:
    assert SCHEDULES[RetryProfile.DEFAULT].longest() < WINDOW


def test_the_window_and_the_longest_retry_after_are_those_of_the_documentation() -> None:
    assert timedelta(hours=72) == WINDOW
    assert timedelta(hours=1) == RETRY_AFTER_CEILING


@PROFILES
@pytest.mark.parametrize("n", [11, 64, 1_100, 1_000_000])
def test_f074_no_attempt_number_overflows(profile: RetryProfile, n: int) -> None:
    assert wait(profile, n, 1) == SCHEDULES[profile].cap
    assert timedelta() <= wait(profile, n, 0) <= SCHEDULES[profile].cap


@FEW
@given(st.sampled_from(RetryProfile), st.integers(0, 2_000_000), st.floats(0, 1))
def test_f074_a_wait_is_never_negative_and_never_above_the_cap(
    profile: RetryProfile, n: int, jitter: float
) -> None:
    assert timedelta() <= wait(profile, n, jitter) <= CAPS[profile]


@FEW
@given(st.sampled_from(RetryProfile), st.integers(0, 30), st.floats(0, 1), st.floats(0, 1))
def test_more_jitter_or_a_later_attempt_never_shortens_a_wait(
    profile: RetryProfile, n: int, one: float, other: float
) -> None:
    less, more = sorted((one, other))
    assert wait(profile, n, less) <= wait(profile, n, more) <= wait(profile, n + 1, more)
