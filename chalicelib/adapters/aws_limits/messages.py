"""Attributes and sizes of messages, alike in SQS and SNS."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from chalicelib.adapters.aws_limits.refusal import check_count, check_distinct, refuse, utf8_bytes
from chalicelib.adapters.aws_limits.text_rules import check_entry_id, check_message_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from chalicelib.adapters.aws_limits.refusal import Params

BATCH_MOST = 10
_ATTRIBUTES_MOST = 10
_NAME_LONGEST = 256
_NAME = re.compile(r"(?!\.)(?!.*\.\.)(?!.*\.$)[A-Za-z0-9_.-]+")
_TAKEN_PREFIX = re.compile(r"(aws|amazon)\.", re.IGNORECASE)
_DATA_TYPE = re.compile(r"(String|Number|Binary)(\..+)?")


def check_batch(entries: Sequence[Params], where: str) -> None:
    """Refuse a batch that is not 1 to 10 entries with distinct, well-formed ids."""
    check_count(entries, 1, BATCH_MOST, where)
    for place, entry in enumerate(entries):
        check_entry_id(entry["Id"], f"{where}[{place}].Id")
    check_distinct([entry["Id"] for entry in entries], where, "ids")


def check_attributes(attributes: Mapping[str, Params], where: str) -> None:
    """Refuse more than ten message attributes, and names, types and values out of order."""
    if len(attributes) > _ATTRIBUTES_MOST:
        refuse(where, f"must hold at most {_ATTRIBUTES_MOST} attributes, holds {len(attributes)}")
    for name, attribute in attributes.items():
        _check_name(name, f"{where}.{name}")
        _check_attribute(attribute, f"{where}.{name}")


def _check_name(name: str, where: str) -> None:
    if len(name) > _NAME_LONGEST or not _NAME.fullmatch(name) or _TAKEN_PREFIX.match(name):
        refuse(where, "the name must be 1 to 256 of A-Z a-z 0-9 _ - . without AWS's prefix or stray dots")


def _check_attribute(attribute: Params, where: str) -> None:
    if not _DATA_TYPE.fullmatch(attribute.get("DataType", "")):
        refuse(f"{where}.DataType", "must be String, Number or Binary, with an own label after a dot at most")
    if attribute["DataType"].startswith("Binary"):
        if not attribute.get("BinaryValue"):
            refuse(f"{where}.BinaryValue", "must not be empty")
    else:
        check_message_text(attribute.get("StringValue", ""), f"{where}.StringValue")


def attributes_size(attributes: Mapping[str, Params]) -> int:
    """Return the bytes that message attributes add: names, types and values."""
    return sum(
        utf8_bytes(name) + utf8_bytes(attribute["DataType"]) + _value_size(attribute)
        for name, attribute in attributes.items()
    )


def _value_size(attribute: Params) -> int:
    binary: Any = attribute.get("BinaryValue")
    return len(binary) if binary is not None else utf8_bytes(attribute.get("StringValue", ""))
