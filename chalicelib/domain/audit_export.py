"""The export of the audit: which hours are settled, and how its objects are named.

An hour of a tenant is written once nobody can still add to it, so its objects have the same names and bytes
however often, and by however many, they are written.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

HOUR_MS = 3_600_000
SETTLED_MS = 20 * 60_000
"""How long after its end an hour may still get records: a function that began one in it lasts 15 minutes."""
AGAIN_HOURS = 24
"""Each hour is written a second time so much later: what the index of hours was late with is then in it."""
PART = 1_000
"""Records of one object."""


@dataclass(frozen=True, slots=True)
class Exported:
    """How far the export has come: the hour it is at, and the last thing in it that was written."""

    hour: int
    after: str = ""


def settled_hour(now_ms: int) -> int:
    """Give the last hour (since the epoch) that nobody can still add to."""
    return (now_ms - SETTLED_MS) // HOUR_MS - 1


def object_name(tenant: str, hour: int, part: int) -> str:
    """Name an object: by day and hour, so that a reader lists what is new, then by tenant and part."""
    began = datetime.fromtimestamp(hour * HOUR_MS / 1000, UTC)
    return f"audit/{began:%Y-%m-%d}/{began:%H}/{tenant}-{part:04d}.ndjson"
