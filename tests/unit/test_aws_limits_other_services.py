from __future__ import annotations

import boto3
import pytest

from chalicelib.adapters.aws_limits import AwsWouldRefuse, refuse_what_aws_refuses
from tests.unit.aws_limits import Limit, Params, refusal_of

KEY_ID = "0b1a7f2e-0000-4000-8000-0123456789ab"
KIB = 1_024
TOPIC = "arn:aws:sns:us-east-1:000000000000:relay-notices"


def put(key: str = "k", **fields: object) -> Params:
    return {"Bucket": "relay-payloads", "Key": key, "Body": b"x", **fields}


def delete(*keys: str) -> Params:
    return {"Bucket": "relay-payloads", "Delete": {"Objects": [{"Key": key} for key in keys]}}


def encrypt(key_id: str = "alias/relay-secrets", size: int = 1) -> Params:
    return {"KeyId": key_id, "Plaintext": bytes(size)}


def alias(name: str, target: str = KEY_ID) -> Params:
    return {"AliasName": name, "TargetKeyId": target}


def publish(message: str = "x", **fields: object) -> Params:
    return {"TopicArn": TOPIC, "Message": message, **fields}


def publish_batch(*messages: str) -> Params:
    entries = [{"Id": str(place), "Message": message} for place, message in enumerate(messages)]
    return {"TopicArn": TOPIC, "PublishBatchRequestEntries": entries}


S3 = {
    "a key of 1,024 bytes": Limit("s3.put_object", put("k" * 1_024), put("k" * 1_025), "Key"),
    "bytes count, not characters": Limit(
        "s3.get_object",
        _get := {"Bucket": "relay-payloads", "Key": "ü" * 512},
        _get | {"Key": "ü" * 513},
        "Key",
    ),
    "2 KB of metadata": Limit(
        "s3.put_object", put(Metadata={"a": "x" * 2_047}), put(Metadata={"a": "x" * 2_048}), "Metadata"
    ),
    "1,000 keys deleted": Limit(
        "s3.delete_objects",
        delete(*map(str, range(1_000))),
        delete(*map(str, range(1_001))),
        "Delete.Objects",
    ),
    "deleted keys": Limit(
        "s3.delete_objects", delete("k" * 1_024), delete("k" * 1_025), "Delete.Objects[0].Key"
    ),
    "a bucket's name of 63": Limit("s3.create_bucket", {"Bucket": "b" * 63}, {"Bucket": "b" * 64}, "Bucket"),
    "a bucket's characters": Limit(
        "s3.create_bucket", {"Bucket": "relay-payloads.1"}, {"Bucket": "relay-payloads-"}, "Bucket"
    ),
}
KMS = {
    "4 KB of plaintext": Limit("kms.encrypt", encrypt(size=4_096), encrypt(size=4_097), "Plaintext"),
    "an alias with its prefix": Limit("kms.encrypt", encrypt(), encrypt("relay-secrets"), "KeyId"),
    "an alias's characters": Limit("kms.encrypt", encrypt("alias/a/b_c-0"), encrypt("alias/a b"), "KeyId"),
    "a key id": Limit("kms.encrypt", encrypt(KEY_ID), encrypt(KEY_ID[:-1]), "KeyId"),
    "an ARN": Limit(
        "kms.encrypt",
        encrypt("arn:aws:kms:us-east-1:000000000000:alias/relay-secrets"),
        encrypt("arn:aws:kms:us-east-1:000000000000:relay-secrets"),
        "KeyId",
    ),
    "an alias of 256": Limit(
        "kms.create_alias", alias("alias/" + "a" * 250), alias("alias/" + "a" * 251), "AliasName"
    ),
    "an alias of one's own": Limit(
        "kms.create_alias", alias("alias/awsome"), alias("alias/aws/relay"), "AliasName"
    ),
    "a key behind the alias": Limit(
        "kms.create_alias", alias("alias/a"), alias("alias/a", "alias/b"), "TargetKeyId"
    ),
}
SNS = {
    "a message of 256 KB": Limit(
        "sns.publish", publish("x" * 256 * KIB), publish("x" * (256 * KIB + 1)), "Message"
    ),
    "a message at all": Limit("sns.publish", publish("x"), publish(""), "Message"),
    "a subject of 100": Limit(
        "sns.publish", publish(Subject="s" * 100), publish(Subject="s" * 101), "Subject"
    ),
    "a subject in ASCII": Limit("sns.publish", publish(Subject="[ok] ~"), publish(Subject="grün"), "Subject"),
    "a subject on one line": Limit("sns.publish", publish(Subject="a b"), publish(Subject="a\nb"), "Subject"),
    "a subject that begins": Limit("sns.publish", publish(Subject="a"), publish(Subject=" a"), "Subject"),
    "a group on a FIFO topic": Limit(
        "sns.publish",
        publish(MessageGroupId="g") | {"TopicArn": f"{TOPIC}.fifo"},
        publish() | {"TopicArn": f"{TOPIC}.fifo"},
        "MessageGroupId",
    ),
    "ten messages": Limit(
        "sns.publish_batch", publish_batch(*"x" * 10), publish_batch(*"x" * 11), "PublishBatchRequestEntries"
    ),
    "256 KB in all": Limit(
        "sns.publish_batch",
        publish_batch("x" * 128 * KIB, "y" * 128 * KIB),
        publish_batch("x" * 128 * KIB, "y" * (128 * KIB + 1)),
        "PublishBatchRequestEntries",
    ),
    "a topic's name of 256": Limit("sns.create_topic", {"Name": "t" * 256}, {"Name": "t" * 257}, "Name"),
    "a topic's characters": Limit("sns.create_topic", {"Name": "a_b-c"}, {"Name": "a.b"}, "Name"),
    "FIFO said twice": Limit(
        "sns.create_topic",
        {"Name": "a.fifo", "Attributes": {"FifoTopic": "true"}},
        {"Name": "a.fifo"},
        "Attributes.FifoTopic",
    ),
}


@pytest.mark.parametrize("limit", S3.values(), ids=S3)
def test_a_call_keeps_to_the_limits_of_s3(limit: Limit) -> None:
    limit.check()


@pytest.mark.parametrize("limit", KMS.values(), ids=KMS)
def test_a_call_keeps_to_the_limits_of_kms(limit: Limit) -> None:
    limit.check()


@pytest.mark.parametrize("limit", SNS.values(), ids=SNS)
def test_a_call_keeps_to_the_limits_of_sns(limit: Limit) -> None:
    limit.check()


def test_an_empty_object_key_is_refused() -> None:
    assert refusal_of("s3.delete_objects", delete("")).call == "s3.DeleteObjects"


def test_a_session_hands_the_rules_to_the_clients_it_makes() -> None:
    session = boto3.Session(region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test")
    refuse_what_aws_refuses(session)
    client = session.client("sns", endpoint_url="http://127.0.0.1:9")
    with pytest.raises(AwsWouldRefuse, match=r"sns\.Publish: Message: must not be empty"):
        client.publish(TopicArn=TOPIC, Message="")
