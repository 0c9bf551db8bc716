"""Bodies over the inline limit, in S3."""

from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.application.ports import Unavailable
from chalicelib.domain.event import packed, unpacked

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


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
        """Give a body back, or None when it is gone."""
        try:
            return unpacked(self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read())
        except self._client.exceptions.NoSuchKey:
            return None
        except (ClientError, BotoCoreError) as error:
            raise Unavailable("the payload store failed") from error
