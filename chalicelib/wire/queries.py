"""What a query says, read once at the door."""

import re
from collections.abc import Mapping

from chalicelib.domain.errors import ErrorCode, RelayError

NUMBER_MAX = 9_999
ADDRESS = "^https?://[!-~]{1,2000}$"
_ADDRESS = re.compile(ADDRESS, re.ASCII)


def number(query: Mapping[str, str], name: str, *, least: int = 0) -> int | None:
    """Read a number up to `NUMBER_MAX`, None when it is not there; raises RelayError."""
    text = query.get(name)
    if text is None:
        return None
    digits = text.isascii() and text.isdigit() and len(text) <= len(str(NUMBER_MAX))
    if not digits or int(text) < least:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            f"`{name}` is not a number that can be.",
            field=name,
            expected=f"{least} to {NUMBER_MAX}",
        )
    return int(text)


def address(query: Mapping[str, str], name: str) -> str | None:
    """Read the address of a web server, None when it is not there; raises RelayError."""
    text = query.get(name)
    if text is not None and not _ADDRESS.fullmatch(text):
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            f"`{name}` is no address of a web server.",
            field=name,
            expected="a URL such as http://localhost:8080/webhook, other characters percent-encoded",
        )
    return text
