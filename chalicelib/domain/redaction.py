"""Redaction: what a payload's sensitive paths mark is hidden in whatever is shown, and its echoes with it.

The bytes that are kept and sent stay as they are; this is for eyes only, and happens on reading. What
cannot be read as JSON is hidden whole: nothing can say what of it is sensitive.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import cached_property

from chalicelib.domain import escaped
from chalicelib.domain.secret import MASK
from chalicelib.domain.sensitive import Path, below

WORD_MIN = 4
"""A value shorter than this is no echo inside of a word: a `1` would be one everywhere."""
WORK_MAX = 40_000_000
"""How many comparisons, about, one text may cost; one that would cost more is hidden whole."""
FORMS_MAX = 2_000
"""For how many texts one may be searched; beyond, it is hidden whole: the search takes long to prepare."""
_ROUNDS = 8
_EXPONENT_MAX = 40
_TOKEN = re.compile(
    r'(?P<text>"(?:[^"\\\x00-\x1f]++|\\.)*+")'
    r"|(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<word>true|false|null)|(?P<opens>[\[{])"
)
_BLANK = re.compile(r"[ \t\n\r]*")
_CLOSERS = {"{": "}", "[": "]"}


class NotJsonError(ValueError):
    """A text that is no JSON."""


@dataclass(frozen=True, slots=True)
class Token:
    """A text, a number or a member's name where it stands; `value` is what it says."""

    start: int
    end: int
    value: str
    quoted: bool


@dataclass(slots=True)
class Marked:
    """What paths make of a JSON text: spans to hide, values that are sensitive, and the other tokens."""

    hidden: list[tuple[int, int]] = field(default_factory=list)
    values: set[str] = field(default_factory=set)
    shown: list[Token] = field(default_factory=list)


@dataclass(slots=True)
class _Open:
    """An object or array that is being read; `hides`: it is marked, and nothing around it is."""

    start: int
    closer: str
    live: tuple[Path, ...]
    marked: bool
    hides: bool
    place: int = -1


def mark(text: str, paths: Iterable[Path]) -> Marked:
    """Find what paths mark in a JSON text, or raise NotJsonError."""
    return _Reader(text).read(tuple(paths))


def values_in(body: bytes, paths: Sequence[Path]) -> frozenset[str] | None:
    """Give the sensitive values of a payload, or None when it cannot be read as JSON."""
    try:
        return frozenset(mark(body.decode(), paths).values)
    except ValueError:
        return None


def payload(body: bytes, paths: Sequence[Path]) -> str | None:
    """Write a payload for display, all but what is hidden as it was posted; None: it is hidden whole."""
    try:
        return _json(body.decode(), paths, frozenset())
    except ValueError:
        return None


def response(start: bytes, paths: Sequence[Path], values: frozenset[str] | None, *, cut: bool) -> bytes:
    """Write the start of an answer for display; `values` are its request's (None: nobody can say).

    JSON goes by the paths too. What may be a piece of JSON, or is no text, is hidden whole; in other text
    echoes are masked. `cut`: there was more.
    """
    if not start:
        return start
    hidden = MASK.encode()
    if values is None:
        return hidden
    try:
        text = start.decode()
    except UnicodeDecodeError:
        return hidden
    try:
        shown = _json(text, paths, values)
    except NotJsonError:
        shown = None if "{" in text or "[" in text else words(text, values, cut=cut)
    return hidden if shown is None else shown.encode("utf-8", "replace")


def words(text: str, values: Iterable[str], *, cut: bool = False) -> str | None:
    """Mask echoes of values in plain text, also of one that a cut has left the beginning of.

    None: it is hidden whole, as that would take too long or not come to an end.
    """
    echoes = _Echoes(values, len(text))
    if echoes.take_too_long(text):
        return None
    masked = echoes.masked(text)
    return masked if masked is None or not cut else echoes.without_start(masked)


def _json(text: str, paths: Sequence[Path], values: frozenset[str]) -> str | None:
    found = mark(text, paths)
    echoes = _Echoes(found.values | values, max((len(each.value) for each in found.shown), default=0))
    if echoes.take_too_long(text):
        return None
    pieces = [(start, end, f'"{MASK}"') for start, end in found.hidden]
    for token in found.shown:
        masked = echoes.masked(token.value)
        if masked is None:
            return None
        if masked != token.value or (not token.quoted and plain_number(token.value) in echoes.values):
            pieces.append((token.start, token.end, json.dumps(masked if token.quoted else MASK)))
    return _with(text, pieces)


def _with(text: str, pieces: Iterable[tuple[int, int, str]]) -> str:
    """Put something else in the place of pieces of a text that do not overlap."""
    parts, at = [], 0
    for start, end, instead in sorted(pieces):
        parts += [text[at:start], instead]
        at = end
    return "".join((*parts, text[at:]))


def plain_number(digits: str) -> str:
    """Write a JSON number as most programs write it: 4111.0 and 4.111e3 are both 4111."""
    try:
        number = Decimal(digits)
    except InvalidOperation:
        return digits
    if not number.is_finite() or abs(number.adjusted()) > _EXPONENT_MAX:
        return digits
    plain = f"{number:f}"
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


class _Echoes:
    """Sensitive values as they may come back: as they are, or escaped for JSON, HTML or a URL.

    `longest` is that of the texts they are looked for in: what is longer is in none of them.
    """

    def __init__(self, values: Iterable[str], longest: int) -> None:
        self._longest = longest
        self.values = frozenset(each for each in values if each.strip() and each.strip("*"))
        few = self.values if len(self.values) <= FORMS_MAX else ()
        forms = {form for each in few for form in escaped.forms(each)}
        self._forms = sorted(forms, key=lambda each: (-len(each), each))

    def take_too_long(self, text: str) -> bool:
        """Say whether to look for all of them in a text would take too long."""
        return max(len(self.values), len(self._forms)) > FORMS_MAX or len(text) * len(self._forms) > WORK_MAX

    def masked(self, text: str) -> str | None:
        """Mask every echo; None when masking makes new ones without end."""
        for _ in range(_ROUNDS):
            if self._pattern.search(text) is None:
                return text
            text = self._pattern.sub(MASK, text)
        return None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        fitting = [each for each in self._forms if len(each) <= self._longest]
        return re.compile("|".join(map(_as_pattern, fitting)) or r"(?!)")

    def without_start(self, text: str) -> str:
        """Mask the beginning of an echo that ends the text."""
        in_order = sorted(self._forms)
        longest = max(map(len, in_order), default=0)
        for start in range(max(0, len(text) - longest + 1), len(text)):
            end = text[start:]
            after = bisect_left(in_order, end)
            if after < len(in_order) and in_order[after].startswith(end):
                return text[:start] + MASK
        return text


def _as_pattern(form: str) -> str:
    exact = re.escape(form)
    return exact if len(form) >= WORD_MIN else rf"(?<!\w){exact}(?!\w)"


class _Reader:
    """Reads one JSON text from its start to its end; nesting costs memory, never the stack."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found = Marked()
        self._open: list[_Open] = []

    def read(self, paths: tuple[Path, ...]) -> Marked:
        at, live = self._blank(0), paths
        going = True
        while going:
            at, opened = self._value(at, live)
            if not opened:
                at = self._close(at)
            going = bool(self._open)
            if going:
                at, live = self._child(at)
        if self._blank(at) != len(self._text):
            raise NotJsonError("something follows the value")
        return self._found

    def _value(self, at: int, live: tuple[Path, ...]) -> tuple[int, bool]:
        """Read a scalar, or open what has something in it."""
        token = _TOKEN.match(self._text, at)
        if token is None:
            raise NotJsonError("no value begins here")
        within = bool(self._open) and self._open[-1].marked
        marked = within or () in live
        if token["opens"]:
            closer = _CLOSERS[token["opens"]]
            self._open.append(_Open(at, closer, live, marked, marked and not within))
            inside = self._blank(at + 1)
            return inside, not self._text.startswith(closer, inside)
        if marked:
            self._found.values.update(_values(token))
            if not within:
                self._found.hidden.append(token.span())
        elif not token["word"]:
            self._found.shown.append(_token(token))
        return token.end(), False

    def _close(self, at: int) -> int:
        """Close all that ends here; then another child follows, or nothing is open any more."""
        at = self._blank(at)
        while self._open and self._text.startswith(self._open[-1].closer, at):
            closed = self._open.pop()
            at += 1
            if closed.hides:
                self._found.hidden.append((closed.start, at))
            at = self._blank(at)
        if not self._open:
            return at
        if not self._text.startswith(",", at):
            raise NotJsonError("a comma is missing")
        return self._blank(at + 1)

    def _child(self, at: int) -> tuple[int, tuple[Path, ...]]:
        """Come to the next member or item of what is open."""
        around = self._open[-1]
        if around.closer == "]":
            around.place += 1
            return at, below(around.live, around.place)
        name = _TOKEN.match(self._text, at)
        if name is None or not name["text"]:
            raise NotJsonError("a member has no name")
        if not around.marked:
            self._found.shown.append(_token(name))
        colon = self._blank(name.end())
        if not self._text.startswith(":", colon):
            raise NotJsonError("a colon is missing")
        return self._blank(colon + 1), below(around.live, _said(name["text"]))

    def _blank(self, at: int) -> int:
        found = _BLANK.match(self._text, at)
        return found.end() if found else at


def _token(found: re.Match[str]) -> Token:
    quoted = found["text"] is not None
    return Token(*found.span(), _said(found["text"]) if quoted else found[0], quoted)


def _values(found: re.Match[str]) -> Iterable[str]:
    if found["text"]:
        return (_said(found["text"]),)
    return () if found["word"] else (found[0], plain_number(found[0]))


def _said(quoted: str) -> str:
    try:
        return str(json.loads(quoted))
    except ValueError as error:
        raise NotJsonError("a text cannot be read") from error
