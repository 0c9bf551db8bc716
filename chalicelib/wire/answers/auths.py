"""What an endpoint is authenticated with, as the API shows it: never a secret."""

from typing import Any

from typing_extensions import TypedDict

from chalicelib.domain.auth import Auth
from chalicelib.domain.secret import MASK


class BasicAnswer(TypedDict):
    """A user name and a password, which is masked."""

    username: str
    password: str


class AuthAnswer(TypedDict):
    """What an endpoint is authenticated with, secrets masked."""

    basic: BasicAnswer | None


def auth(of: Auth[Any] | None) -> AuthAnswer | None:
    """Show what an endpoint is authenticated with."""
    if of is None:
        return None
    return {"basic": {"username": of.basic.username, "password": MASK} if of.basic else None}
