"""The order that the tests of filters are held to, and filters written short."""

import json
from typing import Any

from chalicelib.domain.pattern import admitted, compiled, members_of
from tests.unit.domain.examples import event

ORDER = {
    "id": "ord-1017",
    "state": "paid",
    "amount": 301.8,
    "count": 5,
    "gift": False,
    "note": None,
    "empty": "",
    "customer": {"country": "DE", "address": "10.0.0.33", "address6": "2001:db8::17", "tags": ["new", "vip"]},
    "file": "dir/sub/photo.PNG",
    "lines": [
        {"sku": "A-1", "quantity": 1, "gift": True},
        {"sku": "B-2", "quantity": 12},
    ],
    "nothing": {},
    "none": [],
}


def matches(filter_: dict[str, Any], members: dict[str, Any] | None = None) -> bool:
    """Hold a filter, as it is kept, to a body, as it is posted."""
    body = json.dumps(ORDER if members is None else members).encode()
    read = members_of(event(body))
    assert read is not None
    return compiled(admitted(filter_)).matches(read)


def of(field: str, *values: object) -> dict[str, Any]:
    """Write a filter on one field, named by its path."""
    filter_: Any = list(values)
    for name in reversed(field.split(".")):
        filter_ = {name: filter_}
    return dict(filter_)


def nested(levels: int) -> dict[str, Any]:
    return of(".".join("a" * levels), 1)


def choices(pairs: int) -> dict[str, Any]:
    """Make a filter with as many choices of two, so 2^pairs combinations."""
    two = {f"{one}": {"$or": [{"x": [1]}, {"y": [1]}]} for one in range(pairs)}
    return dict(two)
