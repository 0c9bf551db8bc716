"""A text as it may come back: as it is, or escaped for JSON, HTML or a URL as some program does it."""

import html
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

_PLAIN = re.compile(r"[\w.~-]*", re.ASCII)
_SAFE_IN_HTML = tuple(
    str.maketrans({each: rf"\u{ord(each):04x}" for each in escaped}) for escaped in ("<>&", "<>&='")
)
_CAUTIOUS = str.maketrans({each: rf"\u{ord(each):04x}" for each in "<>&'+`"})
_HEX = re.compile(r"\\u[0-9a-f]{4}")
_NUMBERED = re.compile("[<>&\"']")
_PERCENT = re.compile("%[0-9A-F]{2}")
_KEPT_BY_BROWSERS = "!'()*"


def forms(value: str) -> Iterator[str]:
    """Give a value as programs write it: they differ in what they escape, and in how they write digits."""
    yield value
    if _PLAIN.fullmatch(value):
        return
    ascii_, plain = (json.dumps(value, ensure_ascii=each)[1:-1] for each in (True, False))
    for in_json in (ascii_, plain):
        yield from (in_json, in_json.replace("/", r"\/"))
    yield from (plain.translate(each) for each in _SAFE_IN_HTML)
    cautious = ascii_.replace(r"\"", r"\u0022").translate(_CAUTIOUS)
    yield _HEX.sub(lambda found: found[0][:2] + found[0][2:].upper(), cautious)
    in_html = html.escape(value)
    yield from (in_html, in_html.replace("&#x27;", "&#39;"), _NUMBERED.sub(_by_number, value))
    whole = value.encode("utf-8", "surrogatepass")
    for in_url in (quote(whole, ""), quote(whole), quote_plus(whole), quote(whole, _KEPT_BY_BROWSERS)):
        yield from (in_url, _PERCENT.sub(lambda found: found[0].lower(), in_url))


def _by_number(found: re.Match[str]) -> str:
    return f"&#{ord(found[0])};" if found[0] in "\"'" else html.escape(found[0])
