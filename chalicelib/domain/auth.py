"""How Relay proves to an endpoint who it is, beside its signature.

What is secret of it is of type `S`: sealed as it is stored, a `Secret` where it is used.
"""

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from chalicelib.domain.secret import MASK, Secret

AUTHORIZATION = "Authorization"
WORD_MAX = 256
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Basic(Generic[S]):
    """A user name, which is shown, and a password (RFC 7617)."""

    username: str
    password: S


@dataclass(frozen=True, slots=True)
class Auth(Generic[S]):
    """Everything an endpoint is authenticated with; None for what it is not."""

    basic: Basic[S] | None = None

    @property
    def by_header(self) -> bool:
        """Say whether it sets the header `Authorization`."""
        return self.basic is not None

    def turned(self, turn: Callable[[S], T]) -> "Auth[T]":
        """Give it with each of its secrets turned into another form: sealed or opened."""
        basic = self.basic
        return Auth(Basic(basic.username, turn(basic.password)) if basic else None)


def basic_value(basic: Basic[Secret]) -> Secret:
    """Write the header's value of a user name and a password, in UTF-8."""
    pair = f"{basic.username}:{basic.password.reveal()}".encode()
    return Secret("Basic " + base64.b64encode(pair).decode())


def username_fault(text: str) -> str | None:
    """Say why a text cannot be a user name, or None when it can."""
    if not text or len(text) > WORD_MAX or ":" in text or _CONTROL.search(text):
        return f"1 to {WORD_MAX} characters without colons and control characters"
    return None


def secret_fault(text: str) -> str | None:
    """Say why a text cannot be a password, or None when it can."""
    if text == MASK:
        return "the value itself; the mask stands for one that cannot be read back"
    if not text or len(text) > WORD_MAX or _CONTROL.search(text):
        return f"1 to {WORD_MAX} characters without control characters"
    return None


def shown(auth: Auth[Any] | None) -> dict[str, Any] | None:
    """Show what an endpoint is authenticated with, its secrets masked."""
    if auth is None:
        return None
    basic = {"username": auth.basic.username, "password": MASK} if auth.basic else None
    return {"basic": basic}
