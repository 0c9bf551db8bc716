"""What an endpoint is authenticated with, as the API shows it: never a secret."""

from typing import Any

from typing_extensions import TypedDict

from chalicelib.domain.auth import Auth, CredentialsIn, OAuth2
from chalicelib.domain.certificate import Certificate, certificates
from chalicelib.domain.display import displayed_url
from chalicelib.domain.request import event_time
from chalicelib.domain.secret import MASK
from chalicelib.wire.answers.plain import Time


class BasicAnswer(TypedDict):
    """A user name and a password, which is masked."""

    username: str
    password: str


class OAuth2Answer(TypedDict):
    """Where access tokens are had, and for whom; the secret is masked, the URL in its display form."""

    token_url: str
    client_id: str
    client_secret: str
    scope: str
    audience: str
    credentials_in: CredentialsIn


class CertificateAnswer(TypedDict):
    """A certificate: the SHA-256 of it in hex, and until when it is good."""

    fingerprint: str
    expires_at: Time


class ClientCertificateAnswer(CertificateAnswer):
    """A client certificate and its private key, which is masked."""

    key: str


class AuthAnswer(TypedDict):
    """What an endpoint is authenticated with, secrets masked."""

    basic: BasicAnswer | None
    oauth2: OAuth2Answer | None
    client_certificate: ClientCertificateAnswer | None
    trusted_authorities: list[CertificateAnswer]


def auth(of: Auth[Any] | None) -> AuthAnswer | None:
    """Show what an endpoint is authenticated with."""
    if of is None:
        return None
    return {
        "basic": {"username": of.basic.username, "password": MASK} if of.basic else None,
        "oauth2": _oauth2(of.oauth2) if of.oauth2 else None,
        "client_certificate": _client(of.certificate.chain) if of.certificate else None,
        "trusted_authorities": [_told(each) for each in certificates(of.authorities)],
    }


def _oauth2(of: OAuth2[Any]) -> OAuth2Answer:
    return {
        "token_url": displayed_url(of.token_url),
        "client_id": of.client_id,
        "client_secret": MASK,
        "scope": of.scope,
        "audience": of.audience,
        "credentials_in": CredentialsIn.BODY if of.in_body else CredentialsIn.HEADER,
    }


def _client(chain: str) -> ClientCertificateAnswer:
    first, *_ = certificates(chain)
    return {**_told(first), "key": MASK}


def _told(of: Certificate) -> CertificateAnswer:
    return {"fingerprint": of.fingerprint, "expires_at": event_time(of.expires_s * 1000)}
