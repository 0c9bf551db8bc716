"""AWS's errors as replies: what is tried again, what ends a delivery, and what the breaker hears of it."""

from datetime import UTC, datetime

import pytest

from chalicelib.domain.cloud import answers
from chalicelib.domain.outcome import Evidence, Fault, Outcome, judge

NOW = datetime(2026, 1, 1, tzinfo=UTC)
R, P, A, F = Outcome.RETRYABLE, Outcome.PERMANENT, Evidence.ALIVE, Evidence.FAILING
ERRORS = [
    ("AccessDeniedException", 400, "", R, F),
    ("AccessDenied", 403, "", R, F),
    ("ExpiredTokenException", 403, "", R, F),
    ("KmsAccessDenied", 400, "", R, F),
    ("RequestThrottled", 400, "", R, A),
    ("ThrottlingException", 400, "", R, A),
    ("AWS.SimpleQueueService.NonExistentQueue", 400, "", P, A),
    ("QueueDoesNotExist", 400, "", P, A),
    ("ResourceNotFoundException", 400, "", P, A),
    ("InvalidMessageContents", 400, "", P, A),
    ("InvalidParameterValue", 400, "Message must be shorter than 1024 bytes.", P, A),
    ("RequestEntityTooLarge", 413, "", P, A),
    ("InternalFailure", 500, "", R, F),
    ("InternalException", 400, "", R, F),
    ("ServiceUnavailable", 503, "", R, F),
    ("SomethingNew", 418, "", P, A),
]


@pytest.mark.parametrize("code, status, said, outcome, evidence", ERRORS)
def test_an_error_means_what_its_code_says(
    code: str, status: int, said: str, outcome: Outcome, evidence: Evidence
) -> None:
    reply = answers.refused(code, status, said)
    verdict = judge(reply, NOW)
    assert (verdict.outcome, verdict.evidence) == (outcome, evidence)
    assert said == "" or said not in reply.detail
    assert not verdict.disables_endpoint


def test_what_a_queue_finds_too_large_is_told_as_such() -> None:
    reply = answers.refused("InvalidParameterValue", 400, "Message must be shorter than 1024 bytes.")
    assert (reply.status, "too large" in reply.detail) == (413, True)


def test_a_role_that_cannot_be_assumed_is_tried_again_as_policies_are_mended() -> None:
    reply = answers.not_assumed("AccessDenied", 403)
    assert (reply.fault, reply.unsent) == (Fault.ACCESS_DENIED, True)
    assert judge(reply, NOW).outcome is Outcome.RETRYABLE
    assert answers.not_assumed("InternalFailure", 500).fault is Fault.CONNECT_FAILED


def test_a_bus_that_refuses_an_entry_of_a_call_that_it_took_has_refused() -> None:
    entry = {"ErrorCode": "ThrottlingException", "ErrorMessage": "later"}
    assert answers.taken({"FailedEntryCount": 1, "Entries": [entry]}).status == 429
    assert answers.taken({"FailedEntryCount": 0, "Entries": [{"EventId": "e1"}]}).status == 200
    assert answers.taken({"MessageId": "m1"}).body == b'"m1"'
