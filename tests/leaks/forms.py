"""The forms in which a secret may turn up: as it is, in base64 wherever it begins, in hex, URL-encoded."""

import base64
import binascii
import re
from collections.abc import Iterator
from urllib.parse import quote

SHORTEST = 8
_ARMOUR = "-----"
"""It stands in every PEM text, around what is secret and what is not."""
_PREFIXES = ("whsec_", "whsk_")
_WORD = re.compile(rb"[!-~]+")
_WORDS = re.compile(r"[^\s,;=\"']+")


def forms(secret: str) -> dict[str, str]:
    """Give every form that is looked for, each with how it is called; a short word stands for nothing."""
    found: dict[str, str] = {}
    for piece in _pieces(secret):
        for how, form in _forms(piece):
            if len(form) >= SHORTEST:
                found.setdefault(form, how)
    return found


def _pieces(secret: str) -> Iterator[bytes]:
    yield secret.encode("utf-8", "surrogatepass")
    for word in _WORDS.findall(secret):
        if len(word) >= SHORTEST and _ARMOUR not in word:
            yield word.encode("utf-8", "surrogatepass")
    for prefix in _PREFIXES:
        if secret.startswith(prefix):
            key = secret.removeprefix(prefix)
            yield key.encode()
            try:
                yield base64.b64decode(key, validate=True)
            except (binascii.Error, ValueError):
                continue


def _forms(piece: bytes) -> Iterator[tuple[str, str]]:
    if len(piece) < SHORTEST:
        return
    if _WORD.fullmatch(piece):
        yield "as it is", piece.decode()
    yield "URL-encoded", quote(piece, "")
    yield "in hex", piece.hex()
    yield "in hex", piece.hex().upper()
    for shift in range(3):
        # The first characters also hold bits of what stands before, the last ones of what follows.
        coded = base64.b64encode(bytes(shift) + piece).decode()
        inner = coded[-(-shift * 8 // 6) : (shift + len(piece)) * 8 // 6]
        yield "in base64", inner
        yield "in base64", inner.translate(str.maketrans("+/", "-_"))
