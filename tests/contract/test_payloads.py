"""Bodies over the inline limit: exactly the bytes that were put."""

import random
from collections.abc import Iterator

import pytest

from chalicelib.adapters.s3 import S3Payloads
from chalicelib.application.ports import Payloads, Unavailable
from tests.contract.emulated import strict_client
from tests.contract.given import MEMORY, everywhere
from tests.fakes.memory_payloads import MemoryPayloads

Kept = S3Payloads | MemoryPayloads
BODIES = [
    b"",
    b"\0",
    b'{"type":"order.paid"}',
    "naïve ☃".encode(),
    b"\xef\xbb\xbf bom",
    b"z deflated?",
    b"= plain?",
    b"a" * 262_144,
    random.Random(1).randbytes(262_144),
]


@pytest.fixture(params=everywhere)
def shelf(request: pytest.FixtureRequest) -> Iterator[Kept]:
    if request.param == MEMORY:
        yield MemoryPayloads()
    else:
        provisioned = request.getfixturevalue(f"{request.param}_provisioned")
        yield S3Payloads(strict_client("s3", provisioned.endpoint_url), provisioned.bucket)


@pytest.fixture
def payloads(shelf: Kept) -> Payloads:
    return shelf


def test_every_body_comes_back_as_it_was(payloads: Payloads) -> None:
    for number, body in enumerate(BODIES):
        payloads.put(f"acme/evt_{number}", body)
    assert [payloads.get(f"acme/evt_{number}") for number in range(len(BODIES))] == BODIES


def test_a_body_that_is_gone_is_none(payloads: Payloads) -> None:
    payloads.put("acme/evt_1", b"1")
    assert payloads.get("acme/evt_2") is None
    assert payloads.get("other/evt_1") is None


def test_a_body_put_again_is_the_new_one(payloads: Payloads) -> None:
    payloads.put("acme/evt_1", b"1")
    payloads.put("acme/evt_1", b"2")
    assert payloads.get("acme/evt_1") == b"2"


def test_a_store_that_is_not_there_is_told_as_unavailable(emulator: str) -> None:
    payloads = S3Payloads(strict_client("s3", emulator), "no-such-bucket")
    with pytest.raises(Unavailable):
        payloads.put("acme/evt_1", b"1")
    with pytest.raises(Unavailable):
        payloads.get("acme/evt_1")
    with pytest.raises(Unavailable):
        payloads.listed("", 10)
    with pytest.raises(Unavailable):
        payloads.remove(["acme/evt_1"])


def test_bodies_are_listed_in_the_order_of_their_keys_from_after_any_text(shelf: Kept) -> None:
    kept = sorted(["acme-2/evt_1", "acme/evt_1", "acme/evt_2", "acme/evt_3", "other/evt_1"])
    for key in reversed(kept):
        shelf.put(key, b"1")
    assert shelf.listed("", 1_000) == kept
    assert shelf.listed("", 2) == kept[:2]
    assert shelf.listed(kept[1], 2) == kept[2:4]
    assert shelf.listed("acme/evt_15", 10) == ["acme/evt_2", "acme/evt_3", "other/evt_1"]
    assert shelf.listed("acme0", 10) == ["other/evt_1"]
    assert shelf.listed(kept[-1], 10) == []


def test_what_is_removed_is_gone_and_nothing_else(shelf: Kept) -> None:
    for number in range(4):
        shelf.put(f"acme/evt_{number}", b"%d" % number)
    shelf.remove(["acme/evt_1", "acme/evt_3", "acme/evt_never_there"])
    shelf.remove(["acme/evt_1"])
    assert shelf.listed("", 10) == ["acme/evt_0", "acme/evt_2"]
    assert [shelf.get(f"acme/evt_{number}") for number in range(4)] == [b"0", None, b"2", None]
