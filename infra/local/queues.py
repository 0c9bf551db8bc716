"""The event sources' own way to the emulator's queues: four calls of SQS's JSON protocol, as cheap as can be.

On AWS an event source mapping's receives and deletes use no processor of ours; here they share two cores with
everything else, and boto3 would spend a millisecond on each. Nothing is signed, which only an emulator takes:
the credentials it is shown say just which account and region are meant.
"""

import http.client
import json
from collections.abc import Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

from infra.local.invocation import REGION
from infra.local.sqs_event import Message

# Longer than any long poll.
_ANSWER_WITHIN_S = 30.0
_ALREADY_GONE = "ReceiptHandleIsInvalid"


class QueueError(Exception):
    """The emulator did not answer, or refused."""


class Queues(Protocol):
    """What an event source needs of SQS; each call raises QueueError when it fails."""

    def url(self, name: str) -> str:
        """Find a queue by name."""

    def receive(self, url: str, most: int, wait_s: int) -> list[Message]:
        """Take messages, waiting for the first one at most so long."""

    def delete(self, url: str, messages: Sequence[Message]) -> None:
        """Delete messages; one that is gone already is no failure."""

    def give_back(self, url: str, messages: Sequence[Message]) -> None:
        """Make received messages visible again at once."""


class EmulatorQueues:
    """SQS at an emulator's endpoint; any number of threads may call at once."""

    def __init__(self, endpoint_url: str, access_key: str = "test") -> None:
        """Take the endpoint; nothing is called yet."""
        parts = urlsplit(endpoint_url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._idle: list[http.client.HTTPConnection] = []
        scope = f"{access_key}/20260101/{REGION}/sqs/aws4_request"
        self._headers = {
            "Content-Type": "application/x-amz-json-1.0",
            "Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=none",
        }

    def url(self, name: str) -> str:
        """Find a queue by name."""
        return str(self._call("GetQueueUrl", {"QueueName": name})["QueueUrl"])

    def receive(self, url: str, most: int, wait_s: int) -> list[Message]:
        """Take up to ten messages with all their attributes."""
        answer = self._call(
            "ReceiveMessage",
            {
                "QueueUrl": url,
                "MaxNumberOfMessages": most,
                "WaitTimeSeconds": wait_s,
                "AttributeNames": ["All"],
                "MessageAttributeNames": ["All"],
            },
        )
        return list(answer.get("Messages") or [])

    def delete(self, url: str, messages: Sequence[Message]) -> None:
        """Delete up to ten messages."""
        answer = self._call("DeleteMessageBatch", {"QueueUrl": url, "Entries": _entries(messages)})
        failed = [entry for entry in answer.get("Failed") or [] if entry.get("Code") != _ALREADY_GONE]
        if failed:
            raise QueueError(f"DeleteMessageBatch: {failed[0].get('Code')}: {failed[0].get('Message')}")

    def give_back(self, url: str, messages: Sequence[Message]) -> None:
        """Make up to ten received messages visible again."""
        entries = [{**entry, "VisibilityTimeout": 0} for entry in _entries(messages)]
        self._call("ChangeMessageVisibilityBatch", {"QueueUrl": url, "Entries": entries})

    def close(self) -> None:
        """Close every connection that is not in use."""
        while self._idle:
            self._idle.pop().close()

    def _call(self, action: str, request: dict[str, Any]) -> dict[str, Any]:
        headers = {**self._headers, "X-Amz-Target": f"AmazonSQS.{action}"}
        try:
            status, body = self._exchange(json.dumps(request).encode(), headers)
            answer: dict[str, Any] = json.loads(body) if body else {}
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise QueueError(f"{action}: {type(error).__name__}: {error}") from error
        if status != http.HTTPStatus.OK:
            raise QueueError(f"{action}: {answer.get('__type', status)}: {answer.get('message', '')}")
        return answer

    def _exchange(self, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = self._connection()
        try:
            connection.request("POST", "/", body=body, headers=headers)
            response = connection.getresponse()
            answer = response.status, response.read()
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return answer

    def _connection(self) -> http.client.HTTPConnection:
        try:
            return self._idle.pop()
        except IndexError:
            return http.client.HTTPConnection(self._host, self._port, timeout=_ANSWER_WITHIN_S)


def _entries(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [
        {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
        for number, message in enumerate(messages)
    ]
