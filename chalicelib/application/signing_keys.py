"""Signing keys: made and sealed when an owner asks for one, opened when a request is to be signed."""

from dataclasses import dataclass, replace

from chalicelib.application.ports import Ed25519, Sealer
from chalicelib.domain import signing
from chalicelib.domain.endpoint import WrappedSecret
from chalicelib.domain.secret import Secret
from chalicelib.domain.signing import Ed25519Key, SignatureKey, SigningKey

KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class MadeKey:
    """A new key as it is stored, and what its owner is shown this once (None: only the public key)."""

    wrapped: WrappedSecret
    secret: Secret | None


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """Makes and opens signing keys of either kind."""

    sealer: Sealer
    ed25519: Ed25519

    def make(self, tenant: str, kind: SignatureKey, key: bytes) -> MadeKey:
        """Make a signing key of 32 random bytes and seal it; of a key pair nobody sees the private part."""
        if kind is SignatureKey.HMAC:
            secret = signing.new_secret(key)
            return MadeKey(self.sealed(tenant, secret), secret)
        public = self.ed25519.public_key(key)
        wrapped = self.sealed(tenant, signing.private_key(key, public))
        return MadeKey(replace(wrapped, public_key=signing.public_key(public)), None)

    def open(self, tenant: str, wrapped: WrappedSecret) -> SigningKey:
        """Open a key to sign with."""
        secret = self.sealer.unseal(tenant, wrapped)
        return Ed25519Key(secret, self.ed25519.sign) if wrapped.kind is SignatureKey.ED25519 else secret

    def credential(self, tenant: str, wrapped: WrappedSecret) -> Secret:
        """Open what is no key: a credential that its owner has given."""
        return self.sealer.unseal(tenant, wrapped)

    def sealed(self, tenant: str, secret: Secret) -> WrappedSecret:
        """Seal a secret."""
        return WrappedSecret(self.sealer.seal(tenant, secret))
