"""Cutting an expression or a PartiQL statement into tokens, and walking along them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NoReturn

from chalicelib.adapters.aws_limits.refusal import refuse


class Kind(StrEnum):
    """What a token is."""

    WORD = "word"
    QUOTED = "quoted"
    NAME = "name"
    VALUE = "value"
    TEXT = "text"
    NUMBER = "number"
    OPERATOR = "operator"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """One token: its kind, its text as written, where it begins, and a keyword or operator in capitals."""

    kind: Kind
    text: str
    at: int
    key: str = ""


EXPRESSION = re.compile(
    r"""(?P<skip>[ \t\r\n]+)
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<name>\#[A-Za-z0-9_]+)
    | (?P<value>:[A-Za-z0-9_]+)
    | (?P<number>[0-9]+)
    | (?P<operator><>|<=|>=|[-+*/=<>(),.\[\]])
    """,
    re.VERBOSE,
)
STATEMENT = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|/\*.*?\*/)
    | (?P<word>[A-Za-z_][A-Za-z0-9_$]*)
    | (?P<quoted>"(?:[^"]|"")*")
    | (?P<text>'(?:[^']|'')*')
    | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<operator><<|>>|<>|!=|<=|>=|[-+*/%=<>(),.\[\]{}:;?])
    """,
    re.VERBOSE | re.DOTALL,
)


@lru_cache(maxsize=1024)
def tokens_of(text: str, language: re.Pattern[str]) -> tuple[tuple[Token, ...], int]:
    """Return the tokens of the text and where it stopped being readable, or its length."""
    tokens: list[Token] = []
    place = 0
    while place < len(text):
        found = language.match(text, place)
        if found is None or found.lastgroup is None:
            break
        if found.lastgroup != "skip":
            tokens.append(_token(Kind(found.lastgroup), found.group(), place))
        place = found.end()
    return (*tokens, Token(Kind.END, "", place)), place


def _token(kind: Kind, text: str, at: int) -> Token:
    return Token(kind, text, at, text.upper() if kind in {Kind.WORD, Kind.OPERATOR} else "")


class Cursor:
    """A place among the tokens of one text, which knows what the text is called when it must be refused."""

    def __init__(self, text: str, language: re.Pattern[str], where: str) -> None:
        """Begin at the first token; refuse a character that no token begins with."""
        self.where = where
        self._tokens, end = tokens_of(text, language)
        self._place = 0
        if end < len(text):
            refuse(where, f"has an unexpected {text[end]!r} at {end}")

    @property
    def token(self) -> Token:
        """The token that comes next."""
        return self._tokens[self._place]

    @property
    def after(self) -> Token:
        """The token after the next one."""
        return self._tokens[min(self._place + 1, len(self._tokens) - 1)]

    def take(self) -> Token:
        """Return the next token and step over it."""
        token = self.token
        if token.kind is not Kind.END:
            self._place += 1
        return token

    def at(self, *texts: str) -> bool:
        """Say whether the next token is one of these operators or words, words in any case."""
        return self._tokens[self._place].key in texts

    def accept(self, *texts: str) -> str | None:
        """Step over one of these operators or words and return it in capitals, or return None."""
        key = self._tokens[self._place].key
        if key not in texts:
            return None
        self._place += 1
        return key

    def expect(self, *texts: str) -> str:
        """Step over one of these operators or words, or refuse the text."""
        found = self.accept(*texts)
        if found is None:
            self.refuse_token(f"expected {' or '.join(texts)}")
        return found

    def expect_end(self) -> None:
        """Refuse anything that is left over."""
        if self.token.kind is not Kind.END:
            self.refuse_token("expected nothing more")

    def refuse(self, rule: str) -> NoReturn:
        """Refuse the text for breaking a rule."""
        refuse(self.where, rule)

    def refuse_token(self, rule: str) -> NoReturn:
        """Refuse the text at the next token; a literal is not shown, since it may be a secret."""
        token = self.token
        shown = "a literal" if token.kind is Kind.TEXT else token.text or "the end"
        refuse(self.where, f"syntax: {rule} at {token.at}, found {shown}")
