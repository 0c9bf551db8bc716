"""What says who may ask for what: tenants, their keys and their second factors."""

from dataclasses import dataclass
from typing import Protocol

from chalicelib.application.ports.keeping import Page
from chalicelib.domain.api_key import ApiKey
from chalicelib.domain.audit import Record
from chalicelib.domain.endpoint import WrappedSecret
from chalicelib.domain.secret import Secret
from chalicelib.domain.step_up import UNTRIED, Tries
from chalicelib.domain.tenant import Tenant


@dataclass(frozen=True, slots=True)
class Credential:
    """A key, and its tenant if that is there."""

    key: ApiKey
    tenant: Tenant | None


@dataclass(frozen=True, slots=True)
class Factor:
    """A tenant's second factor as stored, and how a key's holder has tried it.

    `totp` and `signing` are sealed; `used_step` is the newest time step of which a code was taken.
    """

    totp: WrappedSecret
    signing: WrappedSecret
    used_step: int = 0
    tries: Tries = UNTRIED


class Keys(Protocol):
    """Keeps API keys, hashed."""

    def credential(self, tenant: str, key_id: str) -> Credential | None:
        """Read a key and its tenant strongly consistent, in one call."""
        ...

    def put(self, key: ApiKey) -> None:
        """Write a key that nobody made by the API; a second time changes nothing."""
        ...

    def create(self, key: ApiKey, record: Record) -> None:
        """Write a new key."""
        ...

    def get(self, tenant: str, key_id: str) -> ApiKey | None:
        """Read a key strongly consistent."""
        ...

    def page(self, tenant: str, after: str, limit: int) -> Page[ApiKey]:
        """List a tenant's keys, newest first."""
        ...

    def revoke(self, key: ApiKey, record: Record) -> bool:
        """Remove a key; False when it is the tenant's last lasting one. Once it is gone nothing is done."""
        ...

    def note_use(self, key: ApiKey, now_ms: int) -> None:
        """Write down that a key was used, unless it is gone or its use was noted lately."""
        ...


class Tenants(Protocol):
    """Keeps tenants."""

    def create(self, tenant: Tenant, factor: Factor, key: ApiKey, record: Record | None) -> bool:
        """Write a new tenant with its second factor and its first key; False when there is one already.

        What nobody asked for, on one's own machine, has no record.
        """
        ...

    def get(self, tenant: str) -> Tenant | None:
        """Read a tenant strongly consistent."""
        ...

    def replace(self, old: Tenant, new: Tenant, record: Record) -> bool:
        """Write a changed tenant if nobody changed it since it was read; False when somebody did."""
        ...

    def recover(self, factor: Factor, key: ApiKey, record: Record) -> None:
        """Write a new second factor over a tenant's, and a new key beside its others."""
        ...

    def page(self, after: str, limit: int) -> Page[Tenant]:
        """List all tenants, newest first."""
        ...


class SecondFactors(Protocol):
    """Keeps second factors, and counts what is tried against them."""

    def get(self, tenant: str, key_id: str) -> Factor | None:
        """Read a tenant's second factor and a key's tries strongly consistent."""
        ...

    def count_try(self, tenant: str, key_id: str, old: Tries, new: Tries) -> bool:
        """Count a try; False when another one came in between."""
        ...

    def accept(self, tenant: str, key_id: str, step: int, record: Record) -> bool:
        """Take a code's time step, which ends the counting; False when it, or a newer one, was taken."""
        ...


class Codes(Protocol):
    """Knows time-based one-time codes (RFC 6238, six digits, 30 s)."""

    def step_of(self, code: str, secret: Secret, now_s: int) -> int | None:
        """Give the time step that a code is of, at most one away from now; None when it is of none."""
        ...

    def uri(self, secret: Secret, account: str) -> Secret:
        """Write a secret as an authenticator reads it, as a QR code shows it."""
        ...
