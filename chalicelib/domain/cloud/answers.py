"""What AWS answers a call for an endpoint, as the reply that `judge` knows.

A denial is no verdict of the receiver's: policies are mended, and take their time to be known everywhere,
so it is tried again and fails as an outage does. Source: docs/decisions/0023.
"""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from chalicelib.domain.outcome import Fault, Reply

_DENIED = frozenset(
    (
        "AccessDenied AccessDeniedException AuthorizationError AuthFailure NotAuthorized InvalidSecurity"
        " UnauthorizedOperation ExpiredToken ExpiredTokenException InvalidClientTokenId InvalidAccessKeyId"
        " UnrecognizedClientException RegionDisabledException"
        " KmsAccessDenied KmsDisabled KmsInvalidState KmsNotFound KmsOptInRequired"
        " KMS.AccessDeniedException KMS.DisabledException KMS.InvalidStateException KMS.NotFoundException"
    ).split()
)
_THROTTLED = frozenset(
    (
        "Throttling ThrottlingException ThrottledException RequestThrottled RequestThrottledException"
        " RequestLimitExceeded TooManyRequestsException KmsThrottled KMS.ThrottlingException OverLimit"
        " LimitExceededException SlowDown"
    ).split()
)
_GONE = frozenset(
    "NonExistentQueue QueueDoesNotExist QueueDeletedRecently ResourceNotFoundException NotFound".split()
)
_TOO_LARGE = frozenset({"BatchRequestTooLong", "RequestEntityTooLarge", "MessageTooLong"})
_WORDS_OF_SIZE = ("shorter than", "too long", "over the limit", "exceed")
_SERVER_ERROR = 500


def refused(code: str, status: int, said: str = "") -> Reply:
    """Say what an error of a service means, by its code; the code alone is told to the endpoint's owner."""
    short = code.rpartition("AWS.SimpleQueueService.")[2].rpartition("#")[2]
    detail = f"AWS answered {short}"
    if short in _DENIED:
        return denied(f"{detail}: the role may not send there, or may not use the key that encrypts it")
    if short in _THROTTLED:
        return Reply(HTTPStatus.TOO_MANY_REQUESTS, detail=detail)
    if short in _GONE:
        return Reply(HTTPStatus.NOT_FOUND, detail=f"{detail}: nothing is at that ARN")
    if short in _TOO_LARGE or any(each in said for each in _WORDS_OF_SIZE):
        return too_large(detail)
    if status >= _SERVER_ERROR or "Internal" in short or "Unavailable" in short:
        return Reply(max(status, _SERVER_ERROR), detail=detail)
    return Reply(HTTPStatus.BAD_REQUEST, detail=detail)


def not_assumed(code: str, status: int) -> Reply:
    """Say what an error of assuming a role means."""
    if code in _THROTTLED or status >= _SERVER_ERROR:
        return Reply(fault=Fault.CONNECT_FAILED, detail=f"AWS answered {code} for the role", unsent=True)
    return denied(
        "the role could not be assumed: is it there, and does its trust policy have the external id?"
    )


def denied(detail: str) -> Reply:
    """Make the reply of a call that somebody's policy forbids."""
    return Reply(fault=Fault.ACCESS_DENIED, detail=detail, unsent=True)


def too_large(detail: str) -> Reply:
    """Make the reply to what is larger than the service, or the queue, takes."""
    return Reply(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail=f"{detail}: the event is too large for it")


def taken(answer: Mapping[str, Any]) -> Reply:
    """Read what a service answers to a call that it took; of a bus that can still be a refusal."""
    for each in answer.get("Entries", ()):
        if "ErrorCode" in each:
            return refused(each["ErrorCode"], HTTPStatus.BAD_REQUEST, each.get("ErrorMessage", ""))
    said = answer.get("MessageId") or [each.get("EventId") for each in answer.get("Entries", ())]
    return Reply(HTTPStatus.OK, body=json.dumps(said).encode())
