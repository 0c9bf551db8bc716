"""Secrets under no key at all, but bound to their tenant."""

from chalicelib.application.ports import Unavailable
from chalicelib.domain.endpoint import WrappedSecret
from tests.fakes.faults import Faults, Step

_SEAL = b"sealed for "


class PlainSealer:
    """Implements `Sealer`; what one tenant sealed, another cannot open."""

    def __init__(self) -> None:
        """Need no key."""
        self.faults = Faults()

    def seal(self, tenant: str, secret: str) -> bytes:
        """Wrap a secret for storing."""
        with self.faults.around(Step("seal")):
            return _SEAL + f"{tenant}: {secret}".encode()

    def unseal(self, tenant: str, secret: WrappedSecret) -> str:
        """Unwrap a stored secret."""
        with self.faults.around(Step("unseal")):
            head = _SEAL + f"{tenant}: ".encode()
            if not secret.ciphertext.startswith(head):
                raise Unavailable("sealed for somebody else")
            return secret.ciphertext.removeprefix(head).decode()
