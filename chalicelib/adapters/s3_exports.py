"""Exports of the audit, in S3."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.application.ports import Unavailable
from chalicelib.domain.audit import Record
from chalicelib.wire import answers

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class S3Exports:
    """Writes exports of the audit to one bucket, a record a line."""

    def __init__(self, client: "S3Client", bucket: str) -> None:
        """Use a client for one bucket."""
        self._client = client
        self._bucket = bucket

    def write(self, name: str, records: Sequence[Record]) -> None:
        """Write records as an object, over one of the same name."""
        text = "".join(json.dumps(answers.exported(each)) + "\n" for each in records)
        try:
            self._client.put_object(
                Bucket=self._bucket, Key=name, Body=text.encode(), ContentType="application/x-ndjson"
            )
        except (ClientError, BotoCoreError) as error:
            raise Unavailable("the store of exports failed") from error
