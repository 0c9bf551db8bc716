"""Bodies over the inline limit, in S3."""

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.application.ports import Unavailable
from chalicelib.domain.event import packed, unpacked

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef


class S3Payloads:
    """Keeps bodies in one bucket, deflated where that is smaller."""

    def __init__(self, client: "S3Client", bucket: str) -> None:
        """Use a client for one bucket."""
        self._client = client
        self._bucket = bucket

    def put(self, key: str, body: bytes) -> None:
        """Keep a body."""
        try:
            self._client.put_object(Bucket=self._bucket, Key=key, Body=packed(body))
        except (ClientError, BotoCoreError) as error:
            raise Unavailable("the payload store failed") from error

    def get(self, key: str) -> bytes | None:
        """Give a body back, or None when it is gone, or can no longer be read."""
        try:
            return unpacked(self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read())
        except (self._client.exceptions.NoSuchKey, zlib.error):
            return None
        except (ClientError, BotoCoreError) as error:
            raise Unavailable("the payload store failed") from error

    def listed(self, after: str, limit: int) -> list[str]:
        """Give the keys of at most `limit` (1,000 at most) bodies in order, the first one after a text."""
        try:
            page = self._client.list_objects_v2(Bucket=self._bucket, StartAfter=after, MaxKeys=limit)
        except (ClientError, BotoCoreError) as error:
            raise Unavailable("the payload store failed") from error
        return [each["Key"] for each in page.get("Contents", [])]

    def remove(self, keys: Sequence[str]) -> None:
        """Forget bodies, 1,000 at most; one that is gone already is no error."""
        objects: list[ObjectIdentifierTypeDef] = [{"Key": each} for each in keys]
        try:
            answer = self._client.delete_objects(
                Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True}
            )
        except (ClientError, BotoCoreError) as error:
            raise Unavailable("the payload store failed") from error
        if answer.get("Errors"):
            raise Unavailable("the payload store could not forget a body")
