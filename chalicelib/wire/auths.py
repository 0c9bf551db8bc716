"""The shapes of `auth` in the bodies of endpoints, and how they are read."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

from chalicelib.domain.auth import WORD_MAX, Auth, Basic, secret_fault, username_fault
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.secret import Secret

STRICT = ConfigDict(extra="forbid", strict=True, frozen=True)
Word = Annotated[str, StringConstraints(min_length=1, max_length=WORD_MAX)]


class BasicBody(BaseModel):
    """A user name and a password."""

    model_config = STRICT

    username: Word
    password: Word


class AuthBody(BaseModel):
    """What an endpoint is authenticated with; it takes the place of all that was given before."""

    model_config = STRICT

    basic: BasicBody | None = None


def given(body: AuthBody | None) -> Auth[Secret] | None:
    """Read what an endpoint is to be authenticated with; raises RelayError, which never repeats a secret."""
    if body is None:
        return None
    found = Auth(_basic(body.basic) if body.basic else None)
    if found == Auth():
        raise _invalid("auth", "one of its members, or null for none")
    return found


def _basic(body: BasicBody) -> Basic[Secret]:
    _check("auth.basic.username", username_fault(body.username))
    _check("auth.basic.password", secret_fault(body.password))
    return Basic(body.username, Secret(body.password))


def _check(field: str, expected: str | None) -> None:
    if expected is not None:
        raise _invalid(field, expected)


def _invalid(field: str, expected: str) -> RelayError:
    return RelayError(ErrorCode.FIELD_INVALID, f"`{field}` is not valid.", field=field, expected=expected)
