"""Secrets under no key at all, but bound to their tenant, and not to be read in what was sealed."""

from chalicelib.application.ports import Unavailable
from chalicelib.domain.endpoint import WrappedSecret
from chalicelib.domain.secret import Secret
from tests.fakes.faults import Faults, Step

_SEAL = b"sealed for "


class PlainSealer:
    """Implements `Sealer`; what one tenant sealed, another cannot open."""

    def __init__(self) -> None:
        """Need no key."""
        self.faults = Faults()

    def seal(self, tenant: str, secret: Secret) -> bytes:
        """Wrap a secret for storing."""
        with self.faults.around(Step("seal")):
            return _turned(_SEAL + f"{tenant}: {secret.reveal()}".encode())

    def unseal(self, tenant: str, secret: WrappedSecret) -> Secret:
        """Unwrap a stored secret."""
        with self.faults.around(Step("unseal")):
            head = _SEAL + f"{tenant}: ".encode()
            opened = _turned(secret.ciphertext)
            if not opened.startswith(head):
                raise Unavailable("sealed for somebody else")
            return Secret(opened.removeprefix(head).decode())


def _turned(text: bytes) -> bytes:
    return bytes(255 - each for each in text)
