"""The hourly function that exports the audit."""

from dataclasses import asdict
from typing import Any

from chalicelib import bootstrap
from chalicelib.domain.gauging import Run
from chalicelib.domain.metrics import Schedule


def handle(context: Any) -> None:  # noqa: ANN401 - Lambda's context object
    """Write the hours that are settled, and log what was written."""
    told = asdict(bootstrap.export_audit().run(context.get_remaining_time_in_millis))
    bootstrap.log().info("audit.exported", extra=told)
    if not told["behind"]:
        bootstrap.gauging().finished(Schedule.EXPORT_AUDIT, Run(bootstrap.clock().now_ms()))
