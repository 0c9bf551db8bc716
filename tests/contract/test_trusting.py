"""Tenants, keys and second factors: whoever comes second is told so, and no tenant is left without a key."""

from dataclasses import replace
from itertools import count

import pytest

from chalicelib.adapters.totp import PyotpCodes
from chalicelib.application.ports import Credential, Factor, Unavailable
from chalicelib.domain.api_key import USE_NOTED_EVERY_MS, ApiKey, Role
from chalicelib.domain.audit import Action, Actor, ActorKind, Record
from chalicelib.domain.endpoint import WrappedSecret
from chalicelib.domain.secret import Secret
from chalicelib.domain.step_up import UNTRIED, Tries
from chalicelib.domain.tenant import Quotas, Tenant, TenantState
from tests.contract.given import NOW_MS, STRANGER, TENANT, Stores

ACME = Tenant(
    TENANT,
    "Acme",
    TenantState.ACTIVE,
    ("oncall@acme.example",),
    Quotas(5, 6, 7, 8),
    ("$.card.number",),
    created_ms=NOW_MS,
)
FACTOR = Factor(WrappedSecret(b"\0totp"), WrappedSecret(b"\xffsigning"))
_NUMBERS = count(1)


def record(tenant: str = TENANT) -> Record:
    by = Actor(ActorKind.KEY, "key_1", "203.0.113.9")
    return Record(tenant, f"aud_{next(_NUMBERS):04d}", NOW_MS, Action.KEY_CREATED, "key_1", by)


def key(number: int = 1, role: Role = Role.ADMIN, *, expires_ms: int = 0, tenant: str = TENANT) -> ApiKey:
    return ApiKey(tenant, f"key_{number:04d}", f"digest {number}", role, "shop", NOW_MS, expires_ms)


def open_tenant(stores: Stores, tenant: Tenant = ACME) -> ApiKey:
    first = replace(key(), tenant=tenant.id)
    assert stores.tenants.create(tenant, FACTOR, first, record(tenant.id))
    return first


def recorded(stores: Stores, tenant: str = TENANT) -> int:
    return len([row for row in stores.tables.walk("audit") if row["pk"] == tenant])


class TestTenants:
    def test_a_tenant_comes_back_as_it_was_written_with_its_key(self, stores: Stores) -> None:
        first = open_tenant(stores)
        assert stores.tenants.get(TENANT) == ACME
        assert stores.tenants.get(STRANGER) is None
        assert stores.keys.credential(TENANT, first.id) == Credential(first, ACME)
        assert recorded(stores) == 1

    def test_one_that_is_there_is_not_opened_again(self, stores: Stores) -> None:
        open_tenant(stores)
        again = replace(ACME, name="Another")
        assert not stores.tenants.create(again, FACTOR, key(2), record())
        assert stores.tenants.get(TENANT) == ACME
        assert stores.keys.get(TENANT, key(2).id) is None
        assert recorded(stores) == 1

    def test_one_that_has_changed_since_is_not_written_over(self, stores: Stores) -> None:
        open_tenant(stores)
        changed = replace(ACME, quotas=Quotas()).next_to(ACME)
        assert stores.tenants.replace(ACME, changed, record())
        assert not stores.tenants.replace(ACME, replace(ACME, name="Other").next_to(ACME), record())
        assert stores.tenants.get(TENANT) == changed
        assert recorded(stores) == 2

    def test_all_are_listed_newest_first_page_by_page(self, stores: Stores) -> None:
        names = [f"tn_{number}" for number in range(5)]
        for name in names:
            open_tenant(stores, replace(ACME, id=name))
        found: list[str] = []
        after = ""
        for _ in range(10):
            page = stores.tenants.page(after, 2)
            assert len(page.items) <= 2
            found += [each.id for each in page.items]
            after = page.after
            if not after:
                break
        assert found == names[::-1]


class TestKeys:
    def test_a_key_is_found_by_its_tenant_alone(self, stores: Stores) -> None:
        made = key(role=Role.PRODUCER, expires_ms=NOW_MS + 1)
        stores.keys.put(made)
        stores.keys.put(made)
        assert stores.keys.get(TENANT, made.id) == made
        assert stores.keys.credential(TENANT, made.id) == Credential(made, None)
        assert stores.keys.get(STRANGER, made.id) is None
        assert stores.keys.credential(STRANGER, made.id) is None
        assert stores.keys.get(TENANT, key(2).id) is None

    def test_keys_are_listed_newest_first_page_by_page(self, stores: Stores) -> None:
        open_tenant(stores)
        for number in range(2, 6):
            stores.keys.create(key(number, Role.VIEWER), record())
        stores.keys.put(key(9, tenant=STRANGER))
        first = stores.keys.page(TENANT, "", 3)
        rest = stores.keys.page(TENANT, first.after, 3)
        assert [each.id for each in (*first.items, *rest.items)] == [key(n).id for n in (5, 4, 3, 2, 1)]
        assert rest.after == ""

    def test_an_id_that_is_taken_is_not_given_again(self, stores: Stores) -> None:
        open_tenant(stores)
        with pytest.raises(Unavailable):
            stores.keys.create(key(), record())
        assert recorded(stores) == 1

    def test_a_revoked_key_is_gone_and_revoking_it_again_does_nothing(self, stores: Stores) -> None:
        open_tenant(stores)
        other = key(2)
        stores.keys.create(other, record())
        assert stores.keys.revoke(other, record())
        assert stores.keys.credential(TENANT, other.id) is None
        before = recorded(stores)
        assert stores.keys.revoke(key(2, Role.VIEWER), record())
        assert recorded(stores) == before

    def test_the_last_admin_s_key_that_lasts_stays(self, stores: Stores) -> None:
        first, second = open_tenant(stores), key(2)
        brief, viewer = key(3, expires_ms=NOW_MS + 1), key(4, Role.VIEWER)
        for each in (second, brief, viewer):
            stores.keys.create(each, record())
        assert stores.keys.revoke(second, record())
        assert not stores.keys.revoke(first, record())
        assert stores.keys.get(TENANT, first.id) == first
        assert stores.keys.revoke(brief, record())
        assert stores.keys.revoke(viewer, record())
        assert not stores.keys.revoke(first, record())

    def test_a_key_that_two_revoke_is_counted_once(self, stores: Stores) -> None:
        open_tenant(stores)
        for number in (2, 3):
            stores.keys.create(key(number), record())
        assert stores.keys.revoke(key(2), record())
        assert stores.keys.revoke(key(2), record())
        assert stores.keys.revoke(key(3), record())
        assert not stores.keys.revoke(key(1), record())

    def test_a_use_is_noted_unless_it_was_lately_or_the_key_is_gone(self, stores: Stores) -> None:
        first = open_tenant(stores)
        stores.keys.note_use(first, NOW_MS)
        stores.keys.note_use(first, NOW_MS + USE_NOTED_EVERY_MS - 1)
        assert stores.keys.get(TENANT, first.id) == first.used(NOW_MS)
        stores.keys.note_use(first, NOW_MS + USE_NOTED_EVERY_MS)
        assert stores.keys.get(TENANT, first.id) == first.used(NOW_MS + USE_NOTED_EVERY_MS)
        stores.keys.note_use(key(7), NOW_MS)
        assert stores.keys.get(TENANT, key(7).id) is None


class TestSecondFactors:
    def test_a_factor_is_its_tenant_s_and_its_tries_a_key_s(self, stores: Stores) -> None:
        first = open_tenant(stores)
        stores.keys.create(key(2), record())
        assert stores.second_factors.get(TENANT, first.id) == FACTOR
        assert stores.second_factors.count_try(TENANT, first.id, UNTRIED, Tries(1, NOW_MS))
        assert stores.second_factors.get(TENANT, first.id) == replace(FACTOR, tries=Tries(1, NOW_MS))
        assert stores.second_factors.get(TENANT, key(2).id) == FACTOR
        assert stores.second_factors.get(TENANT, key(3).id) is None
        assert stores.second_factors.get(STRANGER, first.id) is None

    def test_of_two_tries_at_once_one_counts_and_the_other_is_told(self, stores: Stores) -> None:
        first = open_tenant(stores)
        assert stores.second_factors.count_try(TENANT, first.id, UNTRIED, Tries(1))
        assert not stores.second_factors.count_try(TENANT, first.id, UNTRIED, Tries(1))

    def test_a_step_is_taken_once_and_none_before_it(self, stores: Stores) -> None:
        first = open_tenant(stores)
        assert stores.second_factors.count_try(TENANT, first.id, UNTRIED, Tries(4, NOW_MS))
        assert stores.second_factors.accept(TENANT, first.id, 100, record())
        assert stores.second_factors.get(TENANT, first.id) == replace(FACTOR, used_step=100)
        before = recorded(stores)
        assert not stores.second_factors.accept(TENANT, first.id, 100, record())
        assert not stores.second_factors.accept(TENANT, first.id, 99, record())
        assert recorded(stores) == before
        assert stores.second_factors.accept(TENANT, first.id, 101, record())

    def test_a_key_that_is_gone_takes_no_step(self, stores: Stores) -> None:
        open_tenant(stores)
        assert not stores.second_factors.accept(TENANT, key(9).id, 100, record())
        assert stores.second_factors.get(TENANT, key().id) == FACTOR


RFC_6238 = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
VECTORS = {
    59: "287082",
    1111111109: "081804",
    1111111111: "050471",
    1234567890: "005924",
    2000000000: "279037",
}


@pytest.mark.parametrize("now_s", VECTORS)
def test_codes_are_those_of_rfc_6238(now_s: int) -> None:
    """Its appendix B, the last six digits of each."""
    codes = PyotpCodes()
    assert codes.step_of(VECTORS[now_s], Secret(RFC_6238), now_s) == now_s // 30
    assert codes.step_of(VECTORS[now_s], Secret(RFC_6238), now_s + 30) == now_s // 30
    assert codes.step_of(VECTORS[now_s], Secret(RFC_6238), now_s + 90) is None
    assert codes.step_of("000000", Secret(RFC_6238), now_s) is None


def test_a_secret_is_shown_as_an_authenticator_reads_it() -> None:
    uri = PyotpCodes().uri(Secret(RFC_6238), "Acme & Söhne").reveal()
    assert uri == f"otpauth://totp/Relay:Acme%20%26%20S%C3%B6hne?secret={RFC_6238}&issuer=Relay"
