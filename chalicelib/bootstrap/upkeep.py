"""What runs beside deliveries: ends, bulk replays, notices, retention, purges, exports, rebuilding."""

from functools import cache
from typing import TYPE_CHECKING

from chalicelib import bootstrap
from chalicelib import settings as configuration

if TYPE_CHECKING:
    from chalicelib.adapters.dynamodb.gauging import DynamoGauging
    from chalicelib.application.bulk_replay import ReplayMany
    from chalicelib.application.end_owed import EndOwed
    from chalicelib.application.export_audit import ExportAudit
    from chalicelib.application.measure import Measure
    from chalicelib.application.notify import Notify
    from chalicelib.application.purge import PurgeAll
    from chalicelib.application.read_metrics import ReadMetrics
    from chalicelib.application.readiness import Readiness
    from chalicelib.application.rebuild import Rebuild
    from chalicelib.application.report import Report
    from chalicelib.application.retention import Retention

# More than the clocks of two machines differ by.
PURGE_MARGIN_MS = 10_000


@cache
def end_owed() -> "EndOwed":
    """Give the use case that ends deliveries in pages."""
    from chalicelib.adapters.dynamodb.endings import DynamoEndings
    from chalicelib.application.end_owed import EndOwed

    return EndOwed(
        DynamoEndings(bootstrap.tables()),
        bootstrap.endpoints(),
        bootstrap.gates(),
        bootstrap.work(),
        bootstrap.bells(),
        bootstrap.clock(),
        bootstrap.counting(),
    )


@cache
def replay_many() -> "ReplayMany":
    """Give the use case that works bulk replays off."""
    from chalicelib.adapters.dynamodb.replaying import DynamoReplaying
    from chalicelib.application.bulk_replay import ReplayMany

    return ReplayMany(
        bootstrap.bulk_replays(),
        DynamoReplaying(bootstrap.tables()),
        bootstrap.endpoints(),
        bootstrap.work(),
        bootstrap.bells(),
        bootstrap.clock(),
    )


@cache
def export_audit() -> "ExportAudit":
    """Give the use case that writes the audit to where a SIEM reads it."""
    from chalicelib.adapters.dynamodb.auditing import DynamoExportingAudit
    from chalicelib.adapters.s3_exports import S3Exports
    from chalicelib.application.export_audit import ExportAudit

    exports = S3Exports(bootstrap.client("s3"), bootstrap.settings().audit_bucket)
    return ExportAudit(DynamoExportingAudit(bootstrap.tables()), exports, bootstrap.clock())


@cache
def purge_all() -> "PurgeAll":
    """Give the use case that works purges off."""
    from chalicelib.application.purge import PurgeAll

    of = bootstrap.settings()
    quiet_ms = (of.function_timeout_secs + of.key_cache_secs) * 1000 + PURGE_MARGIN_MS
    return PurgeAll(
        bootstrap.purging(),
        bootstrap.endpoints(),
        bootstrap.payloads(),
        bootstrap.clock(),
        bootstrap.dice(),
        quiet_ms,
    )


@cache
def notify() -> "Notify":
    """Give the use case that tells owners; raises SettingsError without a topic."""
    from chalicelib.adapters.sns import SnsAnnouncer
    from chalicelib.application.notify import Notify
    from chalicelib.domain.notice import NoticeRules

    of = bootstrap.settings()
    if not of.notices_topic_arn:
        raise configuration.SettingsError("RELAY_NOTICES_TOPIC_ARN is not set; notices need a topic")
    announcer = SnsAnnouncer(bootstrap.client("sns"), of.notices_topic_arn)
    rules = NoticeRules(of.notice_window_secs * 1000, of.notice_outage_secs * 1000)
    return Notify(bootstrap.noticing(), announcer, bootstrap.clock(), bootstrap.dice(), rules)


@cache
def gauging() -> "DynamoGauging":
    """Give the store of what the installation is like."""
    from chalicelib.adapters.dynamodb.gauging import DynamoGauging

    return DynamoGauging(bootstrap.tables())


@cache
def measure() -> "Measure":
    """Give the one reporter of gauges."""
    from chalicelib.adapters.dynamodb.gauging import DynamoGlancing
    from chalicelib.adapters.dynamodb.work import DynamoWatching
    from chalicelib.adapters.sqs import SqsCanaries, shards
    from chalicelib.application.measure import Measure

    return Measure(
        DynamoWatching(bootstrap.tables()),
        DynamoGlancing(bootstrap.tables()),
        bootstrap.gauging(),
        SqsCanaries(
            bootstrap.json_service("sqs"), bootstrap.queues(), shards(bootstrap.settings().shard_count)
        ),
        bootstrap.clock(),
    )


@cache
def report() -> "Report":
    """Give the use case that tells CloudWatch, by lines of the log."""
    from chalicelib.adapters.dynamodb.reporting import DynamoReporting
    from chalicelib.adapters.embedded_metrics import EmbeddedMetrics
    from chalicelib.application.report import Report

    return Report(
        bootstrap.counters(),
        DynamoReporting(bootstrap.tables()),
        EmbeddedMetrics(bootstrap.settings().resource_prefix),
        bootstrap.clock(),
    )


@cache
def readiness() -> "Readiness":
    """Give the use case that says whether Relay can work."""
    from chalicelib.adapters.sqs import shards
    from chalicelib.application.readiness import Readiness

    queues = shards(bootstrap.settings().shard_count)
    return Readiness(bootstrap.endpoints(), bootstrap.gauging(), queues, bootstrap.clock())


@cache
def read_metrics() -> "ReadMetrics":
    """Give the use case that reads what is counted and measured."""
    from chalicelib.adapters.sqs import shards
    from chalicelib.application.read_metrics import ReadMetrics

    queues = shards(bootstrap.settings().shard_count)
    return ReadMetrics(bootstrap.counters(), bootstrap.gauging(), queues, bootstrap.clock())


@cache
def retention() -> "Retention":
    """Give the use case that keeps what is needed and removes what is not."""
    from chalicelib.adapters.dynamodb.retaining import DynamoRetaining
    from chalicelib.application.retention import Retention

    return Retention(
        DynamoRetaining(bootstrap.tables()),
        bootstrap.payloads(),
        bootstrap.clock(),
        bootstrap.settings().sweep_expired_rows,
    )


@cache
def rebuild() -> "Rebuild":
    """Give the use case that makes what is derived again from history; no function has it."""
    from chalicelib.adapters.dynamodb.rebuilding import DynamoRebuilding
    from chalicelib.application.rebuild import Rebuild

    return Rebuild(DynamoRebuilding(bootstrap.tables()), bootstrap.clock(), bootstrap.rules())
