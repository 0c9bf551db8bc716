"""Metrics as Prometheus reads them: its text format 0.0.4."""

from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from chalicelib.domain.metrics import BUCKETS_MS, CATALOGUE, Kind, Metric, Reading, Spread

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS: Final = (*(f"{bound / 1000:g}" for bound in BUCKETS_MS), "+Inf")
_IN_HELP: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})
_IN_LABEL: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def text(reading: Reading) -> str:
    """Write every metric of the catalogue: a counter nobody counted is 0, a gauge without a value NaN."""
    return "".join(f"{line}\n" for of in CATALOGUE for line in _metric(of, reading))


def _metric(of: Metric, reading: Reading) -> Iterator[str]:
    yield f"# HELP {of.name} {of.help.translate(_IN_HELP)}"
    yield f"# TYPE {of.name} {of.kind}"
    for value in of.values:
        found = reading.get((of.name, value))
        if of.kind is Kind.HISTOGRAM:
            yield from _histogram(of, found if isinstance(found, Spread) else Spread())
        elif isinstance(found, Spread):
            raise TypeError(f"{of.name} is no histogram")
        else:
            nothing = float("nan") if of.kind is Kind.GAUGE else 0
            yield f"{of.name}{_labels(of.label, value)} {_number(nothing if found is None else found)}"


def _histogram(of: Metric, spread: Spread) -> Iterator[str]:
    so_far = list(accumulate(spread.counts))
    for bound, count in zip(_BOUNDS, so_far, strict=True):
        yield f"{of.name}_bucket{_labels('le', bound)} {count}"
    yield f"{of.name}_sum {_number(spread.sum_ms / 1000)}"
    yield f"{of.name}_count {so_far[-1]}"


def _labels(name: str, value: str) -> str:
    return f'{{{name}="{value.translate(_IN_LABEL)}"}}' if name else ""


def _number(value: float) -> str:
    if value != value:  # noqa: PLR0124 - NaN alone differs from itself
        return "NaN"
    return str(int(value)) if value == int(value) else repr(value)
