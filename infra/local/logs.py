"""The runtime's own log on standard error: a line per event, in the form that the functions' lines have."""

import json
import logging
import os
import sys
from datetime import UTC, datetime

from chalicelib.telemetry import TEXT, as_text


def log_line(level: int, message: str, **fields: object) -> None:
    """Write one line; a value JSON does not know is written as its text."""
    line = {
        "level": logging.getLevelName(level),
        "message": message,
        "timestamp": datetime.now(tz=UTC).isoformat(timespec="milliseconds"),
        **fields,
    }
    text = os.environ.get("RELAY_LOG_FORMAT") == TEXT
    sys.stderr.write((as_text(line) if text else json.dumps(line, default=str)) + "\n")
    sys.stderr.flush()
