"""The vectors for verifiers are what the signer makes, and Relay's own verifier agrees with them."""

from datetime import UTC, datetime

import pytest

from chalicelib.domain import signing
from tests.vectors import make
from tests.vectors.make import Vector

VECTORS = make.vectors()
SHARED = [each for each in VECTORS if not each.name.startswith("pair: ")]


def test_the_file_is_what_the_signer_makes() -> None:
    assert make.FILE.read_text(encoding="utf-8") == make.text()


def test_each_vector_has_a_name_of_its_own() -> None:
    assert len({each.name for each in VECTORS}) == len(VECTORS)


@pytest.mark.parametrize("vector", SHARED, ids=lambda vector: vector.name)
def test_relay_s_own_verifier_agrees(vector: Vector) -> None:
    now = datetime.fromtimestamp(vector.now_s, UTC)
    assert signing.verify(vector.body, vector.headers, vector.keys, now) is vector.genuine
