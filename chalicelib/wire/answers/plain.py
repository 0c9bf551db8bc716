"""What the shapes of answers are made of."""

from typing import Annotated

from pydantic import WithJsonSchema

from chalicelib.domain.request import event_time

Time = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
"""A time of RFC 3339, UTC, with milliseconds."""


def time_or_none(unix_ms: int) -> Time | None:
    """Write a time; 0 stands for none."""
    return event_time(unix_ms) if unix_ms else None
