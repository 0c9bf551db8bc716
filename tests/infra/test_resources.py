"""What resources.yaml promises of everything Relay keeps."""

import re
from typing import Any

import pytest

from chalicelib.adapters.dynamodb import keys
from infra.template import HERE, settle
from tests.infra.lookup import QUEUE, TABLE, of_type

PAIR = {"pk": "HASH", "sk": "RANGE"}
ALONE = {"pk": "HASH"}
KEYS = {
    "relay-events": PAIR,
    "relay-owed": PAIR,
    "relay-history": PAIR,
    "relay-endpoints": PAIR,
    "relay-subs": ALONE,
    "relay-gates": ALONE,
    "relay-dead-letters": PAIR,
    "relay-idempotency": ALONE,
    "relay-allowances": ALONE,
    "relay-tenants": PAIR,
    "relay-fanouts": PAIR,
    "relay-endings": PAIR,
    "relay-stats": PAIR,
    "relay-notices": PAIR,
    "relay-replays": PAIR,
    "relay-audit": PAIR,
    "relay-purges": PAIR,
    "relay-metrics": ALONE,
    "relay-registry": PAIR,
}
FIFO = {
    f"relay-{name}.fifo"
    for name in ("shard-0", "shard-1", "shard-2", "shard-3", "slow", "hot-0", "cloud", "replay")
}
STANDARD = {"relay-delayed", "relay-fan-out", "relay-endings", "relay-replays"}
DELETED_IS_GONE_AFTER_DAYS = 7
ONLY_HERE = {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}


@pytest.fixture
def on_aws(source: dict[str, Any]) -> dict[str, Any]:
    return {"Resources": settle(source, {"AWS::AccountId": "123456789012"})}


@pytest.fixture
def on_emulator(source: dict[str, Any]) -> dict[str, Any]:
    return {"Resources": settle(source, {"EndpointUrl": "http://127.0.0.1:4566"})}


def test_the_tables_are_those_of_the_design_with_their_keys(on_aws: dict[str, Any]) -> None:
    tables = of_type(on_aws, TABLE).values()
    assert {
        table["TableName"]: {key["AttributeName"]: key["KeyType"] for key in table["KeySchema"]}
        for table in tables
    } == KEYS


def test_every_table_expires_its_rows_is_backed_up_and_encrypted(on_aws: dict[str, Any]) -> None:
    for table in of_type(on_aws, TABLE).values():
        assert table["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}
        assert table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True
        assert table["SSESpecification"]["SSEEnabled"] is True
        assert table["BillingMode"] == "PAY_PER_REQUEST"


def test_every_table_either_has_rows_that_expire_or_is_known_to_have_none() -> None:
    """Where DynamoDB does not remove them, retention goes through these."""
    stay = {"owed", "endpoints", "subs", "gates", "allowances", "tenants", "fanouts", "endings", "metrics"}
    stay.add("registry")
    assert not stay & set(keys.EXPIRING)
    assert {f"relay-{table}" for table in {*keys.EXPIRING, *stay}} == set(KEYS)


def test_gates_that_have_work_or_something_to_tell_are_found_by_their_index(on_aws: dict[str, Any]) -> None:
    gates = of_type(on_aws, TABLE)["GatesTable"]
    indexes = {each["IndexName"]: each for each in gates["GlobalSecondaryIndexes"]}
    assert indexes.keys() == {"armed", "alert"}
    types = {key["AttributeName"]: key["AttributeType"] for key in gates["AttributeDefinitions"]}
    assert types.pop("pk") == "S"
    for name, index in indexes.items():
        assert index["Projection"] == {"ProjectionType": "KEYS_ONLY"}
        assert [key["AttributeName"] for key in index["KeySchema"]] == [f"{name}_shard", f"{name}_until"]
        assert (types.pop(f"{name}_shard"), types.pop(f"{name}_until")) == ("S", "N")
    assert types == {}


def test_bulk_replays_that_run_are_found_by_their_index(on_aws: dict[str, Any]) -> None:
    (index,) = of_type(on_aws, TABLE)["ReplaysTable"]["GlobalSecondaryIndexes"]
    assert (index["IndexName"], index["Projection"]) == ("running", {"ProjectionType": "KEYS_ONLY"})
    assert [key["AttributeName"] for key in index["KeySchema"]] == ["running_shard", "running_until"]


def test_the_audit_is_found_by_its_hour(on_aws: dict[str, Any]) -> None:
    (index,) = of_type(on_aws, TABLE)["AuditTable"]["GlobalSecondaryIndexes"]
    assert (index["IndexName"], index["Projection"]) == ("export", {"ProjectionType": "KEYS_ONLY"})
    assert [key["AttributeName"] for key in index["KeySchema"]] == ["export_shard", "export_until"]


def test_the_queues_are_those_of_the_design(on_aws: dict[str, Any]) -> None:
    assert {queue["QueueName"] for queue in of_type(on_aws, QUEUE).values()} == FIFO | STANDARD


def test_every_fifo_queue_has_high_throughput(on_aws: dict[str, Any]) -> None:
    for queue in of_type(on_aws, QUEUE).values():
        fifo = queue["QueueName"] in FIFO
        assert queue.get("FifoQueue", False) is fifo
        assert queue.get("DeduplicationScope") == ("messageGroup" if fifo else None)
        assert queue.get("FifoThroughputLimit") == ("perMessageGroupId" if fifo else None)


def test_no_queue_gives_its_bells_away(on_aws: dict[str, Any]) -> None:
    for queue in of_type(on_aws, QUEUE).values():
        assert "RedrivePolicy" not in queue
        assert queue["SqsManagedSseEnabled"] is True


@pytest.mark.parametrize("name", ["PayloadsBucket", "AuditBucket"])
def test_a_bucket_is_encrypted_private_and_forgets_unfinished_uploads(
    on_aws: dict[str, Any], name: str
) -> None:
    bucket = of_type(on_aws, "AWS::S3::Bucket")[name]
    assert bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    unfinished, deleted = bucket["LifecycleConfiguration"]["Rules"]
    assert (unfinished["Status"], deleted["Status"]) == ("Enabled", "Enabled")
    assert unfinished["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"] >= 1
    assert set(unfinished) == {"Id", "Status", "AbortIncompleteMultipartUpload"}
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    assert deleted["NoncurrentVersionExpiration"] == {"NoncurrentDays": DELETED_IS_GONE_AFTER_DAYS}
    assert deleted["ExpiredObjectDeleteMarker"] is True
    # What is current stays: it goes when Relay deletes it.
    assert set(deleted) == {"Id", "Status", "NoncurrentVersionExpiration", "ExpiredObjectDeleteMarker"}


def test_the_pages_say_how_long_what_was_deleted_can_be_had_back() -> None:
    said = f"{DELETED_IS_GONE_AFTER_DAYS} days"
    for page in ("deployment.md", "operations.md"):
        text = (HERE.parent / "docs" / page).read_text(encoding="utf-8")
        assert re.search(rf"version[^.]*{said}", text), page


@pytest.mark.parametrize("name", ["payloads", "audit"])
def test_a_bucket_is_named_after_the_account_on_aws_alone(
    on_aws: dict[str, Any], on_emulator: dict[str, Any], name: str
) -> None:
    buckets = [of_type(where, "AWS::S3::Bucket") for where in (on_aws, on_emulator)]
    named = [each[f"{name.title()}Bucket"]["BucketName"] for each in buckets]
    assert named == [f"relay-{name}-123456789012", f"relay-{name}"]


@pytest.mark.parametrize("name", ["PayloadsBucketPolicy", "AuditBucketPolicy"])
def test_only_tls_reaches_a_bucket_on_aws(
    on_aws: dict[str, Any], on_emulator: dict[str, Any], name: str
) -> None:
    policy = of_type(on_aws, "AWS::S3::BucketPolicy")[name]["PolicyDocument"]
    (statement,) = policy["Statement"]
    assert statement["Effect"] == "Deny"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert not of_type(on_emulator, "AWS::S3::BucketPolicy")


def test_the_key_is_renewed_and_has_its_alias(on_aws: dict[str, Any]) -> None:
    (key,) = of_type(on_aws, "AWS::KMS::Key").values()
    (alias,) = of_type(on_aws, "AWS::KMS::Alias").values()
    assert key["EnableKeyRotation"] is True
    assert alias == {"AliasName": "alias/relay-secrets", "TargetKeyId": {"Ref": "SecretsKey"}}


def test_notices_have_a_topic(on_aws: dict[str, Any]) -> None:
    (topic,) = of_type(on_aws, "AWS::SNS::Topic").values()
    assert topic["TopicName"] == "relay-notices"


def test_deleting_the_stack_deletes_no_data(source: dict[str, Any]) -> None:
    for about in source["Resources"].values():
        if about["Type"] in {TABLE, "AWS::S3::Bucket", "AWS::KMS::Alias", "AWS::KMS::Key"}:
            assert ONLY_HERE.items() <= about.items()


def test_every_name_carries_the_prefix(source: dict[str, Any]) -> None:
    settled = {"Resources": settle(source, {"Prefix": "other-", "EndpointUrl": "http://127.0.0.1:4566"})}
    names = [
        value.removeprefix("alias/")
        for about in settled["Resources"].values()
        for key, value in about["Properties"].items()
        if key in {"TableName", "QueueName", "BucketName", "TopicName", "AliasName"}
    ]
    assert len(names) == len(KEYS) + len(FIFO) + len(STANDARD) + 4
    assert all(name.startswith("other-") for name in names)
