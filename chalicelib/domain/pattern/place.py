"""Where in a filter something stands, and the answer to what may not stand there."""

import json
import re
from typing import NoReturn

from chalicelib.domain.errors import ErrorCode, RelayError

FIELD = "filter"
_PLACE_MAX = 200
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_$-]+", re.ASCII)


def member(place: str, name: str) -> str:
    """Name a member of an object; one with an odd name in brackets and quotes."""
    return f"{place}.{name}" if _PLAIN_NAME.fullmatch(name) else f"{place}[{json.dumps(name)}]"


def element(place: str, number: int) -> str:
    """Name an element of a list, counted from 0."""
    return f"{place}[{number}]"


def refuse(place: str, detail: str, expected: str) -> NoReturn:
    """Refuse a filter for what stands at a place; raises RelayError."""
    raise RelayError(ErrorCode.FIELD_INVALID, detail, field=place[:_PLACE_MAX], expected=expected)
