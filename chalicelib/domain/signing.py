"""Signing a request and verifying one: bytes in, text out, nothing looked up.

`verify` is what a receiver calls; it answers False, never an exception.
Wire contract: DESIGN §6; window: docs/decisions/0001.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from chalicelib.domain.secret import Secret

SECRET_PREFIX = "whsec_"  # noqa: S105 - the public prefix of every secret, not a secret
PRIVATE_PREFIX, PUBLIC_PREFIX = "whsk_", "whpk_"
SEED_BYTES = 32
SECRET_MIN_BYTES = 24
SECRET_MAX_BYTES = 64
FRESHNESS = timedelta(minutes=5)
_MAX_HEADER = 4096
_SECONDS = re.compile(r"[0-9]{1,12}", re.ASCII)
_ID = re.compile(r"[A-Za-z0-9_-]{1,256}", re.ASCII)


class SignatureForm(StrEnum):
    """How a request is signed: Relay's own headers, those of Standard Webhooks, or not at all."""

    RELAY = "relay"
    STANDARD = "standard"
    NONE = "none"


IDENTITY = {
    SignatureForm.RELAY: ("Relay-Delivery-Id", "Relay-Timestamp", "Relay-Signature"),
    SignatureForm.STANDARD: ("webhook-id", "webhook-timestamp", "webhook-signature"),
}
"""The three headers of each form that signs: whose delivery, when it was signed, and the signatures."""


class SignatureKey(StrEnum):
    """What a request is signed with: a secret that both sides have, or a key pair of which one is public."""

    HMAC = "hmac"
    ED25519 = "ed25519"


@dataclass(frozen=True, slots=True)
class Ed25519Key:
    """A private key as it is sealed, and what signs with its seed: the mathematics come from outside."""

    secret: Secret
    sign: Callable[[bytes, bytes], bytes]


SigningKey = Secret | Ed25519Key


class BadSecretError(ValueError):
    """A secret no signature may be made with; the words name what is wrong, never the secret."""


def new_secret(key: bytes) -> Secret:
    """Write a random key of 24 to 64 bytes as the secret its owner is shown."""
    return Secret(SECRET_PREFIX + base64.b64encode(key).decode("ascii"))


def private_key(seed: bytes, public: bytes) -> Secret:
    """Write a private key as it is sealed: `whsk_` and the 64 bytes of seed and public key in base64."""
    return Secret(PRIVATE_PREFIX + base64.b64encode(seed + public).decode("ascii"))


def public_key(public: bytes) -> str:
    """Write a public key as it is published."""
    return PUBLIC_PREFIX + base64.b64encode(public).decode("ascii")


def standard_key(secret: Secret) -> bytes:
    """Decode the key of a secret for the Standard Webhooks form.

    Takes `whsec_<base64>` or the base64 alone. Raises BadSecretError for anything else, and for
    keys outside 24 to 64 bytes: a key that decodes to nothing would let anyone sign.
    """
    text = secret.reveal()
    if text.startswith(("v1,", "v1a,")):
        raise BadSecretError("the secret starts with a signature version (v1,): leave that prefix out")
    try:
        key = base64.b64decode(text.removeprefix(SECRET_PREFIX).encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise BadSecretError("the secret is not base64") from error
    if not SECRET_MIN_BYTES <= len(key) <= SECRET_MAX_BYTES:
        raise BadSecretError(f"the secret decodes to {len(key)} bytes; 24 to 64 are needed")
    return key


def sign_relay(secret: Secret, timestamp: int, body: bytes) -> str:
    """Make one `v1=<hex>` of Relay-Signature; timestamp in Unix seconds."""
    standard_key(secret)
    digest = hmac.new(secret.reveal().encode(), b"%d." % timestamp + body, hashlib.sha256).hexdigest()
    return f"v1={digest}"


def sign_standard(secret: Secret, delivery_id: str, timestamp: int, body: bytes) -> str:
    """Make one `v1,<base64>` of webhook-signature; timestamp in Unix seconds."""
    mac = hmac.new(standard_key(secret), _signed(delivery_id, timestamp, body), hashlib.sha256).digest()
    return "v1," + base64.b64encode(mac).decode("ascii")


def sign_asymmetric(key: Ed25519Key, delivery_id: str, timestamp: int, body: bytes) -> str:
    """Make one `v1a,<base64>` of webhook-signature; timestamp in Unix seconds."""
    text = key.secret.reveal()
    if not text.startswith(PRIVATE_PREFIX):
        raise BadSecretError("this is no private key")
    seed = base64.b64decode(text.removeprefix(PRIVATE_PREFIX), validate=True)[:SEED_BYTES]
    signature = key.sign(seed, _signed(delivery_id, timestamp, body))
    return "v1a," + base64.b64encode(signature).decode("ascii")


def _signed(delivery_id: str, timestamp: int, body: bytes) -> bytes:
    return b"%s.%d." % (delivery_id.encode("ascii"), timestamp) + body


def signature_headers(
    form: SignatureForm, keys: Iterable[SigningKey], delivery_id: str, timestamp: int, body: bytes
) -> dict[str, str]:
    """Make the three identity headers of a request, one signature per live key, newest first.

    A key pair signs in the standard form only; raises BadSecretError for one in the other.
    """
    signature = _signatures(form, keys, delivery_id, timestamp, body)
    return identity_headers(form, delivery_id, timestamp, signature)


@dataclass(frozen=True, slots=True)
class Signer:
    """What signs a request of a delivery, as often as it has to be: its form, and live keys newest first."""

    form: SignatureForm
    keys: tuple[SigningKey, ...] = field(repr=False)
    delivery_id: str

    def headers(self, timestamp: int, body: bytes) -> dict[str, str]:
        """Make the three identity headers; timestamp in Unix seconds."""
        return signature_headers(self.form, self.keys, self.delivery_id, timestamp, body)


def identity_headers(form: SignatureForm, delivery_id: str, timestamp: int, signature: str) -> dict[str, str]:
    """Write the three identity headers of a request that has been signed."""
    return dict(zip(IDENTITY[form], (delivery_id, str(timestamp), signature), strict=True))


def _signatures(
    form: SignatureForm, keys: Iterable[SigningKey], delivery_id: str, timestamp: int, body: bytes
) -> str:
    match form:
        case SignatureForm.RELAY:
            return ",".join(sign_relay(_shared(key), timestamp, body) for key in keys)
        case SignatureForm.STANDARD:
            return " ".join(
                sign_asymmetric(key, delivery_id, timestamp, body)
                if isinstance(key, Ed25519Key)
                else sign_standard(key, delivery_id, timestamp, body)
                for key in keys
            )
        case SignatureForm.NONE:
            raise BadSecretError("nothing is signed in this form")


def _shared(key: SigningKey) -> Secret:
    if isinstance(key, Ed25519Key):
        raise BadSecretError("a key pair signs in the standard form only")
    return key


def fresh(sent_at: datetime, now: datetime) -> bool:
    """Say whether a signature's timestamp may still be trusted.

    Both are aware UTC; the window is 5 minutes either way. Source: docs/decisions/0001.
    """
    return abs(now - sent_at) <= FRESHNESS


def verify(
    body: bytes | str,
    headers: Mapping[str, str],
    secrets: str | Secret | Iterable[str | Secret],
    received_at: datetime,
) -> bool:
    """Say whether a webhook is genuine and fresh; never raises, whatever it is given.

    `body` is the raw request body (text is taken as its UTF-8). `secrets` is one secret or every
    live one. `received_at` is aware UTC, when the request came in, also if it is checked later.
    Reads Relay's headers or those of Standard Webhooks, whichever are there.
    """
    try:
        return _genuine(
            body.encode() if isinstance(body, str) else bytes(body),
            {str(name).lower(): value for name, value in headers.items()},
            [_secret(each) for each in ([secrets] if isinstance(secrets, str | Secret) else secrets)],
            received_at,
        )
    except (ValueError, TypeError, AttributeError, LookupError, OverflowError):
        return False


def _genuine(body: bytes, headers: Mapping[str, str], secrets: list[Secret], received_at: datetime) -> bool:
    standard = "webhook-signature" in headers and "relay-signature" not in headers
    given = headers["webhook-signature" if standard else "relay-signature"]
    stamp = headers.get("webhook-timestamp" if standard else "relay-timestamp", "")
    if len(given) > _MAX_HEADER or not _SECONDS.fullmatch(stamp):
        return False
    if not fresh(datetime.fromtimestamp(int(stamp), UTC), received_at):
        return False
    delivery_id = headers.get("webhook-id", "")
    if standard and not _ID.fullmatch(delivery_id):
        return False
    candidates = [part.encode() for part in re.split(r" +" if standard else r", *", given)]
    good = False
    for secret in filter(_usable, secrets):
        expected = _expected(standard, secret, delivery_id, int(stamp), body)
        for candidate in candidates:
            good |= hmac.compare_digest(expected, candidate)
    return good


def _secret(given: str | Secret) -> Secret:
    return given if isinstance(given, Secret) else Secret(given)


def _usable(secret: Secret) -> bool:
    try:
        standard_key(secret)
    except BadSecretError:
        return False
    return True


def _expected(standard: bool, secret: Secret, delivery_id: str, timestamp: int, body: bytes) -> bytes:  # noqa: FBT001 - a private switch between two forms
    if standard:
        return sign_standard(secret, delivery_id, timestamp, body).encode()
    return sign_relay(secret, timestamp, body).encode()
