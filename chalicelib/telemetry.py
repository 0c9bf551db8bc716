"""Structured log lines: one wide line per attempt, fixed keys, never payloads or secrets.

Machines get JSON, a person who watches gets text of the same keys.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from functools import cache
from typing import Any, Final

from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging.formatter import (
    LambdaPowertoolsFormatter,
    clear_context_keys,
    set_context_keys,
)

from chalicelib.application.visit import Attempted

TEXT: Final = "text"
_TOLD = tuple(each.name for each in fields(Attempted) if each.name not in {"steps", "rung_in"})
_LEAD = ("timestamp", "level", "message")
_FOR_MACHINES = frozenset({*_LEAD, "location", "service", "stack_trace"})
_BARE = re.compile(r"[!#-<>-Z^-~\[\]]+", re.ASCII)
"""What stands in a line without quotes: printable, no space, no quote, no equals sign, no backslash."""


class TextFormatter(LambdaPowertoolsFormatter):
    """Writes a line for a person: time, level, message, and the keys."""

    def serialize(self, log: Any) -> str:  # noqa: ANN401 - Powertools says LogRecord and gives a dictionary
        """Write the line of a record."""
        return as_text(log)


def as_text(line: Mapping[str, object]) -> str:
    """Write a log line as one line of text; whatever its values hold, it stays one, and says no more keys.

    What is for machines alone is left out.
    """
    told = [f"{name}={_value(value)}" for name, value in line.items() if name not in _FOR_MACHINES]
    lead = (
        _value(line.get("timestamp", "")),
        f"{line.get('level', '')!s:7}",
        _value(line.get("message", "")),
    )
    return " ".join((*lead, *told))


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str, separators=(",", ":"))
    return text if _BARE.fullmatch(text) else json.dumps(text)


@cache
def logger(level: str = "INFO", form: str = "json") -> Logger:
    """Give the one logger of the process; its lines are `json` or `text`."""
    formatter = TextFormatter if form == TEXT else LambdaPowertoolsFormatter
    return Logger(service="relay", level=level, logger_formatter=formatter(use_rfc3339=True, utc=True))


@contextmanager
def invocation(function: str, request_id: str) -> Iterator[None]:
    """Name a function's call in every line that is written for it, whichever thread of its work writes it."""
    named: dict[str, Any] = {"function_name": function, "function_request_id": request_id}
    set_context_keys(**named)
    try:
        yield
    finally:
        clear_context_keys()


def log_attempt(log: Logger, attempted: Attempted, trace_id: str = "") -> None:
    """Write the line of one attempt; a status, fault or trace there was not is 0 or empty, never left out."""
    told = {name: getattr(attempted, name) for name in _TOLD}
    never_absent = {"status": attempted.status or 0, "fault": attempted.fault or "", "trace_id": trace_id}
    log.info("delivery.attempted", extra=told | never_absent)
