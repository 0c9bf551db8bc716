"""The retention function: once an hour, what is needed is kept and what is not is removed."""

from dataclasses import asdict
from typing import Any

from chalicelib import bootstrap, telemetry


def handle(context: Any) -> None:  # noqa: ANN401 - Lambda's context object
    """Go on with the round of this hour while there is time, and log what was done."""
    did = bootstrap.retention().run(context.get_remaining_time_in_millis)
    told = asdict(did) | {"finished": int(did.finished), "removed": did.removed}
    counts = {f"retention_{name}": told[name] for name in ("removed", "overdue", "finished")}
    measured = telemetry.Measured(bootstrap.settings().resource_prefix, bootstrap.clock().now_ms(), counts)
    telemetry.log_measured(bootstrap.log(), "retention.swept", told, measured)
