"""Every alarm: which promise it watches, by which series, and when it rings.

The one table that the template's alarms are made from; docs/operations.md has an entry for each. Counts are
read by the maximum of a minute, as a minute may be told twice: chalicelib/domain/reporting.py.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from chalicelib.domain import metrics, reporting
from chalicelib.domain.metrics import IngestResult, Kind, Metric, Schedule
from chalicelib.domain.outcome import DeathReason, Outcome

MINUTE_S: Final = 60
HOUR_S: Final = 3_600
DAY_S: Final = 86_400
PROMISES: Final = {
    1: "Nothing accepted is lost",
    2: "At least once, detectably",
    3: "Bytes in, bytes out",
    4: "One endpoint harms nobody else",
    5: "One sender at a time",
    6: "Waiting spends nothing",
    7: "Nobody is surprised",
    8: "Only where it belongs",
    9: "History is evidence",
}
"""The guarantees of docs/architecture.md, by their numbers there."""


class Missing(StrEnum):
    """What a minute without a sample means."""

    WELL = "notBreaching"
    BAD = "breaching"


@dataclass(frozen=True, slots=True)
class Alarm:
    """One alarm: it rings when `of` out of the last `minutes` minutes reach the threshold.

    `value` is that of the metric's label, or of `quantile`. `promise` is 0 for what watches the watching.
    """

    name: str
    promise: int
    says: str
    metric: Metric
    threshold: float
    value: str = ""
    of: int = 1
    minutes: int = 5
    missing: Missing = Missing.WELL

    @property
    def logical_id(self) -> str:
        """Name it as the template does."""
        return "".join(part.capitalize() for part in self.name.split("-")) + "Alarm"

    @property
    def dimensions(self) -> dict[str, Any]:
        """Name the series."""
        named: dict[str, Any] = {reporting.PREFIX: {"Ref": "Prefix"}}
        if self.value:
            label = reporting.QUANTILE if self.metric.kind is Kind.HISTOGRAM else self.metric.label
            named[label] = self.value
        return named

    @property
    def resource(self) -> dict[str, Any]:
        """Give it as the template has it."""
        promise = f"Promise {self.promise}, {PROMISES[self.promise]}. " if self.promise else ""
        topic = [{"Ref": "OperatorsTopic"}]
        properties = {
            "AlarmName": {"Fn::Sub": f"${{Prefix}}{self.name}"},
            "AlarmDescription": f"{promise}{self.says} What to do: docs/operations.md, {self.name}.",
            "Namespace": reporting.NAMESPACE,
            "MetricName": self.metric.name,
            "Dimensions": [{"Name": name, "Value": value} for name, value in self.dimensions.items()],
            "Statistic": "Maximum",
            "Period": MINUTE_S,
            "EvaluationPeriods": self.minutes,
            "DatapointsToAlarm": self.of,
            "Threshold": self.threshold,
            "ComparisonOperator": "GreaterThanOrEqualToThreshold",
            "TreatMissingData": self.missing.value,
            "AlarmActions": topic,
            "OKActions": topic,
        }
        return {"Type": "AWS::CloudWatch::Alarm", "Properties": properties}


ALARMS: Final = (
    Alarm(
        "late", 1, "A delivery that nothing holds has been due for over a minute, for three minutes.",
        metrics.OLDEST_PENDING, 60, of=3,
    ),
    Alarm(
        "canary-stale", 1, "No message has come through one of the shards for three minutes.",
        metrics.CANARY_AGE, 180, of=2,
    ),
    Alarm(
        "rescued", 1, "Reconcile rang a late lane that nobody had looked at: bells were lost.",
        metrics.RESCUED, 1,
    ),
    Alarm(
        "reconcile-silent", 1, "Reconcile has not come round without a failure for ten minutes.",
        metrics.SCHEDULE_AGE, 600, Schedule.RECONCILE,
    ),
    Alarm(
        "ingest-unavailable", 1, "Producers were answered 503: their events are not accepted.",
        metrics.INGESTED, 10, IngestResult.UNAVAILABLE, of=2,
    ),
    Alarm(
        "unknown-attempts", 2, "Senders died while they were sending: what they sent may arrive twice.",
        metrics.ATTEMPTS, 5, Outcome.UNKNOWN,
    ),
    Alarm(
        "poisoned", 2, "A delivery was given up on, as five attempts in a row ended with a dead sender.",
        metrics.DEAD_LETTERS, 1, DeathReason.POISONED,
    ),
    Alarm(
        "payloads-lost", 3, "A payload was gone, or not whole, as it was to be sent.",
        metrics.PAYLOADS_LOST, 1,
    ),
    Alarm(
        "slow-platform", 4,
        "One attempt in a hundred waits ten seconds for Relay, not for its endpoint: three minutes of ten.",
        metrics.PLATFORM, 10, "p99", of=3, minutes=10,
    ),
    Alarm(
        "bells-in-flight", 4, "A queue holds half of the messages in flight that SQS allows.",
        metrics.BELLS, 60_000, of=2,
    ),
    Alarm(
        "leases-lost", 5, "A visit outlived its lease, and another took its lane over.",
        metrics.LEASES_LOST, 1,
    ),
    Alarm(
        "expired", 6, "A delivery was given up on because its time was over, not because its attempts were.",
        metrics.DEAD_LETTERS, 1, DeathReason.EXPIRED,
    ),
    Alarm(
        "notify-silent", 7, "Owners have not been told all that there was to tell for fifteen minutes.",
        metrics.SCHEDULE_AGE, 900, Schedule.NOTIFY,
    ),
    Alarm(
        "requests-refused", 8, "Many requests were refused for where they led: somebody is trying.",
        metrics.REFUSED, 10,
    ),
    Alarm(
        "retention-silent", 9, "Retention has not done all its chores for a day.",
        metrics.SCHEDULE_AGE, DAY_S, Schedule.RETENTION,
    ),
    Alarm(
        "retention-overdue", 9,
        "Rows that should have gone two days ago are still there: nothing removes them.",
        metrics.OVERDUE, 1,
    ),
    Alarm(
        "audit-export-silent", 9, "The audit has not been exported to its end for a day.",
        metrics.SCHEDULE_AGE, DAY_S, Schedule.EXPORT_AUDIT,
    ),
    Alarm(
        "reporter-silent", 0,
        "Nothing has measured Relay for three minutes, so that no other alarm can be trusted.",
        metrics.READING_AGE, 180, of=3, missing=Missing.BAD,
    ),
)  # fmt: skip


def resources(alarms: Iterable[Alarm] = ALARMS) -> dict[str, Any]:
    """Give the alarms as the template has them, and where they ring."""
    # Not encrypted with the key that AWS manages for SNS: CloudWatch may not use that, and could not ring.
    topic = {"TopicName": {"Fn::Sub": "${Prefix}operators"}}
    subscription = {"Protocol": "email", "TopicArn": {"Ref": "OperatorsTopic"}}
    return {
        "Parameters": {
            "OperatorsEmail": {
                "Type": "String",
                "Default": "",
                "Description": "Where alarms are mailed to; empty means that nobody is told.",
            }
        },
        "Conditions": {"OperatorsHaveEmail": {"Fn::Not": [{"Fn::Equals": [{"Ref": "OperatorsEmail"}, ""]}]}},
        "Resources": {
            "OperatorsTopic": {"Type": "AWS::SNS::Topic", "Properties": topic},
            "OperatorsSubscription": {
                "Type": "AWS::SNS::Subscription",
                "Condition": "OperatorsHaveEmail",
                "Properties": subscription | {"Endpoint": {"Ref": "OperatorsEmail"}},
            },
            **{each.logical_id: each.resource for each in alarms},
        },
    }
