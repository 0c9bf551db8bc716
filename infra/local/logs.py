"""The runtime's own log: one JSON object per line on standard error, with the keys of the event first."""

import json
import logging
import sys
from datetime import UTC, datetime


def log_line(level: int, message: str, **fields: object) -> None:
    """Write one line; a value JSON does not know is written as its text."""
    line = {
        "level": logging.getLevelName(level),
        "message": message,
        "timestamp": datetime.now(tz=UTC).isoformat(timespec="milliseconds"),
        **fields,
    }
    sys.stderr.write(json.dumps(line, default=str) + "\n")
    sys.stderr.flush()
