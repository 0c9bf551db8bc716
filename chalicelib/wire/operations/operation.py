"""What one operation of the API is: who may ask it, what it takes, what it answers, how it can fail."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from chalicelib.domain import ids
from chalicelib.domain.api_key import Role
from chalicelib.domain.delivery import Status
from chalicelib.domain.errors import ErrorCode
from chalicelib.wire.cursor import CURSOR_MAX, LIST_DEFAULT, LIST_MAX

Schema = Mapping[str, Any]
EVERY_ROLE = frozenset(Role)
ADMINS_ONLY = frozenset({Role.ADMIN})
OPERATOR_ONLY = frozenset({Role.OPERATOR})
PRODUCERS = frozenset({Role.PRODUCER, Role.ADMIN})
VIEWERS = frozenset({Role.VIEWER, Role.ADMIN})

_GUARDED = frozenset(
    {
        ErrorCode.FIELD_INVALID,
        ErrorCode.FIELD_UNKNOWN,
        ErrorCode.INTERNAL_ERROR,
        ErrorCode.UNAUTHENTICATED,
        ErrorCode.UNAVAILABLE,
    }
)
_OF_A_BODY = frozenset(
    {ErrorCode.BODY_NOT_JSON, ErrorCode.BODY_NOT_UTF8, ErrorCode.BODY_TOO_DEEP, ErrorCode.BODY_TOO_LARGE}
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter or a header, or a part of a path: what it is for, and its JSON schema."""

    name: str
    says: str
    schema: Schema = field(default_factory=lambda: {"type": "string"})
    required: bool = False


@dataclass(frozen=True, slots=True)
class ListOf:
    """A page of such items with the cursor that continues the list."""

    item: Any


@dataclass(frozen=True, slots=True)
class Bytes:
    """A body that Relay does not look into: of any media type, or as JSON when it is given as that."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer that is no error: its shape (None: no body) and the headers that come with it."""

    says: str
    shape: Any = None
    headers: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing that can be asked; `id` is the name of its function in app.py.

    `roles` is None where no key is needed. `keyless_too`: where the whole API may be asked without a key, so
    may this, though it is for others. `body_optional`: it may be left out. `errors` are the codes that
    no other part of the operation speaks of: see `codes`.
    """

    method: str
    path: str
    id: str
    says: str
    roles: frozenset[Role] | None
    answers: Mapping[int, Answer]
    body: type[BaseModel] | Bytes | None = None
    body_optional: bool = False
    query: tuple[Parameter, ...] = ()
    headers: tuple[Parameter, ...] = ()
    errors: frozenset[ErrorCode] = frozenset()
    keyless_too: bool = False

    @property
    def codes(self) -> frozenset[ErrorCode]:
        """Give every error code that the operation can answer."""
        codes = self.errors
        if self.roles is not None:
            codes |= _GUARDED
            codes |= {ErrorCode.FORBIDDEN} if self.roles < EVERY_ROLE else frozenset()
            codes |= self._of_a_tenant()
            codes |= {ErrorCode.NOT_FOUND} if "{" in self.path else frozenset()
        if isinstance(self.body, type):
            codes |= _OF_A_BODY if self.body_optional else _OF_A_BODY | {ErrorCode.BODY_EMPTY}
        if CURSOR in self.query:
            codes |= {ErrorCode.CURSOR_INVALID, ErrorCode.NOT_FOUND}
        if STEP_UP in self.headers:
            codes |= {ErrorCode.STEP_UP_REQUIRED}
        if IF_MATCH in self.headers:
            codes |= {ErrorCode.IF_MATCH_REQUIRED, ErrorCode.VERSION_STALE}
        return codes

    def _of_a_tenant(self) -> frozenset[ErrorCode]:
        """Give the codes that only a tenant's state can bring: its keys' limits, and its end."""
        by_a_tenant = self.roles != OPERATOR_ONLY
        codes = {ErrorCode.TOO_MANY_REQUESTS} if by_a_tenant else set()
        if self.method != "GET" and (by_a_tenant or "{tenant_id}" in self.path):
            codes.add(ErrorCode.TENANT_PURGING)
        return frozenset(codes)


LIMIT = Parameter(
    "limit",
    "How many items a page may have.",
    {"type": "integer", "minimum": 1, "maximum": LIST_MAX, "default": LIST_DEFAULT},
)
CURSOR = Parameter(
    "cursor",
    "The `cursor` of the same list's previous page; without it the list begins.",
    {"type": "string", "maxLength": CURSOR_MAX},
)
PAGED = (LIMIT, CURSOR)
_TIME: Schema = {"type": "string", "format": "date-time"}
OF_A_TIME = (
    Parameter("since", "Only those from this moment on.", _TIME),
    Parameter("until", "Only those before this moment.", _TIME),
)
OF_EVENTS_OF_A_TIME = (
    Parameter("since", "Only those of events received from this moment on.", _TIME),
    Parameter("until", "Only those of events received before this moment.", _TIME),
)
STATUS = Parameter(
    "status",
    "Only deliveries that are so; a page may then be short, and `cursor` says whether there is more.",
    {"type": "string", "enum": [*Status]},
)
IF_MATCH = Parameter(
    "If-Match", "The `ETag` that the latest GET gave.", {"type": "string", "examples": ['"1"']}, required=True
)
STEP_UP = Parameter(
    "Relay-Step-Up",
    "The `assertion` that `POST /v1/step-up` gave this key for the action, not five minutes ago.",
)
ETAG = Parameter("ETag", "The version, to be sent as `If-Match` with a change.", required=True)
LOCATION = Parameter("Location", "Where this can be read.", {"type": "string", "format": "uri-reference"})


def _id(prefix: str) -> Schema:
    return {"type": "string", "pattern": ids.pattern(prefix)}


PATH = {
    each.name: each
    for each in (
        Parameter("event_id", "The event's id.", _id("evt")),
        Parameter("endpoint_id", "The endpoint's id.", _id("ep")),
        Parameter("delivery_id", "The delivery's id.", _id("")),
        Parameter("replay_id", "The bulk replay's id.", _id("rp")),
        Parameter("tenant_id", "The tenant's id.", {"type": "string", "pattern": "^(tn_.{36}|default)$"}),
        Parameter("key_id", "The key's id.", {"type": "string", "pattern": "^(key_.{36}|development)$"}),
    )
}
"""What the parts of paths are."""
