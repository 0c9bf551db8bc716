"""The opaque cursor of a list: its place, the list it belongs to, and whose that is."""

import base64
import binascii
import json
from collections.abc import Callable

from chalicelib.domain import ids
from chalicelib.domain.errors import ErrorCode, RelayError

CURSOR_MAX = 1_024
LIST_DEFAULT, LIST_MAX = 50, 200


def dump(tenant: str, listing: str, after: str) -> str | None:
    """Write the cursor that continues a list after an item; None at the end."""
    if not after:
        return None
    return base64.urlsafe_b64encode(json.dumps([listing, after, tenant]).encode()).decode("ascii").rstrip("=")


def load(of: tuple[str, str], prefix: str, cursor: str | None) -> str:
    """Read after which id a cursor of this very list stands; raises RelayError for any other.

    `of` is the tenant and the list, `prefix` that of the ids the list goes by (`ids.is_id`).
    """
    return load_place(of, lambda place: ids.is_id(place, prefix), cursor)


def load_place(of: tuple[str, str], is_place: Callable[[str], bool], cursor: str | None) -> str:
    """Read after which place a cursor of this very list stands; raises RelayError for any other.

    One of another tenant leads to nothing that is there.
    """
    if cursor is None:
        return ""
    try:
        padded = cursor.encode("ascii")[:CURSOR_MAX] + b"=" * (-len(cursor) % 4)
        listing, after, tenant = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, TypeError, binascii.Error, RecursionError):
        listing, after, tenant = None, None, None
    if isinstance(tenant, str) and tenant != of[0]:
        raise RelayError(
            ErrorCode.NOT_FOUND, "There is no such place in a list of this tenant's.", field="cursor"
        )
    if (tenant, listing) != of or not isinstance(after, str) or not is_place(after):
        raise RelayError(
            ErrorCode.CURSOR_INVALID,
            "The cursor is not one of this list.",
            field="cursor",
            expected="the `cursor` of this list's previous page, or none",
        )
    return after
