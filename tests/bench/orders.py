"""Payloads as producers post them: orders whose lines differ, so that they deflate as real ones do."""

import hashlib
import json
import random

_WORDS = (
    "alder amber birch cedar copper coral cotton ebony flint glass granite indigo ivory juniper larch linen"
    " maple marble nickel oak olive onyx pearl pine quartz ruby silver slate teak walnut willow wool"
).split()


def order(number: int, event_type: str, size: int) -> str:
    """Write an order as JSON of just so many bytes, always the same for a number."""
    dice = random.Random(number)
    whole = {
        "type": event_type,
        "id": hashlib.sha256(str(number).encode()).hexdigest()[:24],
        "placed_at": f"2026-11-{dice.randint(1, 30):02d}T{dice.randint(0, 23):02d}:00:00Z",
        "customer": {
            "id": f"cus_{dice.getrandbits(64):016x}",
            "country": dice.choice(("DE", "FR", "JP", "US")),
        },
        "lines": [],
        "note": "",
    }
    lines: list[dict[str, object]] = whole["lines"]  # type: ignore[assignment]  # made above
    length = len(json.dumps(whole))
    while length < size - 160:
        lines.append(_line(dice))
        length += len(json.dumps(lines[-1])) + len(", ")
    whole["note"] = " ".join(dice.choice(_WORDS) for _ in range(60))[: max(0, size - len(json.dumps(whole)))]
    return json.dumps(whole)


def _line(dice: random.Random) -> dict[str, object]:
    return {
        "sku": f"{dice.getrandbits(32):08x}",
        "title": f"{dice.choice(_WORDS)} {dice.choice(_WORDS)}",
        "quantity": dice.randint(1, 9),
        "unit_price": f"{dice.randint(100, 99_999) / 100:.2f}",
        "currency": "EUR",
    }
