"""A caller's mistakes, as values with a stable code.

No HTTP here: the handlers' one table maps each code to a status.
"""

from enum import StrEnum
from typing import Self


class ErrorCode(StrEnum):
    """Every code an API answer may carry; docs/errors.md has the cure for each."""

    BODY_EMPTY = "body_empty"
    BODY_NOT_JSON = "body_not_json"
    BODY_NOT_UTF8 = "body_not_utf8"
    BODY_TOO_DEEP = "body_too_deep"
    BODY_TOO_LARGE = "body_too_large"
    CONFIRMATION_REQUIRED = "confirmation_required"
    CONTENT_TYPE_INVALID = "content_type_invalid"
    CURSOR_INVALID = "cursor_invalid"
    DELIVERY_PENDING = "delivery_pending"
    DESTINATION_NOT_ALLOWED = "destination_not_allowed"
    ENDPOINT_DELETED = "endpoint_deleted"
    ENDPOINT_DISABLED = "endpoint_disabled"
    ENDPOINT_ENABLED = "endpoint_enabled"
    EVENT_TYPE_CONFLICT = "event_type_conflict"
    EVENT_TYPE_INVALID = "event_type_invalid"
    EVENT_TYPE_MISSING = "event_type_missing"
    FIELD_INVALID = "field_invalid"
    FIELD_UNKNOWN = "field_unknown"
    FORBIDDEN = "forbidden"
    IDEMPOTENCY_CONFLICT = "idempotency_conflict"
    IDEMPOTENCY_KEY_INVALID = "idempotency_key_invalid"
    IF_MATCH_REQUIRED = "if_match_required"
    INTERNAL_ERROR = "internal_error"
    LAST_ADMIN_KEY = "last_admin_key"
    NOT_FOUND = "not_found"
    NOT_SUBSCRIBED = "not_subscribed"
    PAYLOAD_EXPIRED = "payload_expired"
    REPLAY_ENDED = "replay_ended"
    STEP_UP_CODE_WRONG = "step_up_code_wrong"
    STEP_UP_LOCKED = "step_up_locked"
    STEP_UP_REQUIRED = "step_up_required"
    TENANT_PURGING = "tenant_purging"
    TOO_MANY_ENDPOINTS = "too_many_endpoints"
    TOO_MANY_EVENTS = "too_many_events"
    TOO_MANY_ORDERED_ENDPOINTS = "too_many_ordered_endpoints"
    TOO_MANY_REQUESTS = "too_many_requests"
    TUNNELS_OFF = "tunnels_off"
    UNAUTHENTICATED = "unauthenticated"
    UNAVAILABLE = "unavailable"
    URL_INVALID = "url_invalid"
    VERSION_STALE = "version_stale"


class RelayError(Exception):
    """A request that cannot be done as asked, told so that its sender can mend it.

    `detail` is for the caller: plain words, no internals. `field` names the input at fault and
    `expected` says what would be right. `retry_after_s` is 0 unless waiting that long is the cure.
    """

    retry_after_s = 0

    def __init__(self, code: ErrorCode, detail: str, *, field: str = "", expected: str = "") -> None:
        """Keep the code and the words apart, so that either can be shown alone."""
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.field = field
        self.expected = expected

    def after(self, seconds: int) -> Self:
        """Say that it may be asked again once so many seconds have passed, at least one."""
        self.retry_after_s = max(1, seconds)
        return self
