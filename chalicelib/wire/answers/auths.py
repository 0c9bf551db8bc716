"""What an endpoint is authenticated with, as the API shows it: never a secret."""

from typing import Any

from typing_extensions import TypedDict

from chalicelib.domain.auth import Auth
from chalicelib.domain.certificate import Certificate, certificates
from chalicelib.domain.request import event_time
from chalicelib.domain.secret import MASK
from chalicelib.wire.answers.plain import Time


class BasicAnswer(TypedDict):
    """A user name and a password, which is masked."""

    username: str
    password: str


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
    client_certificate: ClientCertificateAnswer | None
    trusted_authorities: list[CertificateAnswer]


def auth(of: Auth[Any] | None) -> AuthAnswer | None:
    """Show what an endpoint is authenticated with."""
    if of is None:
        return None
    return {
        "basic": {"username": of.basic.username, "password": MASK} if of.basic else None,
        "client_certificate": _client(of.certificate.chain) if of.certificate else None,
        "trusted_authorities": [_told(each) for each in certificates(of.authorities)],
    }


def _client(chain: str) -> ClientCertificateAnswer:
    first, *_ = certificates(chain)
    return {**_told(first), "key": MASK}


def _told(of: Certificate) -> CertificateAnswer:
    return {"fingerprint": of.fingerprint, "expires_at": event_time(of.expires_s * 1000)}
