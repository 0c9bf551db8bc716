"""Identifiers: made from a time and entropy that are given, read without a lookup.

Every id holds a UUIDv7 (RFC 9562 §5.7), so ids sort by time. Nothing here rolls dice.
"""

import hashlib
import re
from datetime import UTC, datetime
from uuid import UUID

ENTROPY_BITS = 74
END_MS = 1 << 48
"""The first millisecond that no id can hold."""
_TAG_BITS = 32
_PAIR_BITS = ENTROPY_BITS - _TAG_BITS
_RAND_B_BITS = 62
_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def uuid7(at_ms: int, entropy: int) -> UUID:
    """Build the UUIDv7 of a millisecond (Unix epoch) and 74 bits of entropy."""
    rand_a, rand_b = entropy >> _RAND_B_BITS, entropy & ((1 << _RAND_B_BITS) - 1)
    return UUID(int=at_ms << 80 | 0x7 << 76 | rand_a << 64 | 0b10 << 62 | rand_b)


def new_id(prefix: str, at_ms: int, entropy: int) -> str:
    """Name a new thing: `evt`, `ep`, `tn` or `key`, an underscore and a UUIDv7."""
    return f"{prefix}_{uuid7(at_ms, entropy)}"


def is_id(text: str, prefix: str = "") -> bool:
    """Say whether a text is an id of that kind; a bare UUIDv7 (a delivery's) when no prefix is given."""
    head = f"{prefix}_" if prefix else ""
    return text.startswith(head) and _UUID7.fullmatch(text[len(head) :]) is not None


def pattern(prefix: str = "") -> str:
    """Give the regular expression of a whole id of that kind, as a JSON schema has it."""
    return f"^{prefix}_{_UUID7.pattern}$" if prefix else f"^{_UUID7.pattern}$"


def created_ms(identifier: str) -> int:
    """Read the millisecond an id was made in."""
    return UUID(identifier.rpartition("_")[2]).int >> 80


def created_at(identifier: str) -> datetime:
    """Read the moment an id was made, aware UTC."""
    return datetime.fromtimestamp(created_ms(identifier) / 1000, UTC)


def first_of(at_ms: int) -> str:
    """Give the lowest bare id of a millisecond."""
    return str(uuid7(at_ms, 0))


def last_before(at_ms: int) -> str:
    """Give the highest bare id of the milliseconds before one."""
    return str(uuid7(max(0, at_ms - 1), (1 << ENTROPY_BITS) - 1))


def delivery_id(event_id: str, endpoint_id: str) -> str:
    """Compute the one delivery id of an event and an endpoint.

    The event's millisecond, 32 bits of a hash of the endpoint, 42 of both: fanning out twice
    makes the same id, and an id leads to its endpoint (`endpoint_tag`).
    """
    pair = hashlib.sha256(f"{event_id} {endpoint_id}".encode()).digest()
    tag = int(endpoint_tag(endpoint_id), 16)
    return str(uuid7(created_ms(event_id), tag << _PAIR_BITS | int.from_bytes(pair) >> (256 - _PAIR_BITS)))


def endpoint_tag(endpoint_id: str) -> str:
    """Hash an endpoint id to the 8 hex digits its delivery ids carry."""
    return hashlib.sha256(endpoint_id.encode()).hexdigest()[: _TAG_BITS // 4]


def tag_of(delivery: str) -> str:
    """Read the endpoint tag (8 hex digits) out of a delivery id."""
    number = UUID(delivery).int
    rand_a, rand_b = number >> 64 & 0xFFF, number & ((1 << _RAND_B_BITS) - 1)
    return f"{(rand_a << _RAND_B_BITS | rand_b) >> _PAIR_BITS:08x}"
