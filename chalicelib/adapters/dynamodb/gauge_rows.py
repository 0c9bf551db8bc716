"""The row of what the reporter of the gauges saw: each gauge in thousandths."""

import math
from collections.abc import Mapping
from typing import Any, Final

from chalicelib.domain.change import Record
from chalicelib.domain.gauging import Seen
from chalicelib.domain.metrics import CATALOGUE, Kind

_THOUSAND = 1_000
_NAMES: Final[Mapping[str, tuple[str, str]]] = {
    f"{each.name}.{value}" if value else each.name: (each.name, value)
    for each in CATALOGUE
    if each.kind is Kind.GAUGE
    for value in each.values
}
"""What stands where."""


def seen_row(seen: Seen) -> dict[str, Any]:
    """Write what was seen; what had no value is left out."""
    gauges = {
        name: round(seen.gauges[cell] * _THOUSAND)
        for name, cell in _NAMES.items()
        if cell in seen.gauges and math.isfinite(seen.gauges[cell])
    }
    return {"at_ms": seen.at_ms, "gauges": gauges}


def seen_of(record: Record) -> Seen:
    """Read what was seen."""
    stored = record["gauges"]
    gauges = {cell: stored[name] / _THOUSAND for name, cell in _NAMES.items() if name in stored}
    return Seen(record["at_ms"], gauges)
