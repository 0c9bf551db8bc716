"""Deliveries: what follows from each send, and that a delivery always ends or goes on, never neither."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.backoff import SCHEDULES, RetryProfile
from chalicelib.domain.delivery import (
    Again,
    Arrived,
    Attempt,
    Created,
    Dead,
    Ended,
    Lane,
    Owed,
    Status,
    Step,
    Timing,
    after_send,
    after_unknown,
    attempt_key,
    given_up,
    owed_of_key,
    status_of,
)
from chalicelib.domain.endpoint import ORDERED_LANE, lane_numbers
from chalicelib.domain.outcome import DeathReason, Evidence, Fault, Outcome, Reply, Verdict, judge
from tests.unit.domain.examples import DELIVERY_ID, ENDPOINT_ID, EVENT_ID, FEW, RECEIVED_MS, owed

HOUR_MS = 3_600_000
NOW = RECEIVED_MS + 500
ORDERED = Lane("tn_1", ENDPOINT_ID, ORDERED_LANE)
PROFILES = pytest.mark.parametrize("profile", list(RetryProfile))
RETRYABLE = Verdict(Outcome.RETRYABLE, Evidence.FAILING)


def send(  # noqa: PLR0913 - a send has this many sides
    row: Owed,
    status: int = 500,
    *,
    at: int = NOW,
    took: int = 100,
    jitter: float = 0.5,
    retry_after: str = "",
    profile: RetryProfile = RetryProfile.DEFAULT,
) -> Step:
    """Try a delivery once, as an endpoint that answers a status would have it."""
    headers = (("retry-after", retry_after),) if retry_after else ()
    reply = Reply(status=status, headers=headers)
    verdict = judge(reply, datetime.fromtimestamp((at + took) / 1000, UTC))
    return after_send(row, reply, verdict, profile, Timing(at, at + took, jitter))


def again(step: Step) -> Owed:
    assert isinstance(step, Again)
    return step.owed


def run(profile: RetryProfile, jitter: float, status: int = 500) -> tuple[list[int], Dead]:
    """Fail until the delivery is dead: the moments of its attempts, and its end."""
    row, moments = owed(), list[int]()
    while True:
        moments.append(row.ready_ms)
        step = send(row, status, at=row.ready_ms, took=0, jitter=jitter, profile=profile)
        if isinstance(step, Dead):
            return moments, step
        row = again(step)


def test_a_success_removes_what_is_owed_and_keeps_the_attempt() -> None:
    reply = Reply(status=201, body=b"ok", truncated=True, connect_ms=1, first_byte_ms=2, total_ms=3)
    step = after_send(
        owed(made=1), reply, judge(reply, datetime.now(UTC)), RetryProfile.DEFAULT, Timing(NOW, NOW + 3, 0.5)
    )
    assert step == Arrived(
        Attempt(
            DELIVERY_ID,
            generation=0,
            number=2,
            event_id=EVENT_ID,
            outcome=Outcome.SUCCESS,
            at_ms=NOW,
            status=201,
            response=b"ok",
            truncated=True,
            queue_ms=500,
            connect_ms=1,
            first_byte_ms=2,
            total_ms=3,
        )
    )


def test_a_failure_moves_what_is_owed_to_when_the_backoff_says() -> None:
    step = send(owed(), 500, jitter=1, took=100)
    assert isinstance(step, Again)
    assert step.owed == owed(ready_ms=NOW + 100 + 5_000, made=1, counted=1, first_ms=NOW)
    assert (step.attempt.number, step.attempt.status, step.attempt.next_ms) == (1, 500, NOW + 5_100)
    assert step.attempt.outcome is Outcome.RETRYABLE


def test_a_permanent_failure_ends_the_delivery_at_once() -> None:
    step = send(owed(made=2, counted=2, first_ms=RECEIVED_MS), 404)
    assert isinstance(step, Dead)
    assert step.attempt is not None
    assert (step.attempt.number, step.attempt.next_ms) == (3, 0)
    assert step.ended == Ended(DELIVERY_ID, 0, EVENT_ID, DeathReason.PERMANENT_FAILURE, NOW + 100, 3)


def test_a_refused_address_ends_the_delivery_at_once() -> None:
    reply = Reply(fault=Fault.REFUSED, detail="not public")
    verdict = judge(reply, datetime.now(UTC))
    step = after_send(owed(), reply, verdict, RetryProfile.DEFAULT, Timing(NOW, NOW, 0.5))
    assert isinstance(step, Dead)
    assert step.ended.reason is DeathReason.REFUSED
    assert step.attempt is not None
    assert (step.attempt.fault, step.attempt.detail) == (Fault.REFUSED, "not public")


@PROFILES
@FEW
@given(jitter=st.floats(0, 1))
def test_f076_a_failing_endpoint_is_tried_as_often_as_the_profile_says_and_no_more(
    profile: RetryProfile, jitter: float
) -> None:
    moments, dead = run(profile, jitter)
    assert dead.ended.attempts == len(moments) <= SCHEDULES[profile].attempts
    assert dead.attempt is not None
    assert dead.attempt.number == len(moments)
    if len(moments) == SCHEDULES[profile].attempts:
        assert dead.ended.reason is DeathReason.ATTEMPTS_EXHAUSTED
    else:
        assert dead.ended.reason is DeathReason.EXPIRED
        assert moments[-1] == moments[0] + 72 * HOUR_MS


@pytest.mark.parametrize("profile, attempts", [(RetryProfile.DEFAULT, 12), (RetryProfile.QUICK, 6)])
@pytest.mark.parametrize("jitter", [0, 0.5, 1])
def test_f076_the_default_and_quick_profiles_use_all_their_attempts(
    profile: RetryProfile, attempts: int, jitter: float
) -> None:
    moments, dead = run(profile, jitter)
    assert len(moments) == attempts
    assert dead.ended.reason is DeathReason.ATTEMPTS_EXHAUSTED


def test_the_patient_profile_tries_last_between_48_and_72_hours() -> None:
    for jitter in (0, 0.25, 0.5, 0.75, 1):
        moments, _ = run(RetryProfile.PATIENT, jitter)
        assert 48 * HOUR_MS < moments[-1] - moments[0] <= 72 * HOUR_MS


def test_the_quick_profile_is_over_within_5_minutes() -> None:
    moments, _ = run(RetryProfile.QUICK, 1)
    assert moments[-1] - moments[0] <= 300_000


@FEW
@given(
    counted=st.integers(0, 10),
    asked_s=st.integers(0, 7_200),
    jitter=st.floats(0, 1),
    status=st.sampled_from([429, 503]),
    age_h=st.integers(0, 71),
)
def test_a_retry_never_comes_earlier_than_asked_nor_later_than_an_hour_because_of_it(
    counted: int, asked_s: int, jitter: float, status: int, age_h: int
) -> None:
    row = owed(made=counted, counted=counted, first_ms=NOW - age_h * HOUR_MS)
    step = send(row, status, retry_after=str(asked_s), jitter=jitter, took=0)
    plain = send(row, status, jitter=jitter, took=0)
    wait_ms, backoff_ms = again(step).ready_ms - NOW, again(plain).ready_ms - NOW
    assert wait_ms >= min(asked_s * 1000, HOUR_MS)
    assert wait_ms <= max(HOUR_MS, backoff_ms)
    assert wait_ms >= backoff_ms
    assert isinstance(step, Again)
    assert step.attempt.outcome is Outcome.DEFERRED


@pytest.mark.parametrize("asked, waits_ms", [("0", 0), ("59", 59_000), ("3600", HOUR_MS), ("7200", HOUR_MS)])
@pytest.mark.parametrize("status", [429, 503])
def test_what_an_endpoint_asks_for_is_obeyed_up_to_an_hour(status: int, asked: str, waits_ms: int) -> None:
    step = send(owed(), status, retry_after=asked, jitter=0, took=0)
    assert again(step).ready_ms == NOW + waits_ms


def test_f072_a_date_to_the_second_is_not_rounded_down() -> None:
    row, at = owed(), RECEIVED_MS + 7
    asked = datetime.fromtimestamp(RECEIVED_MS // 1000 + 60, UTC)
    step = send(row, 503, at=at, took=0, retry_after=f"{asked:%a, %d %b %Y %H:%M:%S} GMT", jitter=0)
    assert again(step).ready_ms == (RECEIVED_MS // 1000 + 60) * 1000


@FEW
@given(
    counted=st.integers(0, 10),
    jitter=st.floats(0, 1),
    age_ms=st.integers(0, 80 * HOUR_MS),
    took=st.integers(0, 10_000),
)
def test_nothing_is_tried_later_than_72_hours_after_the_first_attempt(
    counted: int, jitter: float, age_ms: int, took: int
) -> None:
    row = owed(made=counted, counted=counted, first_ms=NOW - age_ms)
    step = send(row, jitter=jitter, took=took, profile=RetryProfile.PATIENT)
    if age_ms + took >= 72 * HOUR_MS:
        assert isinstance(step, Dead)
        assert step.ended.reason is DeathReason.EXPIRED
    else:
        assert NOW + took <= again(step).ready_ms <= row.first_ms + 72 * HOUR_MS


def test_an_endpoint_that_asks_for_longer_than_the_window_is_still_obeyed() -> None:
    row = owed(made=3, counted=3, first_ms=NOW - 72 * HOUR_MS + 60_000)
    step = send(row, 503, retry_after="1800", took=0)
    assert again(step).ready_ms == NOW + 1_800_000


@FEW
@given(st.integers(0, 10), st.integers(0, 3))
def test_f144_every_step_moves_the_number_on_by_one(made: int, generation: int) -> None:
    row = owed(made=made, counted=made, generation=generation, first_ms=NOW)
    for step in (send(row), after_unknown(row, NOW)):
        moved = again(step)
        assert isinstance(step, Again)
        assert step.attempt.number == made + 1 == moved.made == moved.next_number - 1
        assert step.attempt.generation == moved.generation == generation
        assert step.attempt.delivery_id == moved.delivery_id == DELIVERY_ID


def test_f074_a_count_far_beyond_the_limit_ends_and_overflows_nothing() -> None:
    step = send(owed(made=1_000_000, counted=1_000_000, first_ms=NOW))
    assert isinstance(step, Dead)
    assert step.ended.reason is DeathReason.ATTEMPTS_EXHAUSTED


def test_the_last_attempt_counts_only_what_was_really_tried() -> None:
    row = owed(made=14, counted=10, first_ms=NOW)
    moved = again(send(row))
    last = send(moved)
    assert isinstance(last, Dead)
    assert last.ended.reason is DeathReason.ATTEMPTS_EXHAUSTED
    assert last.ended.attempts == 16


def test_an_unknown_attempt_has_a_number_and_counts_towards_nothing() -> None:
    row = owed(made=1, counted=1, first_ms=NOW - 1_000)
    step = after_unknown(row, NOW)
    assert again(step) == replace(row, made=2, unknowns=1)
    assert isinstance(step, Again)
    assert (step.attempt.number, step.attempt.outcome, step.attempt.status) == (2, Outcome.UNKNOWN, None)
    assert step.attempt.next_ms == row.ready_ms


def test_the_first_attempt_starts_the_window_also_when_it_is_unknown() -> None:
    assert again(after_unknown(owed(), NOW)).first_ms == NOW
    assert again(send(owed())).first_ms == NOW
    assert again(send(owed(first_ms=7 * HOUR_MS), at=8 * HOUR_MS)).first_ms == 7 * HOUR_MS


def test_five_unknown_attempts_in_a_row_end_a_delivery_as_poisoned() -> None:
    row = owed()
    for _ in range(4):
        row = again(after_unknown(row, NOW))
    step = after_unknown(row, NOW)
    assert isinstance(step, Dead)
    assert step.ended == Ended(DELIVERY_ID, 0, EVENT_ID, DeathReason.POISONED, NOW, 5)
    assert step.attempt is not None
    assert step.attempt.number == 5


def test_a_real_attempt_between_them_starts_the_unknown_ones_afresh() -> None:
    row = owed()
    for _ in range(4):
        row = again(after_unknown(row, NOW))
    row = again(send(row))
    for _ in range(4):
        row = again(after_unknown(row, NOW))
    assert row.made == 9


def test_a_delivery_given_up_without_a_send_has_an_end_and_no_attempt() -> None:
    dead = given_up(owed(made=2, generation=1), DeathReason.UNSUBSCRIBED, NOW)
    assert dead == Dead(None, Ended(DELIVERY_ID, 1, EVENT_ID, DeathReason.UNSUBSCRIBED, NOW, 2))


def test_time_in_the_queue_is_never_negative() -> None:
    step = send(owed(ready_ms=NOW + 1_000), 200)
    assert isinstance(step, Arrived)
    assert step.attempt.queue_ms == 0


@FEW
@given(st.integers(0, 10**14), st.integers(0, 99), st.integers(0, 500))
def test_a_row_is_read_back_from_its_key(ready_ms: int, generation: int, made: int) -> None:
    row = owed(ready_ms=ready_ms, generation=generation, made=made)
    read = owed_of_key(row.lane, row.key)
    assert read == replace(row, event_id="")
    assert read.attempt_key == row.attempt_key


@FEW
@given(st.integers(0, 10**15), st.integers(0, 99), st.integers(0, 500))
def test_an_ordered_row_is_read_back_from_its_key_but_for_its_ready_time(
    sequence: int, generation: int, made: int
) -> None:
    row = owed(lane=ORDERED, sequence=sequence, generation=generation, made=made)
    read = owed_of_key(row.lane, row.key)
    assert read == replace(row, event_id="", ready_ms=0)
    assert read.attempt_key == row.attempt_key


@FEW
@given(st.integers(0, 10**15), st.integers(0, 10**15), st.integers(0, 10**14))
def test_ordered_rows_sort_by_sequence_whenever_they_are_ready(one: int, other: int, ready_ms: int) -> None:
    first, second = (owed(lane=ORDERED, sequence=each, ready_ms=ready_ms) for each in (one, other))
    assert (first.position < second.position) == (one < other)
    assert first.position == replace(first, ready_ms=ready_ms + 1).position


def test_only_the_lane_o0_is_ordered() -> None:
    assert ORDERED.ordered
    assert not owed().lane.ordered
    assert lane_numbers(3, ordered=False) == ("0", "1", "2")
    assert lane_numbers(3, ordered=True) == (ORDERED_LANE,)


@FEW
@given(st.integers(0, 10**14), st.integers(0, 10**14))
def test_rows_sort_by_when_they_are_ready(one: int, other: int) -> None:
    assert (owed(ready_ms=one).key < owed(ready_ms=other).key) is (one < other)


def test_attempts_sort_by_generation_and_number() -> None:
    order = [(0, 1), (0, 2), (0, 10), (0, 999), (1, 1), (10, 1)]
    keys = [attempt_key(DELIVERY_ID, generation, number) for generation, number in order]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


def test_a_lane_is_named_by_tenant_endpoint_and_number() -> None:
    assert owed().lane.name == "tn_1#ep_019a7afd-1e00-7aaa-aaaa-aaaaaaaaaaaa#0"


CREATED = Created(DELIVERY_ID, 0, EVENT_ID, "order.paid", "0", RECEIVED_MS)
FAILED = Attempt(DELIVERY_ID, 0, 1, EVENT_ID, Outcome.RETRYABLE, NOW)
UNKNOWN = replace(FAILED, number=2, outcome=Outcome.UNKNOWN)
SUCCEEDED = replace(FAILED, number=3, outcome=Outcome.SUCCESS)
ENDED = Ended(DELIVERY_ID, 0, EVENT_ID, DeathReason.SKIPPED, NOW, 1)


@pytest.mark.parametrize(
    "rows, idle, leased",
    [
        ([CREATED], Status.PENDING, Status.INFLIGHT),
        ([CREATED, FAILED], Status.PENDING, Status.INFLIGHT),
        ([CREATED, FAILED, UNKNOWN], Status.PENDING, Status.INFLIGHT),
        ([CREATED, FAILED, SUCCEEDED], Status.SUCCEEDED, Status.SUCCEEDED),
        ([CREATED, ENDED], Status.DEAD, Status.DEAD),
        ([CREATED, FAILED, ENDED], Status.DEAD, Status.DEAD),
    ],
)
def test_a_status_is_what_the_last_row_says(
    rows: list[Created | Attempt | Ended], idle: Status, leased: Status
) -> None:
    assert status_of(rows, leased=False) is idle
    assert status_of(rows, leased=True) is leased


@pytest.mark.parametrize(
    "moment",
    [
        "2026-11-01T05:55:00+00:00",
        "2026-11-01T06:25:00+00:00",
        "2026-03-29T00:55:00+00:00",
        "2026-03-29T01:00:00+00:00",
    ],
)
@pytest.mark.parametrize("wait_s", [300, 1_800, 3_600])
def test_f133_waits_are_exact_where_clocks_are_put_back_or_forward(
    elsewhere: None, moment: str, wait_s: int
) -> None:
    at = int(datetime.fromisoformat(moment).timestamp()) * 1000
    step = send(owed(ready_ms=at), 503, at=at, took=0, retry_after=str(wait_s), jitter=0)
    assert again(step).ready_ms == at + wait_s * 1000


def test_f133_the_window_is_72_real_hours_where_clocks_are_put_back(elsewhere: None) -> None:
    first = int(datetime.fromisoformat("2026-10-30T12:00:00+00:00").timestamp()) * 1000
    row = owed(first_ms=first, made=1, counted=1)
    at = first + int(timedelta(hours=72).total_seconds() * 1000)
    assert isinstance(send(row, at=at - 1, took=0), Again)
    assert isinstance(send(row, at=at, took=0), Dead)
