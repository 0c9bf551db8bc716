"""The channel by which owners are told: one SNS topic, with whose and what a notice is as attributes."""

import json
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.application.ports import Unavailable
from chalicelib.domain.notice import Notice
from chalicelib.wire import notices

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient


class SnsAnnouncer:
    """Publishes notices; subscribers filter by the attributes tenant, endpoint_id and kind."""

    def __init__(self, client: "SNSClient", topic_arn: str) -> None:
        """Use a client, one that tries a call once, for one topic."""
        self._client = client
        self._topic_arn = topic_arn

    def publish(self, notice: Notice) -> None:
        """Hand a notice to the topic: a sentence for people, JSON for programs."""
        named = {
            "tenant": notice.tenant,
            "endpoint_id": notice.endpoint_id,
            "kind": notice.finding.kind.value,
            "notice_id": notice.id,
        }
        shapes = {"default": json.dumps(notices.published(notice)), "email": notices.letter(notice)}
        try:
            self._client.publish(
                TopicArn=self._topic_arn,
                Subject=notices.subject(notice),
                Message=json.dumps(shapes),
                MessageStructure="json",
                MessageAttributes={
                    name: {"DataType": "String", "StringValue": value} for name, value in named.items()
                },
            )
        except (ClientError, BotoCoreError) as error:
            raise Unavailable("the topic of notices failed") from error
