"""The values of JSON as a pattern compares them: texts, numbers as decimals of any size, and words.

`True` is no number here, and 1 and 1.0 are one number.
"""

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from chalicelib.domain.event import Event, is_json

NUMBER_MAX = 100
"""Characters of a number: one that is written longer equals none."""


class Nothing:
    """What is not there, or is no value: an object, an empty list."""


class OddNumber:
    """A number that is too long, or too large, to be compared."""


NOTHING: Final = Nothing()
ODD_NUMBER: Final = OddNumber()


def number(text: str) -> Decimal | OddNumber:
    """Read a number exactly as it is written, or say that it is none to be compared."""
    try:
        return Decimal(text) if len(text) <= NUMBER_MAX else ODD_NUMBER
    except ArithmeticError:
        return ODD_NUMBER


def is_number(value: object) -> bool:
    """Say whether a value was written as a number."""
    return isinstance(value, Decimal | OddNumber)


def members_of(event: Event) -> dict[str, Any] | None:
    """Give the members of an event's body, or None for one that is no JSON object.

    Of a name that stands twice the last counts, as for most who read JSON.
    """
    if not is_json(event.content_type):
        return None
    try:
        value = DECODER.decode(event.body.decode("utf-8"))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def elements(value: object) -> Iterator[object]:
    """Walk what a value offers to a pattern: itself, or what is in a list however deep; nothing if empty."""
    if not isinstance(value, list):
        yield value
        return
    left = [iter(value)]
    while left:
        for each in left[-1]:
            if isinstance(each, list):
                left.append(iter(each))
                break
            yield each
        else:
            left.pop()


DECODER: Final = json.JSONDecoder(parse_int=number, parse_float=number)
