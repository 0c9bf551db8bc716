"""Create on an emulator what infra/resources.yaml describes, and take it away again.

Direct calls with made-up credentials: no CloudFormation in between, and never the caller's own account.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from threading import Lock
from types import MappingProxyType
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnectionError

from infra import template

REGION: Final = "us-east-1"

_TABLE: Final = "AWS::DynamoDB::Table"
_QUEUE: Final = "AWS::SQS::Queue"
_BUCKET: Final = "AWS::S3::Bucket"
_ALIAS: Final = "AWS::KMS::Alias"
_TOPIC: Final = "AWS::SNS::Topic"

_KEPT_OF_A_TABLE: Final = frozenset(
    {"TableName", "BillingMode", "AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes"},
)
"""What an emulator makes of a table; expiry, backups and encryption are AWS's own."""

_AT_ONCE: Final = 2
"""Calls under way at once: one answers while the other asks."""

_EXISTS: Final = frozenset({"QueueAlreadyExists", "QueueNameExists", "ResourceInUseException"})
_ABSENT: Final = frozenset(
    {
        "AWS.SimpleQueueService.NonExistentQueue",
        "NoSuchBucket",
        "NotFound",
        "NotFoundException",
        "ResourceNotFoundException",
    },
)


class EmulatorUnreachableError(Exception):
    """Nothing answers at the emulator's address."""

    def __init__(self, endpoint_url: str) -> None:
        """Say it in a sentence that a person can act on."""
        super().__init__(f"No emulator answers at {endpoint_url}.")


@dataclass(frozen=True, slots=True)
class Provisioned:
    """The physical names behind the short ones: `events`, `dead-letters`; `shard-0`, `slow`, `fan-out`.

    With `tables_only`, `queues` is empty and `topic_arn` is None; names that need no call are always there.
    """

    endpoint_url: str
    prefix: str
    tables: Mapping[str, str]
    queues: Mapping[str, str]
    """Short name to queue URL."""
    bucket: str
    audit_bucket: str
    key_alias: str
    topic_arn: str | None


def provision(endpoint_url: str, prefix: str = "relay-", *, tables_only: bool = False) -> Provisioned:
    """Make everything of resources.yaml exist under the prefix; what exists already stays as it is.

    Raises EmulatorUnreachableError when nothing answers.
    """
    plan = _plan(endpoint_url, prefix)
    tables = [partial(_make_table, plan, about) for about in plan.of(_TABLE)]
    if tables_only:
        _together(endpoint_url, tables)
        return _named(plan, {}, None)
    queues = [partial(_make_queue, plan, about) for about in plan.of(_QUEUE)]
    buckets = [partial(_make_bucket, plan, about) for about in plan.of(_BUCKET)]
    rest = [*buckets, partial(_make_key, plan), *tables]
    topic_arn, *answers = _together(endpoint_url, [partial(_make_topic, plan), *queues, *rest])
    names = [plan.short(about["QueueName"]) for about in plan.of(_QUEUE)]
    return _named(plan, dict(zip(names, answers, strict=False)), topic_arn)


def destroy(endpoint_url: str, prefix: str) -> None:
    """Take away everything of resources.yaml under the prefix; what is gone already is no error.

    Raises EmulatorUnreachableError when nothing answers.
    """
    plan = _plan(endpoint_url, prefix)
    tables = [partial(_drop_table, plan, about) for about in plan.of(_TABLE)]
    queues = [partial(_drop_queue, plan, about) for about in plan.of(_QUEUE)]
    buckets = [partial(_drop_bucket, plan, about) for about in plan.of(_BUCKET)]
    rest = [partial(drop, plan) for drop in (_drop_key, _drop_topic)]
    _together(endpoint_url, [*tables, *queues, *buckets, *rest])


@dataclass(frozen=True, slots=True)
class _Plan:
    """The settled resources of one prefix on one emulator."""

    endpoint_url: str
    prefix: str
    resources: Mapping[str, Mapping[str, Any]]

    def of(self, kind: str) -> Iterator[Mapping[str, Any]]:
        """Give the properties of every resource of one CloudFormation type."""
        return (about["Properties"] for about in self.resources.values() if about["Type"] == kind)

    def name(self, kind: str, attribute: str) -> str:
        """Give the physical name of the only resource of its type."""
        (about,) = self.of(kind)
        return str(about[attribute])

    def bucket(self, logical_id: str) -> str:
        """Give the physical name of a bucket."""
        return str(self.resources[logical_id]["Properties"]["BucketName"])

    def short(self, physical: str) -> str:
        """Give a name as the code says it, without prefix and suffix."""
        return physical.removeprefix(self.prefix).removesuffix(".fifo")

    def client(self, service: str) -> Any:  # noqa: ANN401  botocore makes its clients at run time
        """Give the client of a service on this emulator."""
        return _client(service, self.endpoint_url)


@lru_cache(maxsize=1)
def _source() -> Mapping[str, Any]:
    """Read resources.yaml once per process."""
    return template.read(template.RESOURCES)


def _plan(endpoint_url: str, prefix: str) -> _Plan:
    """Settle resources.yaml for one emulator and prefix."""
    values = {"Prefix": prefix, "EndpointUrl": endpoint_url}
    return _Plan(endpoint_url, prefix, template.settle(_source(), values))


def _named(plan: _Plan, queues: Mapping[str, str], topic_arn: str | None) -> Provisioned:
    """Give the answer of `provision`."""
    tables = {plan.short(about["TableName"]): about["TableName"] for about in plan.of(_TABLE)}
    return Provisioned(
        endpoint_url=plan.endpoint_url,
        prefix=plan.prefix,
        tables=MappingProxyType(tables),
        queues=MappingProxyType(queues),
        bucket=plan.bucket("PayloadsBucket"),
        audit_bucket=plan.bucket("AuditBucket"),
        key_alias=plan.name(_ALIAS, "AliasName"),
        topic_arn=topic_arn,
    )


_SESSION: Final[Any] = boto3.Session()
_MAKING: Final = Lock()
"""A session keeps what it read of a service's model, but makes one client at a time."""


def _client(service: str, endpoint_url: str) -> Any:  # noqa: ANN401  botocore makes its clients at run time
    """Give the one client of a service on an emulator."""
    with _MAKING:
        return _made_client(service, endpoint_url)


@lru_cache
def _made_client(service: str, endpoint_url: str) -> Any:  # noqa: ANN401  botocore makes its clients at run time
    """Make a client, which costs 50 to 200 ms; it tries each call once."""
    return _SESSION.client(
        service,
        region_name=REGION,
        endpoint_url=endpoint_url,
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106  emulators take any word
        config=Config(
            connect_timeout=2,
            read_timeout=10,
            parameter_validation=False,
            retries={"total_max_attempts": 1},
            s3={"addressing_style": "path"},
        ),
    )


def _together(endpoint_url: str, calls: Iterable[Callable[[], Any]]) -> list[Any]:
    """Run calls a few at a time and give their answers in order."""
    try:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(lambda call: call(), calls))
    except (NoConnectionError, HTTPClientError) as error:
        raise EmulatorUnreachableError(endpoint_url) from error


def _unless(codes: frozenset[str], call: Callable[[], Any]) -> Any:  # noqa: ANN401  whatever the call answers
    """Make a call and give its answer; None for an error with one of these codes."""
    try:
        return call()
    except ClientError as error:
        if error.response["Error"]["Code"] not in codes:
            raise
        return None


def _make_table(plan: _Plan, about: Mapping[str, Any]) -> None:
    """Create a table that is not there yet."""
    kept = {key: value for key, value in about.items() if key in _KEPT_OF_A_TABLE}
    _unless(_EXISTS, partial(plan.client("dynamodb").create_table, **kept))


def _make_queue(plan: _Plan, about: Mapping[str, Any]) -> str:
    """Create a queue, or find the one of this name as it is, and give its URL."""
    sqs = plan.client("sqs")
    name = about["QueueName"]
    attributes = {key: _attribute(value) for key, value in about.items() if key != "QueueName"}
    made = _unless(_EXISTS, partial(sqs.create_queue, QueueName=name, Attributes=attributes))
    return str((made or sqs.get_queue_url(QueueName=name))["QueueUrl"])


def _attribute(value: object) -> str:
    """Give a template's value as a queue attribute has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _make_bucket(plan: _Plan, about: Mapping[str, Any]) -> None:
    """Create a bucket; in this region S3 answers its owner's second try with success."""
    plan.client("s3").create_bucket(Bucket=about["BucketName"])


def _make_key(plan: _Plan) -> None:
    """Create the key under its alias unless the alias has one."""
    kms = plan.client("kms")
    alias = plan.name(_ALIAS, "AliasName")
    if _unless(_ABSENT, partial(kms.describe_key, KeyId=alias)) is None:
        kms.create_alias(AliasName=alias, TargetKeyId=kms.create_key()["KeyMetadata"]["KeyId"])


def _make_topic(plan: _Plan) -> str:
    """Create the topic or find it, and give its ARN."""
    return str(plan.client("sns").create_topic(Name=plan.name(_TOPIC, "TopicName"))["TopicArn"])


def _drop_table(plan: _Plan, about: Mapping[str, Any]) -> None:
    """Delete a table."""
    _unless(_ABSENT, partial(plan.client("dynamodb").delete_table, TableName=about["TableName"]))


def _drop_queue(plan: _Plan, about: Mapping[str, Any]) -> None:
    """Delete a queue."""
    sqs = plan.client("sqs")
    if found := _unless(_ABSENT, partial(sqs.get_queue_url, QueueName=about["QueueName"])):
        _unless(_ABSENT, partial(sqs.delete_queue, QueueUrl=found["QueueUrl"]))


def _drop_bucket(plan: _Plan, about: Mapping[str, Any]) -> None:
    """Delete a bucket with all that is in it."""
    s3 = plan.client("s3")
    bucket = about["BucketName"]
    while page := _unless(_ABSENT, partial(s3.list_objects_v2, Bucket=bucket)):
        for item in page.get("Contents", ()):
            s3.delete_object(Bucket=bucket, Key=item["Key"])
        if not page["IsTruncated"]:
            _unless(_ABSENT, partial(s3.delete_bucket, Bucket=bucket))


def _drop_key(plan: _Plan) -> None:
    """Delete the alias and let its key go."""
    kms = plan.client("kms")
    alias = plan.name(_ALIAS, "AliasName")
    if found := _unless(_ABSENT, partial(kms.describe_key, KeyId=alias)):
        kms.delete_alias(AliasName=alias)
        kms.schedule_key_deletion(KeyId=found["KeyMetadata"]["KeyId"], PendingWindowInDays=7)


def _drop_topic(plan: _Plan) -> None:
    """Delete the topic; making it first is how its ARN is found."""
    plan.client("sns").delete_topic(TopicArn=_make_topic(plan))
