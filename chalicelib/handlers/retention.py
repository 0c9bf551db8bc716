"""The retention function: once an hour, what is needed is kept and what is not is removed."""

from dataclasses import asdict
from typing import Any

from chalicelib import bootstrap
from chalicelib.domain import metrics
from chalicelib.domain.gauging import Run
from chalicelib.domain.metrics import Schedule
from chalicelib.handlers import counted


def handle(context: Any) -> None:  # noqa: ANN401 - Lambda's context object
    """Go on with the round of this hour while there is time, and log what was done."""
    did = bootstrap.retention().run(context.get_remaining_time_in_millis)
    told = asdict(did) | {"finished": int(did.finished), "removed": did.removed}
    bootstrap.log().info("retention.swept", extra=told)
    for kind in metrics.REMOVED.values:
        bootstrap.counting().count(metrics.REMOVED, kind, told[kind])
    counted.flush()
    if did.finished:
        run = Run(bootstrap.clock().now_ms(), did.overdue)
        bootstrap.gauging().finished(Schedule.RETENTION, run)
