"""Ids: UUIDv7 from a time and entropy that are given; an event and an endpoint make one delivery id."""

import re
from datetime import UTC, datetime
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.ids import (
    created_at,
    created_ms,
    delivery_id,
    endpoint_tag,
    is_id,
    new_id,
    tag_of,
    uuid7,
)
from tests.unit.domain.examples import DELIVERY_ID, ENDPOINT_ID, EVENT_ID, FEW, RECEIVED_MS

moments = st.integers(0, 2**48 - 1)
entropies = st.integers(0, 2**74 - 1)
prefixes = st.sampled_from(["evt", "ep", "tn", "key"])


@FEW
@given(moments, entropies)
def test_a_uuid7_says_so_and_holds_its_time(at_ms: int, entropy: int) -> None:
    made = uuid7(at_ms, entropy)
    assert (made.version, made.variant) == (7, RFC_4122)
    assert created_ms(str(made)) == at_ms


def test_the_example_of_the_standard_is_made_of_its_parts() -> None:
    at_ms, rand_a, rand_b = 0x017F22E279B0, 0xCC3, 0x18C4DC0C0C07398F
    assert uuid7(at_ms, rand_a << 62 | rand_b) == UUID("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")


@FEW
@given(moments, entropies, entropies)
def test_different_entropy_makes_different_ids(at_ms: int, one: int, other: int) -> None:
    assert (uuid7(at_ms, one) == uuid7(at_ms, other)) is (one == other)


@FEW
@given(moments, moments, entropies, entropies)
def test_ids_sort_by_their_time(one: int, other: int, entropy: int, another: int) -> None:
    first, second = sorted((one, other))
    if first != second:
        assert new_id("evt", first, entropy) < new_id("evt", second, another)


@FEW
@given(prefixes, moments, entropies)
def test_f018_an_id_needs_no_characters_that_could_end_it(prefix: str, at_ms: int, entropy: int) -> None:
    made = new_id(prefix, at_ms, entropy)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", made)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", delivery_id(made, ENDPOINT_ID))


@FEW
@given(prefixes, moments, entropies)
def test_an_id_is_known_by_its_prefix(prefix: str, at_ms: int, entropy: int) -> None:
    made = new_id(prefix, at_ms, entropy)
    assert is_id(made, prefix)
    assert not is_id(made)
    assert not is_id(made, "xyz")
    assert is_id(made.removeprefix(f"{prefix}_"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "evt_",
        "a.b",
        "evt_1.1700000000.{}",
        EVENT_ID.upper(),
        f"{EVENT_ID}\n",
        f" {EVENT_ID}",
        EVENT_ID.replace("-7", "-4", 1),
        EVENT_ID.replace("-8567", "-7567"),
        EVENT_ID.replace("-", ""),
        f"evt_{{{EVENT_ID[4:]}}}",
        f"evt_urn:uuid:{EVENT_ID[4:]}",
        EVENT_ID.replace("019", "\uff1019"),
    ],
)
def test_f018_what_only_looks_like_an_id_is_none(text: str) -> None:
    assert not is_id(text, "evt")
    assert not is_id(text)


def test_the_example_ids_are_ids() -> None:
    assert is_id(EVENT_ID, "evt")
    assert is_id(ENDPOINT_ID, "ep")
    assert is_id(DELIVERY_ID)


def test_the_delivery_id_of_an_event_and_an_endpoint_is_frozen() -> None:
    assert delivery_id(EVENT_ID, ENDPOINT_ID) == DELIVERY_ID


@FEW
@given(moments, entropies, moments, entropies)
def test_a_delivery_id_leads_to_its_endpoint_and_has_its_events_time(
    received_ms: int, one: int, registered_ms: int, other: int
) -> None:
    receiver = new_id("ep", registered_ms, other)
    made = delivery_id(new_id("evt", received_ms, one), receiver)
    assert is_id(made)
    assert tag_of(made) == endpoint_tag(receiver)
    assert created_ms(made) == received_ms


@FEW
@given(st.lists(entropies, min_size=2, max_size=2, unique=True))
def test_neither_two_events_nor_two_endpoints_share_a_delivery_id(pair: list[int]) -> None:
    one, other = (new_id("evt", RECEIVED_MS, each) for each in pair)
    assert delivery_id(one, ENDPOINT_ID) != delivery_id(other, ENDPOINT_ID)
    here, there = (new_id("ep", RECEIVED_MS, each) for each in pair)
    assert delivery_id(EVENT_ID, here) != delivery_id(EVENT_ID, there)


def test_an_endpoints_tag_is_eight_hex_digits() -> None:
    assert endpoint_tag(ENDPOINT_ID) == "7c3a95c3"


def test_the_moment_of_an_id_is_utc() -> None:
    assert created_at(EVENT_ID) == datetime(2025, 11, 24, 16, 0, 0, 123_000, tzinfo=UTC)
