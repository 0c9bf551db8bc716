"""Who is asking: API keys, their roles, the operator, and the development tenant."""

import hmac
from contextlib import suppress
from dataclasses import dataclass, replace

from chalicelib.application.ports import Clock, Credential, Keys, Unavailable
from chalicelib.application.remembered import Remembered
from chalicelib.domain import api_key
from chalicelib.domain.api_key import DEVELOPMENT_ID, Role
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.secret import Secret
from chalicelib.domain.tenant import DEFAULT_TENANT, NOBODY, Tenant, development_tenant


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking: a tenant, in a role, by a key. `account` is the tenant as it was a moment ago.

    The operator's has no tenant. Where no key is needed, the caller without one has the development key's id.
    """

    tenant: str
    role: Role
    key_id: str = ""
    account: Tenant = NOBODY

    @property
    def is_operator(self) -> bool:
        """Say whether it is the installation's operator."""
        return self.role is Role.OPERATOR

    @property
    def is_anyone(self) -> bool:
        """Say whether it came without a key, or with the development key: only emulators know either."""
        return self.key_id == DEVELOPMENT_ID

    def must_be(self, *roles: Role) -> None:
        """Raise RelayError unless the caller has one of these roles."""
        if self.role not in roles:
            named = " or ".join(sorted(roles))
            raise RelayError(
                ErrorCode.FORBIDDEN,
                f"This key's role is `{self.role}`, which may not do this.",
                expected=f"a key with the role {named}",
            )


KnownKeys = Remembered[tuple[str, str], Credential]
"""Keys by (tenant, id) with their tenants: one revoked elsewhere is good here until it is forgotten."""


@dataclass(frozen=True, slots=True)
class Authenticate:
    """Turns an Authorization header into a caller.

    With `keyless`, a request without one is the default tenant's. The operator's key is known by its hash
    alone; without that there is no operator.
    """

    keys: Keys
    known: KnownKeys
    clock: Clock
    keyless: bool = False
    operator_digest: str = ""

    def caller(self, authorization: Secret | None) -> Caller:
        """Say who is asking, or raise RelayError."""
        if authorization is None and self.keyless:
            return self._anyone()
        scheme, _, given = (authorization.reveal() if authorization else "").partition(" ")
        text = given.strip()
        names = api_key.names_in(text) if scheme.lower() == "bearer" else None
        if names is None:
            raise unknown_key()
        return self._operator(text) if names == ("", api_key.OPERATOR) else self._holder(names, text)

    def _read(self, names: tuple[str, str]) -> Credential | None:
        return self.keys.credential(*names)

    def _anyone(self) -> Caller:
        names = DEFAULT_TENANT, DEVELOPMENT_ID
        found = self.known.get(names, self.clock.now_ms(), self._read)
        account = found.tenant if found else None
        return Caller(DEFAULT_TENANT, Role.ADMIN, DEVELOPMENT_ID, account or development_tenant())

    def _operator(self, text: str) -> Caller:
        if not self.operator_digest or not _same(api_key.digest(text), self.operator_digest):
            raise unknown_key()
        return Caller("", Role.OPERATOR, api_key.OPERATOR)

    def _holder(self, names: tuple[str, str], text: str) -> Caller:
        now_ms = self.clock.now_ms()
        found = self.known.get(names, now_ms, self._read)
        if not _same(api_key.digest(text), found.key.digest if found else "") or found is None:
            raise unknown_key()
        account = found.tenant or (Tenant(found.key.tenant) if self.keyless else None)
        if account is None or found.key.expired(now_ms):
            raise unknown_key()
        self._note_use(found, now_ms)
        return Caller(found.key.tenant, found.key.role, found.key.id, account)

    def _note_use(self, found: Credential, now_ms: int) -> None:
        """Write down that a key is used, every few minutes; a request does not fail by that."""
        if found.key.use_is_due(now_ms):
            used = found.key.used(now_ms)
            self.known.change((used.tenant, used.id), replace(found, key=used))
            with suppress(Unavailable):
                self.keys.note_use(found.key, now_ms)


def _same(digest: str, stored: str) -> bool:
    return hmac.compare_digest(digest, stored)


def unknown_key() -> RelayError:
    """Make the answer to what is no key, or none that is good."""
    return RelayError(
        ErrorCode.UNAUTHENTICATED,
        "The API key is missing or not valid.",
        field="Authorization",
        expected="Authorization: Bearer relay_…",
    )
