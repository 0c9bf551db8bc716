"""What goes over the wire: the request of one attempt, from values alone.

The contract is DESIGN §6; a test freezes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from chalicelib.domain import signing
from chalicelib.domain.auth import AUTHORIZATION, Auth, basic_value
from chalicelib.domain.delivery import Owed
from chalicelib.domain.display import displayed_url, masked, url_tokens
from chalicelib.domain.endpoint import Endpoint, Transport
from chalicelib.domain.event import Event
from chalicelib.domain.outcome import Reply
from chalicelib.domain.secret import Secret
from chalicelib.domain.sent import Sent
from chalicelib.domain.signing import Ed25519Key, Signer, SigningKey
from chalicelib.domain.tunnel import name_of

VERSION = "1.0.0"
METHOD = "POST"


@dataclass(frozen=True, slots=True)
class Errand:
    """A request that is a call of AWS's API: by which role, for whom, its parameters, and their bytes."""

    transport: Transport
    role: str
    external_id: str
    parameters: Mapping[str, Any] = field(repr=False)
    size: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it will be sent: URL, headers in order, the body's exact bytes, and the method.

    `custom` are the headers of its endpoint's owner, sent after Relay's own; `signed_with` the secrets;
    `signer` what signs it once more for a redirect; `address` stands for a URL that is built around a
    secret; `auth` is what its endpoint is authenticated with.
    With an `errand` it is no HTTP request of Relay's own; `tunnel` names the one it goes through.
    """

    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)
    custom: tuple[tuple[str, Secret], ...] = ()
    signed_with: tuple[Secret, ...] = ()
    method: str = METHOD
    signer: Signer | None = field(default=None, repr=False)
    address: str = ""
    auth: Auth[Secret] | None = field(default=None, repr=False)
    errand: Errand | None = None
    tunnel: str = ""

    @property
    def all_headers(self) -> tuple[tuple[str, str], ...]:
        """Give every header as it is written on the wire, those of its owner with their values."""
        return (*self.headers, *((name, value.reveal()) for name, value in self.custom))

    @property
    def confidential(self) -> tuple[Secret, ...]:
        """Give what its answer must not be seen to echo: secrets, signatures, custom values, URL tokens."""
        signatures = [Secret(value) for name, value in self.headers if name.lower().endswith("-signature")]
        values = (value for _, value in self.custom)
        passwords = [self.auth.basic.password] if self.auth and self.auth.basic else []
        return (*self.signed_with, *signatures, *values, *passwords, *url_tokens(self.address or self.url))


def build(endpoint: Endpoint, event: Event, owed: Owed, keys: Sequence[SigningKey], now_s: int) -> Request:
    """Build and sign the request of a delivery's next attempt; `keys` newest first, now in Unix s."""
    signer = Signer(endpoint.signature, tuple(keys), owed.delivery_id)
    named = headers(signer.headers(now_s, event.body), event, owed, f"Relay/{VERSION}")
    secrets = tuple(each.secret if isinstance(each, Ed25519Key) else each for each in keys)
    through = name_of(endpoint.tenant, endpoint.id) if endpoint.transport is Transport.TUNNEL else ""
    return Request(
        endpoint.url,
        tuple(named.items()),
        event.body,
        endpoint.headers,
        secrets,
        signer=signer,
        tunnel=through,
    )


def authorized(request: Request, auth: Auth[Secret] | None) -> Request:
    """Give a request as it is sent to an endpoint that is authenticated with this."""
    if auth is None:
        return request
    own = ((AUTHORIZATION, basic_value(auth.basic)),) if auth.basic else ()
    return replace(request, custom=(*request.custom, *own), auth=auth)


def signed_anew(request: Request, now_s: int) -> Request:
    """Give a request with the timestamp and signatures of now, in Unix s; one that has none, as it is."""
    if request.signer is None:
        return request
    fresh = request.signer.headers(now_s, request.body)
    return replace(request, headers=tuple((name, fresh.get(name, old)) for name, old in request.headers))


def kept(endpoint: Endpoint, request: Request) -> Sent:
    """Say what history keeps of a request to an endpoint."""
    of = dict(request.headers)
    if request.address:
        return Sent(request.address, endpoint.signature, 0, "", of["User-Agent"])
    _, timestamp, signature = (of[name] for name in signing.IDENTITY[endpoint.signature])
    with_token = (AUTHORIZATION,) if request.auth and request.auth.oauth2 else ()
    custom = (*(name for name, _ in request.custom), *with_token)
    url = displayed_url(request.url)
    return Sent(url, endpoint.signature, int(timestamp), signature, of["User-Agent"], custom)


def again(sent: Sent, event: Event, owed: Owed, mask: str) -> tuple[tuple[str, str], ...]:
    """Give the headers of a request of the past, from what was kept of it; `owed` as it was then.

    The values of custom headers are masked.
    """
    identity = signing.identity_headers(sent.form, owed.delivery_id, sent.timestamp, sent.signature)
    named = headers(identity, event, owed, sent.agent)
    return (*named.items(), *((name, mask) for name in sent.custom))


def headers(identity: Mapping[str, str], event: Event, owed: Owed, agent: str) -> dict[str, str]:
    """Write the headers of a delivery's next attempt, those that say whose it is first."""
    return {
        **identity,
        "Relay-Event-Id": event.id,
        "Relay-Event-Type": event.type,
        "Relay-Event-Time": event_time(event.received_ms),
        **({"Relay-Event-Sequence": str(owed.sequence)} if owed.sequence else {}),
        "Relay-Attempt": str(owed.next_number),
        "Relay-Generation": str(owed.generation),
        "Content-Type": event.content_type,
        "Content-Length": str(len(event.body)),
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        "User-Agent": agent,
    }


def without_echo(reply: Reply, request: Request) -> Reply:
    """Give a reply as it may be kept: what it echoes of its request's secrets is masked."""
    if not reply.body and not reply.detail:
        return reply
    confidential = request.confidential
    detail = masked(reply.detail.encode(), confidential).decode()
    return replace(reply, body=masked(reply.body, confidential, cut=reply.truncated), detail=detail)


def event_time(received_ms: int) -> str:
    """Write a moment as Relay-Event-Time has it: RFC 3339 in UTC with milliseconds and Z."""
    moment = datetime.fromtimestamp(received_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
