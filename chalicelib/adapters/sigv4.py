"""AWS's signature, version 4, for the one shape that its JSON services take: a POST of a body to `/`.

botocore's signer serves every shape of request and derives the day's key anew for each; here it is a
seventh of an AWS call's CPU. A test holds the two against one another.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from botocore.credentials import ReadOnlyCredentials

_ALGORITHM = "AWS4-HMAC-SHA256"
_KEYS = 16


@dataclass(frozen=True, slots=True)
class Scope:
    """What a signature is good for: a region and a service, by the name it signs under."""

    region: str
    service: str


def signed(
    headers: Mapping[str, str], body: bytes, scope: Scope, credentials: ReadOnlyCredentials, now: datetime
) -> dict[str, str]:
    """Give the headers of a request with its date, its session and its signature. Now is aware UTC.

    Header values hold no line breaks and no blanks at their ends.
    """
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    full = {**headers, "X-Amz-Date": stamp}
    if credentials.token:
        full["X-Amz-Security-Token"] = credentials.token
    lines = sorted((name.lower(), value) for name, value in full.items())
    names = ";".join(name for name, _ in lines)
    listed = "".join(f"{name}:{value}\n" for name, value in lines)
    request = f"POST\n/\n\n{listed}\n{names}\n{hashlib.sha256(body).hexdigest()}"
    within = f"{stamp[:8]}/{scope.region}/{scope.service}/aws4_request"
    text = f"{_ALGORITHM}\n{stamp}\n{within}\n{hashlib.sha256(request.encode()).hexdigest()}"
    signature = _mac(_key(credentials.secret_key, within), text).hex()
    credential = f"Credential={credentials.access_key}/{within}"
    full["Authorization"] = f"{_ALGORITHM} {credential}, SignedHeaders={names}, Signature={signature}"
    return full


@lru_cache(_KEYS)
def _key(secret: str, within: str) -> bytes:
    """Derive the key of a day, a region and a service."""
    key = f"AWS4{secret}".encode()
    for part in within.split("/"):
        key = _mac(key, part)
    return key


def _mac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
