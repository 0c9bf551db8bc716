"""Certificates as PEM text: taken apart, and read as far as Relay needs to: until when they are good.

What OpenSSL makes of them is the adapters'.
"""

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime

_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----", re.ASCII)
_KEY = re.compile(r"-----BEGIN ((?:RSA |EC |)PRIVATE KEY)-----[A-Za-z0-9+/=\s]+-----END \1-----", re.ASCII)
_SEQUENCE, _VERSION = 0x30, 0xA0
_TIMES = {0x17: "%y%m%d%H%M%SZ", 0x18: "%Y%m%d%H%M%SZ"}
_LONG = 0x80
_BEFORE_VALIDITY = 3
_LINE = 64


@dataclass(frozen=True, slots=True)
class Certificate:
    """One certificate: its bytes in DER."""

    der: bytes

    @property
    def fingerprint(self) -> str:
        """Give the SHA-256 of its bytes in hex."""
        return hashlib.sha256(self.der).hexdigest()

    @property
    def expires_s(self) -> int:
        """Say until when it is good, in Unix seconds; raises ValueError when that cannot be read."""
        return _expires_s(self.der)


def certificates(pem: str) -> tuple[Certificate, ...]:
    """Read every certificate of a PEM text, in order; raises ValueError for one that is none."""
    found = []
    for block in _BLOCK.findall(pem):
        try:
            found.append(Certificate(base64.b64decode("".join(block.split()), validate=True)))
        except binascii.Error as error:
            raise ValueError("no base64") from error
    for each in found:
        _expires_s(each.der)
    return tuple(found)


def private_key(pem: str) -> str | None:
    """Find the one private key of a PEM text that needs no passphrase; None when there is none."""
    found = [match[0] for match in _KEY.finditer(pem)]
    return found[0] + "\n" if len(found) == 1 else None


def written(of: tuple[Certificate, ...]) -> str:
    """Write certificates as PEM, without whatever stood around them."""
    return "".join(map(_pem, of))


def _pem(of: Certificate) -> str:
    text = base64.b64encode(of.der).decode()
    lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
    return "\n".join(["-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""])


def _expires_s(der: bytes) -> int:
    """Walk to `notAfter` (RFC 5280 §4.1): version, serial number, algorithm and issuer stand before it."""
    try:
        whole, _ = _inside(der, 0, _SEQUENCE)
        at, _ = _inside(der, whole, _SEQUENCE)
        if der[at] == _VERSION:
            at = _after(der, at)
        for _ in range(_BEFORE_VALIDITY):
            at = _after(der, at)
        begins, _ = _inside(der, at, _SEQUENCE)
        ends = _after(der, begins)
        start, end = _inside(der, ends, der[ends])
        form = _TIMES[der[ends]]
        moment = datetime.strptime(der[start:end].decode("ascii"), form).replace(tzinfo=UTC)
        return int(moment.timestamp())
    except (IndexError, KeyError, UnicodeDecodeError, ValueError) as error:
        raise ValueError("this is no certificate") from error


def _inside(der: bytes, at: int, tag: int) -> tuple[int, int]:
    """Give where the content of a value begins and ends."""
    if der[at] != tag:
        raise ValueError("another value was expected")
    size, start = der[at + 1], at + 2
    if size >= _LONG:
        count = size - _LONG
        size, start = int.from_bytes(der[start : start + count], "big"), start + count
    if start + size > len(der):
        raise ValueError("it breaks off")
    return start, start + size


def _after(der: bytes, at: int) -> int:
    return _inside(der, at, der[at])[1]
