"""Ed25519 by libsodium, which is loaded when the first endpoint asks for it: most functions never do."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nacl.signing import SigningKey


class NaclEd25519:
    """Implements `Ed25519` with PyNaCl (docs/decisions/0014)."""

    def public_key(self, seed: bytes) -> bytes:
        """Give the 32 bytes of the public key of a seed of 32 bytes."""
        return bytes(_key(seed).verify_key)

    def sign(self, seed: bytes, message: bytes) -> bytes:
        """Sign a message: 64 bytes, the same for the same message."""
        return _key(seed).sign(message).signature


def _key(seed: bytes) -> "SigningKey":
    return _signing_key()(seed)


@cache
def _signing_key() -> "type[SigningKey]":
    from nacl.signing import SigningKey  # noqa: PLC0415 - 25 ms of cold start that few functions need

    return SigningKey
