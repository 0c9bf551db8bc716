"""The shapes of API bodies: parsed once at the door, then trusted."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, WithJsonSchema

from chalicelib.application.endpoints import NewKey
from chalicelib.application.rotate import Rotation
from chalicelib.domain import endpoint as endpoints
from chalicelib.domain import event as events
from chalicelib.domain import ids
from chalicelib.domain import pattern as filters
from chalicelib.domain.backoff import RetryProfile
from chalicelib.domain.bulk_replay import Wanted
from chalicelib.domain.chat.platform import PLATFORMS, is_chat
from chalicelib.domain.cloud.address import in_cloud
from chalicelib.domain.delivery import Status
from chalicelib.domain.endpoint import Backlog, Endpoint, Limits, Ordering, Transport, header_fault
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.secret import MASK, Secret
from chalicelib.domain.signing import IDENTITY, SignatureForm, SignatureKey
from chalicelib.wire import chats, clouds
from chalicelib.wire.auths import AuthBody

BODY_MAX = 131_072
_SHOWN_MAX = 5
_EPOCH = datetime.fromtimestamp(0, UTC)
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?([Zz]|[+-][0-9]{2}:[0-9]{2})",
    re.ASCII,
)
_DIGITS_MAX = 20
_FRACTION_MAX = 40
_PYDANTIC = re.compile(
    r"^(?:Input|String|List|Dictionary) should (?:be|have) |(?: after validation)?, not \w+$"
)
_EXPECTED = {
    "missing": "a value",
    "string_unicode": "text without half surrogate pairs",
    "dict_type": "a JSON object",
}
_ENDED = (Status.DEAD, Status.SUCCEEDED)
STRICT = ConfigDict(extra="forbid", strict=True, frozen=True)


def one_of(words: Iterable[str]) -> WithJsonSchema:
    """Say in the contract which words a choice has; `choice` refuses the others in plain ones."""
    return WithJsonSchema({"type": "string", "enum": [str(each) for each in words]})


Model = TypeVar("Model", bound=BaseModel)
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
EndedChoice = Annotated[Choice, one_of(_ENDED)]
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


def parse(model: type[Model], body: bytes, *, max_bytes: int = BODY_MAX) -> Model:
    """Read a JSON body as a model; raises RelayError naming the field at fault."""
    if len(body) > max_bytes:
        raise events.too_large(len(body), max_bytes)
    text = events.json_text(body)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_once,
            parse_int=_whole,
            parse_float=_fraction,
            parse_constant=events.refuse_constant,
        )
    except ValueError as error:
        raise RelayError(
            ErrorCode.BODY_NOT_JSON, f"The body is not valid JSON: {error}.", expected="a JSON object"
        ) from error
    return checked(model, value)


def checked(model: type[Model], value: object) -> Model:
    """Read a parsed JSON value as a model; raises RelayError naming the field at fault."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise _first_fault(error, model) from None


def endpoint_of(tenant: str, body: EndpointBody) -> Endpoint:
    """Make the draft of an endpoint; its id, secret and time are still to come."""
    transport = choice(Transport, body.transport, "transport")
    _check_fields(transport, body.model_dump(exclude_unset=True))
    return Endpoint(
        tenant=tenant,
        id="",
        url=whole_url(body.url),
        event_types=patterns(body.event_types),
        created_ms=0,
        transport=transport,
        description=body.description,
        limits=_limits(body, transport),
        ordering=choice(Ordering, body.ordering, "ordering"),
        retry_profile=choice(RetryProfile, body.retry_profile, "retry_profile"),
        signature=_form_of(transport, body.signature),
        headers=custom_headers(body.headers),
        filter=filters.admitted(body.filter) if body.filter is not None else "",
        role=body.role or "",
    )


def _check_fields(transport: Transport, given: Mapping[str, object]) -> None:
    clouds.check_fields(transport, given)
    chats.check_fields(transport, given)


def _form_of(transport: Transport, text: str) -> SignatureForm:
    return SignatureForm.NONE if is_chat(transport) or in_cloud(transport) else _form(text)


def new_key(body: EndpointBody) -> NewKey:
    """Read which kind of key a new endpoint is to have, or the credential given for a chat; or none."""
    transport = choice(Transport, body.transport, "transport")
    if in_cloud(transport):
        return None
    if is_chat(transport):
        return chats.credential(transport, body.secret)
    return choice(SignatureKey, body.signature_key, "signature_key")


def _limits(body: EndpointBody, transport: Transport) -> Limits:
    """Read what an endpoint can take; of a chat, what is not said is what its platform allows."""
    given = Limits(body.rate_per_second, body.burst, body.max_concurrency)
    if not is_chat(transport):
        return given
    usual = PLATFORMS[transport].limits
    names = ("rate_per_second", "burst")
    return replace(
        given, **{name: getattr(usual, name) for name in names if name not in body.model_fields_set}
    )


def _form(text: str) -> SignatureForm:
    return choice(SignatureForm, text, "signature", among=IDENTITY)


def moved_credential(old: Endpoint, body: EndpointPatch) -> Secret | None:
    """Read the credential that a patch of a chat's address brings; None where nothing moves."""
    return chats.moved_credential(old, body.model_dump(exclude_none=True))


def patched(old: Endpoint, body: EndpointPatch) -> Endpoint:
    """Lay a patch over an endpoint, all but its `auth`; a new URL needs that and custom headers again."""
    given = body.model_dump(exclude_none=True)
    _check_fields(old.transport, given)
    if "filter" in body.model_fields_set:
        given["filter"] = body.filter
    if choice(Ordering, given.get("ordering", old.ordering.value), "ordering") is not old.ordering:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            "The ordering of an endpoint cannot be changed: what it is owed already stands in its old lanes.",
            field="ordering",
            expected=f"`{old.ordering.value}` as it is, or a new endpoint created with the other ordering",
        )
    if "url" in given and given["url"] != old.url:
        _check_entrusted_again(old, body)
    changes: dict[str, Callable[[Any], Any]] = {
        "url": lambda text: text if text == old.url else whole_url(text),
        "event_types": patterns,
        "description": str,
        "retry_profile": lambda text: choice(RetryProfile, text, "retry_profile"),
        "signature": _form,
        "headers": custom_headers,
        "role": str,
        "filter": lambda value: filters.admitted(value) if value is not None else "",
    }
    fields = {name: read(given[name]) for name, read in changes.items() if name in given}
    numbers = ("rate_per_second", "burst", "max_concurrency")
    limits = {name: given.get(name, getattr(old.limits, name)) for name in numbers}
    return replace(old, **fields, limits=Limits(**limits))


def _check_entrusted_again(old: Endpoint, body: EndpointPatch) -> None:
    """Raise RelayError if a new URL would take over what was given for the old one alone."""
    if old.headers and body.headers is None:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            "A new URL needs the custom headers again: their values belong to the old one.",
            field="headers",
            expected="`headers` with every value, or an empty object",
        )
    if old.auth and "auth" not in body.model_fields_set:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            "A new URL needs `auth` again: its secrets belong to the old one.",
            field="auth",
            expected="`auth` with every secret, or null",
        )


def replacement(transport: Transport, body: RotateBody) -> Secret | None:
    """Read the credential that replaces a chat's; None for endpoints whose keys are rotated."""
    if in_cloud(transport):
        raise clouds.no_rotation()
    chats.check_fields(transport, body.model_dump(exclude_none=True))
    return chats.credential(transport, body.secret) if is_chat(transport) else None


def rotation(body: RotateBody, default_s: int, version: int | None) -> Rotation:
    """Read what a rotation is to be; without an overlap it is the default's."""
    overlap_s = default_s if body.overlap_s is None else body.overlap_s
    return Rotation(overlap_s, signature_key(body.signature_key), version)


def signature_key(text: str | None) -> SignatureKey | None:
    """Read which kind of key is to be made, if that was said."""
    return None if text is None else choice(SignatureKey, text, "signature_key")


def resumption(body: EnableBody) -> tuple[Backlog, int]:
    """Read what becomes of a backlog, and from which Unix ms it is resumed (0 unless that was chosen)."""
    backlog = choice(Backlog, body.backlog, "backlog")
    if (body.resume_from is not None) is not (backlog is Backlog.RESUME_FROM):
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            '`resume_from` is a time, and goes with `"backlog": "resume_from"` and with no other choice.',
            field="resume_from",
            expected="a time if `backlog` is `resume_from`, else nothing",
        )
    return backlog, moment_ms(body.resume_from, "resume_from") if body.resume_from is not None else 0


def wanted(body: BulkReplayBody, now_ms: int) -> Wanted:
    """Read which deliveries a bulk replay is to take; raises RelayError."""
    since_ms = moment_ms(body.since, "since")
    until_ms = now_ms if body.until is None else moment_ms(body.until, "until")
    _in_order(since_ms, until_ms, "a time before `until`, and before now")
    ended = {each.value: each for each in _ENDED}
    if body.status not in ended:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            "Only what has ended can be replayed.",
            field="status",
            expected="one of: dead, succeeded",
        )
    return Wanted(since_ms, until_ms, ended[body.status], patterns(body.event_types))


def times(since: str | None, until: str | None) -> tuple[int, int]:
    """Read which time a list is asked for, as Unix ms; raises RelayError.

    A `+` that the query's encoding has turned into a space is read as it was meant.
    """
    since_ms = 0 if since is None else moment_ms(since.replace(" ", "+"), "since")
    until_ms = ids.END_MS if until is None else moment_ms(until.replace(" ", "+"), "until")
    _in_order(since_ms, until_ms, "a time before `until`")
    return since_ms, until_ms


def _in_order(since_ms: int, until_ms: int, expected: str) -> None:
    if since_ms >= until_ms:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            "`since` is not before `until`.",
            field="since",
            expected=expected,
        )


def moment_ms(text: str, field: str) -> int:
    """Read a time of RFC 3339 with its offset as Unix ms, not before 1970; raises RelayError.

    In UTC it lies before the year 10000, so that it can be told again.
    """
    try:
        moment = datetime.fromisoformat(text.upper()).astimezone(UTC) if _MOMENT.fullmatch(text) else None
    except (ValueError, OverflowError):
        moment = None
    if moment is None or moment < _EPOCH:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            f"`{field}` is no time, or none that can be.",
            field=field,
            expected="a time since 1970 such as 2026-01-31T09:30:00Z",
        )
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def patterns(texts: list[str]) -> tuple[str, ...]:
    """Check subscription patterns; each counts once."""
    return tuple(dict.fromkeys(events.valid_pattern(text, "event_types") for text in texts))


def whole_url(given: str) -> str:
    """Take a URL as it was given; one that was read with its tokens masked raises RelayError."""
    if MASK in given:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            "The URL has a mask in it, as when it is sent back the way the API shows it.",
            field="url",
            expected="the whole URL, or none: what is masked cannot be read back, and stays as it is",
        )
    return given


def custom_headers(given: Mapping[str, str]) -> tuple[tuple[str, Secret], ...]:
    """Check custom headers; raises RelayError naming the one at fault."""
    names = [name.lower() for name in given]
    for name, value in given.items():
        expected = header_fault(name, value)
        if value == MASK:
            expected = "the value itself; the mask stands for one that cannot be read back"
        if names.count(name.lower()) > 1:
            expected = "each header once"
        if expected is not None:
            shown = name if name.isascii() and name.isprintable() else "with an odd name"
            raise RelayError(
                ErrorCode.FIELD_INVALID,
                f"The custom header {shown[:100]} cannot be sent.",
                field="headers",
                expected=expected,
            )
    return tuple((name, Secret(value)) for name, value in given.items())


Kind = TypeVar("Kind", bound=StrEnum)


def choice(kind: type[Kind], text: str, field: str, among: Collection[Kind] = ()) -> Kind:
    """Read one of a fixed set of words, all of its kind or these, or raise RelayError naming them."""
    words = {each.value: each for each in among or kind}
    if text not in words:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            f"`{field}` is not one of its words.",
            field=field,
            expected="one of: " + ", ".join(words),
        )
    return words[text]


def _first_fault(error: ValidationError, model: type[BaseModel]) -> RelayError:
    faults = error.errors()
    unknown = [str(fault["loc"][-1]) for fault in faults if fault["type"] == "extra_forbidden"]
    if unknown:
        found = next(fault for fault in faults if fault["type"] == "extra_forbidden")
        known = ", ".join(_model_at(model, found["loc"]).model_fields)
        shown = ", ".join(name[:100] for name in unknown[:_SHOWN_MAX])
        return RelayError(
            ErrorCode.FIELD_UNKNOWN,
            f"Unknown field: {shown}.",
            field=unknown[0][:100],
            expected=f"any of: {known}",
        )
    fault = faults[0]
    field = ".".join(str(part) for part in fault["loc"])
    if not field:
        return RelayError(ErrorCode.FIELD_INVALID, "This is not a JSON object.", expected="a JSON object")
    wrong = "is missing" if fault["type"] == "missing" else "is not valid"
    return RelayError(
        ErrorCode.FIELD_INVALID, f"`{field[:100]}` {wrong}.", field=field[:100], expected=_plain(fault)
    )


def _model_at(model: type[BaseModel], loc: Sequence[int | str]) -> type[BaseModel]:
    """Find the model of the object that a member belongs to."""
    for name in loc[:-1]:
        annotation = model.model_fields[str(name)].annotation
        kinds = (annotation, *get_args(annotation))
        model = next(each for each in kinds if isinstance(each, type) and issubclass(each, BaseModel))
    return model


def _plain(fault: Mapping[str, Any]) -> str:
    """Say what pydantic expected in the words of the caller."""
    kind = str(fault["type"])
    return _EXPECTED.get(kind) or _PYDANTIC.sub("", str(fault["msg"]))


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS_MAX:
        raise ValueError("a number has too many digits")
    return int(digits)


def _fraction(digits: str) -> float:
    """Read a number that is not whole if it is kept as it was written."""
    try:
        if len(digits) <= _FRACTION_MAX and Decimal(digits) == Decimal(repr(number := float(digits))):
            return number
    except ArithmeticError:
        pass
    raise ValueError("a number has more digits than can be kept")


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Read an object in which no name stands twice: which of the two is meant cannot be known."""
    value: dict[str, Any] = {}
    for name, member in members:
        if name in value:
            raise RelayError(
                ErrorCode.BODY_NOT_JSON,
                f"The body has `{name[:100]}` more than once.",
                field=name[:100],
                expected="each name once in an object",
            )
        value[name] = member
    return value
