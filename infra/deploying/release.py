"""Releases: a template and the archive it names, kept in a bucket under what they contain.

The same sources make the same release, and any release that was deployed once can be deployed again.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ClientError

from infra.deploying.account import Account
from infra.deploying.stage import Stage
from infra.package import Package
from infra.template import RESOURCES, read, settle

OUTPUT: Final = "Release"
"""The output of a stack that names its release."""
NAMES: Final = {
    "AWS::DynamoDB::Table": "TableName",
    "AWS::KMS::Alias": "AliasName",
    "AWS::S3::Bucket": "BucketName",
}
"""What is kept when a stack goes, and has a name to be found by."""
_KEPT: Final = "RetainExceptOnCreate"
_DIGEST_DIGITS: Final = 12
_ABSENT: Final = frozenset({"404", "NoSuchKey", "NoSuchBucket"})


class ReleaseError(Exception):
    """Why a release cannot be deployed: one sentence for a person."""


@dataclass(frozen=True, slots=True)
class Release:
    """One version of Relay as it was, or can be, deployed."""

    digest: str
    template: Mapping[str, Any]
    url: str


def kept(stage: Stage, account: Account) -> dict[str, dict[str, Any]]:
    """Give what outlives the stack, by logical id, with its names written out."""
    values = {
        "AWS::AccountId": account.number,
        "AWS::Partition": "aws",
        "EndpointUrl": account.endpoint_url,
        "Prefix": stage.prefix,
    }
    settled = settle(read(RESOURCES), values)
    return {name: about for name, about in settled.items() if about.get("DeletionPolicy") == _KEPT}


@dataclass(frozen=True, slots=True)
class Releases:
    """The releases of one stage."""

    stage: Stage
    account: Account

    @property
    def bucket(self) -> str:
        """Name the bucket that they are kept in."""
        return f"{self.stage.prefix}releases-{self.account.number}"

    def add(self, package: Package) -> Release:
        """Keep a package as a release; one that is there already stays as it is."""
        self._make_bucket()
        archive = package.archive.read_bytes()
        key = f"archives/{hashlib.sha256(archive).hexdigest()}.zip"
        self._put(key, archive)
        template = json.loads(package.template.read_text(encoding="utf-8"))
        for about in template["Resources"].values():
            if about["Type"] == "AWS::Serverless::Function":
                about["Properties"]["CodeUri"] = f"s3://{self.bucket}/{key}"
        return self.keep(template)

    def keep(self, template: dict[str, Any]) -> Release:
        """Keep a template, its names written out."""
        self._make_bucket()
        self._name_what_is_kept(template)
        digest = hashlib.sha256(_written(template)).hexdigest()[:_DIGEST_DIGITS]
        template["Outputs"][OUTPUT] = {"Value": digest}
        self._put(_key(digest), _written(template))
        return Release(digest, template, self.account.object_url(self.bucket, _key(digest)))

    def find(self, digest: str) -> Release:
        """Give a release that was deployed before; ReleaseError when there is none."""
        try:
            found = self.account.client("s3").get_object(Bucket=self.bucket, Key=_key(digest))
        except ClientError as error:
            if error.response["Error"]["Code"] not in _ABSENT:
                raise
            raise ReleaseError(f"There is no release {digest} of the stage {self.stage.name}.") from error
        template = json.loads(found["Body"].read())
        return Release(digest, template, self.account.object_url(self.bucket, _key(digest)))

    def _name_what_is_kept(self, template: Mapping[str, Any]) -> None:
        """Write names out: CloudFormation takes up again only what is named in so many words."""
        for logical_id, about in kept(self.stage, self.account).items():
            if name := NAMES.get(about["Type"]):
                template["Resources"][logical_id]["Properties"][name] = about["Properties"][name]

    def _make_bucket(self) -> None:
        """Make the bucket unless it is there: shut to the public, encrypted by S3's own default."""
        s3 = self.account.client("s3")
        try:
            s3.head_bucket(Bucket=self.bucket)
        except ClientError as error:
            if error.response["Error"]["Code"] not in _ABSENT:
                raise
            elsewhere = {"CreateBucketConfiguration": {"LocationConstraint": self.account.region}}
            s3.create_bucket(Bucket=self.bucket, **(elsewhere if self.account.region != "us-east-1" else {}))
            s3.put_public_access_block(
                Bucket=self.bucket,
                PublicAccessBlockConfiguration={
                    "BlockPublicAcls": True,
                    "BlockPublicPolicy": True,
                    "IgnorePublicAcls": True,
                    "RestrictPublicBuckets": True,
                },
            )

    def _put(self, key: str, content: bytes) -> None:
        s3 = self.account.client("s3")
        try:
            s3.head_object(Bucket=self.bucket, Key=key)
        except ClientError as error:
            if error.response["Error"]["Code"] not in _ABSENT:
                raise
            s3.put_object(Bucket=self.bucket, Key=key, Body=content)


def _key(digest: str) -> str:
    return f"releases/{digest}.json"


def _written(template: Mapping[str, Any]) -> bytes:
    return json.dumps(template, sort_keys=True, separators=(",", ":")).encode()
