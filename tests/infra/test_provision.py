"""Provisioning an emulator by direct calls, on each emulator alike."""

import os
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from tempfile import TemporaryDirectory
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from infra.local.provision import REGION, EmulatorUnreachableError, Provisioned, destroy, provision
from infra.package import ROOT
from infra.template import RESOURCES, read
from tests.infra.lookup import TABLE, of_type

TABLES = len(of_type(read(RESOURCES), TABLE))

MINISTACK = ROOT / ".venv-emulator" / "bin" / "ministack"
QUIET = subprocess.DEVNULL
SESSION: Any = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name=REGION)
PAIR = {"pk": {"S": "other"}, "sk": {"S": "other"}}
SHORT_QUEUES = {
    "shard-0",
    "shard-1",
    "shard-2",
    "shard-3",
    "slow",
    "hot-0",
    "cloud",
    "replay",
    "replays",
    "delayed",
    "fan-out",
    "endings",
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def await_answer(endpoint: str) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with suppress(EmulatorUnreachableError):
            provision(endpoint, "first-", tables_only=True)
            return
        time.sleep(0.05)
    pytest.fail(f"no emulator came up at {endpoint}")


def ministack() -> Iterator[str]:
    if not MINISTACK.exists() and not os.environ.get("CI"):
        pytest.skip("ministack is not there: `make test` installs it into .venv-emulator")
    url = f"http://127.0.0.1:{(port := free_port())}"
    settings = {"PATH": os.environ["PATH"], "BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port)}
    with (
        TemporaryDirectory() as place,
        subprocess.Popen([MINISTACK], env=settings, cwd=place, stdout=QUIET, stderr=QUIET) as process,
    ):
        try:
            await_answer(url)
            yield url
        finally:
            process.terminate()


def moto() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@pytest.fixture(scope="module", params=[ministack, moto], ids=lambda start: start.__name__)
def endpoint(request: pytest.FixtureRequest) -> Iterator[str]:
    yield from request.param()


@pytest.fixture
def prefix() -> str:
    return f"t{uuid.uuid4().hex[:8]}-"


@pytest.fixture(scope="module")
def made(endpoint: str) -> Iterator[Provisioned]:
    """What the tests that only look share; whoever changes something changes what nobody else reads."""
    yield provision(endpoint, "shared-")
    destroy(endpoint, "shared-")


@cache
def client(service: str, endpoint: str) -> Any:  # noqa: ANN401  botocore makes its clients at run time
    return SESSION.client(service, endpoint_url=endpoint)


def attributes(endpoint: str, url: str) -> dict[str, str]:
    answer = client("sqs", endpoint).get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
    found: dict[str, str] = answer["Attributes"]
    return found


def test_everything_is_named_by_its_short_name(made: Provisioned) -> None:
    assert made.tables["dead-letters"] == "shared-dead-letters"
    assert len(made.tables) == TABLES
    assert set(made.queues) == SHORT_QUEUES
    assert made.queues["shard-0"].endswith("/shared-shard-0.fifo")
    assert (made.bucket, made.key_alias) == ("shared-payloads", "alias/shared-secrets")
    assert made.topic_arn
    assert made.topic_arn.endswith(":shared-notices")


def test_tables_have_their_keys_and_index(made: Provisioned) -> None:
    dynamodb = client("dynamodb", made.endpoint_url)
    owed = dynamodb.describe_table(TableName=made.tables["owed"])["Table"]
    gates = dynamodb.describe_table(TableName=made.tables["gates"])["Table"]
    assert [key["AttributeName"] for key in owed["KeySchema"]] == ["pk", "sk"]
    assert [key["AttributeName"] for key in gates["KeySchema"]] == ["pk"]
    assert {index["IndexName"] for index in gates["GlobalSecondaryIndexes"]} == {"armed", "alert"}


def test_queues_have_their_attributes(made: Provisioned) -> None:
    fifo = attributes(made.endpoint_url, made.queues["slow"])
    assert fifo["DeduplicationScope"] == "messageGroup"
    assert fifo["FifoThroughputLimit"] == "perMessageGroupId"
    assert fifo["VisibilityTimeout"] == "360"
    assert attributes(made.endpoint_url, made.queues["delayed"])["VisibilityTimeout"] == "360"


def test_the_key_encrypts_under_its_alias(made: Provisioned) -> None:
    kms = client("kms", made.endpoint_url)
    wrapped = kms.encrypt(KeyId=made.key_alias, Plaintext=b"whsec_", EncryptionContext={"tenant": "default"})
    opened = kms.decrypt(CiphertextBlob=wrapped["CiphertextBlob"], EncryptionContext={"tenant": "default"})
    assert opened["Plaintext"] == b"whsec_"


def test_a_second_call_finds_everything_and_changes_nothing(made: Provisioned) -> None:
    url = made.endpoint_url
    kms, sqs = client("kms", url), client("sqs", url)
    key = kms.describe_key(KeyId=made.key_alias)["KeyMetadata"]["KeyId"]
    client("dynamodb", url).put_item(TableName=made.tables["subs"], Item={"pk": {"S": "kept"}})
    client("s3", url).put_object(Bucket=made.bucket, Key="kept", Body=b"kept")
    sqs.set_queue_attributes(QueueUrl=made.queues["hot-0"], Attributes={"VisibilityTimeout": "400"})
    assert provision(url, made.prefix) == made
    assert kms.describe_key(KeyId=made.key_alias)["KeyMetadata"]["KeyId"] == key
    assert client("dynamodb", url).scan(TableName=made.tables["subs"])["Count"] == 1
    assert client("s3", url).get_object(Bucket=made.bucket, Key="kept")["Body"].read() == b"kept"
    assert attributes(url, made.queues["hot-0"])["VisibilityTimeout"] == "400"


def test_two_prefixes_share_nothing(made: Provisioned, endpoint: str, prefix: str) -> None:
    other = provision(endpoint, prefix, tables_only=True)
    client("dynamodb", endpoint).put_item(TableName=other.tables["tenants"], Item=PAIR)
    assert client("dynamodb", endpoint).scan(TableName=made.tables["tenants"])["Count"] == 0
    destroy(endpoint, prefix)


def test_tables_alone_make_no_queue(endpoint: str, prefix: str) -> None:
    made = provision(endpoint, prefix, tables_only=True)
    assert len(made.tables) == TABLES
    assert not made.queues
    assert made.topic_arn is None
    assert not client("sqs", endpoint).list_queues(QueueNamePrefix=prefix).get("QueueUrls")
    destroy(endpoint, prefix)


def test_destroying_leaves_nothing_and_may_be_repeated(endpoint: str, prefix: str) -> None:
    made = provision(endpoint, prefix)
    client("s3", endpoint).put_object(Bucket=made.bucket, Key="a/b", Body=b"gone")
    destroy(endpoint, prefix)
    destroy(endpoint, prefix)
    tables = client("dynamodb", endpoint).list_tables()["TableNames"]
    buckets = [bucket["Name"] for bucket in client("s3", endpoint).list_buckets()["Buckets"]]
    aliases = [alias["AliasName"] for alias in client("kms", endpoint).list_aliases()["Aliases"]]
    assert not [name for name in [*tables, *buckets] if name.startswith(prefix)]
    assert made.key_alias not in aliases
    assert not client("sqs", endpoint).list_queues(QueueNamePrefix=prefix).get("QueueUrls")


def test_a_dead_emulator_is_told_in_a_sentence() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(EmulatorUnreachableError, match=f"No emulator answers at {url}"):
        provision(url, "relay-")
