"""Secrets wrapped by the key service, each for its tenant alone."""

from collections.abc import Iterator

import pytest

from chalicelib.adapters.kms import KmsSealer
from chalicelib.application.ports import Sealer, Unavailable
from chalicelib.domain.endpoint import WrappedSecret
from chalicelib.domain.secret import Secret
from infra.local.provision import Provisioned
from tests.contract.emulated import counter, strict_client
from tests.contract.given import MEMORY, STRANGER, TENANT, everywhere
from tests.fakes.plain_sealer import PlainSealer

SECRET = Secret("whsec_" + "A" * 43 + "=")
OTHER = Secret("whsec_other")


@pytest.fixture(params=everywhere)
def sealer(request: pytest.FixtureRequest) -> Iterator[Sealer]:
    if request.param == MEMORY:
        yield PlainSealer()
    else:
        provisioned = request.getfixturevalue(f"{request.param}_provisioned")
        yield KmsSealer(strict_client("kms", provisioned.endpoint_url), provisioned.key_alias)


def test_what_was_sealed_comes_back(sealer: Sealer) -> None:
    first, second = sealer.seal(TENANT, SECRET), sealer.seal(TENANT, OTHER)
    assert sealer.unseal(TENANT, WrappedSecret(first)) == SECRET
    assert sealer.unseal(TENANT, WrappedSecret(second)) == OTHER
    assert sealer.unseal(TENANT, WrappedSecret(first)) == SECRET


def test_another_tenant_cannot_open_it_not_even_once_its_owner_has(sealer: Sealer) -> None:
    wrapped = WrappedSecret(sealer.seal(TENANT, SECRET))
    with pytest.raises(Unavailable):
        sealer.unseal(STRANGER, wrapped)
    assert sealer.unseal(TENANT, wrapped) == SECRET
    with pytest.raises(Unavailable):
        sealer.unseal(STRANGER, wrapped)


def test_what_was_never_sealed_is_told_as_unavailable(sealer: Sealer) -> None:
    with pytest.raises(Unavailable):
        sealer.unseal(TENANT, WrappedSecret(b"no ciphertext of ours"))


def test_an_open_secret_is_remembered(provisioned: Provisioned) -> None:
    url = provisioned.endpoint_url
    sealer = KmsSealer(strict_client("kms", url), provisioned.key_alias)
    wrapped = WrappedSecret(sealer.seal(TENANT, SECRET))
    counter("kms", url).reset()
    for _ in range(3):
        assert sealer.unseal(TENANT, wrapped) == SECRET
    assert counter("kms", url).total() == 1


def test_a_key_that_is_not_there_is_told_as_unavailable(emulator: str) -> None:
    with pytest.raises(Unavailable):
        KmsSealer(strict_client("kms", emulator), "alias/no-such-key").seal(TENANT, SECRET)
