"""Endpoints as the API shows them: what their owner set, and what waits for them."""

from collections.abc import Sequence
from typing import Any, NotRequired

from typing_extensions import TypedDict

from chalicelib.application.measure_backlog import Measured
from chalicelib.application.rotate import Rotated
from chalicelib.application.signing_keys import MadeKey
from chalicelib.domain import pattern
from chalicelib.domain.backoff import RetryProfile
from chalicelib.domain.cloud.address import external_id, in_cloud
from chalicelib.domain.display import displayed_url
from chalicelib.domain.endpoint import Endpoint, EndpointState, Ordering, Transport
from chalicelib.domain.request import event_time
from chalicelib.domain.secret import MASK, Secret
from chalicelib.domain.signing import SignatureForm, SignatureKey
from chalicelib.domain.tunnel import Ticket
from chalicelib.wire.answers.auths import AuthAnswer, auth
from chalicelib.wire.answers.plain import Time, time_or_none

HEAD_OF_LINE = (
    "This endpoint is ordered: a delivery that fails holds up every delivery behind it until it has succeeded"
    " or is dead, which can take days. `retry_profile` says how long it is retried."
)

SAME_PLACE = (
    "Endpoints with the same URL, but perhaps for a `/` or `?` at its end, are there already: {others}."
    " Events of types that several of them take come to that place several times."
)
_NAMED_MAX = 5


class EndpointAnswer(TypedDict):
    """An endpoint; its ETag is what a change must name. `role` and `external_id` are of what is in AWS."""

    id: str
    url: str
    transport: Transport
    event_types: list[str]
    description: str
    rate_per_second: int
    burst: int
    max_concurrency: int
    ordering: Ordering
    retry_profile: RetryProfile
    signature: SignatureForm
    signature_key: SignatureKey | None
    previous_secret_expires_at: Time | None
    headers: dict[str, str]
    auth: AuthAnswer | None
    filter: dict[str, Any] | None
    role: str | None
    external_id: str | None
    state: EndpointState
    state_reason: str | None
    created_at: Time
    version: int


class Warned(TypedDict):
    """What an owner should know of what was just made, if there is anything."""

    warnings: NotRequired[list[str]]


class NewKeyAnswer(TypedDict):
    """A new key: its secret, this once, or of a key pair the public key."""

    secret: str | None
    public_key: str | None


class CreatedEndpointAnswer(EndpointAnswer, NewKeyAnswer, Warned):
    """A new endpoint with its secret, this once; of a key pair only the public key, of others neither."""


class RotatedAnswer(TypedDict):
    """A new signing key, its secret this once, and until when the one before signs on; of a chat neither."""

    id: str
    secret: str | None
    public_key: str | None
    previous_secret_expires_at: Time | None


class PublicKeyAnswer(TypedDict):
    """A public key that verifies what is sent now, and until when it does (null: until it is rotated)."""

    public_key: str
    expires_at: Time | None


class PublicKeysAnswer(TypedDict):
    """Every public key that verifies what is sent now, newest first."""

    endpoint_id: str
    keys: list[PublicKeyAnswer]


class TunnelTokenAnswer(TypedDict):
    """What opens a listener's connection: where to, the token to bring, until when it opens one."""

    endpoint_id: str
    url: str
    token: str
    expires_at: Time


class BacklogAnswer(TypedDict):
    """How much waits for an endpoint; when not all was counted, `size` is the least there is."""

    endpoint_id: str
    size: int
    size_is_exact: bool
    oldest_at: Time | None
    estimated_drain_s: int


def endpoint(of: Endpoint) -> EndpointAnswer:
    """Show an endpoint; secrets never, its URL in its display form, custom header values masked."""
    return {
        "id": of.id,
        "url": displayed_url(of.url),
        "transport": of.transport,
        "event_types": list(of.event_types),
        "description": of.description,
        "rate_per_second": of.limits.rate_per_second,
        "burst": of.limits.burst,
        "max_concurrency": of.limits.max_concurrency,
        "ordering": of.ordering,
        "retry_profile": of.retry_profile,
        "signature": of.signature,
        "signature_key": of.signature_key if of.signed else None,
        "previous_secret_expires_at": time_or_none((of.previous_expires_at or 0) * 1000),
        "headers": {name: MASK for name, _ in of.headers},
        "auth": auth(of.auth),
        "filter": pattern.written(of.filter),
        "role": of.role or None,
        "external_id": external_id(of.tenant) if in_cloud(of.transport) else None,
        "state": of.state,
        "state_reason": of.state_reason or None,
        "created_at": event_time(of.created_ms),
        "version": of.version,
    }


def created_endpoint(of: Endpoint, key: MadeKey | None, beside: Sequence[str] = ()) -> CreatedEndpointAnswer:
    """Show a new endpoint with its secret, this once, and what its owner should know of it.

    `beside` names endpoints that lead to the same place.
    """
    warnings = [HEAD_OF_LINE] if of.ordered else []
    if beside:
        warnings.append(SAME_PLACE.format(others=", ".join(beside[:_NAMED_MAX])))
    warned: Warned = {"warnings": warnings} if warnings else {}
    return {**endpoint(of), **_secret(key), **warned}


def _secret(key: MadeKey | None) -> NewKeyAnswer:
    """Show a new key once; what is in AWS has none."""
    if key is None:
        return {"secret": None, "public_key": None}
    return {"secret": _shown(key), "public_key": key.wrapped.public_key or None}


def rotated(of: Rotated) -> RotatedAnswer:
    """Show a new signing key, its secret this once."""
    return {
        "id": of.endpoint.id,
        "secret": _shown(of.key),
        "public_key": of.key.wrapped.public_key or None,
        "previous_secret_expires_at": time_or_none((of.endpoint.previous_expires_at or 0) * 1000),
    }


def public_keys(of: Endpoint, now_s: int) -> PublicKeysAnswer:
    """Show the public keys that verify what an endpoint is sent at a moment (Unix seconds)."""
    pairs = [each for each in of.live_secrets(now_s) if each.public_key]
    keys: list[PublicKeyAnswer] = [
        {"public_key": each.public_key, "expires_at": time_or_none((each.expires_at or 0) * 1000)}
        for each in pairs
    ]
    return {"endpoint_id": of.id, "keys": keys}


def tunnel_token(ticket: Ticket, text: Secret, node_url: str) -> TunnelTokenAnswer:
    """Show a listener's ticket, this once."""
    scheme, _, where = node_url.partition("://")
    return {
        "endpoint_id": ticket.endpoint_id,
        "url": f"{'wss' if scheme == 'https' else 'ws'}://{where}/tunnel",
        "token": text.reveal(),
        "expires_at": event_time(ticket.until_ms),
    }


def _shown(key: MadeKey) -> str | None:
    return key.secret.reveal() if key.secret else None


def backlog(endpoint_id: str, of: Measured) -> BacklogAnswer:
    """Show how much waits for an endpoint; when not all was counted, `size` is the least there is."""
    return {
        "endpoint_id": endpoint_id,
        "size": of.size,
        "size_is_exact": of.complete,
        "oldest_at": time_or_none(of.oldest_ms),
        "estimated_drain_s": of.drain_s,
    }
