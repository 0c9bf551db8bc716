"""The shapes of API bodies: parsed once at the door, then trusted."""

from typing import Annotated, Any

from pydantic import BaseModel, Field, StringConstraints, WithJsonSchema

from chalicelib.domain import endpoint as endpoints
from chalicelib.domain.backoff import RetryProfile
from chalicelib.domain.delivery import Status
from chalicelib.domain.endpoint import Backlog, Ordering, Transport
from chalicelib.domain.signing import IDENTITY, SignatureForm, SignatureKey
from chalicelib.wire.auths import AuthBody
from chalicelib.wire.parsing import STRICT, one_of

ENDED = (Status.DEAD, Status.SUCCEEDED)
Rate = Annotated[int, Field(ge=1, le=endpoints.RATE_MAX)]
Burst = Annotated[int, Field(ge=1, le=endpoints.BURST_MAX)]
Concurrency = Annotated[int, Field(ge=1, le=endpoints.CONCURRENCY_MAX)]
Description = Annotated[str, StringConstraints(max_length=endpoints.DESCRIPTION_MAX)]
EventTypes = Annotated[list[str], Field(min_length=1, max_length=endpoints.EVENT_TYPES_MAX)]
Headers = Annotated[dict[str, str], Field(max_length=endpoints.HEADERS_MAX)]
Filter = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {"type": "object", "minProperties": 1, "examples": [{"amount": [{"numeric": [">", 100]}]}]}
    ),
]
Overlap = Annotated[int, Field(ge=0, le=endpoints.OVERLAP_MAX_S)]
Choice = Annotated[str, StringConstraints(max_length=32)]
TransportChoice = Annotated[Choice, one_of(Transport)]
OrderingChoice = Annotated[Choice, one_of(Ordering)]
ProfileChoice = Annotated[Choice, one_of(RetryProfile)]
SignatureChoice = Annotated[Choice, one_of(IDENTITY)]
BacklogChoice = Annotated[Choice, one_of(Backlog)]
EndedChoice = Annotated[Choice, one_of(ENDED)]
KeyChoice = Annotated[Choice, one_of(SignatureKey)]
Moment = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
Url = Annotated[str, WithJsonSchema({"type": "string", "examples": ["https://example.com/hook"]})]
RoleArn = Annotated[str, StringConstraints(max_length=128)]
Credential = Annotated[str, StringConstraints(max_length=256)]


class EndpointBody(BaseModel):
    """What `POST /v1/endpoints` takes."""

    model_config = STRICT

    url: Url
    event_types: EventTypes
    transport: TransportChoice = Transport.HTTP.value
    description: Description = ""
    rate_per_second: Rate = 10
    burst: Burst = 20
    max_concurrency: Concurrency = 8
    ordering: OrderingChoice = Ordering.NONE.value
    retry_profile: ProfileChoice = RetryProfile.DEFAULT.value
    signature: SignatureChoice = SignatureForm.RELAY.value
    signature_key: KeyChoice = SignatureKey.HMAC.value
    headers: Headers = {}
    filter: Filter | None = None
    secret: Credential | None = None
    auth: AuthBody | None = None
    role: RoleArn | None = None


class EndpointPatch(BaseModel):
    """What `PATCH /v1/endpoints/{id}` takes: what is left out stays, null takes filter and `auth` away."""

    model_config = STRICT

    url: Url | None = None
    event_types: EventTypes | None = None
    description: Description | None = None
    rate_per_second: Rate | None = None
    burst: Burst | None = None
    max_concurrency: Concurrency | None = None
    ordering: OrderingChoice | None = None
    retry_profile: ProfileChoice | None = None
    signature: SignatureChoice | None = None
    headers: Headers | None = None
    filter: Filter | None = None
    secret: Credential | None = None
    auth: AuthBody | None = None
    role: RoleArn | None = None


class BulkReplayBody(BaseModel):
    """What `POST /v1/endpoints/{id}/replay` takes."""

    model_config = STRICT

    since: Moment
    until: Moment | None = None
    status: EndedChoice = Status.DEAD.value
    event_types: EventTypes = ["*"]
    confirm: Annotated[int, Field(ge=0)] | None = None


class EmptyBody(BaseModel):
    """What a request takes that has nothing to say."""

    model_config = STRICT


class RotateBody(BaseModel):
    """What `POST /v1/endpoints/{id}/rotate-secret` takes: for how long the key before signs as well.

    For a chat it takes the new credential alone.
    """

    model_config = STRICT

    overlap_s: Overlap | None = None
    signature_key: KeyChoice | None = None
    secret: Credential | None = None


class EndOverlapBody(BaseModel):
    """What `POST /v1/endpoints/{id}/end-overlap` takes: in how many seconds, at once unless given."""

    model_config = STRICT

    within_s: Overlap = 0


class EnableBody(BaseModel):
    """What `POST /v1/endpoints/{id}/enable` takes: what becomes of what waited has to be chosen."""

    model_config = STRICT

    backlog: BacklogChoice
    resume_from: Moment | None = None


class BatchBody(BaseModel):
    """What `POST /v1/events/batch` takes; each item is checked on its own."""

    model_config = STRICT

    events: Annotated[list[Any], Field(min_length=1)]


class BatchItem(BaseModel):
    """One event of a batch: its bytes as text (sent as UTF-8) or as base64."""

    model_config = STRICT

    type: str | None = None
    content_type: str | None = None
    idempotency_key: str | None = None
    payload: str | None = None
    payload_base64: str | None = None
