"""What a removed stack leaves: tables, buckets, the key, addresses. Found again, or deleted for good."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ClientError

from infra.deploying.account import Account, Say
from infra.deploying.release import NAMES, kept
from infra.deploying.stack import Change
from infra.deploying.stage import Stage

ALIAS: Final = "SecretsKeyAlias"
ADDRESSES: Final = {"EgressAddressA": "egress-a", "EgressAddressB": "egress-b"}
"""The addresses that requests come from, and how their tags name them."""
_ABSENT: Final = frozenset({"404", "NoSuchBucket", "NotFoundException", "ResourceNotFoundException"})
_KEY_DAYS: Final = 30
_KEY: Final = "AWS::KMS::Key"
_TABLE: Final = "AWS::DynamoDB::Table"
_ADDRESS: Final[Mapping[str, Any]] = {
    "Type": "AWS::EC2::EIP",
    "DeletionPolicy": "RetainExceptOnCreate",
    "Properties": {"Domain": "vpc"},
}


@dataclass(frozen=True, slots=True)
class Kept:
    """What of a stage outlives its stack."""

    stage: Stage
    account: Account
    say: Say

    def taking_up(self) -> Change | None:
        """Give the change that takes up into an empty stack what is there; None when nothing is.

        It holds nothing else, so that what goes wrong with it leaves everything as it was.
        """
        resources: dict[str, Mapping[str, Any]] = {}
        takes_up: list[Mapping[str, Any]] = []
        for logical_id, about in kept(self.stage, self.account).items():
            if identifier := self._identifier(about):
                resources[logical_id] = about
                takes_up.append(_import(logical_id, about["Type"], **identifier))
        for logical_id, found in self._addresses().items():
            resources[logical_id] = _ADDRESS
            numbers = {"PublicIp": found["PublicIp"], "AllocationId": found["AllocationId"]}
            takes_up.append(_import(logical_id, _ADDRESS["Type"], **numbers))
        if not takes_up:
            return None
        return Change("", (), takes_up, json.dumps({"Resources": resources}))

    def _identifier(self, about: Mapping[str, Any]) -> Mapping[str, str]:
        """Say by what CloudFormation knows a thing; nothing when it is not there."""
        kind = about["Type"]
        if kind == _KEY:
            key_id = self._key_id()
            return {"KeyId": key_id} if key_id else {}
        name = about["Properties"][NAMES[kind]]
        try:
            match kind:
                case "AWS::DynamoDB::Table":
                    self.account.client("dynamodb").describe_table(TableName=name)
                case "AWS::S3::Bucket":
                    self.account.client("s3").head_bucket(Bucket=name)
                case _:
                    return {NAMES[kind]: name} if self._key_id() else {}
        except ClientError as error:
            _unless_absent(error)
            return {}
        return {NAMES[kind]: name}

    def put_right(self) -> None:
        """Switch on what a table that was restored from a backup has lost; taking up compares nothing."""
        dynamodb = self.account.client("dynamodb")
        for about in kept(self.stage, self.account).values():
            if about["Type"] != _TABLE:
                continue
            wanted = about["Properties"]
            named = {"TableName": wanted["TableName"]}
            expiry = dynamodb.describe_time_to_live(**named)["TimeToLiveDescription"]
            if expiry["TimeToLiveStatus"] not in {"ENABLED", "ENABLING"}:
                dynamodb.update_time_to_live(
                    **named, TimeToLiveSpecification=wanted["TimeToLiveSpecification"]
                )
            dynamodb.update_continuous_backups(
                **named,
                PointInTimeRecoverySpecification=wanted["PointInTimeRecoverySpecification"],
            )

    def delete(self) -> None:
        """Delete all of it for good; what is gone already is no error."""
        for about in kept(self.stage, self.account).values():
            if name := about["Properties"].get(NAMES.get(about["Type"], "")):
                match about["Type"]:
                    case "AWS::DynamoDB::Table":
                        self._delete_table(name)
                    case "AWS::S3::Bucket":
                        self.delete_bucket(name)
        self._delete_key()
        for each in self._addresses().values():
            self.account.client("ec2").release_address(AllocationId=each["AllocationId"])
            self.say(f"  released: {each['PublicIp']}")

    def delete_bucket(self, name: str) -> None:
        """Delete a bucket with every version of everything in it."""
        s3 = self.account.client("s3")
        try:
            for page in s3.get_paginator("list_object_versions").paginate(Bucket=name):
                found = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
                objects = [{"Key": each["Key"], "VersionId": each["VersionId"]} for each in found]
                if objects:
                    s3.delete_objects(Bucket=name, Delete={"Objects": objects, "Quiet": True})
            s3.delete_bucket(Bucket=name)
        except ClientError as error:
            _unless_absent(error)
        else:
            self.say(f"  deleted: the bucket {name}")

    def _delete_table(self, name: str) -> None:
        try:
            self.account.client("dynamodb").delete_table(TableName=name)
        except ClientError as error:
            _unless_absent(error)
        else:
            self.say(f"  deleted: the table {name}")

    def _delete_key(self) -> None:
        kms = self.account.client("kms")
        if key_id := self._key_id():
            kms.delete_alias(AliasName=self._alias)
            kms.schedule_key_deletion(KeyId=key_id, PendingWindowInDays=_KEY_DAYS)
            self.say(f"  deleted in {_KEY_DAYS} days: the key {key_id}")

    @property
    def _alias(self) -> str:
        return str(kept(self.stage, self.account)[ALIAS]["Properties"]["AliasName"])

    def _key_id(self) -> str:
        """Give the id of the key that the stage's alias leads to, or ""."""
        try:
            found = self.account.client("kms").describe_key(KeyId=self._alias)["KeyMetadata"]
        except ClientError as error:
            _unless_absent(error)
            return ""
        return str(found["KeyId"])

    def _addresses(self) -> Mapping[str, Mapping[str, Any]]:
        """Give the stage's addresses by logical id; an emulator has none."""
        if self.account.endpoint_url or self.stage.parameters.get("EgressNetwork") == "off":
            return {}
        logical_ids = {f"{self.stage.prefix}{tag}": name for name, tag in ADDRESSES.items()}
        tagged = [{"Name": "tag:Name", "Values": list(logical_ids)}]
        found = self.account.client("ec2").describe_addresses(Filters=tagged)["Addresses"]
        return {
            logical_ids[tag["Value"]]: each for each in found for tag in each["Tags"] if tag["Key"] == "Name"
        }


def _import(logical_id: str, kind: str, **identifiers: str) -> Mapping[str, Any]:
    return {"ResourceType": kind, "LogicalResourceId": logical_id, "ResourceIdentifier": identifiers}


def _unless_absent(error: ClientError) -> None:
    if error.response["Error"]["Code"] not in _ABSENT:
        raise error
