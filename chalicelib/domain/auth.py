"""How Relay proves to an endpoint who it is, beside its signature, and whom it trusts there besides.

What is secret of it is of type `S`: sealed as it is stored, a `Secret` where it is used.
"""

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from chalicelib.domain.certificate import certificates
from chalicelib.domain.secret import MASK, Secret

AUTHORIZATION = "Authorization"
WORD_MAX = 256
CHAIN_MAX, AUTHORITIES_MAX = 8_192, 16_384
"""Characters of PEM: an endpoint's row is read for every batch of requests to it."""
KEY_MAX = 4_096
"""Bytes: what the key service seals at once. An RSA key of 4,096 bits is smaller."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Basic(Generic[S]):
    """A user name, which is shown, and a password (RFC 7617)."""

    username: str
    password: S


class CredentialsIn(StrEnum):
    """Where the request for a token has the client's credentials."""

    HEADER = "header"
    BODY = "body"


@dataclass(frozen=True, slots=True)
class OAuth2(Generic[S]):
    """Where access tokens are had, for whom and for what; `in_body`: the form has the credentials."""

    token_url: str = field(repr=False)
    client_id: str
    client_secret: S
    scope: str = ""
    audience: str = ""
    in_body: bool = False


@dataclass(frozen=True, slots=True)
class ClientCertificate(Generic[S]):
    """A certificate with those that lead from it to its issuer, in PEM, and its private key."""

    chain: str
    key: S


@dataclass(frozen=True, slots=True)
class Tls:
    """What the TLS of one endpoint is made with beside what every endpoint's is; each may be absent.

    Connections made with one are for nothing else.
    """

    certificate: ClientCertificate[Secret] | None = field(default=None, repr=False)
    authorities: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Auth(Generic[S]):
    """Everything an endpoint is authenticated with; None for what it is not.

    `authorities` are certificates in PEM that are trusted there besides.
    """

    basic: Basic[S] | None = None
    certificate: ClientCertificate[S] | None = None
    authorities: str = ""
    oauth2: OAuth2[S] | None = None

    @property
    def by_tls(self) -> bool:
        """Say whether TLS is made with something of it."""
        return self.certificate is not None or bool(self.authorities)

    @property
    def expires_s(self) -> int | None:
        """Say when the first of its certificates expires, in Unix seconds; None: there is none."""
        own = certificates(self.certificate.chain)[:1] if self.certificate else ()
        return min((each.expires_s for each in (*own, *certificates(self.authorities))), default=None)

    @property
    def by_header(self) -> bool:
        """Say whether it sets the header `Authorization`."""
        return self.basic is not None or self.oauth2 is not None

    def turned(self, turn: Callable[[S], T]) -> "Auth[T]":
        """Give it with each of its secrets turned into another form: sealed or opened."""
        basic, certificate, oauth2 = self.basic, self.certificate, self.oauth2
        return Auth(
            Basic(basic.username, turn(basic.password)) if basic else None,
            ClientCertificate(certificate.chain, turn(certificate.key)) if certificate else None,
            self.authorities,
            OAuth2(
                oauth2.token_url,
                oauth2.client_id,
                turn(oauth2.client_secret),
                oauth2.scope,
                oauth2.audience,
                oauth2.in_body,
            )
            if oauth2
            else None,
        )


def basic_value(basic: Basic[Secret]) -> Secret:
    """Write the header's value of a user name and a password, in UTF-8."""
    pair = f"{basic.username}:{basic.password.reveal()}".encode()
    return Secret("Basic " + base64.b64encode(pair).decode())


def tls_of(auth: Auth[Secret] | None) -> Tls | None:
    """Give what of it TLS is made with; None: TLS is as everywhere."""
    return Tls(auth.certificate, auth.authorities) if auth and auth.by_tls else None


def username_fault(text: str) -> str | None:
    """Say why a text cannot be a user name, or None when it can."""
    if not text or len(text) > WORD_MAX or ":" in text or _CONTROL.search(text):
        return f"1 to {WORD_MAX} characters without colons and control characters"
    return None


def word_fault(text: str) -> str | None:
    """Say why a text cannot be a client's name, a scope or an audience, or None when it can."""
    return "no control characters" if _CONTROL.search(text) else None


def secret_fault(text: str) -> str | None:
    """Say why a text cannot be a password or a client's secret, or None when it can."""
    if text == MASK:
        return "the value itself; the mask stands for one that cannot be read back"
    if not text or len(text) > WORD_MAX or _CONTROL.search(text):
        return f"1 to {WORD_MAX} characters without control characters"
    return None
