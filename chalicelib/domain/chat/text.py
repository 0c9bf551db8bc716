"""What a chat is told of an event: its type, then its payload, escaped and cut to what a message may have.

Cut after escaping, and only between what readers see as characters: never in a surrogate pair, a combining
or joined sequence, or an escape.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping

from chalicelib.domain import event as events
from chalicelib.domain.event import Event

CUT = "…"
_INDENT, _INDENT_MAX = "  ", 20
_LAST_OF_ONE_UNIT = "\uffff"
_ZWJ = "\u200d"
_WORDS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
_OPENING, _CLOSING = frozenset("[{"), frozenset("]}")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_EXTENDS = re.compile(
    "[\u200c\u200d\uff9e\uff9f\u1160-\u11ff\ud7b0-\ud7fb\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
)
_LEADS = re.compile("[\u1100-\u115f\ua960-\ua97c]")
_LED = re.compile("[\u1100-\u115f\ua960-\ua97c\uac00-\ud7a3]")
_REGIONAL = re.compile("[\U0001f1e6-\U0001f1ff]")


def rendered(event: Event, escapes: Mapping[str, str], units_max: int) -> str:
    """Write a message about an event: at most so many UTF-16 code units, an ellipsis where it is cut."""
    return fitted(f"{event.type}\n\n{_payload(event, units_max)}", escapes, units_max)


def fitted(text: str, escapes: Mapping[str, str], units_max: int) -> str:
    """Escape a text and cut it to so many UTF-16 code units, at least one, between two characters."""
    kept: list[str] = []
    used = room = 0
    for cluster in clusters(text[: units_max + 1]):
        piece = "".join(escapes.get(each, each) for each in cluster)
        used += units(piece)
        if used > units_max:
            return "".join(kept[:room]) + CUT
        kept.append(piece)
        if used < units_max:
            room = len(kept)
    return "".join(kept)


def units(text: str) -> int:
    """Count the UTF-16 code units of a text."""
    return len(text) + sum(each > _LAST_OF_ONE_UNIT for each in text)


def clusters(text: str) -> Iterator[str]:
    """Take a text apart into what readers see as characters, as Unicode's UAX 29 has them in the main."""
    began = 0
    for at in range(1, len(text)):
        if not _belongs(text, began, at):
            yield text[began:at]
            began = at
    if text:
        yield text[began:]


def _belongs(text: str, began: int, at: int) -> bool:
    """Say whether a code point belongs to the character that began before it."""
    before, here = text[at - 1], text[at]
    if before == "\r" or here in "\r\n":
        return before + here == "\r\n"
    if before == _ZWJ or _EXTENDS.match(here) or unicodedata.category(here)[0] == "M":
        return True
    if _REGIONAL.match(here):
        return at - began == 1 and bool(_REGIONAL.match(before))
    return bool(_LEADS.match(before) and _LED.match(here))


def _payload(event: Event, units_max: int) -> str:
    """Write a payload: small JSON on many lines, other text as it is, of anything else how much it is."""
    try:
        text = event.body.decode()
    except UnicodeDecodeError:
        text = "\0"
    if _UNPRINTABLE.search(text):
        return f"{len(event.body)} bytes of {event.content_type}"
    if events.is_json(event.content_type) and len(event.body) <= units_max:
        return indented(text)
    return text


def indented(text: str) -> str:
    """Write JSON on many lines; numbers stay as they were written, strings lose escapes they do not need."""
    lines: list[str] = []
    depth, before = 0, ""
    for word in _WORDS.findall(text):
        depth -= word in _CLOSING
        opened = before in _OPENING
        if (word in _CLOSING and not opened) or (word not in _CLOSING and (opened or before == ",")):
            lines.append("\n" + _INDENT * min(depth, _INDENT_MAX))
        lines.append(": " if word == ":" else _plain(word))
        depth += word in _OPENING
        before = word
    return "".join(lines)


def _plain(word: str) -> str:
    if "\\" not in word:
        return word
    plain = json.dumps(json.loads(word, strict=False), ensure_ascii=False)
    try:
        plain.encode()
    except UnicodeEncodeError:
        return word
    return plain
