"""Outcomes: one verdict for every status and fault, and Retry-After read to the letter."""

import email.utils
import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.outcome import (
    DeathReason,
    Evidence,
    Fault,
    Outcome,
    Reply,
    Verdict,
    judge,
    retry_after_of,
    unsendable,
)
from tests.unit.domain.examples import FEW

NOW = datetime(2026, 10, 21, 7, 0, 0, tzinfo=UTC)
S, R, P = Outcome.SUCCESS, Outcome.RETRYABLE, Outcome.PERMANENT
ALIVE, FAILING, NONE = Evidence.ALIVE, Evidence.FAILING, Evidence.NONE


def answered(status: int, **headers: str) -> Verdict:
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return judge(Reply(status=status, headers=named), NOW)


STATUSES = [
    (100, P, ALIVE),
    (101, P, ALIVE),
    (103, P, ALIVE),
    (199, P, ALIVE),
    (200, S, ALIVE),
    (201, S, ALIVE),
    (202, S, ALIVE),
    (203, S, ALIVE),
    (204, S, ALIVE),
    (205, S, ALIVE),
    (206, S, ALIVE),
    (226, S, ALIVE),
    (299, S, ALIVE),
    (300, P, ALIVE),
    (301, P, ALIVE),
    (302, P, ALIVE),
    (303, P, ALIVE),
    (304, P, ALIVE),
    (307, P, ALIVE),
    (308, P, ALIVE),
    (399, P, ALIVE),
    (400, P, ALIVE),
    (401, P, ALIVE),
    (403, P, ALIVE),
    (404, P, ALIVE),
    (408, R, ALIVE),
    (409, P, ALIVE),
    (410, P, ALIVE),
    (413, P, ALIVE),
    (424, P, ALIVE),
    (425, R, ALIVE),
    (426, P, ALIVE),
    (429, R, ALIVE),
    (499, P, ALIVE),
    (500, R, FAILING),
    (501, R, FAILING),
    (502, R, FAILING),
    (503, R, FAILING),
    (504, R, FAILING),
    (599, R, FAILING),
    (600, R, ALIVE),
    (999, R, ALIVE),
]


@pytest.mark.parametrize("status, outcome, evidence", STATUSES)
def test_f066_every_status_has_one_verdict(status: int, outcome: Outcome, evidence: Evidence) -> None:
    verdict = answered(status)
    assert (verdict.outcome, verdict.evidence) == (outcome, evidence)
    assert verdict.death is (DeathReason.PERMANENT_FAILURE if outcome is P else None)
    assert verdict.retry_after is None
    assert not verdict.holds_endpoint


@FEW
@given(st.integers(0, 9_999))
def test_f066_only_2xx_is_success_and_only_5xx_is_failing(status: int) -> None:
    verdict = answered(status)
    assert (verdict.outcome is S) is (status // 100 == 2)
    assert (verdict.evidence is FAILING) is (status // 100 == 5)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_f068_a_redirect_that_is_not_followed_ends_the_delivery_and_disables_nothing(status: int) -> None:
    verdict = answered(status, location="https://example.com/elsewhere")
    assert verdict.outcome is P
    assert not verdict.disables_endpoint


def test_f070_gone_disables_the_endpoint_and_not_found_does_not() -> None:
    assert answered(410).disables_endpoint
    disabling = {status for status, *_ in STATUSES if answered(status).disables_endpoint}
    assert disabling == {410}


FAULTS = {
    Fault.CONNECT_FAILED: (R, FAILING, None),
    Fault.DNS_FAILED: (R, FAILING, None),
    Fault.TLS_FAILED: (R, FAILING, None),
    Fault.CERTIFICATE_UNTRUSTED: (R, FAILING, None),
    Fault.CERTIFICATE_EXPIRED: (R, FAILING, None),
    Fault.CERTIFICATE_NAME: (R, FAILING, None),
    Fault.TIMEOUT: (R, FAILING, None),
    Fault.CONNECT_TIMEOUT: (R, FAILING, None),
    Fault.NO_RESPONSE: (R, FAILING, None),
    Fault.TOKEN_FAILED: (R, FAILING, None),
    Fault.PROTOCOL_ERROR: (R, FAILING, None),
    Fault.ACCESS_DENIED: (R, FAILING, None),
    Fault.REFUSED: (P, NONE, DeathReason.REFUSED),
    Fault.BAD_URL: (P, NONE, DeathReason.REFUSED),
}


@pytest.mark.parametrize("fault", list(Fault))
def test_f065_every_fault_has_one_verdict(fault: Fault) -> None:
    verdict = judge(Reply(fault=fault), NOW)
    assert (verdict.outcome, verdict.evidence, verdict.death) == FAULTS[fault]
    assert verdict == Verdict(verdict.outcome, verdict.evidence, verdict.death)


@pytest.mark.parametrize(
    "size, death",
    [(1, None), (262_144, None), (262_145, DeathReason.PAYLOAD_TOO_LARGE)],
)
def test_a_body_over_the_limit_must_not_be_sent(size: int, death: DeathReason | None) -> None:
    assert unsendable(size, 262_144) is death


def test_f043_a_status_decides_even_when_the_body_broke_off() -> None:
    assert judge(Reply(status=200, truncated=True), NOW).outcome is S


@pytest.mark.parametrize("status, holds", [(429, True), (503, False)])
def test_an_endpoint_that_says_when_is_deferred_and_only_a_429_holds_all(status: int, *, holds: bool) -> None:
    verdict = answered(status, retry_after="120")
    assert verdict.outcome is Outcome.DEFERRED
    assert verdict.retry_after == timedelta(minutes=2)
    assert verdict.holds_endpoint is holds
    assert verdict.death is None
    assert verdict.evidence is (ALIVE if status == 429 else FAILING)


@pytest.mark.parametrize("status", [200, 301, 404, 408, 500, 502])
def test_retry_after_says_nothing_on_any_other_status(status: int) -> None:
    assert answered(status, retry_after="120") == answered(status)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("value", ["", "soon", "-1"])
def test_f072_an_unreadable_retry_after_leaves_the_normal_backoff(status: int, value: str) -> None:
    assert answered(status, retry_after=value) == answered(status)


def test_a_response_header_is_found_in_any_case_and_the_first_counts() -> None:
    reply = Reply(status=429, headers=(("RETRY-AFTER", "7"), ("Retry-After", "8")))
    assert judge(reply, NOW).retry_after == timedelta(seconds=7)


IN_28_MINUTES = timedelta(minutes=28)


@pytest.mark.parametrize(
    "value, wait",
    [
        ("120", timedelta(minutes=2)),
        (" 120\t", timedelta(minutes=2)),
        ("0", timedelta()),
        ("007", timedelta(seconds=7)),
        ("0000000000120", timedelta(minutes=2)),
        ("1m0s", None),
        ("-1", None),
        ("1.5", None),
        ("+5", None),
        ("1_0", None),
        ("\u00b2", None),
        ("\u0663", None),
        ("", None),
        ("120 s", None),
        ("120\n", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", IN_28_MINUTES),
        ("Wed, 21 Oct 2026 07:28:00", IN_28_MINUTES),
        ("Wed, 21 Oct 2026 07:28:00 -0000", IN_28_MINUTES),
        ("Wed, 21 Oct 2026 07:28:00 +0000", IN_28_MINUTES),
        ("Wednesday, 21-Oct-26 07:28:00 GMT", IN_28_MINUTES),
        ("Wed Oct 21 07:28:00 2026", IN_28_MINUTES),
        ("Sun Nov  1 07:00:00 2026", timedelta(days=11)),
        ("Wed, 21 Oct 2026 06:59:59 GMT", timedelta()),
        ("Sunday, 06-Nov-94 08:49:37 GMT", timedelta()),
        ("Wed, 21 Oct 2026 07:28:00 EST", None),
        ("Wed, 21 Oct 2026 03:28:00 -0400", None),
        ("Wed, 31 Feb 2026 07:28:00 GMT", None),
        ("Wed, 21 Oct 2026 25:28:00 GMT", None),
        ("Wed, 21 Foo 2026 07:28:00 GMT", None),
        ("Wed, 21 Oct 0000 07:28:00 GMT", None),
        ("Wed, \u0662\u0661 Oct 2026 07:28:00 GMT", None),
        ("2026-10-21T07:28:00Z", None),
    ],
)
def test_f072_retry_after_is_ascii_seconds_or_an_http_date_in_utc(
    elsewhere: None, value: str, wait: timedelta | None
) -> None:
    assert retry_after_of(value, NOW) == wait


@pytest.mark.parametrize("digits", [9, 10, 12, 400, 5_000])
def test_f072_a_wait_of_any_length_is_a_wait(digits: int) -> None:
    wait = retry_after_of("9" * digits, NOW)
    assert wait is not None
    assert wait > timedelta(days=365)


def test_a_two_digit_year_is_at_most_fifty_years_ahead() -> None:
    ahead = retry_after_of("Wednesday, 21-Oct-76 07:00:00 GMT", NOW)
    assert ahead is not None
    assert ahead.days // 365 == 50
    assert retry_after_of("Thursday, 21-Oct-77 07:00:00 GMT", NOW) == timedelta()


moments = st.datetimes(datetime(2026, 10, 21, 7, 0, 0), datetime(2076, 1, 1)).map(  # noqa: DTZ001 - made aware here
    lambda moment: moment.replace(microsecond=0, tzinfo=UTC)
)


@FEW
@given(moments)
def test_f072_each_of_the_three_date_forms_is_read(moment: datetime) -> None:
    for text in (
        email.utils.format_datetime(moment, usegmt=True),
        moment.strftime("%A, %d-%b-%y %H:%M:%S GMT"),
        time.asctime(moment.timetuple()),
    ):
        assert retry_after_of(text, NOW) == moment - NOW


@FEW
@given(st.text(max_size=40) | st.text(alphabet="0123456789 -+:,GMTWedOct", max_size=30))
def test_f072_no_retry_after_raises_or_is_negative(value: str) -> None:
    wait = retry_after_of(value, NOW)
    assert wait is None or wait >= timedelta()
