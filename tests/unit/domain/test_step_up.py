"""Assertions and tries: what is signed holds for what it names alone, and guessing gets slower."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.secret import Secret
from chalicelib.domain.step_up import (
    ASSERTION_SECS,
    LOCK_MAX_MS,
    LOCK_MS,
    UNTRIED,
    WRONG_MAX,
    Assertion,
    ElevatedAction,
    Tries,
    verified,
)

KEY = Secret("a key of the tenant's own")
NOW_S = 1_700_000_000
names = st.text(min_size=1, max_size=50)
assertions = st.builds(
    Assertion,
    names,
    names,
    st.lists(st.sampled_from(ElevatedAction), min_size=1, unique=True).map(tuple),
    st.integers(0, 2**40),
)


@given(assertions)
def test_what_was_signed_comes_back(assertion: Assertion) -> None:
    assert verified(assertion.signed(KEY), KEY) == assertion


@given(assertions, st.data())
def test_no_character_of_it_can_be_changed(assertion: Assertion, data: st.DataObject) -> None:
    text = assertion.signed(KEY)
    place = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters(exclude_characters=text[place]))
    assert verified(text[:place] + other + text[place + 1 :], KEY) is None


@given(assertions)
def test_another_tenant_s_key_signs_nothing_here(assertion: Assertion) -> None:
    assert verified(assertion.signed(Secret("another")), KEY) is None


@given(st.text(max_size=300))
def test_any_text_is_read_without_a_fault(text: str) -> None:
    assert verified(text, KEY) is None


@given(assertions, names, names, st.sampled_from(ElevatedAction), st.integers(-400, 400))
def test_it_allows_its_own_key_its_actions_for_its_time(
    assertion: Assertion, tenant: str, key_id: str, action: ElevatedAction, later_s: int
) -> None:
    now_s = assertion.expires_s - ASSERTION_SECS + later_s
    in_time = 0 <= later_s < ASSERTION_SECS
    own = (assertion.tenant, assertion.key_id)
    assert assertion.allows(*own, action, now_s) == (in_time and action in assertion.actions)
    assert assertion.allows(tenant, key_id, action, now_s) == (
        (tenant, key_id) == own and in_time and action in assertion.actions
    )


@pytest.mark.parametrize("made", range(WRONG_MAX - 1))
def test_the_first_tries_lock_nothing(made: int) -> None:
    assert Tries(made).one_more(NOW_S * 1000) == Tries(made + 1)


@given(st.integers(WRONG_MAX - 1, 10_000))
def test_each_further_try_locks_twice_as_long_and_a_day_at_most(made: int) -> None:
    tries = Tries(made).one_more(0)
    before = Tries(made - 1).one_more(0)
    assert tries.locked_until_ms == min(max(LOCK_MS, before.locked_until_ms * 2), LOCK_MAX_MS)


def test_who_guesses_all_year_has_a_chance_in_two_hundred() -> None:
    """Three codes are good at any moment, of a million."""
    now_ms, tries, guesses = 0, UNTRIED, 0
    while now_ms < 365 * 24 * 3_600_000:
        tries = tries.one_more(now_ms)
        guesses += 1
        now_ms = max(now_ms, tries.locked_until_ms)
    assert guesses * 3 / 1_000_000 < 1 / 200
