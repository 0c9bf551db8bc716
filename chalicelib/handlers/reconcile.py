"""The reconcile function: once a minute, what nobody looked at is rung."""

from dataclasses import asdict

from chalicelib import bootstrap
from chalicelib.application.ports import Unavailable
from chalicelib.domain import metrics
from chalicelib.domain.gauging import Run
from chalicelib.domain.metrics import Schedule
from chalicelib.handlers import counted


def handle() -> None:
    """Sweep once and log what was done; fails at the end, for its alarm, when some of it could not be."""
    swept = bootstrap.reconcile().run()
    bootstrap.log().info("reconcile.swept", extra=asdict(swept))
    bootstrap.counting().count(metrics.RESCUED, by=swept.rung)
    counted.flush()
    if swept.failed:
        raise Unavailable(f"the store or a queue failed {swept.failed} times; the next sweep tries again")
    bootstrap.gauging().finished(Schedule.RECONCILE, Run(bootstrap.clock().now_ms()))
