"""A second opinion on signatures: both header forms, written from the wire contract alone.

Nothing of the product may be imported here, or signer and checker could share one mistake.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

FRESH_FOR_S = 300
MAX_SIGNATURE_HEADER = 4096
MIN_KEY_BYTES, MAX_KEY_BYTES = 24, 64
PREFIX = "whsec_"
_TIMESTAMP = re.compile(r"[0-9]{1,12}", re.ASCII)
_RELAY_SIGNATURE = re.compile(r"v1=([0-9a-f]{64})", re.ASCII)
_STANDARD_SIGNATURE = re.compile(r"v1,([A-Za-z0-9+/]{43}=)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Secret:
    """A registered secret and the two keys that are made of it.

    `decoded` is None when the part after `whsec_` is not strict base64 of 24 to 64 bytes.
    """

    text: str
    whole: bytes
    decoded: bytes | None
    endpoint: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a request was signed by a known secret and is fresh; if not, `reason` says why."""

    verified: bool
    reason: str | None
    secret: Secret | None = None


class _RefusedError(Exception):
    """The request cannot be trusted; the text says why."""


def make_secret(text: str, endpoint: str | None = None) -> Secret:
    """Derive the keys of a secret; ValueError when it is not `whsec_` and something in ASCII."""
    if not (text.isascii() and text.startswith(PREFIX) and len(text) > len(PREFIX)):
        raise ValueError("a secret is the text 'whsec_' and base64 after it, exactly as it was shown")
    return Secret(text, text.encode(), _decoded(text.removeprefix(PREFIX)), endpoint)


def _decoded(text: str) -> bytes | None:
    try:
        key = base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
    return key if MIN_KEY_BYTES <= len(key) <= MAX_KEY_BYTES else None


def check(headers: Mapping[str, str], body: bytes, secrets: Iterable[Secret], now_s: float) -> Verdict:
    """Judge one request by every form of signature that it carries; all of them must hold.

    Header names are lower case and values latin-1 text. Never raises, whatever the headers say.
    """
    known = list(secrets)
    try:
        signer = None
        if "relay-signature" in headers or "relay-timestamp" in headers:
            signer = _check_relay(headers, body, known, now_s)
        if "webhook-signature" in headers or "webhook-timestamp" in headers:
            signer = _check_standard(headers, body, known, now_s)
    except _RefusedError as refused:
        return Verdict(verified=False, reason=str(refused))
    if signer is None:
        return Verdict(verified=False, reason="there are no signature headers")
    return Verdict(verified=True, reason=None, secret=signer)


def _check_relay(headers: Mapping[str, str], body: bytes, secrets: list[Secret], now_s: float) -> Secret:
    stamp = _fresh_stamp(headers.get("relay-timestamp", ""), now_s)
    given = _signatures(headers.get("relay-signature", ""), ",", _RELAY_SIGNATURE)
    signed = stamp + b"." + body
    for secret in secrets:
        expected = hmac.digest(secret.whole, signed, "sha256").hex().encode()
        if _any_equal(expected, given):
            return secret
    raise _no_match(secrets)


def _check_standard(headers: Mapping[str, str], body: bytes, secrets: list[Secret], now_s: float) -> Secret:
    name = headers.get("webhook-id", "")
    if not name:
        raise _RefusedError("webhook-id is missing")
    stamp = _fresh_stamp(headers.get("webhook-timestamp", ""), now_s)
    given = _signatures(headers.get("webhook-signature", ""), " ", _STANDARD_SIGNATURE)
    signed = name.encode("latin-1", "replace") + b"." + stamp + b"." + body
    for secret in secrets:
        if secret.decoded is None:
            continue
        expected = base64.b64encode(hmac.digest(secret.decoded, signed, "sha256"))
        if _any_equal(expected, given):
            return secret
    raise _no_match(secrets)


def _fresh_stamp(text: str, now_s: float) -> bytes:
    if not _TIMESTAMP.fullmatch(text):
        raise _RefusedError("the timestamp is not 1 to 12 ASCII digits")
    age_s = now_s - int(text)
    if abs(age_s) > FRESH_FOR_S:
        where = "old" if age_s > 0 else "ahead of the clock"
        raise _RefusedError(f"the timestamp is {abs(age_s):.0f} s {where}; {FRESH_FOR_S} s are allowed")
    return text.encode()


def _signatures(text: str, separator: str, form: re.Pattern[str]) -> list[bytes]:
    if len(text) > MAX_SIGNATURE_HEADER:
        raise _RefusedError(f"the signature header is over {MAX_SIGNATURE_HEADER} characters")
    found = [match[1].encode() for part in text.split(separator) if (match := form.fullmatch(part))]
    if not found:
        raise _RefusedError("the signature header holds no well-formed v1 signature")
    return found


def _any_equal(expected: bytes, given: list[bytes]) -> bool:
    equal = [hmac.compare_digest(expected, one) for one in given]
    return any(equal)


def _no_match(secrets: list[Secret]) -> _RefusedError:
    if not secrets:
        return _RefusedError("no secret is registered: POST it to /secret first")
    return _RefusedError(f"none of the {len(secrets)} registered secrets made this signature of these bytes")


class Secrets:
    """The registered secrets. Remembers which one signed for a target, so that many secrets stay cheap."""

    def __init__(self) -> None:
        """Start with none."""
        self._by_text: dict[tuple[str, str | None], Secret] = {}
        self._last: dict[str, Secret] = {}

    def __len__(self) -> int:
        """Count the registered secrets."""
        return len(self._by_text)

    def add(self, text: str, endpoint: str | None = None) -> None:
        """Register a secret beside the others, for everybody or under an endpoint's key."""
        self._by_text[text, endpoint] = make_secret(text, endpoint)

    def remove(self, text: str) -> bool:
        """Forget a secret wherever it is registered; say whether it was."""
        gone = [key for key in self._by_text if key[0] == text]
        for key in gone:
            del self._by_text[key]
        self._last.clear()
        return bool(gone)

    def clear(self) -> None:
        """Forget all of them."""
        self._by_text.clear()
        self._last.clear()

    def endpoints(self) -> list[str]:
        """List the endpoint keys that have a secret."""
        return sorted({key for _, key in self._by_text if key is not None})

    def judge(
        self, target: str, headers: Mapping[str, str], body: bytes, now_s: float, *, endpoint: str = ""
    ) -> Verdict:
        """Check a request against every secret, or only those of `endpoint` when it is named."""
        last = self._last.get(target)
        if last is not None:
            verdict = check(headers, body, (last,), now_s)
            if verdict.verified:
                return verdict
        verdict = check(headers, body, self._for(endpoint), now_s)
        if verdict.secret is not None:
            self._last[target] = verdict.secret
        return verdict

    def _for(self, endpoint: str) -> list[Secret]:
        if not endpoint:
            return list(self._by_text.values())
        return [secret for secret in self._by_text.values() if secret.endpoint == endpoint]
