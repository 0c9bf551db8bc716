"""Tenants, their keys and their second factors in DynamoDB: rows of one partition a tenant."""

from dataclasses import asdict
from typing import Any

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.auditing import recorded
from chalicelib.adapters.dynamodb.records import Delete, Insert, Merge, Put, Span, Tables, Update, Write
from chalicelib.application.ports import Credential, Factor, Page, Unavailable
from chalicelib.domain.api_key import USE_NOTED_EVERY_MS, ApiKey, Role
from chalicelib.domain.audit import Record
from chalicelib.domain.change import Change, Op, Test
from chalicelib.domain.change import Record as Row
from chalicelib.domain.endpoint import WrappedSecret
from chalicelib.domain.step_up import Tries
from chalicelib.domain.tenant import Quotas, Tenant, TenantState


class DynamoKeys:
    """API keys in DynamoDB, hashed; how many admins' keys last is counted beside them."""

    def __init__(self, tables: Tables) -> None:
        """Use these tables."""
        self._tables = tables

    def credential(self, tenant: str, key_id: str) -> Credential | None:
        """Read a key and its tenant strongly consistent, in one call."""
        at, of = keys.api_key(tenant, key_id), keys.tenant(tenant)
        found = self._tables.get([at, of])
        if at not in found:
            return None
        return Credential(key_of(found[at]), tenant_of(found[of]) if of in found else None)

    def put(self, key: ApiKey) -> None:
        """Write a key that nobody made by the API; a second time changes nothing."""
        self._tables.together([Merge(keys.api_key(key.tenant, key.id), key_row(key))])

    def create(self, key: ApiKey, record: Record) -> None:
        """Write a new key."""
        writes: list[Write] = [Insert(keys.api_key(key.tenant, key.id), key_row(key)), recorded(record)]
        if key.lasting:
            writes.append(Update(keys.lasting_keys(key.tenant), Change((), {}, {"lasting": 1})))
        if self._tables.together(writes):
            raise Unavailable("a new key's id was already taken, or its tenant is not there")

    def get(self, tenant: str, key_id: str) -> ApiKey | None:
        """Read a key strongly consistent."""
        at = keys.api_key(tenant, key_id)
        record = self._tables.get([at]).get(at)
        return key_of(record) if record else None

    def page(self, tenant: str, after: str, limit: int) -> Page[ApiKey]:
        """List a tenant's keys, newest first."""
        high = keys.api_key(tenant, after or "~").sk
        stretch = self._tables.query(
            keys.TENANTS, tenant, Span(keys.KEY, high, backwards=True), limit + 2 if after else limit + 1
        )
        found = [key_of(each) for each in stretch.records if not after or each["sk"] != high]
        return Page(tuple(found[:limit]), found[limit - 1].id if len(found) > limit else "")

    def revoke(self, key: ApiKey, record: Record) -> bool:
        """Remove a key; False when it is the tenant's last lasting one. Once it is gone nothing is done."""
        there = (Test("digest", Op.EQ, key.digest),)
        writes: list[Write] = [Delete(keys.api_key(key.tenant, key.id), there), recorded(record)]
        if key.lasting:
            more = (Test("lasting", Op.GT, 1),)
            writes.append(Update(keys.lasting_keys(key.tenant), Change(more, {}, {"lasting": -1})))
        return self._tables.together(writes) != [len(writes) - 1]

    def note_use(self, key: ApiKey, now_ms: int) -> None:
        """Write down that a key was used, unless it is gone or its use was noted lately."""
        due = (Test("used_ms", Op.LE, now_ms - USE_NOTED_EVERY_MS),)
        self._tables.each([Update(keys.api_key(key.tenant, key.id), Change(due, {"used_ms": now_ms}, {}))])


class DynamoTenants:
    """Tenants in DynamoDB; a partition of the installation's own lists them."""

    def __init__(self, tables: Tables) -> None:
        """Use these tables."""
        self._tables = tables

    def create(self, tenant: Tenant, factor: Factor, key: ApiKey, record: Record | None) -> bool:
        """Write a new tenant with its second factor and its first key; False when there is one already."""
        writes: list[Write] = [
            Insert(keys.tenant(tenant.id), tenant_row(tenant)),
            Insert(keys.listed_tenant(tenant.id), {"tenant": tenant.id}),
            Insert(keys.second_factor(tenant.id), factor_row(factor)),
            Insert(keys.lasting_keys(tenant.id), {"lasting": 1}),
            Put(keys.api_key(tenant.id, key.id), key_row(key)),
        ]
        writes += [recorded(record)] if record else []
        return not self._tables.together(writes)

    def get(self, tenant: str) -> Tenant | None:
        """Read a tenant strongly consistent."""
        at = keys.tenant(tenant)
        record = self._tables.get([at]).get(at)
        return tenant_of(record) if record else None

    def replace(self, old: Tenant, new: Tenant, record: Record) -> bool:
        """Write a changed tenant if nobody changed it since it was read; False when somebody did."""
        same = (Test("version", Op.EQ, old.version),)
        changed = Put(keys.tenant(new.id), tenant_row(new), same)
        return not self._tables.together([changed, recorded(record)])

    def recover(self, factor: Factor, key: ApiKey, record: Record) -> None:
        """Write a new second factor over a tenant's, and a new key beside its others."""
        writes: list[Write] = [
            Put(keys.second_factor(key.tenant), factor_row(factor)),
            Insert(keys.api_key(key.tenant, key.id), key_row(key)),
            Update(keys.lasting_keys(key.tenant), Change((), {}, {"lasting": 1})),
            recorded(record),
        ]
        if self._tables.together(writes):
            raise Unavailable("a new key's id was already taken, or its tenant is not there")

    def page(self, after: str, limit: int) -> Page[Tenant]:
        """List all tenants, newest first."""
        high = keys.listed_tenant(after).sk if after else "~"
        stretch = self._tables.query(
            keys.TENANTS,
            keys.INSTALLATION,
            Span(high=high, backwards=True),
            limit + 2 if after else limit + 1,
        )
        names = [each["tenant"] for each in stretch.records if each["tenant"] != after]
        found = self._tables.get([keys.tenant(each) for each in names[:limit]])
        shown = [tenant_of(found[at]) for each in names[:limit] if (at := keys.tenant(each)) in found]
        return Page(tuple(shown), names[limit - 1] if len(names) > limit else "")


class DynamoSecondFactors:
    """Second factors in DynamoDB, sealed; what was tried stands with the key that tried it."""

    def __init__(self, tables: Tables) -> None:
        """Use these tables."""
        self._tables = tables

    def get(self, tenant: str, key_id: str) -> Factor | None:
        """Read a tenant's second factor and a key's tries strongly consistent."""
        at, by = keys.second_factor(tenant), keys.api_key(tenant, key_id)
        found = self._tables.get([at, by])
        if at not in found or by not in found:
            return None
        row, key = found[at], found[by]
        tries = Tries(key["tries"], key["locked_until_ms"])
        return Factor(WrappedSecret(row["totp"]), WrappedSecret(row["signing"]), row["used_step"], tries)

    def count_try(self, tenant: str, key_id: str, old: Tries, new: Tries) -> bool:
        """Count a try; False when another one came in between."""
        same = (Test("tries", Op.EQ, old.made),)
        counted = {"tries": new.made, "locked_until_ms": new.locked_until_ms}
        return not self._tables.together([Update(keys.api_key(tenant, key_id), Change(same, counted, {}))])

    def accept(self, tenant: str, key_id: str, step: int, record: Record) -> bool:
        """Take a code's time step, which ends the counting; False when it, or a newer one, was taken."""
        newer = (Test("used_step", Op.LT, step),)
        none = {"tries": 0, "locked_until_ms": 0}
        writes: list[Write] = [
            Update(keys.second_factor(tenant), Change(newer, {"used_step": step}, {})),
            Update(keys.api_key(tenant, key_id), Change((), none, {})),
            recorded(record),
        ]
        return not self._tables.together(writes)


def key_row(key: ApiKey) -> dict[str, Any]:
    """Write an API key."""
    return {
        "digest": key.digest,
        "role": key.role.value,
        "label": key.name,
        "created_ms": key.created_ms,
        "expires_ms": key.expires_ms,
        "used_ms": key.used_ms,
        "tries": 0,
        "locked_until_ms": 0,
    }


def key_of(record: Row) -> ApiKey:
    """Read an API key."""
    return ApiKey(
        record["pk"],
        record["sk"].removeprefix(keys.KEY),
        record["digest"],
        Role(record["role"]),
        record["label"],
        record["created_ms"],
        record["expires_ms"],
        record["used_ms"],
    )


def tenant_row(tenant: Tenant) -> dict[str, Any]:
    """Write a tenant."""
    return {
        "label": tenant.name,
        "state": tenant.state.value,
        "contacts": list(tenant.contacts),
        "quotas": asdict(tenant.quotas),
        "sensitive_paths": list(tenant.sensitive_paths),
        "version": tenant.version,
        "created_ms": tenant.created_ms,
    }


def tenant_of(record: Row) -> Tenant:
    """Read a tenant."""
    return Tenant(
        record["pk"],
        record["label"],
        TenantState(record["state"]),
        tuple(record["contacts"]),
        Quotas(**record["quotas"]),
        tuple(record["sensitive_paths"]),
        record["version"],
        record["created_ms"],
    )


def factor_row(factor: Factor) -> dict[str, Any]:
    """Write a second factor."""
    return {
        "totp": factor.totp.ciphertext,
        "signing": factor.signing.ciphertext,
        "used_step": factor.used_step,
    }
