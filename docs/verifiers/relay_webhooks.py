"""Verify webhooks of Relay: `genuine(request.headers, request.get_data(), [SECRET])`.

Python 3.10 or newer, nothing else; for endpoints signed with Ed25519 also PyNaCl (`pip install pynacl`).
"""

import base64
import hashlib
import hmac
import re
import time
from collections.abc import Iterable, Mapping

try:
    from nacl.exceptions import BadSignatureError
    from nacl.signing import VerifyKey
except ImportError:
    VerifyKey, BadSignatureError = None, ValueError

FRESH_FOR_S = 300
_SECRET = re.compile(r"whsec_[A-Za-z0-9+/]{32,88}={0,2}")


def genuine(headers: Mapping[str, str], body: bytes, keys: Iterable[str], now_s: float | None = None) -> bool:
    """Say whether a request is Relay's and fresh. It raises nothing, whatever was sent.

    `body` is what came, before any parsing. `keys` are all that count now: secrets (`whsec_…`), public keys
    (`whpk_…`). `now_s` is when the request came, if it is checked later.
    """
    given = {name.lower(): value for name, value in headers.items()}
    form = "relay" if "relay-signature" in given else "webhook"
    stamp, sender_id = given.get(f"{form}-timestamp", ""), given.get("webhook-id", "")
    if not re.fullmatch(r"[0-9]{1,12}", stamp):
        return False
    if abs((time.time() if now_s is None else now_s) - int(stamp)) > FRESH_FOR_S:
        return False
    if form == "webhook" and not re.fullmatch(r"[A-Za-z0-9_-]+", sender_id):
        return False
    signed = (f"{stamp}." if form == "relay" else f"{sender_id}.{stamp}.").encode() + body
    signatures = given.get(f"{form}-signature", "").split("," if form == "relay" else " ")
    return any(_made_by(key, form, signed, signature.strip()) for key in keys for signature in signatures)


def _made_by(key: str, form: str, signed: bytes, signature: str) -> bool:
    try:
        if form == "webhook" and key.startswith("whpk_") and signature.startswith("v1a,") and VerifyKey:
            public_key = VerifyKey(base64.b64decode(key[5:], validate=True))
            return bool(public_key.verify(signed, base64.b64decode(signature[4:], validate=True)))
        if not _SECRET.fullmatch(key):
            return False
        if form == "relay":
            made = "v1=" + hmac.new(key.encode(), signed, hashlib.sha256).hexdigest()
        else:
            secret = base64.b64decode(key[6:])
            made = "v1," + base64.b64encode(hmac.digest(secret, signed, "sha256")).decode()
        return hmac.compare_digest(made.encode(), signature.encode())
    except (ValueError, BadSignatureError):
        return False
