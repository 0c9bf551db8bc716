"""API keys: making, listing and revoking them."""

from dataclasses import dataclass, replace

from chalicelib.application.auditing import Recorder
from chalicelib.application.authenticate import KnownKeys
from chalicelib.application.endpoints import not_found
from chalicelib.application.ports import Clock, Dice, Keys, Page
from chalicelib.domain import api_key, audited, ids
from chalicelib.domain.api_key import DEVELOPMENT_ID, ApiKey
from chalicelib.domain.audit import Action, Actor, Difference
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.secret import Secret


@dataclass(frozen=True, slots=True)
class ManageKeys:
    """What an admin does with a tenant's keys."""

    store: Keys
    known: KnownKeys
    clock: Clock
    dice: Dice

    def create(self, draft: ApiKey, by: Actor) -> tuple[ApiKey, Secret]:
        """Make a key from a draft without id and hash; its text is given this once. Raises RelayError."""
        now_ms = self.clock.now_ms()
        if draft.expired(now_ms):
            raise over_already()
        key_id = ids.new_id("key", now_ms, self.dice.bits(ids.ENTROPY_BITS))
        text = api_key.key_text(draft.tenant, key_id, self.dice.key(api_key.KEY_BYTES))
        key = replace(draft, id=key_id, digest=api_key.digest(text.reveal()), created_ms=now_ms)
        change = Difference({}, audited.api_key(key))
        self.store.create(key, self._recorder.record(by, Action.KEY_CREATED, (key.tenant, key.id), change))
        return key, text

    def page(self, tenant: str, after: str, limit: int) -> Page[ApiKey]:
        """List a tenant's keys, newest first."""
        return self.store.page(tenant, after, limit)

    def revoke(self, tenant: str, key_id: str, by: Actor) -> None:
        """Revoke a key: here at once, elsewhere as soon as it is no longer known. Raises RelayError.

        The last admin's key that does not expire stays: without it nobody could make another.
        """
        named = ids.is_id(key_id, "key") or key_id == DEVELOPMENT_ID
        key = self.store.get(tenant, key_id) if named else None
        if key is None:
            raise not_found("key", key_id)
        change = Difference(audited.api_key(key), {})
        record = self._recorder.record(by, Action.KEY_REVOKED, (tenant, key_id), change)
        if not self.store.revoke(key, record):
            raise last_admin_key()
        self.known.forget((tenant, key_id))

    @property
    def _recorder(self) -> Recorder:
        return Recorder(self.clock, self.dice)


def over_already() -> RelayError:
    """Make the answer to a key that would never be good."""
    return RelayError(
        ErrorCode.FIELD_INVALID,
        "`expires_at` lies in the past.",
        field="expires_at",
        expected="a time to come, or nothing for a key that does not expire",
    )


def last_admin_key() -> RelayError:
    """Make the answer to revoking the key without which nobody could make another."""
    return RelayError(
        ErrorCode.LAST_ADMIN_KEY,
        "This is the tenant's last admin key that does not expire.",
        field="id",
        expected="another admin key without `expires_at` made first",
    )
