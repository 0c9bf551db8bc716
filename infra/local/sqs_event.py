"""What an event source mapping hands to a function for a batch of messages, and what the answer means.

Values to values: nothing here receives, deletes or calls a handler.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from infra.local.invocation import ACCOUNT, REGION

Message = dict[str, Any]


class UnusableReportError(Exception):
    """The function's answer is no report on its batch; Lambda then gives the whole batch back."""


def queue_arn(queue: str) -> str:
    """Name a queue the way its events do."""
    return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}"


def event_of(messages: Iterable[Mapping[str, Any]], arn: str) -> dict[str, Any]:
    """Build the event for messages as ReceiveMessage answers them in JSON."""
    return {"Records": [_record_of(message, arn) for message in messages]}


def kept_back(answer: object, messages: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Say which message ids the function did not finish, by its partial batch response.

    Nothing, `{}` and an empty or null list mean that all are done. UnusableReportError is raised for what
    Lambda takes as a failure of the whole batch: an unknown, empty or missing id, or no object at all.
    """
    failures = _failures_in(answer)
    known = {message["MessageId"] for message in messages}
    failed = [entry.get("itemIdentifier") if isinstance(entry, dict) else None for entry in failures]
    for identifier in failed:
        if identifier not in known:
            raise UnusableReportError(f"batchItemFailures names {identifier!r}, which is not in the batch")
    return frozenset(str(identifier) for identifier in failed)


def _failures_in(answer: object) -> list[Any]:
    try:
        report = json.loads(json.dumps(answer))
    except (TypeError, ValueError) as error:
        raise UnusableReportError("the function's answer is not JSON") from error
    if report is None:
        return []
    if not isinstance(report, dict) or not isinstance(report.get("batchItemFailures") or [], list):
        raise UnusableReportError("the function's answer is not an object with a list of batchItemFailures")
    return report.get("batchItemFailures") or []


def _record_of(message: Mapping[str, Any], arn: str) -> dict[str, Any]:
    record = {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": dict(message.get("Attributes", {})),
        "messageAttributes": {
            name: _attribute_of(value) for name, value in message.get("MessageAttributes", {}).items()
        },
        "md5OfBody": message.get("MD5OfBody", ""),
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": REGION,
    }
    if "MD5OfMessageAttributes" in message:
        record["md5OfMessageAttributes"] = message["MD5OfMessageAttributes"]
    return record


def _attribute_of(value: Mapping[str, Any]) -> dict[str, Any]:
    attribute: dict[str, Any] = {
        "stringListValues": [],
        "binaryListValues": [],
        "dataType": value["DataType"],
    }
    if "StringValue" in value:
        attribute["stringValue"] = value["StringValue"]
    if "BinaryValue" in value:
        attribute["binaryValue"] = value["BinaryValue"]
    return attribute
