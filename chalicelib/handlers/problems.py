"""Errors as HTTP answers: the one table from code to status, as RFC 9457 problem documents."""

import json
from http import HTTPStatus
from typing import Any

from chalicelib.domain.errors import ErrorCode, RelayError

CONTENT_TYPE = "application/problem+json"
_STATUS = {
    ErrorCode.BODY_EMPTY: HTTPStatus.BAD_REQUEST,
    ErrorCode.BODY_NOT_JSON: HTTPStatus.BAD_REQUEST,
    ErrorCode.BODY_NOT_UTF8: HTTPStatus.BAD_REQUEST,
    ErrorCode.BODY_TOO_DEEP: HTTPStatus.BAD_REQUEST,
    ErrorCode.BODY_TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    ErrorCode.CONFIRMATION_REQUIRED: HTTPStatus.CONFLICT,
    ErrorCode.CONTENT_TYPE_INVALID: HTTPStatus.BAD_REQUEST,
    ErrorCode.CURSOR_INVALID: HTTPStatus.BAD_REQUEST,
    ErrorCode.DELIVERY_PENDING: HTTPStatus.CONFLICT,
    ErrorCode.DESTINATION_NOT_ALLOWED: HTTPStatus.BAD_REQUEST,
    ErrorCode.ENDPOINT_DELETED: HTTPStatus.CONFLICT,
    ErrorCode.ENDPOINT_DISABLED: HTTPStatus.CONFLICT,
    ErrorCode.ENDPOINT_ENABLED: HTTPStatus.CONFLICT,
    ErrorCode.EVENT_TYPE_CONFLICT: HTTPStatus.BAD_REQUEST,
    ErrorCode.EVENT_TYPE_INVALID: HTTPStatus.BAD_REQUEST,
    ErrorCode.EVENT_TYPE_MISSING: HTTPStatus.BAD_REQUEST,
    ErrorCode.FIELD_INVALID: HTTPStatus.BAD_REQUEST,
    ErrorCode.FIELD_UNKNOWN: HTTPStatus.BAD_REQUEST,
    ErrorCode.FORBIDDEN: HTTPStatus.FORBIDDEN,
    ErrorCode.IDEMPOTENCY_CONFLICT: HTTPStatus.CONFLICT,
    ErrorCode.IDEMPOTENCY_KEY_INVALID: HTTPStatus.BAD_REQUEST,
    ErrorCode.IF_MATCH_REQUIRED: HTTPStatus.PRECONDITION_REQUIRED,
    ErrorCode.INTERNAL_ERROR: HTTPStatus.INTERNAL_SERVER_ERROR,
    ErrorCode.LAST_ADMIN_KEY: HTTPStatus.CONFLICT,
    ErrorCode.NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorCode.NOT_SUBSCRIBED: HTTPStatus.CONFLICT,
    ErrorCode.PAYLOAD_EXPIRED: HTTPStatus.CONFLICT,
    ErrorCode.REPLAY_ENDED: HTTPStatus.CONFLICT,
    ErrorCode.STEP_UP_CODE_WRONG: HTTPStatus.FORBIDDEN,
    ErrorCode.STEP_UP_LOCKED: HTTPStatus.TOO_MANY_REQUESTS,
    ErrorCode.STEP_UP_REQUIRED: HTTPStatus.FORBIDDEN,
    ErrorCode.TENANT_PURGING: HTTPStatus.FORBIDDEN,
    ErrorCode.TOO_MANY_ENDPOINTS: HTTPStatus.CONFLICT,
    ErrorCode.TOO_MANY_EVENTS: HTTPStatus.TOO_MANY_REQUESTS,
    ErrorCode.TOO_MANY_ORDERED_ENDPOINTS: HTTPStatus.CONFLICT,
    ErrorCode.TOO_MANY_REQUESTS: HTTPStatus.TOO_MANY_REQUESTS,
    ErrorCode.TUNNELS_OFF: HTTPStatus.CONFLICT,
    ErrorCode.UNAUTHENTICATED: HTTPStatus.UNAUTHORIZED,
    ErrorCode.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.URL_INVALID: HTTPStatus.BAD_REQUEST,
    ErrorCode.VERSION_STALE: HTTPStatus.PRECONDITION_FAILED,
}


def status_of(code: ErrorCode) -> HTTPStatus:
    """Give the status of a code."""
    return _STATUS[code]


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
