"""Every Lambda function: what feeds it, how far it may grow, and what it may touch.

The one table that the policies, the concurrency parameters and the event source mappings are made from.
Names of functions are those of app.py; everything else is named by its logical id in resources.yaml.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

GET: Final = "dynamodb:BatchGetItem"
QUERY: Final = "dynamodb:Query"
SCAN: Final = "dynamodb:Scan"

CHECK: Final = "dynamodb:ConditionCheckItem"
PUT: Final = "dynamodb:PutItem"
UPDATE: Final = "dynamodb:UpdateItem"
DELETE: Final = "dynamodb:DeleteItem"
"""Parts of a transaction."""

INSERT_ALONE: Final = "dynamodb:PartiQLInsert"
UPDATE_ALONE: Final = "dynamodb:PartiQLUpdate"
DELETE_ALONE: Final = "dynamodb:PartiQLDelete"
"""Writes that have nothing to do with one another: statements."""
NOTE: Final = (INSERT_ALONE, UPDATE_ALONE)
"""Makes a row, or changes it; so is counted."""

SEND: Final = ("sqs:GetQueueUrl", "sqs:SendMessage")
RECEIVE: Final = (
    "sqs:ChangeMessageVisibility",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ReceiveMessage",
)

SHARDS: Final = ("Shard0Queue", "Shard1Queue", "Shard2Queue", "Shard3Queue")
LANE_QUEUES: Final = (*SHARDS, "SlowQueue", "Hot0Queue", "CloudQueue", "ReplayQueue")
"""An endpoint may move between these at any time, so whoever rings one may ring all."""
FIRST_QUEUES: Final = tuple(each for each in LANE_QUEUES if each != "ReplayQueue")
"""Where first attempts ring."""


ROLES_OF_OTHERS: Final = "arn:${AWS::Partition}:iam::*:role/relay-deliver-*"
"""The roles in other accounts that Relay may assume: none that was not named for it."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Actions allowed on one thing; `part` is appended to its ARN."""

    resource: str
    actions: tuple[str, ...]
    part: str = ""


@dataclass(frozen=True, slots=True)
class Function:
    """One function. `most` is how many copies may run at once unless its parameter says otherwise.

    The defaults add up to under 700, which fits into the 1,000 that an account has at first.
    """

    name: str
    most: int
    grants: tuple[Grant, ...]
    queue: str = ""
    sends: bool = False
    """Whether it sends requests to endpoints, and so lives in the egress network."""

    @property
    def logical_id(self) -> str:
        """Give the name that `chalice package` makes of it."""
        if self.name == "api_handler":
            return "APIHandler"
        return "".join(part.capitalize() for part in self.name.split("_"))

    @property
    def role_id(self) -> str:
        """Give the logical id of its role."""
        return "".join(part.capitalize() for part in self.name.split("_")) + "Role"

    @property
    def deployed_name(self) -> str:
        """Give its name on AWS, less the prefix."""
        return "api" if self.name == "api_handler" else self.name.replace("_", "-")


def _tables(actions_of: Mapping[str, tuple[str, ...]]) -> Iterable[Grant]:
    """Grant actions on tables."""
    return (Grant(table, actions) for table, actions in actions_of.items())


def _queues(actions: tuple[str, ...], *queues: str) -> Iterable[Grant]:
    """Grant the same actions on several queues."""
    return (Grant(queue, actions) for queue in queues)


def _payloads(*actions: str) -> Iterable[Grant]:
    """Grant actions on payloads; only who may list is told that one is gone, not that it is forbidden."""
    return (Grant("PayloadsBucket", actions, "/*"), Grant("PayloadsBucket", ("s3:ListBucket",)))


def _api() -> Function:
    """Serve the API: accept events, manage endpoints, show what happened. It deletes nothing but keys."""
    tables: dict[str, tuple[str, ...]] = {
        "EventsTable": (GET, QUERY, PUT, UPDATE),
        "OwedTable": (QUERY, PUT),
        "HistoryTable": (GET, QUERY, PUT),
        "EndpointsTable": (GET, QUERY, PUT, INSERT_ALONE, UPDATE_ALONE),
        "SubsTable": (GET, UPDATE),
        "GatesTable": (GET, PUT, UPDATE, UPDATE_ALONE),
        "DeadLettersTable": (QUERY,),
        "AllowancesTable": (INSERT_ALONE, UPDATE_ALONE),
        "IdempotencyTable": (GET, PUT),
        "TenantsTable": (GET, QUERY, PUT, UPDATE, DELETE, UPDATE_ALONE),
        "FanoutsTable": (PUT,),
        "EndingsTable": (PUT,),
        "StatsTable": (QUERY,),
        "NoticesTable": (QUERY,),
        "ReplaysTable": (GET, PUT),
        "AuditTable": (QUERY, PUT),
        "PurgesTable": (GET, PUT),
        "MetricsTable": (GET, SCAN, *NOTE),
        "RegistryTable": (PUT,),
    }
    grants = (
        *_tables(tables),
        *_queues(SEND, *LANE_QUEUES, "DelayedQueue", "FanOutQueue", "EndingsQueue", "ReplaysQueue"),
        *_payloads("s3:GetObject", "s3:PutObject"),
        Grant("SecretsKey", ("kms:Decrypt", "kms:Encrypt")),
    )
    return Function("api_handler", 200, grants)


def _deliver(name: str, queue: str, most: int) -> Function:
    """Send what lanes of one queue owe, and disable an endpoint that says it is gone."""
    tables: dict[str, tuple[str, ...]] = {
        "OwedTable": (GET, QUERY, PUT, DELETE, DELETE_ALONE),
        "HistoryTable": (GET, PUT, INSERT_ALONE),
        "GatesTable": (GET, UPDATE, UPDATE_ALONE),
        "EventsTable": (GET,),
        "EndpointsTable": (GET, PUT),
        "DeadLettersTable": (PUT,),
        "EndingsTable": (PUT,),
        "StatsTable": (INSERT_ALONE,),
        "AuditTable": (PUT,),
        "MetricsTable": NOTE,
        "RegistryTable": (INSERT_ALONE,),
    }
    grants = (
        *_tables(tables),
        *_queues(SEND, *LANE_QUEUES, "DelayedQueue"),
        *_queues(RECEIVE, queue),
        *_payloads("s3:GetObject"),
        Grant("SecretsKey", ("kms:Decrypt",)),
    )
    return Function(name, most, grants, queue, sends=True)


def _deliver_cloud() -> Function:
    """Send to AWS accounts of others by roles of theirs: alone among all, and by no secret or tunnel."""
    of = _deliver("deliver_cloud", "CloudQueue", 20)
    kept = tuple(each for each in of.grants if each.resource not in {"SecretsKey", "RegistryTable"})
    return replace(of, grants=(*kept, Grant(ROLES_OF_OTHERS, ("sts:AssumeRole",))))


def _delayed_bells() -> Function:
    """Ring the lane's queue when a delay is over."""
    grants = (*_queues(SEND, *LANE_QUEUES), *_queues(RECEIVE, "DelayedQueue"))
    return Function("delayed_bells", 20, grants, "DelayedQueue")


def _fanning_out() -> Iterable[Grant]:
    """Do the fan-outs that an event's own transaction could not hold, or its tenant's budget."""
    tables: dict[str, tuple[str, ...]] = {
        "SubsTable": (GET,),
        "EndpointsTable": (GET,),
        "EventsTable": (GET,),
        "FanoutsTable": (GET, UPDATE, DELETE),
        "OwedTable": (PUT,),
        "HistoryTable": (PUT,),
        "GatesTable": (GET, UPDATE_ALONE),
        "TenantsTable": (GET,),
        "AllowancesTable": (INSERT_ALONE, UPDATE_ALONE),
    }
    queues = _queues(SEND, *FIRST_QUEUES, "FanOutQueue")
    return (*_tables(tables), *queues, *_payloads("s3:GetObject"))


def _fan_out() -> Function:
    """Fan out when told."""
    grants = (*_fanning_out(), *_queues(RECEIVE, "FanOutQueue"))
    return Function("fan_out", 20, grants, "FanOutQueue")


def _end_owed() -> Function:
    """End in pages what an owner's word, or time, has ended, and call itself again when that takes long."""
    tables: dict[str, tuple[str, ...]] = {
        "EndingsTable": (QUERY, PUT, DELETE),
        "EndpointsTable": (GET, CHECK),
        "GatesTable": (GET, UPDATE_ALONE),
        "OwedTable": (GET, QUERY, PUT, DELETE, DELETE_ALONE),
        "HistoryTable": (GET, PUT),
        "DeadLettersTable": (PUT,),
        "MetricsTable": NOTE,
    }
    grants = (*_tables(tables), *_queues(SEND, "EndingsQueue"), *_queues(RECEIVE, "EndingsQueue"))
    return Function("end_owed", 10, grants, "EndingsQueue")


def _call_endings() -> Function:
    """Call for what is to be ended and nobody was told of, or what is due by now."""
    return Function(
        "call_endings",
        2,
        (*_tables({"EndingsTable": (SCAN,)}), *_queues(SEND, "EndingsQueue")),
    )


def _replay_many() -> Function:
    """Begin what bulk replays say, a chunk at a time, and call itself again while there is more."""
    tables: dict[str, tuple[str, ...]] = {
        "ReplaysTable": (GET, PUT),
        "EndpointsTable": (GET,),
        "EventsTable": (GET, UPDATE),
        "GatesTable": (UPDATE_ALONE,),
        "OwedTable": (QUERY, PUT),
        "HistoryTable": (QUERY, PUT),
    }
    grants = (
        *_tables(tables),
        *_queues(SEND, "ReplayQueue", "CloudQueue", "ReplaysQueue"),
        *_queues(RECEIVE, "ReplaysQueue"),
    )
    return Function("replay_many", 10, grants, "ReplaysQueue")


def _call_replays() -> Function:
    """Call for bulk replays whose next run is due and was not called for."""
    grants = (
        Grant("ReplaysTable", (QUERY,), "/index/running"),
        *_queues(SEND, "ReplaysQueue"),
    )
    return Function("call_replays", 2, grants)


def _reconcile() -> Function:
    """Ring the lanes that nobody looked at, and fan out what nobody was told of."""
    grants = (
        *_fanning_out(),
        *_tables({"OwedTable": (QUERY,), "FanoutsTable": (SCAN,), "MetricsTable": NOTE}),
        Grant("GatesTable", (QUERY,), "/index/armed"),
        *_queues(SEND, "ReplayQueue", "DelayedQueue"),
    )
    return Function("reconcile", 2, grants)


def _notify() -> Function:
    """Tell owners of what is marked on their endpoints' gates."""
    tables: dict[str, tuple[str, ...]] = {
        "GatesTable": (GET, UPDATE_ALONE),
        "EndpointsTable": (GET,),
        "DeadLettersTable": (QUERY,),
        "NoticesTable": (GET, PUT, UPDATE),
        "MetricsTable": NOTE,
    }
    grants = (
        *_tables(tables),
        Grant("GatesTable", (QUERY,), "/index/alert"),
        Grant("NoticesTopic", ("sns:Publish",)),
    )
    return Function("notify", 2, grants)


def _retention() -> Function:
    """Prolong what is still needed and remove what is not; rows are removed here on emulators alone."""
    tables: dict[str, tuple[str, ...]] = {
        "EventsTable": (GET, QUERY, UPDATE_ALONE),
        "OwedTable": (QUERY, SCAN),
        "HistoryTable": (QUERY, UPDATE_ALONE),
        "DeadLettersTable": (QUERY, SCAN, UPDATE_ALONE),
        "EndpointsTable": (SCAN, DELETE),
        "GatesTable": (DELETE,),
        "NoticesTable": (DELETE,),
        "FanoutsTable": (GET, UPDATE),
        "MetricsTable": NOTE,
    }
    grants = (*_tables(tables), *_payloads("s3:DeleteObject"))
    return Function("retention", 2, grants)


def _purge() -> Function:
    """Delete a tenant's endpoints, then all of its rows and payloads; and dead letters that are purged."""
    tables: dict[str, tuple[str, ...]] = {
        "EndpointsTable": (QUERY, SCAN, PUT, DELETE_ALONE),
        "SubsTable": (SCAN, UPDATE, DELETE_ALONE),
        "GatesTable": (GET, UPDATE, DELETE_ALONE),
        "EndingsTable": (QUERY, PUT, DELETE_ALONE),
        "TenantsTable": (QUERY, SCAN, UPDATE, DELETE, DELETE_ALONE),
        "HistoryTable": (QUERY, PUT, DELETE_ALONE),
        "IdempotencyTable": (SCAN, DELETE_ALONE),
        "AllowancesTable": (SCAN, DELETE_ALONE),
        "PurgesTable": (QUERY, SCAN, PUT, DELETE, DELETE_ALONE),
        "AuditTable": (PUT,),
    }
    emptied = ("EventsTable", "OwedTable", "DeadLettersTable", "StatsTable", "NoticesTable", "ReplaysTable")
    tables |= dict.fromkeys((*emptied, "FanoutsTable"), (QUERY, DELETE_ALONE))
    return Function("purge", 2, (*_tables(tables), *_payloads("s3:DeleteObject")))


def _measure() -> Function:
    """Read what the whole installation is like, and send a canary through each shard."""
    grants = (
        *_tables({"MetricsTable": (GET, SCAN, *NOTE), "GatesTable": (GET,), "OwedTable": (QUERY,)}),
        Grant("GatesTable", (QUERY,), "/index/armed"),
        *_queues(("sqs:SendMessage",), *SHARDS),
        *_queues(("sqs:GetQueueAttributes", "sqs:GetQueueUrl"), *LANE_QUEUES),
    )
    return Function("measure", 2, grants)


def _export_audit() -> Function:
    """Write settled hours of the audit to a bucket, and note how far that has come."""
    grants = (
        *_tables({"AuditTable": (QUERY,), "FanoutsTable": (GET, PUT), "MetricsTable": NOTE}),
        Grant("AuditTable", (QUERY,), "/index/export"),
        Grant("AuditBucket", ("s3:PutObject",), "/*"),
    )
    return Function("export_audit", 2, grants)


FUNCTIONS: Final = (
    _api(),
    *(_deliver(f"deliver_shard_{number}", queue, 50) for number, queue in enumerate(SHARDS)),
    _deliver("deliver_slow", "SlowQueue", 50),
    _deliver("deliver_hot_0", "Hot0Queue", 100),
    _deliver_cloud(),
    _deliver("deliver_replay", "ReplayQueue", 20),
    _delayed_bells(),
    _fan_out(),
    _notify(),
    _reconcile(),
    _measure(),
    _retention(),
    _purge(),
    _export_audit(),
    _end_owed(),
    _call_endings(),
    _replay_many(),
    _call_replays(),
)

UNRECORDED: Final[Mapping[str, str]] = {
    "sqs:ChangeMessageVisibility": "Lambda's poller gives back what a function failed at, under its role.",
    "sqs:DeleteMessage": "Lambda's poller deletes what a function has done, under its role.",
    "sqs:GetQueueAttributes": "Lambda's poller asks how a queue is set up, under the function's role.",
    "sqs:ReceiveMessage": "Lambda's poller receives, under the function's role.",
    "s3:ListBucket": "Who may list is told that a payload is gone, and others that it is forbidden.",
    "sts:AssumeRole": "Asked by the sender's own client: tests/contract/test_cloud_sender.py.",
}
"""Actions that a function is not seen to ask in tests/handlers, and why its policy allows them all the same.

Writing to logs is Lambda's own, and so are the network interfaces of infra/network.yaml.
"""
