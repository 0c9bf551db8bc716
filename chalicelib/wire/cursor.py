"""The opaque cursor of a list: its place and the list it belongs to."""

import base64
import binascii
import json
from collections.abc import Callable

from chalicelib.domain import ids
from chalicelib.domain.errors import ErrorCode, RelayError

CURSOR_MAX = 1_024
LIST_DEFAULT, LIST_MAX = 50, 200


def dump(listing: str, after: str) -> str | None:
    """Write the cursor that continues a list after an item; None at the end."""
    if not after:
        return None
    return base64.urlsafe_b64encode(json.dumps([listing, after]).encode()).decode("ascii").rstrip("=")


def load(listing: str, prefix: str, cursor: str | None) -> str:
    """Read after which id a cursor of this very list stands; raises RelayError for any other.

    `prefix` is that of the ids the list goes by (`ids.is_id`).
    """
    return load_place(listing, lambda place: ids.is_id(place, prefix), cursor)


def load_place(listing: str, is_place: Callable[[str], bool], cursor: str | None) -> str:
    """Read after which place a cursor of this very list stands; raises RelayError for any other."""
    if cursor is None:
        return ""
    try:
        padded = cursor.encode("ascii")[:CURSOR_MAX] + b"=" * (-len(cursor) % 4)
        owner, after = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, TypeError, binascii.Error, RecursionError):
        owner, after = None, None
    if owner != listing or not isinstance(after, str) or not is_place(after):
        raise RelayError(
            ErrorCode.CURSOR_INVALID,
            "The cursor is not one of this list.",
            field="cursor",
            expected="the `cursor` of this list's previous page, or none",
        )
    return after
