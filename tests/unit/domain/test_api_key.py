"""API keys: written so that whose they are is read without a look-up, and expired by the clock."""

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.api_key import (
    DEVELOPMENT_OPERATOR_KEY,
    GIVEN,
    OPERATOR,
    USE_NOTED_EVERY_MS,
    ApiKey,
    Role,
    key_text,
    names_in,
)

NOW_MS = 1_700_000_000_000
words = st.text("abcdefghijklmnopqrstuvwxyz0123456789_-", min_size=1, max_size=60)


def key(role: Role = Role.ADMIN, expires_ms: int = 0, used_ms: int = 0) -> ApiKey:
    return ApiKey("acme", "key_1", "digest", role, expires_ms=expires_ms, used_ms=used_ms)


@given(words, words, st.binary(min_size=32, max_size=32))
def test_a_key_says_whose_it_is(tenant: str, key_id: str, random: bytes) -> None:
    assert names_in(key_text(tenant, key_id, random).reveal()) == (tenant, key_id)


@given(st.text(max_size=600))
def test_any_text_is_read_without_a_fault(text: str) -> None:
    names = names_in(text)
    assert names is None or all(len(each) < 600 for each in names)


def test_the_operator_s_is_of_no_tenant() -> None:
    assert names_in(DEVELOPMENT_OPERATOR_KEY) == ("", OPERATOR)
    assert Role.OPERATOR not in GIVEN


def test_a_key_expires_at_its_moment_and_without_one_never() -> None:
    assert not key(expires_ms=NOW_MS).expired(NOW_MS - 1)
    assert key(expires_ms=NOW_MS).expired(NOW_MS)
    assert not key().expired(2**60)


def test_only_an_admin_s_key_without_an_expiry_lasts() -> None:
    assert [role for role in GIVEN if key(role).lasting] == [Role.ADMIN]
    assert not key(expires_ms=2**60).lasting


def test_a_use_is_due_once_the_last_is_long_enough_ago() -> None:
    used = key().used(NOW_MS)
    assert key().use_is_due(NOW_MS)
    assert not used.use_is_due(NOW_MS + USE_NOTED_EVERY_MS - 1)
    assert used.use_is_due(NOW_MS + USE_NOTED_EVERY_MS)
