"""What endpoints are authenticated with, as a value in their rows; secrets as they were wrapped."""

from typing import Any

from chalicelib.domain.auth import Auth, Basic
from chalicelib.domain.endpoint import WrappedSecret


def auth_value(auth: Auth[WrappedSecret]) -> dict[str, Any]:
    """Write what an endpoint is authenticated with."""
    value: dict[str, Any] = {}
    if auth.basic:
        value["basic"] = [auth.basic.username, auth.basic.password.ciphertext]
    return value


def auth_of(value: dict[str, Any] | None) -> Auth[WrappedSecret] | None:
    """Read what an endpoint is authenticated with."""
    if value is None:
        return None
    return Auth(_basic(*value["basic"]) if "basic" in value else None)


def _basic(username: str, sealed: bytes) -> Basic[WrappedSecret]:
    return Basic(username, WrappedSecret(sealed))
