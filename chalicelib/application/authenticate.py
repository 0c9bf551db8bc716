"""Who is asking: API keys, their roles, and the development tenant."""

import hashlib
import hmac
from dataclasses import dataclass
from enum import StrEnum

from chalicelib.application.ports import ApiKey, Keys
from chalicelib.domain.errors import ErrorCode, RelayError

DEFAULT_TENANT = "default"
DEVELOPMENT_KEY = "relay_default.development.local-development-only"
KEY_PREFIX = "relay_"
_KEY_PARTS = 3
_KEY_MAX = 512


class Role(StrEnum):
    """What a key may do."""

    PRODUCER = "producer"
    VIEWER = "viewer"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking: a tenant, in a role, by a key (none where none is needed)."""

    tenant: str
    role: Role
    key_id: str = ""

    def must_be(self, *roles: Role) -> None:
        """Raise RelayError unless the caller has one of these roles; an admin may do all."""
        if self.role is not Role.ADMIN and self.role not in roles:
            raise RelayError(
                ErrorCode.FORBIDDEN,
                f"This key's role is `{self.role}`, which may not do this.",
                expected="a key with the role " + " or ".join(sorted({*roles, Role.ADMIN})),
            )


@dataclass(frozen=True, slots=True)
class Authenticate:
    """Turns an Authorization header into a caller.

    With `keyless`, a request without one is the default tenant's.
    """

    keys: Keys
    keyless: bool

    def caller(self, authorization: str | None) -> Caller:
        """Say who is asking, or raise RelayError."""
        if authorization is None and self.keyless:
            return Caller(DEFAULT_TENANT, Role.ADMIN)
        scheme, _, text = (authorization or "").partition(" ")
        parts = text.strip().removeprefix(KEY_PREFIX).split(".")
        if (
            scheme.lower() != "bearer"
            or len(parts) != _KEY_PARTS
            or len(text) > _KEY_MAX
            or not text.isascii()
        ):
            raise _unknown()
        tenant, key_id, _ = parts
        stored = self.keys.find(tenant, key_id) if tenant and key_id else None
        given = digest(text.strip())
        if not hmac.compare_digest(given, stored.digest if stored else "") or stored is None:
            raise _unknown()
        return Caller(stored.tenant, Role(stored.role), stored.id)


def digest(key: str) -> str:
    """Hash an API key as it is stored; keys are random, so a plain hash keeps them."""
    return hashlib.sha256(key.encode()).hexdigest()


def development_key() -> ApiKey:
    """Give the stored form of the fixed key of the local default tenant."""
    tenant, key_id, _ = DEVELOPMENT_KEY.removeprefix(KEY_PREFIX).split(".")
    return ApiKey(tenant, key_id, digest(DEVELOPMENT_KEY), Role.ADMIN.value)


def _unknown() -> RelayError:
    return RelayError(
        ErrorCode.UNAUTHENTICATED,
        "The API key is missing or not valid.",
        field="Authorization",
        expected="Authorization: Bearer relay_…",
    )
