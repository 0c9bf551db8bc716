"""How durations are spread, in few numbers: buckets that grow by three tenths, counted where anything fell.

A percentile read from them is off by less than `WITHIN_PERCENT`, or by one millisecond at most.
Source of the growth: docs/decisions/0016.
"""

from bisect import bisect_right
from collections.abc import Mapping
from math import sqrt

GROWTH = 1.3
WITHIN_PERCENT = 15
"""A bucket's middle is within the square root of its growth of both its ends: 14.1 percent."""
_BUCKETS = 90
_BOUNDS = [GROWTH**number for number in range(_BUCKETS)]
Histogram = Mapping[int, int]
"""How many fell into each bucket; one that is not there had none."""


def bucket_of(duration_ms: int) -> int:
    """Say which bucket a duration falls into: 0 below a millisecond, then up to some months."""
    return bisect_right(_BOUNDS, duration_ms)


def middle_ms(bucket: int) -> int:
    """Give the whole milliseconds that stand for a bucket."""
    if bucket == 0:
        return 0
    return round(sqrt(_BOUNDS[bucket - 1] * _BOUNDS[min(bucket, _BUCKETS - 1)]))


def percentile_ms(of: Histogram, percent: int) -> int | None:
    """Give a duration that so many percent did not exceed, about; None when nothing was counted."""
    wanted = -(-sum(of.values()) * percent // 100)
    seen = 0
    for bucket in sorted(of):
        seen += of[bucket]
        if of[bucket] and seen >= wanted:
            return middle_ms(bucket)
    return None
