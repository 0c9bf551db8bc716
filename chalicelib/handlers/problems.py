"""Errors as HTTP answers: the one table from code to status, as RFC 9457 problem documents."""

import json
from http import HTTPStatus
from typing import Any

from chalicelib.domain.errors import ErrorCode, RelayError

CONTENT_TYPE = "application/problem+json"
_STATUS = {
    ErrorCode.BODY_TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    ErrorCode.FORBIDDEN: HTTPStatus.FORBIDDEN,
    ErrorCode.IDEMPOTENCY_CONFLICT: HTTPStatus.CONFLICT,
    ErrorCode.IF_MATCH_REQUIRED: HTTPStatus.PRECONDITION_REQUIRED,
    ErrorCode.NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorCode.QUOTA_EXCEEDED: HTTPStatus.CONFLICT,
    ErrorCode.UNAUTHENTICATED: HTTPStatus.UNAUTHORIZED,
    ErrorCode.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.VERSION_STALE: HTTPStatus.PRECONDITION_FAILED,
}


def status_of(code: ErrorCode) -> HTTPStatus:
    """Give the status of a code; what is not in the table is the caller's 400."""
    return _STATUS.get(code, HTTPStatus.BAD_REQUEST)


def document(error: RelayError) -> dict[str, Any]:
    """Write an error as a problem document."""
    status = status_of(error.code)
    full = {
        "type": f"https://relay.example/errors#{error.code.value}",
        "title": error.code.value.replace("_", " ").capitalize(),
        "status": status.value,
        "code": error.code.value,
        "detail": error.detail,
        "field": error.field,
        "expected": error.expected,
    }
    return {name: value for name, value in full.items() if value != ""}


def text(error: RelayError) -> str:
    """Write an error as the body of an answer."""
    return json.dumps(document(error))
