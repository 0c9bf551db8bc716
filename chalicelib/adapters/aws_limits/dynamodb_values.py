"""DynamoDB attribute values: what may be stored, how deep, how exact, and how many bytes AWS counts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from chalicelib.adapters.aws_limits.refusal import check_bytes, refuse, utf8, utf8_bytes

AttributeValue = Mapping[str, Any]
Item = Mapping[str, AttributeValue]

ITEM_LARGEST_BYTES = 409_600
DEEPEST_LEVEL = 32
DIGITS_MOST = 38
_EXPONENTS = range(-130, 126)
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,18})?")
ALL_TYPES = frozenset({"B", "BOOL", "BS", "L", "M", "N", "NS", "NULL", "S", "SS"})
_SETS = {"SS": "S", "NS": "N", "BS": "B"}


def type_of(value: AttributeValue) -> str:
    """Return the one type that the value carries, such as `S`."""
    return next(iter(value))


def check_item(item: Item, where: str) -> int:
    """Refuse an item with a bad value or of more than 400 KB; return its size in bytes."""
    for name, value in item.items():
        check_value(value, f"{where}.{name}")
    size = item_size(item)
    check_bytes(size, ITEM_LARGEST_BYTES, where)
    return size


def check_value(value: AttributeValue, where: str, level: int = 1) -> None:
    """Refuse a value that DynamoDB cannot store; the attribute itself is level 1 of 32."""
    if level > DEEPEST_LEVEL:
        refuse(where, f"is nested deeper than {DEEPEST_LEVEL} levels")
    if len(value) != 1 or type_of(value) not in ALL_TYPES:
        refuse(where, "must carry exactly one type")
    match type_of(value):
        case "N":
            _check_number(value["N"], where)
        case "NULL" if value["NULL"] is not True:
            refuse(where, "NULL must be true")
        case "SS" | "NS" | "BS":
            _check_set(value, where)
    for name, child in _children(value):
        check_value(child, f"{where}{name}", level + 1)


def _children(value: AttributeValue) -> list[tuple[str, AttributeValue]]:
    match type_of(value):
        case "M":
            return [(f".{name}", child) for name, child in value["M"].items()]
        case "L":
            return [(f"[{place}]", child) for place, child in enumerate(value["L"])]
        case _:
            return []


def _check_number(text: str, where: str) -> None:
    if not _NUMBER.fullmatch(text):
        refuse(where, "is no decimal number")
    number = Decimal(text)
    if number.adjusted() not in _EXPONENTS:
        refuse(where, "lies outside the range of numbers, 1E-130 to 9.99…E+125")
    if len(_digits(number)) > DIGITS_MOST:
        refuse(where, f"has more than {DIGITS_MOST} significant digits")


def _check_set(value: AttributeValue, where: str) -> None:
    kind = type_of(value)
    if not value[kind]:
        refuse(where, "a set must not be empty")
    if kind == "NS":
        for place, text in enumerate(value["NS"]):
            _check_number(text, f"{where}[{place}]")
    if len({canonical({_SETS[kind]: member}) for member in value[kind]}) < len(value[kind]):
        refuse(where, "a set must not hold a member twice")


def canonical(value: AttributeValue) -> tuple[str, object]:
    """Return a key that is equal for scalars that DynamoDB takes for equal, such as 1 and 1.0."""
    kind = type_of(value)
    match kind:
        case "N" if _NUMBER.fullmatch(value["N"]):
            return kind, Decimal(value["N"])
        case "B":
            return kind, _binary(value["B"])
        case "S":
            return kind, value["S"]
        case _:
            return kind, repr(value[kind])


def in_order(low: AttributeValue, high: AttributeValue) -> bool:
    """Say whether two scalars are of one type and the first is not the larger; texts compare as bytes."""
    if type_of(low) != type_of(high):
        return False
    match type_of(low):
        case "N":
            return Decimal(low["N"]) <= Decimal(high["N"])
        case "S":
            return utf8(low["S"]) <= utf8(high["S"])
        case "B":
            return _binary(low["B"]) <= _binary(high["B"])
        case _:
            return True


def item_size(item: Item) -> int:
    """Return the bytes that AWS counts for an item: names and values, without the storage overhead."""
    return sum(utf8_bytes(name) + value_size(value) for name, value in item.items())


def value_size(value: AttributeValue) -> int:
    """Return the bytes that AWS counts for one value."""
    kind = type_of(value)
    match kind:
        case "S":
            return utf8_bytes(value["S"])
        case "N":
            return _number_size(value["N"])
        case "B":
            return len(_binary(value["B"]))
        case "SS" | "NS" | "BS":
            return sum(value_size({_SETS[kind]: member}) for member in value[kind])
        case "L" | "M":
            return _document_size(value)
        case _:
            return 1


def _document_size(value: AttributeValue) -> int:
    """Return three bytes, one for each entry, and the entries; a map's entries have names."""
    if "M" in value:
        return 3 + len(value["M"]) + item_size(value["M"])
    return 3 + len(value["L"]) + sum(value_size(child) for child in value["L"])


def _number_size(text: str) -> int:
    """Return one byte, one for each pair of digits counted from the decimal point, and one for a minus."""
    number = Decimal(text)
    if not number:
        return 1
    highest = number.adjusted()
    lowest = highest - len(_digits(number)) + 1
    pairs = highest // 2 - lowest // 2 + 1
    return 1 + pairs + number.is_signed()


def _digits(number: Decimal) -> str:
    return "".join(map(str, number.as_tuple().digits)).strip("0")


def _binary(content: Any) -> bytes:  # noqa: ANN401 - boto3 takes text, bytes, arrays and its own Binary
    if isinstance(content, str):
        return content.encode()
    return bytes(getattr(content, "value", content))
