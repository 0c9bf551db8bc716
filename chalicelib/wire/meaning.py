"""What a parsed body means: shapes to values of the domain; raises RelayError where a field cannot be."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from chalicelib.application.endpoints import NewKey
from chalicelib.application.rotate import Rotation
from chalicelib.domain import event as events
from chalicelib.domain import pattern as filters
from chalicelib.domain.backoff import RetryProfile
from chalicelib.domain.bulk_replay import Wanted
from chalicelib.domain.chat.platform import PLATFORMS, is_chat
from chalicelib.domain.cloud.address import in_cloud
from chalicelib.domain.endpoint import Backlog, Endpoint, Limits, Ordering, Transport, header_fault
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.secret import MASK, Secret
from chalicelib.domain.signing import IDENTITY, SignatureForm, SignatureKey
from chalicelib.wire import chats, clouds, tunnels
from chalicelib.wire.bodies import ENDED, BulkReplayBody, EnableBody, EndpointBody, EndpointPatch, RotateBody
from chalicelib.wire.parsing import choice, in_order, moment_ms


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
    tunnels.check_fields(transport, given)


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
    in_order(since_ms, until_ms, "a time before `until`, and before now")
    ended = {each.value: each for each in ENDED}
    if body.status not in ended:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            "Only what has ended can be replayed.",
            field="status",
            expected="one of: dead, succeeded",
        )
    return Wanted(since_ms, until_ms, ended[body.status], patterns(body.event_types))


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
