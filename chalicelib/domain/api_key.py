"""API keys: how one is written, what its role may do, and how it is kept, which is never as itself."""

import hashlib
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field, replace
from enum import StrEnum

from chalicelib.domain.secret import Secret
from chalicelib.domain.tenant import DEFAULT_TENANT

KEY_BYTES = 32
NAME_MAX = 100
USE_NOTED_EVERY_MS = 5 * 60_000
PREFIX = "relay_"
OPERATOR = "operator"
DEVELOPMENT_ID = "development"
DEVELOPMENT_KEY = f"{PREFIX}{DEFAULT_TENANT}.{DEVELOPMENT_ID}.local-development-only"
DEVELOPMENT_OPERATOR_KEY = f"{PREFIX}{OPERATOR}.local-development-only"
_PARTS, _OPERATOR_PARTS = 3, 2
_TEXT_MAX = 512


class Role(StrEnum):
    """What a key may do; the operator's is no tenant's, and no tenant's key has its role."""

    PRODUCER = "producer"
    VIEWER = "viewer"
    ADMIN = "admin"
    OPERATOR = "operator"


GIVEN = (Role.PRODUCER, Role.VIEWER, Role.ADMIN)
"""The roles that a tenant's keys can have."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key as stored: its hash, whose it is and what it may do.

    Times are Unix epoch milliseconds; one that does not expire has 0, as has one that was never used.
    """

    tenant: str
    id: str
    digest: str = field(repr=False)
    role: Role
    name: str = ""
    created_ms: int = 0
    expires_ms: int = 0
    used_ms: int = 0

    @property
    def lasting(self) -> bool:
        """Say whether it is an admin's that does not expire: a tenant always keeps one of these."""
        return self.role is Role.ADMIN and not self.expires_ms

    def expired(self, now_ms: int) -> bool:
        """Say whether it has expired by then."""
        return 0 < self.expires_ms <= now_ms

    def use_is_due(self, now_ms: int) -> bool:
        """Say whether its last use was noted so long ago that this one is to be noted too."""
        return now_ms - self.used_ms >= USE_NOTED_EVERY_MS

    def used(self, now_ms: int) -> "ApiKey":
        """Give it as it is once a use is noted."""
        return replace(self, used_ms=now_ms)


def key_text(tenant: str, key_id: str, random: bytes) -> Secret:
    """Write a new key: whose it is, which it is, and what nobody can guess."""
    hidden = urlsafe_b64encode(random).rstrip(b"=").decode()
    return Secret(f"{PREFIX}{tenant}.{key_id}.{hidden}")


def names_in(text: str) -> tuple[str, str] | None:
    """Read tenant and id out of a key; of the operator's the tenant is empty. None when it is no key."""
    if not text.isascii() or not text.isprintable() or len(text) > _TEXT_MAX:
        return None
    parts = text.removeprefix(PREFIX).split(".")
    if len(parts) == _OPERATOR_PARTS and parts[0] == OPERATOR:
        return "", OPERATOR
    return (parts[0], parts[1]) if len(parts) == _PARTS and all(parts) else None


def digest(key: str) -> str:
    """Hash an API key as it is stored; keys are random, so a plain hash keeps them."""
    return hashlib.sha256(key.encode()).hexdigest()


def development_key() -> ApiKey:
    """Give the stored form of the fixed key of the local default tenant."""
    return ApiKey(DEFAULT_TENANT, DEVELOPMENT_ID, digest(DEVELOPMENT_KEY), Role.ADMIN)
