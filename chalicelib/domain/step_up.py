"""Stepping up: what an admin's key may do only with a second factor shown moments before.

The assertion that is given for a code is signed by a key of the tenant's own, and good for five minutes,
one key and the actions it names. How wrong codes are counted is here too.
Source: docs/decisions/0012.
"""

import hashlib
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from enum import StrEnum

from chalicelib.domain.secret import Secret

ASSERTION_SECS = 300
STEP_SECS = 30
DRIFT_STEPS = 1
SECRET_BYTES = 20
SIGNING_BYTES = 32
WRONG_MAX = 5
LOCK_MS = 15 * 60_000
LOCK_MAX_MS = 24 * 3_600_000
DEVELOPMENT_SECRET = "RELAYLOCALDEVELOPMENTONLYSECRET2"  # noqa: S105 - of one's own machine, in the README
_FORM = "su1"
_PARTS = 3
_DOUBLINGS_MAX = 10


class ElevatedAction(StrEnum):
    """What an admin's key alone may not do: what a stolen one would be used for."""

    URL_CHANGE = "url_change"
    SECRET_ROTATION = "secret_rotation"  # noqa: S105 - the name of an action
    KEY_CREATION = "key_creation"
    PURGE = "purge"
    ENABLE_DELIVER = "enable_deliver"


@dataclass(frozen=True, slots=True)
class Assertion:
    """That a key's holder has shown the second factor, for these actions, until a Unix second."""

    tenant: str
    key_id: str
    actions: tuple[ElevatedAction, ...]
    expires_s: int

    def signed(self, key: Secret) -> str:
        """Write it with its signature, as it is sent."""
        said = [self.tenant, self.key_id, [each.value for each in self.actions], self.expires_s]
        body = _coded(json.dumps(said, separators=(",", ":")).encode())
        return f"{_FORM}.{body}.{_signature(body, key)}"

    def allows(self, tenant: str, key_id: str, action: ElevatedAction, now_s: int) -> bool:
        """Say whether it is of this key and good for an action at a moment."""
        return (
            (self.tenant, self.key_id) == (tenant, key_id)
            and action in self.actions
            and now_s < self.expires_s <= now_s + ASSERTION_SECS
        )


def verified(text: str, key: Secret) -> Assertion | None:
    """Read an assertion whose signature is right; None for anything else."""
    parts = text.split(".")
    if len(parts) != _PARTS or parts[0] != _FORM or not text.isascii():
        return None
    _, body, signature = parts
    if not hmac.compare_digest(signature, _signature(body, key)):
        return None
    tenant, key_id, actions, expires_s = json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return Assertion(tenant, key_id, tuple(map(ElevatedAction, actions)), expires_s)


@dataclass(frozen=True, slots=True)
class Tries:
    """How many codes of a key's were tried since the last right one, and until when no more are taken.

    A try counts before its code is looked at, so that many at once are no more guesses than one by one.
    """

    made: int = 0
    locked_until_ms: int = 0

    def one_more(self, now_ms: int) -> "Tries":
        """Count one; from the fifth on each locks, twice as long as the one before, a day at most."""
        made = self.made + 1
        if made < WRONG_MAX:
            return Tries(made)
        doublings = min(made - WRONG_MAX, _DOUBLINGS_MAX)
        return Tries(made, now_ms + min(LOCK_MS << doublings, LOCK_MAX_MS))


UNTRIED = Tries()


def _coded(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _signature(body: str, key: Secret) -> str:
    return _coded(hmac.digest(key.reveal().encode(), f"{_FORM}.{body}".encode(), hashlib.sha256))
