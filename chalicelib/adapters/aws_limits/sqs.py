"""SQS: messages, receives and batches; queues' own attributes stand in sqs_queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chalicelib.adapters.aws_limits.messages import attributes_size, check_attributes, check_batch
from chalicelib.adapters.aws_limits.refusal import check_bytes, check_range, refuse, utf8_bytes
from chalicelib.adapters.aws_limits.sqs_queues import check_new_queue, check_queue_attributes
from chalicelib.adapters.aws_limits.text_rules import check_id, check_message_text, is_fifo

if TYPE_CHECKING:
    from chalicelib.adapters.aws_limits.refusal import Params

LARGEST_BYTES = 1_048_576
DELAY_LONGEST_S = 900
VISIBILITY_LONGEST_S = 43_200
WAIT_LONGEST_S = 20
RECEIVE_MOST = 10


def check(operation: str, params: Params) -> None:
    """Refuse what SQS refuses of this call."""
    match operation:
        case "SendMessage":
            _check_message(params, is_fifo(params["QueueUrl"]), "")
        case "SendMessageBatch":
            _check_send_batch(params)
        case "ReceiveMessage":
            _check_receive(params)
        case "ChangeMessageVisibility":
            check_range(params, "VisibilityTimeout", 0, VISIBILITY_LONGEST_S)
        case "ChangeMessageVisibilityBatch" | "DeleteMessageBatch":
            _check_receipts(params)
        case "CreateQueue":
            check_new_queue(params)
        case "SetQueueAttributes":
            check_queue_attributes(params["Attributes"], fifo=is_fifo(params["QueueUrl"]), new=False)


def _check_message(message: Params, fifo: bool, where: str) -> int:  # noqa: FBT001 - the kind of the queue
    check_message_text(message["MessageBody"], f"{where}MessageBody")
    attributes = message.get("MessageAttributes") or {}
    check_attributes(attributes, f"{where}MessageAttributes")
    check_id(message.get("MessageGroupId"), f"{where}MessageGroupId")
    check_id(message.get("MessageDeduplicationId"), f"{where}MessageDeduplicationId")
    _check_for_kind(message, fifo, where)
    size = utf8_bytes(message["MessageBody"]) + attributes_size(attributes)
    check_bytes(size, LARGEST_BYTES, f"{where}MessageBody")
    return size


def _check_for_kind(message: Params, fifo: bool, where: str) -> None:  # noqa: FBT001 - the kind of the queue
    if not fifo:
        check_range(message, "DelaySeconds", 0, DELAY_LONGEST_S, where)
        if message.get("MessageDeduplicationId") is not None:
            refuse(f"{where}MessageDeduplicationId", "is for FIFO queues only")
        return
    if message.get("MessageGroupId") is None:
        refuse(f"{where}MessageGroupId", "is required on a FIFO queue")
    if message.get("DelaySeconds") is not None:
        refuse(f"{where}DelaySeconds", "cannot be set per message on a FIFO queue, only on the queue")


def _check_send_batch(params: Params) -> None:
    entries = params["Entries"]
    check_batch(entries, "Entries")
    fifo = is_fifo(params["QueueUrl"])
    total = sum(_check_message(entry, fifo, f"Entries[{place}].") for place, entry in enumerate(entries))
    check_bytes(total, LARGEST_BYTES, "Entries")


def _check_receive(params: Params) -> None:
    check_range(params, "MaxNumberOfMessages", 1, RECEIVE_MOST)
    check_range(params, "VisibilityTimeout", 0, VISIBILITY_LONGEST_S)
    check_range(params, "WaitTimeSeconds", 0, WAIT_LONGEST_S)
    attempt = params.get("ReceiveRequestAttemptId")
    check_id(attempt, "ReceiveRequestAttemptId")
    if attempt is not None and not is_fifo(params["QueueUrl"]):
        refuse("ReceiveRequestAttemptId", "is for FIFO queues only")


def _check_receipts(params: Params) -> None:
    check_batch(params["Entries"], "Entries")
    for place, entry in enumerate(params["Entries"]):
        check_range(entry, "VisibilityTimeout", 0, VISIBILITY_LONGEST_S, f"Entries[{place}].")
