"""Every Lambda function: what feeds it, how far it may grow, and what it may touch.

The one table that the policies, the concurrency parameters and the event source mappings are made from.
Names of functions are those of app.py; everything else is named by its logical id in resources.yaml.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

READ: Final = (
    "dynamodb:BatchGetItem",
    "dynamodb:ConditionCheckItem",
    "dynamodb:GetItem",
    "dynamodb:Query",
)
INSERT: Final = ("dynamodb:PartiQLInsert", "dynamodb:PutItem")
UPDATE: Final = ("dynamodb:PartiQLUpdate", "dynamodb:UpdateItem")
DELETE: Final = ("dynamodb:DeleteItem", "dynamodb:PartiQLDelete")
"""The same write as a single statement and as a part of a transaction."""

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
    tables = {
        "EventsTable": READ + INSERT + UPDATE,
        "OwedTable": READ + INSERT,
        "HistoryTable": READ + INSERT,
        "EndpointsTable": READ + INSERT + UPDATE,
        "SubsTable": READ + INSERT + UPDATE,
        "GatesTable": READ + INSERT + UPDATE,
        "DeadLettersTable": READ,
        "AllowancesTable": INSERT + UPDATE,
        "IdempotencyTable": READ + INSERT,
        "TenantsTable": (*READ, *INSERT, *UPDATE, "dynamodb:DeleteItem"),
        "FanoutsTable": READ + INSERT,
        "EndingsTable": INSERT,
        "StatsTable": READ,
        "NoticesTable": READ,
        "ReplaysTable": READ + INSERT,
        "AuditTable": READ + INSERT,
        "PurgesTable": READ + INSERT,
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
    tables = {
        "OwedTable": READ + INSERT + UPDATE + DELETE,
        "HistoryTable": READ + INSERT,
        "GatesTable": READ + UPDATE,
        "EventsTable": READ,
        "EndpointsTable": READ + INSERT,
        "DeadLettersTable": INSERT,
        "EndingsTable": INSERT,
        "StatsTable": INSERT,
        "AuditTable": INSERT,
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
    """Send to AWS accounts of others by roles of theirs: alone among all, and no secret of any endpoint."""
    of = _deliver("deliver_cloud", "CloudQueue", 20)
    kept = tuple(each for each in of.grants if each.resource != "SecretsKey")
    return replace(of, grants=(*kept, Grant(ROLES_OF_OTHERS, ("sts:AssumeRole",))))


def _delayed_bells() -> Function:
    """Ring the lane's queue when a delay is over."""
    grants = (*_queues(SEND, *LANE_QUEUES), *_queues(RECEIVE, "DelayedQueue"))
    return Function("delayed_bells", 20, grants, "DelayedQueue")


def _fanning_out() -> Iterable[Grant]:
    """Do the fan-outs that an event's own transaction could not hold, or its tenant's budget."""
    tables = {
        "SubsTable": READ,
        "EndpointsTable": READ,
        "EventsTable": READ,
        "FanoutsTable": READ + UPDATE + DELETE,
        "OwedTable": INSERT,
        "HistoryTable": INSERT,
        "GatesTable": READ + UPDATE,
        "TenantsTable": READ,
        "AllowancesTable": INSERT + UPDATE,
    }
    queues = _queues(SEND, *LANE_QUEUES, "FanOutQueue")
    return (*_tables(tables), *queues, *_payloads("s3:GetObject"))


def _fan_out() -> Function:
    """Fan out when told."""
    grants = (*_fanning_out(), *_queues(RECEIVE, "FanOutQueue"))
    return Function("fan_out", 20, grants, "FanOutQueue")


def _end_owed() -> Function:
    """End in pages what an owner's word, or time, has ended, and call itself again when that takes long."""
    tables = {
        "EndingsTable": READ + INSERT + DELETE,
        "EndpointsTable": READ,
        "GatesTable": READ + UPDATE,
        "OwedTable": READ + INSERT + DELETE,
        "HistoryTable": READ + INSERT,
        "DeadLettersTable": INSERT,
    }
    grants = (*_tables(tables), *_queues(SEND, "EndingsQueue"), *_queues(RECEIVE, "EndingsQueue"))
    return Function("end_owed", 10, grants, "EndingsQueue")


def _call_endings() -> Function:
    """Call for what is to be ended and nobody was told of, or what is due by now."""
    return Function(
        "call_endings",
        2,
        (*_tables({"EndingsTable": ("dynamodb:Scan",)}), *_queues(SEND, "EndingsQueue")),
    )


def _replay_many() -> Function:
    """Begin what bulk replays say, a chunk at a time, and call itself again while there is more."""
    tables = {
        "ReplaysTable": READ + INSERT,
        "EndpointsTable": READ,
        "EventsTable": READ + UPDATE,
        "GatesTable": UPDATE,
        "OwedTable": READ + INSERT,
        "HistoryTable": READ + INSERT,
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
        Grant("ReplaysTable", ("dynamodb:Query",), "/index/running"),
        *_queues(SEND, "ReplaysQueue"),
    )
    return Function("call_replays", 2, grants)


def _reconcile() -> Function:
    """Ring the lanes that nobody looked at, and fan out what nobody was told of."""
    grants = (
        *_fanning_out(),
        *_tables({"OwedTable": READ, "FanoutsTable": ("dynamodb:Scan",)}),
        Grant("GatesTable", ("dynamodb:Query",), "/index/armed"),
        *_queues(SEND, "DelayedQueue"),
    )
    return Function("reconcile", 2, grants)


def _notify() -> Function:
    """Tell owners of what is marked on their endpoints' gates."""
    tables = {
        "GatesTable": READ + UPDATE,
        "EndpointsTable": READ,
        "DeadLettersTable": READ,
        "NoticesTable": READ + INSERT + UPDATE,
    }
    grants = (
        *_tables(tables),
        Grant("GatesTable", ("dynamodb:Query",), "/index/alert"),
        Grant("NoticesTopic", ("sns:Publish",)),
    )
    return Function("notify", 2, grants)


def _retention() -> Function:
    """Prolong what is still needed and remove what is not; rows are removed here on emulators alone."""
    tables = {
        "EventsTable": READ + UPDATE,
        "OwedTable": (*READ, "dynamodb:Scan"),
        "HistoryTable": (*READ, "dynamodb:PartiQLUpdate"),
        "DeadLettersTable": (*READ, *UPDATE, "dynamodb:Scan"),
        "EndpointsTable": (*READ, *DELETE, "dynamodb:Scan"),
        "GatesTable": DELETE,
        "NoticesTable": DELETE,
        "FanoutsTable": READ + UPDATE,
    }
    grants = (*_tables(tables), *_payloads("s3:DeleteObject"))
    return Function("retention", 2, grants)


def _purge() -> Function:
    """Delete a tenant's endpoints, then all of its rows and payloads; and dead letters that are purged."""
    tables = {
        "EndpointsTable": (*READ, *INSERT, *DELETE, "dynamodb:Scan"),
        "SubsTable": (*READ, *UPDATE, *DELETE, "dynamodb:Scan"),
        "GatesTable": READ + UPDATE + DELETE,
        "EndingsTable": READ + INSERT + DELETE,
        "TenantsTable": (*READ, *UPDATE, *DELETE, "dynamodb:Scan"),
        "HistoryTable": READ + INSERT + DELETE,
        "IdempotencyTable": (*DELETE, "dynamodb:Scan"),
        "AllowancesTable": (*DELETE, "dynamodb:Scan"),
        "PurgesTable": (*READ, *INSERT, *DELETE, "dynamodb:Scan"),
        "AuditTable": INSERT,
    }
    emptied = ("EventsTable", "OwedTable", "DeadLettersTable", "StatsTable", "NoticesTable", "ReplaysTable")
    tables |= dict.fromkeys((*emptied, "FanoutsTable"), READ + DELETE)
    return Function("purge", 2, (*_tables(tables), *_payloads("s3:DeleteObject")))


def _export_audit() -> Function:
    """Write settled hours of the audit to a bucket, and note how far that has come."""
    grants = (
        *_tables({"AuditTable": ("dynamodb:Query",), "FanoutsTable": (*READ, "dynamodb:PutItem")}),
        Grant("AuditTable", ("dynamodb:Query",), "/index/export"),
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
    _retention(),
    _purge(),
    _export_audit(),
    _end_owed(),
    _call_endings(),
    _replay_many(),
    _call_replays(),
)
