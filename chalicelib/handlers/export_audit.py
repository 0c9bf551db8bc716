"""The hourly function that exports the audit."""

from dataclasses import asdict
from typing import Any

from chalicelib import bootstrap, telemetry


def handle(context: Any) -> None:  # noqa: ANN401 - Lambda's context object
    """Write the hours that are settled, and log what was written."""
    told = asdict(bootstrap.export_audit().run(context.get_remaining_time_in_millis))
    counts = {"audit_export_finished": int(told["behind"] == 0)}
    measured = telemetry.Measured(bootstrap.settings().resource_prefix, bootstrap.clock().now_ms(), counts)
    telemetry.log_measured(bootstrap.log(), "audit.exported", told, measured)
