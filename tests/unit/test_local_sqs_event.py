"""A batch becomes the event that Lambda would send, and the answer means what it means to Lambda."""

from typing import Any

import pytest
from chalice.app import SQSEvent

from infra.local.sqs_event import UnusableReportError, event_of, kept_back, queue_arn

MESSAGES: list[dict[str, Any]] = [
    {
        "MessageId": f"id-{number}",
        "ReceiptHandle": f"handle-{number}",
        "Body": f"body-{number}",
        "MD5OfBody": "5",
        "Attributes": {"ApproximateReceiveCount": "2", "SentTimestamp": "7", "MessageGroupId": f"g-{number}"},
    }
    for number in range(3)
]
IDS = frozenset({"id-0", "id-1", "id-2"})


def failing(*ids: object) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": identifier} for identifier in ids]}


def test_a_record_has_everything_a_handler_may_ask_for() -> None:
    told = {
        "A": {"DataType": "String", "StringValue": "s"},
        "B": {"DataType": "Binary", "BinaryValue": "/w=="},
    }
    message = {**MESSAGES[0], "MessageAttributes": told, "MD5OfMessageAttributes": "6"}
    event = event_of([message], queue_arn("relay-shard-0.fifo"))
    assert event["Records"] == [
        {
            "messageId": "id-0",
            "receiptHandle": "handle-0",
            "body": "body-0",
            "attributes": {"ApproximateReceiveCount": "2", "SentTimestamp": "7", "MessageGroupId": "g-0"},
            "messageAttributes": {
                "A": {
                    "stringValue": "s",
                    "stringListValues": [],
                    "binaryListValues": [],
                    "dataType": "String",
                },
                "B": {
                    "binaryValue": "/w==",
                    "stringListValues": [],
                    "binaryListValues": [],
                    "dataType": "Binary",
                },
            },
            "md5OfBody": "5",
            "md5OfMessageAttributes": "6",
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:relay-shard-0.fifo",
            "awsRegion": "us-east-1",
        }
    ]
    assert [record.body for record in SQSEvent(event, None)] == ["body-0"]


@pytest.mark.parametrize(
    "answer", [None, {}, {"batchItemFailures": []}, {"batchItemFailures": None}, {"other": 1}]
)
def test_no_failures_mean_that_all_is_done(answer: object) -> None:
    assert kept_back(answer, MESSAGES) == frozenset()


def test_named_messages_are_kept_back() -> None:
    assert kept_back(failing("id-2", "id-0"), MESSAGES) == {"id-0", "id-2"}
    assert kept_back(failing(*IDS), MESSAGES) == IDS


@pytest.mark.parametrize(
    "answer",
    [
        failing("id-9"),
        failing("id-0", "id-9"),
        failing(""),
        failing(None),
        {"batchItemFailures": [{"ItemIdentifier": "id-0"}]},
        {"batchItemFailures": ["id-0"]},
        {"batchItemFailures": "id-0"},
        {"batchItemFailures": [{"itemIdentifier": object()}]},
        "done",
        [],
        0,
    ],
)
def test_an_answer_that_is_no_report_gives_the_whole_batch_back(answer: object) -> None:
    with pytest.raises(UnusableReportError):
        kept_back(answer, MESSAGES)
