"""Writes the certificate authorities as OpenSSL looks them up one by one: a file named by its subject's hash.

A TLS context that reads them all takes fifty times as long to make, at every cold start.
"""

import hashlib
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n?", re.DOTALL)
_SEQUENCE, _SET, _VERSION, _UTF8, _PRINTABLE, _T61, _IA5 = 0x30, 0x31, 0xA0, 0x0C, 0x13, 0x14, 0x16
_UNIVERSAL, _BMP = 0x1C, 0x1E
_CODED: Final = {
    _UTF8: "utf-8",
    _PRINTABLE: "ascii",
    _T61: "latin-1",
    _IA5: "ascii",
    _UNIVERSAL: "utf-32-be",
    _BMP: "utf-16-be",
}
"""The string types that OpenSSL compares by their characters, and how they are coded."""
_LONG: Final = 0x80


def write(bundle: Path, folder: Path) -> int:
    """Write each certificate of a PEM bundle into a new folder; gives how many there are."""
    folder.mkdir(parents=True)
    written = 0
    for pem in _PEM.findall(bundle.read_text(encoding="utf-8")):
        name = subject_hash(ssl.PEM_cert_to_DER_cert(pem))
        number = sum(1 for _ in folder.glob(f"{name}.*"))
        (folder / f"{name}.{number}").write_text(pem, encoding="utf-8")
        written += 1
    return written


def subject_hash(certificate: bytes) -> str:
    """Give the name that `openssl x509 -subject_hash` gives a DER certificate.

    SHA-1 over the subject with its texts in UTF-8, lower case and single blanks, less the outermost frame;
    the first four bytes, the last of them first.
    """
    (_, outer), *_ = _parts(certificate)
    (_, signed), *_ = _parts(outer)
    fields = [part for part in _parts(signed) if part[0] != _VERSION]
    _, subject = fields[4]  # after serial number, algorithm, issuer and validity
    canonical = b"".join(_canonical_set(part) for _, part in _parts(subject))
    digest = hashlib.sha1(canonical, usedforsecurity=False).digest()
    return digest[3::-1].hex()


def _canonical_set(names: bytes) -> bytes:
    return _framed(_SET, b"".join(sorted(_canonical_pair(pair) for _, pair in _parts(names))))


def _canonical_pair(pair: bytes) -> bytes:
    (kind, identifier), (coded, value) = _parts(pair)
    if coded in _CODED:
        text = " ".join(part for part in re.split(r"[ \t\n\v\f\r]+", value.decode(_CODED[coded])) if part)
        lowered = "".join(each.lower() if each.isascii() else each for each in text)
        coded, value = _UTF8, lowered.encode()
    return _framed(_SEQUENCE, _framed(kind, identifier) + _framed(coded, value))


def _parts(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Walk the tagged values of a DER content."""
    place = 0
    while place < len(content):
        tag, length, place = content[place], content[place + 1], place + 2
        if length >= _LONG:
            size = length - _LONG
            length, place = int.from_bytes(content[place : place + size], "big"), place + size
        yield tag, content[place : place + length]
        place += length


def _framed(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < _LONG:
        return bytes((tag, length)) + content
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes((tag, _LONG + len(size))) + size + content
