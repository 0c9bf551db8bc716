"""Where things are kept and rung: tables, payloads, queues, and what opens secrets."""

from functools import cache
from typing import TYPE_CHECKING

from chalicelib import bootstrap

if TYPE_CHECKING:
    from chalicelib.adapters.dynamodb.auditing import DynamoAuditing
    from chalicelib.adapters.dynamodb.bulk_replays import DynamoBulkReplays
    from chalicelib.adapters.dynamodb.capturing import DynamoCapturing
    from chalicelib.adapters.dynamodb.counting import DynamoCounters
    from chalicelib.adapters.dynamodb.endpoints import DynamoEndpoints
    from chalicelib.adapters.dynamodb.noticing import DynamoNoticing
    from chalicelib.adapters.dynamodb.owning import DynamoOwners
    from chalicelib.adapters.dynamodb.purging import DynamoPurging
    from chalicelib.adapters.dynamodb.tables import DynamoTables
    from chalicelib.adapters.dynamodb.trusting import DynamoKeys, DynamoTenants
    from chalicelib.adapters.dynamodb.work import DynamoGates, DynamoWork
    from chalicelib.adapters.kms import KmsSealer
    from chalicelib.adapters.s3 import S3Payloads
    from chalicelib.adapters.sqs import Queues, SqsBells, SqsReceipts
    from chalicelib.application.counting import Counting
    from chalicelib.application.signing_keys import SigningKeys


@cache
def tables() -> "DynamoTables":
    """Give the tables."""
    from chalicelib.adapters.dynamodb.tables import DynamoTables

    return DynamoTables(bootstrap.json_service("dynamodb"), bootstrap.settings().resource_prefix)


@cache
def capturing() -> "DynamoCapturing":
    """Give the store of ingest."""
    from chalicelib.adapters.dynamodb.capturing import DynamoCapturing

    return DynamoCapturing(bootstrap.tables())


@cache
def endpoints() -> "DynamoEndpoints":
    """Give the store of endpoints."""
    from chalicelib.adapters.dynamodb.endpoints import DynamoEndpoints

    return DynamoEndpoints(bootstrap.tables(), bootstrap.rules())


@cache
def api_keys() -> "DynamoKeys":
    """Give the store of API keys."""
    from chalicelib.adapters.dynamodb.trusting import DynamoKeys

    return DynamoKeys(bootstrap.tables())


@cache
def tenants() -> "DynamoTenants":
    """Give the store of tenants."""
    from chalicelib.adapters.dynamodb.trusting import DynamoTenants

    return DynamoTenants(bootstrap.tables())


@cache
def work() -> "DynamoWork":
    """Give the work list and history."""
    from chalicelib.adapters.dynamodb.work import DynamoWork

    return DynamoWork(bootstrap.tables(), bootstrap.counters())


@cache
def counters() -> "DynamoCounters":
    """Give the store of counters, to which each process writes under a number of its own."""
    from chalicelib.adapters.dynamodb.counting import DynamoCounters

    return DynamoCounters(bootstrap.tables(), bootstrap.dice().bits(64))


@cache
def counting() -> "Counting":
    """Give what this process has counted and the store does not know yet."""
    from chalicelib.application.counting import Counting

    return Counting(bootstrap.counters(), bootstrap.clock())


@cache
def gates() -> "DynamoGates":
    """Give the gates."""
    from chalicelib.adapters.dynamodb.work import DynamoGates

    return DynamoGates(bootstrap.tables())


@cache
def payloads() -> "S3Payloads":
    """Give the store of bodies over the inline limit."""
    from chalicelib.adapters.s3 import S3Payloads

    return S3Payloads(bootstrap.client("s3"), bootstrap.settings().payload_bucket)


@cache
def bulk_replays() -> "DynamoBulkReplays":
    """Give the store of bulk replays."""
    from chalicelib.adapters.dynamodb.bulk_replays import DynamoBulkReplays

    return DynamoBulkReplays(bootstrap.tables())


@cache
def noticing() -> "DynamoNoticing":
    """Give the store of notices."""
    from chalicelib.adapters.dynamodb.noticing import DynamoNoticing

    return DynamoNoticing(bootstrap.tables())


@cache
def auditing() -> "DynamoAuditing":
    """Give the store the audit is read from."""
    from chalicelib.adapters.dynamodb.auditing import DynamoAuditing

    return DynamoAuditing(bootstrap.tables())


@cache
def purging() -> "DynamoPurging":
    """Give the store of purges."""
    from chalicelib.adapters.dynamodb.purging import DynamoPurging

    return DynamoPurging(bootstrap.tables())


@cache
def sealer() -> "KmsSealer":
    """Give the key service."""
    from chalicelib.adapters.kms import KmsSealer

    return KmsSealer(bootstrap.client("kms"), f"alias/{bootstrap.settings().resource_prefix}secrets")


@cache
def signing_keys() -> "SigningKeys":
    """Give what makes and opens signing keys."""
    from chalicelib.adapters.ed25519 import NaclEd25519
    from chalicelib.application.signing_keys import SigningKeys

    return SigningKeys(bootstrap.sealer(), NaclEd25519())


@cache
def queues() -> "Queues":
    """Give the queues' URLs."""
    from chalicelib.adapters.sqs import Queues

    return Queues(bootstrap.json_service("sqs"), bootstrap.settings().resource_prefix)


@cache
def bells() -> "SqsBells":
    """Give what rings lanes."""
    from chalicelib.adapters.sqs import Beside, SqsBells

    def lost(queue: str, count: int, error: Exception) -> None:
        bootstrap.log().warning("bells.lost", extra={"queue": queue, "lost": count, "error": str(error)})

    of = bootstrap.settings()
    beside = Beside(str if of.traces == "off" else bootstrap.trace_header, lost)
    return SqsBells(bootstrap.json_service("sqs"), bootstrap.queues(), of.shard_count, beside)


@cache
def receipts(queue_arn: str) -> "SqsReceipts":
    """Give the received bells of a queue, by its ARN."""
    from chalicelib.adapters.sqs import SqsReceipts

    name = queue_arn.rpartition(":")[2].removeprefix(bootstrap.settings().resource_prefix)
    return SqsReceipts(bootstrap.json_service("sqs"), bootstrap.queues().url(name))


def owners(node_id: str, target: str, lease_ms: int) -> "DynamoOwners":
    """Give the relay nodes' registry, as one of them sees it."""
    from chalicelib.adapters.dynamodb.owning import DynamoOwners, Node

    return DynamoOwners(bootstrap.tables(), bootstrap.clock(), Node(node_id, target), lease_ms)
