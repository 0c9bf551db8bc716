"""What endpoints are authenticated with, as a value in their rows; secrets as they were wrapped."""

from typing import Any

from chalicelib.domain.auth import Auth, Basic, ClientCertificate, OAuth2
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
    if auth.oauth2:
        of = auth.oauth2
        sealed = of.client_secret.ciphertext
        value["oauth2"] = [of.token_url, of.client_id, sealed, of.scope, of.audience, int(of.in_body)]
    return value


def auth_of(value: dict[str, Any] | None) -> Auth[WrappedSecret] | None:
    """Read what an endpoint is authenticated with."""
    if value is None:
        return None
    return Auth(
        _basic(*value["basic"]) if "basic" in value else None,
        _certificate(*value["certificate"]) if "certificate" in value else None,
        value.get("authorities", ""),
        _oauth2(*value["oauth2"]) if "oauth2" in value else None,
    )


def _basic(username: str, sealed: bytes) -> Basic[WrappedSecret]:
    return Basic(username, WrappedSecret(sealed))


def _certificate(chain: str, sealed: bytes) -> ClientCertificate[WrappedSecret]:
    return ClientCertificate(chain, WrappedSecret(sealed))


def _oauth2(token_url: str, client_id: str, sealed: bytes, *rest: Any) -> OAuth2[WrappedSecret]:  # noqa: ANN401 - as it was written
    scope, audience, in_body = rest
    return OAuth2(token_url, client_id, WrappedSecret(sealed), scope, audience, bool(in_body))
