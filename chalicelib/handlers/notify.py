"""The notify function: once a minute, owners are told what will not arrive."""

from chalicelib import bootstrap
from chalicelib.domain import metrics
from chalicelib.domain.gauging import Run
from chalicelib.domain.metrics import Schedule
from chalicelib.handlers import counted


def handle() -> None:
    """Look at what is marked, publish, and log what was done; what failed stands for the next minute."""
    done = bootstrap.notify().run()
    log = bootstrap.log()
    for failure in done.failures:
        log.error("notify.delayed", exc_info=failure)
    counts = {name: getattr(done, name) for name in ("looked", "raised", "published", "delayed")}
    log.info("notify.told", extra={**counts, "failed": len(done.failures)})
    for kind, times in done.kinds.items():
        bootstrap.counting().count(metrics.NOTICES, kind, times)
    counted.flush()
    if not done.failures:
        bootstrap.gauging().finished(Schedule.NOTIFY, Run(bootstrap.clock().now_ms()))
