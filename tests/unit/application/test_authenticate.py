"""Authentication: a key opens its own tenant in its own role, and everything else is one refusal."""

import pytest

from chalicelib.adapters.dynamodb.endpoints import DynamoKeys
from chalicelib.application.authenticate import (
    DEFAULT_TENANT,
    DEVELOPMENT_KEY,
    Authenticate,
    Caller,
    Role,
    development_key,
    digest,
)
from chalicelib.application.ports import ApiKey
from chalicelib.domain.errors import ErrorCode, RelayError
from tests.fakes.memory_tables import MemoryTables

KEY = "relay_acme.k1.secret-of-acme"


@pytest.fixture
def keys() -> DynamoKeys:
    kept = DynamoKeys(MemoryTables())
    kept.put(ApiKey("acme", "k1", digest(KEY), Role.PRODUCER.value))
    return kept


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_a_key_opens_its_tenant_in_its_role(keys: DynamoKeys, scheme: str) -> None:
    assert Authenticate(keys, keyless=False).caller(f"{scheme} {KEY}") == Caller("acme", Role.PRODUCER)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        KEY,
        f"Basic {KEY}",
        f"Bearer {KEY}x",
        f"Bearer {KEY[:-1]}",
        "Bearer relay_other.k1.secret-of-acme",
        "Bearer relay_acme.k2.secret-of-acme",
        "Bearer relay_acme..secret-of-acme",
        "Bearer relay_.k1.secret-of-acme",
        "Bearer relay_acme.k1",
        "Bearer relay_acme.k1.a.b",
        "Bearer relay_acme.k1.é",
        f"Bearer {KEY}{'x' * 600}",
        f"Bearer {DEVELOPMENT_KEY}",
    ],
)
def test_everything_else_is_refused_alike(keys: DynamoKeys, header: str | None) -> None:
    with pytest.raises(RelayError) as refused:
        Authenticate(keys, keyless=False).caller(header)
    assert refused.value.code is ErrorCode.UNAUTHENTICATED
    assert refused.value.detail == "The API key is missing or not valid."


def test_only_where_it_is_allowed_no_key_is_the_default_tenant_s(keys: DynamoKeys) -> None:
    assert Authenticate(keys, keyless=True).caller(None) == Caller(DEFAULT_TENANT, Role.ADMIN)
    with pytest.raises(RelayError):
        Authenticate(keys, keyless=True).caller("Bearer wrong")


def test_the_development_key_is_the_default_tenant_s(keys: DynamoKeys) -> None:
    keys.put(development_key())
    asked = Authenticate(keys, keyless=False)
    assert asked.caller(f"Bearer {DEVELOPMENT_KEY}") == Caller(DEFAULT_TENANT, Role.ADMIN)


def test_a_role_may_do_its_own_and_an_admin_all() -> None:
    Caller("acme", Role.ADMIN).must_be(Role.PRODUCER)
    Caller("acme", Role.VIEWER).must_be(Role.PRODUCER, Role.VIEWER)
    with pytest.raises(RelayError) as refused:
        Caller("acme", Role.VIEWER).must_be(Role.PRODUCER)
    assert refused.value.code is ErrorCode.FORBIDDEN
    assert refused.value.expected == "a key with the role admin or producer"
