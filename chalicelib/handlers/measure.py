"""The measure function: once a minute, what the whole installation is like is read and told.

CloudWatch is told by lines of the log: not where a person reads them.
"""

from typing import Any

from chalicelib import bootstrap
from chalicelib.domain import metrics
from chalicelib.telemetry import TEXT


def handle(context: Any) -> None:  # noqa: ANN401 - Lambda's context object
    """Read everything once, and log what it came to; `whole` is false when the walk broke off."""
    measured = bootstrap.measure().run(context.get_remaining_time_in_millis)
    settings = bootstrap.settings()
    series = 0 if settings.log_format == TEXT else bootstrap.report().run(measured.gauges)
    oldest_s = measured.gauges.get((metrics.OLDEST_PENDING.name, ""))
    told = {
        "watched": measured.watched,
        "whole": measured.whole,
        "canaries_lost": measured.lost,
        "lanes_uncounted": measured.uncounted,
        "oldest_pending_s": oldest_s,
        "series": series,
    }
    bootstrap.log().info("measure.told", extra=told)
