"""Listens to the emulator's topic of notices, as the owners of endpoints would, and says what it hears."""

import json
import threading
from collections.abc import Callable
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from infra.local.invocation import REGION

_LOOK_EVERY_S = 1.0


class Notices:
    """A subscriber of one topic, with a queue and a thread of its own; `say` gets a line for each notice."""

    def __init__(self, endpoint_url: str, topic_arn: str, queue: str, say: Callable[[str], None]) -> None:
        """Take the topic, and the name of the queue that stands between."""
        self._endpoint_url = endpoint_url
        self._topic_arn = topic_arn
        self._queue = queue
        self._say = say
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="notices", daemon=True)

    def start(self) -> None:
        """Begin to listen; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Listen no longer."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        session: Any = boto3.Session(
            aws_access_key_id="test",
            aws_secret_access_key="test",  # noqa: S106 - an emulator's
            region_name=REGION,
        )
        sns, sqs = (session.client(name, endpoint_url=self._endpoint_url) for name in ("sns", "sqs"))
        url = ""
        while not self._stopping.wait(_LOOK_EVERY_S):
            try:
                url = url or self._subscribed(sns, sqs)
                self._listen(sqs, url)
            except (BotoCoreError, ClientError):
                continue  # when the emulator is gone, the supervisor says so

    def _subscribed(self, sns: Any, sqs: Any) -> str:  # noqa: ANN401 - boto3's clients have no common type
        """Stand a queue behind the topic, once however often Relay is started; its URL."""
        url: str = sqs.create_queue(QueueName=self._queue)["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        known = sns.list_subscriptions_by_topic(TopicArn=self._topic_arn)["Subscriptions"]
        if arn not in {each["Endpoint"] for each in known}:
            sns.subscribe(TopicArn=self._topic_arn, Protocol="sqs", Endpoint=arn)
        return url

    def _listen(self, sqs: Any, url: str) -> None:  # noqa: ANN401 - boto3's clients have no common type
        received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=0)
        for message in received.get("Messages", []):
            self._say(line_of(message["Body"]))
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def line_of(body: str) -> str:
    """Write a published notice as one line; `body` is what a topic hands to a queue."""
    notice = json.loads(json.loads(body)["Message"])
    return f"Notice: endpoint {notice['endpoint_id']}: {notice['text']}"
