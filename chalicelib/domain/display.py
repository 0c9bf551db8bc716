"""What may be shown of things that hold credentials: a URL, and an answer that echoes what it was sent.

One rule for both: what `displayed_url` hides of a URL is what `masked` hides wherever it turns up.
"""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote, urlsplit

from chalicelib.domain import escaped, tunnel
from chalicelib.domain.chat import platform
from chalicelib.domain.cloud import address
from chalicelib.domain.secret import MASK, Secret

WORD_MIN = 6  # less is masked nowhere: it would mask half of any text, and guards nothing
_TOKEN_MIN, _TOKEN_SURE = 8, 24
_WORDS = re.compile(r"[^\s,;=\"'<>]+")
_UNTOUCHED = re.compile(r"[A-Za-z0-9]+", re.ASCII)
_MIXED = (re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])", re.ASCII), re.compile(r"(?=.*[a-z])(?=.*[A-Z])", re.ASCII))


def displayed_url(url: str) -> str:
    """Give the display form of a URL: scheme, host, port and path, its token-like segments masked.

    Values of the query are masked always, and so is a parameter without a name. What cannot be read as
    a URL is masked whole. The address of a chat, a queue or a bus has
    nothing to hide. Source: docs/decisions/0014.
    """
    if platform.transport_of(url) or address.transport_of(url) or url == tunnel.URL:
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        return MASK
    if not parts.netloc:
        return MASK
    path = "/".join(MASK if _token_like(each) else each for each in parts.path.split("/"))
    host = parts.netloc.rpartition("@")[2]
    query = "&".join(map(_displayed_parameter, parts.query.split("&")))
    return f"{parts.scheme}://{host}{path}" + (f"?{query}" if parts.query else "")


def url_tokens(url: str) -> tuple[Secret, ...]:
    """Give what the display form of a URL hides, as it stands there."""
    if platform.transport_of(url) or address.transport_of(url):
        return ()
    parts = urlsplit(url)
    segments = [each for each in parts.path.split("/") if _token_like(each)]
    parameters = [each.partition("=") for each in parts.query.split("&")]
    names = [name for name, equals, _ in parameters if not equals or _token_like(name)]
    return tuple(Secret(each) for each in (*segments, *names, *(value for _, _, value in parameters)) if each)


def masked(text: bytes, confidential: Iterable[Secret], *, cut: bool = False) -> bytes:
    """Mask in an answer what it was sent in confidence, also where that was encoded on the way.

    Each is looked for whole and word by word, since `Bearer x` may come back as `x`. With `cut` the text
    breaks off, and what it ends in may be the beginning of one.
    """
    if len(text) < WORD_MIN:
        return text
    suspected = [each for each in confidential if cut or _may_hold(text, each)]
    forms = sorted({form for each in suspected for form in _forms(each)}, key=len, reverse=True)
    mask = MASK.encode()
    for form in forms:
        text = text.replace(form, mask)
    begun = max((_begun(text, form) for form in forms), default=0) if cut else 0
    return text[: len(text) - begun] + mask if begun else text


def _token_like(segment: str) -> bool:
    plain = unquote(segment)
    if len(plain) < _TOKEN_MIN:
        return False
    return len(plain) >= _TOKEN_SURE or any(each.match(plain) for each in _MIXED)


def _displayed_parameter(parameter: str) -> str:
    name, equals, _ = parameter.partition("=")
    return (MASK if _token_like(name) else name) + f"={MASK}" if equals else MASK


def _may_hold(text: bytes, secret: Secret) -> bool:
    """Say whether a text may hold a form of a secret: no escaping touches its letters and digits.

    Almost no answer does, and making all forms of a secret takes longer than sending a request.
    """
    return any(_core(word) in text for word in _words(secret))


def _core(word: str) -> bytes:
    return max(_UNTOUCHED.findall(word), key=len, default="").encode("ascii")


def _words(secret: Secret) -> Iterator[str]:
    whole = secret.reveal()
    for plain in {whole, unquote(whole)}:
        yield from (word for word in {plain, *_WORDS.findall(plain)} if len(word) >= WORD_MIN)


def _forms(secret: Secret) -> Iterator[bytes]:
    for word in _words(secret):
        yield from (each.encode("utf-8", "surrogatepass") for each in escaped.forms(word))


def _begun(text: bytes, form: bytes) -> int:
    """Count the bytes at the end of a text that begin a form; fewer than a word has tell nothing."""
    longest = min(len(form) - 1, len(text))
    return next((size for size in range(longest, WORD_MIN - 1, -1) if text.endswith(form[:size])), 0)
