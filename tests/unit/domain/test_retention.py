"""Retention's rules: nothing goes before its window is over, and what is owed is looked at in time."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain import retention
from chalicelib.domain.delivery import Attempt, Created, HistoryRow, given_up
from chalicelib.domain.outcome import DeathReason, Outcome
from chalicelib.domain.retention import DAY_MS, DAY_S, HISTORY_DAYS, LOOK_AGAIN_DAYS, SLACK_DAYS
from tests.unit.domain.examples import DELIVERY_ID, EVENT_ID, RECEIVED_MS, RECEIVED_S, owed

CREATED = Created(DELIVERY_ID, 0, EVENT_ID, "order.paid", "0", RECEIVED_MS)
FAILED = Attempt(DELIVERY_ID, 0, 1, EVENT_ID, Outcome.RETRYABLE, RECEIVED_MS + 5)
DONE = replace(FAILED, outcome=Outcome.SUCCESS)
ENDED = given_up(owed(), DeathReason.EXPIRED, RECEIVED_MS + 5).ended
hours = st.lists(st.integers(1, 30), min_size=1, max_size=400)


def test_the_windows_are_those_of_the_design() -> None:
    assert retention.payload_until_s(RECEIVED_MS) == RECEIVED_S + 35 * DAY_S
    assert retention.dead_until_s(RECEIVED_MS) == RECEIVED_S + 90 * DAY_S
    assert retention.hold_until_s(RECEIVED_MS) == RECEIVED_S + 90 * DAY_S


@pytest.mark.parametrize("end", [DONE, ENDED], ids=["arrived", "given up"])
def test_f122_what_has_ended_is_told_for_ninety_days_from_its_end(end: HistoryRow) -> None:
    over_ms = end.at_ms + HISTORY_DAYS * DAY_MS
    assert retention.told_still((CREATED, end), over_ms - 1)
    assert not retention.told_still((CREATED, end), over_ms)


@pytest.mark.parametrize("rows", [(CREATED,), (CREATED, FAILED)], ids=["untried", "tried"])
def test_f122_what_is_owed_is_told_however_old_it_is(rows: tuple[HistoryRow, ...]) -> None:
    assert retention.told_still(rows, RECEIVED_MS + 10_000 * DAY_MS)


@given(gaps=hours)
def test_what_is_owed_never_loses_its_first_row_nor_its_payload(gaps: list[int]) -> None:
    """Runs may come late by a day: what was kept last outlives every moment at which it could have ended."""
    now_ms = before_ms = RECEIVED_MS
    history_s = retention.history_until_s(RECEIVED_MS)
    payload_s = retention.payload_until_s(RECEIVED_MS)
    for gap in gaps:
        now_ms += gap * 3_600_000
        # Had it ended just now, it would have to be told for its window.
        assert history_s >= now_ms // 1000 + HISTORY_DAYS * DAY_S - DAY_S
        assert payload_s > now_ms // 1000 + (SLACK_DAYS - 2) * DAY_S
        if retention.looks_again(RECEIVED_MS, before_ms, now_ms):
            history_s = max(history_s, retention.history_until_s(now_ms))
            payload_s = max(payload_s, retention.owed_payload_until_s(now_ms))
        before_ms = now_ms


@given(days=st.integers(0, 400), every_h=st.integers(1, 48))
def test_it_is_looked_at_once_in_six_days_however_often_it_is_passed(days: int, every_h: int) -> None:
    step_ms = every_h * 3_600_000
    until_ms = RECEIVED_MS + days * DAY_MS
    moments = range(RECEIVED_MS, until_ms + 1, step_ms)
    looks = sum(retention.looks_again(RECEIVED_MS, before, now) for before, now in pairwise(moments))
    last_ms = moments[-1] if moments else RECEIVED_MS
    assert looks == (last_ms - RECEIVED_MS) // (LOOK_AGAIN_DAYS * DAY_MS)


def test_a_first_run_looks_at_what_is_six_days_old_and_at_nothing_younger() -> None:
    six_days_ms = RECEIVED_MS + LOOK_AGAIN_DAYS * DAY_MS
    assert retention.looks_again(RECEIVED_MS, 0, six_days_ms)
    assert not retention.looks_again(RECEIVED_MS, 0, six_days_ms - 1)
