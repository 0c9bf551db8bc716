"""What endpoints are authenticated with, as a value in their rows; secrets as they were wrapped."""

from typing import Any

from chalicelib.domain.auth import Auth, Basic, ClientCertificate
from chalicelib.domain.endpoint import WrappedSecret


def auth_value(auth: Auth[WrappedSecret]) -> dict[str, Any]:
    """Write what an endpoint is authenticated with; what it is not is left out."""
    value: dict[str, Any] = {}
    if auth.basic:
        value["basic"] = [auth.basic.username, auth.basic.password.ciphertext]
    if auth.certificate:
        value["certificate"] = [auth.certificate.chain, auth.certificate.key.ciphertext]
    if auth.authorities:
        value["authorities"] = auth.authorities
    return value


def auth_of(value: dict[str, Any] | None) -> Auth[WrappedSecret] | None:
    """Read what an endpoint is authenticated with."""
    if value is None:
        return None
    return Auth(
        _basic(*value["basic"]) if "basic" in value else None,
        _certificate(*value["certificate"]) if "certificate" in value else None,
        value.get("authorities", ""),
    )


def _basic(username: str, sealed: bytes) -> Basic[WrappedSecret]:
    return Basic(username, WrappedSecret(sealed))


def _certificate(chain: str, sealed: bytes) -> ClientCertificate[WrappedSecret]:
    return ClientCertificate(chain, WrappedSecret(sealed))
