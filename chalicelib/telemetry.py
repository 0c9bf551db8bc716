"""Structured log lines: one wide line per attempt, fixed keys, never payloads or secrets."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache

from aws_lambda_powertools import Logger

from chalicelib.application.visit import Attempted

_TOLD = tuple(each.name for each in fields(Attempted))


@cache
def logger(level: str = "INFO") -> Logger:
    """Give the one logger of the process."""
    return Logger(service="relay", level=level)


def log_attempt(log: Logger, attempted: Attempted) -> None:
    """Write the line of one attempt; a status or fault there was not is 0 or empty, never left out."""
    told = {name: getattr(attempted, name) for name in _TOLD}
    never_absent = {"status": attempted.status or 0, "fault": attempted.fault or ""}
    log.info("delivery.attempted", extra=told | never_absent)


@dataclass(frozen=True, slots=True)
class Measured:
    """Counts that CloudWatch makes metrics of: whose (the resources' prefix) and when (Unix ms)."""

    prefix: str
    at_ms: int
    counts: Mapping[str, int]


def log_measured(log: Logger, message: str, told: Mapping[str, int], measured: Measured) -> None:
    """Write one line that CloudWatch reads metrics out of, in its embedded metric format."""
    about = {
        "Namespace": "Relay",
        "Dimensions": [["prefix"]],
        "Metrics": [{"Name": name, "Unit": "Count"} for name in measured.counts],
    }
    embedded = {"Timestamp": measured.at_ms, "CloudWatchMetrics": [about]}
    log.info(message, extra={**told, **measured.counts, "prefix": measured.prefix, "_aws": embedded})
