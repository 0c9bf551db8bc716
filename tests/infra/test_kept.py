"""What a removed stack leaves behind is taken up again by the next, and deleted only when told."""

from collections.abc import Iterator

import pytest

from infra.deploying.account import Account
from infra.deploying.deployment import Deployment
from infra.deploying.kept import Kept
from infra.deploying.release import kept
from infra.deploying.stage import Stage
from infra.local.emulator import EmulatorName, free_port, running
from infra.local.provision import provision
from tests.infra.lookup import TABLE

STAGE = Stage("trial", "relay-trial-", "us-east-1")


@pytest.fixture
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with running(EmulatorName.MINISTACK, tmp_path_factory.mktemp("emulator"), free_port()) as endpoint_url:
        provision(endpoint_url, STAGE.prefix)
        yield Deployment(STAGE, Account(STAGE.region, endpoint_url), list[str]().append)


def tables(deployment: Deployment) -> set[str]:
    return set(deployment.account.client("dynamodb").list_tables()["TableNames"])


def test_everything_that_is_kept_is_taken_up_into_an_empty_stack(deployment: Deployment) -> None:
    found = Kept(STAGE, deployment.account, deployment.say).taking_up()
    assert found is not None
    assert deployment.stack.apply(found) is True
    assert deployment.stack.status() == "IMPORT_COMPLETE"
    resources = deployment.account.client("cloudformation").list_stack_resources(StackName=STAGE.stack)
    held = {each["LogicalResourceId"] for each in resources["StackResourceSummaries"]}
    assert held == kept(STAGE, deployment.account).keys()


def test_a_table_that_was_restored_expires_and_is_backed_up_again(deployment: Deployment) -> None:
    """A restore leaves both off, as `provision` does, and an import compares nothing."""
    dynamodb = deployment.account.client("dynamodb")
    named = {"TableName": "relay-trial-history"}
    assert dynamodb.describe_time_to_live(**named)["TimeToLiveDescription"]["TimeToLiveStatus"] == "DISABLED"
    Kept(STAGE, deployment.account, deployment.say).put_right()
    Kept(STAGE, deployment.account, deployment.say).put_right()
    expiry = dynamodb.describe_time_to_live(**named)["TimeToLiveDescription"]
    assert expiry == {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}
    backups = dynamodb.describe_continuous_backups(**named)["ContinuousBackupsDescription"]
    assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"


def test_what_is_missing_is_not_taken_up(deployment: Deployment) -> None:
    deployment.account.client("dynamodb").delete_table(TableName="relay-trial-gates")
    deployment.account.client("kms").delete_alias(AliasName="alias/relay-trial-secrets")
    found = Kept(STAGE, deployment.account, deployment.say).taking_up()
    assert found is not None
    taken = {each["LogicalResourceId"] for each in found.takes_up}
    assert kept(STAGE, deployment.account).keys() - taken == {"GatesTable", "SecretsKey", "SecretsKeyAlias"}


def test_data_is_kept_unless_told_and_then_nothing_is_left(deployment: Deployment) -> None:
    names = [each["Properties"]["TableName"] for each in of_kind(deployment, TABLE)]
    (bucket, _) = (each["Properties"]["BucketName"] for each in of_kind(deployment, "AWS::S3::Bucket"))
    s3 = deployment.account.client("s3")
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    for content in (b"1", b"2"):
        s3.put_object(Bucket=bucket, Key="written-twice-and-deleted", Body=content)
    s3.delete_object(Bucket=bucket, Key="written-twice-and-deleted")
    deployment.destroy(data=False)
    assert tables(deployment) == set(names)
    deployment.destroy(data=True)
    deployment.destroy(data=True)
    assert tables(deployment) == set()
    assert s3.list_buckets()["Buckets"] == []
    assert Kept(STAGE, deployment.account, deployment.say).taking_up() is None


def of_kind(deployment: Deployment, kind: str) -> list[dict[str, dict[str, str]]]:
    return [each for each in kept(STAGE, deployment.account).values() if each["Type"] == kind]
