"""Tenants: what the operator does with them, and what their own admins may change."""

from base64 import b32encode
from dataclasses import dataclass, replace

from chalicelib.application.auditing import Recorder
from chalicelib.application.endpoints import not_found, stale
from chalicelib.application.ports import Clock, Codes, Dice, Factor, Page, Sealer, Tenants, Unavailable
from chalicelib.domain import api_key, audited, ids, step_up
from chalicelib.domain.api_key import ApiKey, Role
from chalicelib.domain.audit import Action, Actor, Difference, Record, difference
from chalicelib.domain.endpoint import WrappedSecret
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.secret import Secret
from chalicelib.domain.tenant import Tenant, TenantState

FIRST_KEY_NAME, RECOVERED_KEY_NAME = "first", "recovered"


@dataclass(frozen=True, slots=True)
class Opened:
    """A new tenant with what is shown this once: its first key, and its second factor in both forms."""

    tenant: Tenant
    key: ApiKey
    key_text: Secret
    totp: Secret
    totp_uri: Secret


@dataclass(frozen=True, slots=True)
class ManageTenants:
    """What is done with tenants."""

    store: Tenants
    sealer: Sealer
    codes: Codes
    clock: Clock
    dice: Dice

    def open(self, draft: Tenant, by: Actor) -> Opened:
        """Create a tenant from a draft without an id, its first admin's key and its second factor."""
        now_ms = self.clock.now_ms()
        tenant = replace(draft, id=self._new_id("tn", now_ms), created_ms=now_ms)
        opened = self._opened(tenant, FIRST_KEY_NAME)
        record = self._record(by, Action.TENANT_CREATED, tenant, Difference({}, audited.tenant(tenant)))
        if not self.store.create(tenant, self._factor(tenant.id, opened.totp), opened.key, record):
            raise Unavailable("a new tenant's id was already taken")
        return opened

    def recover(self, tenant_id: str, by: Actor) -> Opened:
        """Give a tenant that has lost them a new admin's key and second factor, or raise RelayError.

        Whatever the old factor has proven is void.
        """
        tenant = self.get(tenant_id)
        must_stay(tenant)
        opened = self._opened(tenant, RECOVERED_KEY_NAME)
        change = Difference({}, {"key_id": opened.key.id})
        record = self._record(by, Action.TENANT_RECOVERED, tenant, change)
        self.store.recover(self._factor(tenant.id, opened.totp), opened.key, record)
        return opened

    def seed(self, tenant: Tenant, key: ApiKey, totp: Secret) -> None:
        """Write a tenant whose names and secrets are given, unless it is there; for one's own machine."""
        if self.store.get(tenant.id) is None:
            self.store.create(tenant, self._factor(tenant.id, totp), key, None)

    def get(self, tenant: str) -> Tenant:
        """Read a tenant, or raise RelayError."""
        found = self.store.get(tenant)
        if found is None:
            raise not_found("tenant", tenant)
        return found

    def page(self, after: str, limit: int) -> Page[Tenant]:
        """List all tenants, newest first."""
        return self.store.page(after, limit)

    def change(self, old: Tenant, new: Tenant, actor: Actor) -> Tenant:
        """Write a changed tenant over the one that was read; raises RelayError if it has moved on."""
        must_stay(old)
        changed = new.next_to(old)
        change = difference(audited.tenant(old), audited.tenant(changed))
        if not self.store.replace(old, changed, self._record(actor, Action.TENANT_CHANGED, old, change)):
            raise stale("tenant")
        return changed

    def _opened(self, tenant: Tenant, key_name: str) -> Opened:
        """Make what opens a tenant."""
        now_ms = self.clock.now_ms()
        key_id = self._new_id("key", now_ms)
        text = api_key.key_text(tenant.id, key_id, self.dice.key(api_key.KEY_BYTES))
        digest = api_key.digest(text.reveal())
        key = ApiKey(tenant.id, key_id, digest, Role.ADMIN, key_name, created_ms=now_ms)
        totp = Secret(b32encode(self.dice.key(step_up.SECRET_BYTES)).decode())
        return Opened(tenant, key, text, totp, self.codes.uri(totp, tenant.name or tenant.id))

    def _factor(self, tenant: str, totp: Secret) -> Factor:
        signing = Secret(self.dice.key(step_up.SIGNING_BYTES).hex())
        return Factor(self._sealed(tenant, totp), self._sealed(tenant, signing))

    def _sealed(self, tenant: str, secret: Secret) -> WrappedSecret:
        return WrappedSecret(self.sealer.seal(tenant, secret))

    def _record(self, by: Actor, action: Action, of: Tenant, change: Difference) -> Record:
        return Recorder(self.clock, self.dice).record(by, action, (of.id, of.id), change)

    def _new_id(self, prefix: str, now_ms: int) -> str:
        return ids.new_id(prefix, now_ms, self.dice.bits(ids.ENTROPY_BITS))


def must_stay(tenant: Tenant) -> None:
    """Raise RelayError for a tenant that is being purged: nothing of it can be changed any more."""
    if tenant.state is TenantState.PURGING:
        raise RelayError(
            ErrorCode.TENANT_PURGING, "This tenant is being purged; nothing of it can be changed any more."
        )
