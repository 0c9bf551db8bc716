"""SNS: messages, subjects, batches and topic names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from chalicelib.adapters.aws_limits.messages import attributes_size, check_attributes, check_batch
from chalicelib.adapters.aws_limits.refusal import check_bytes, refuse, utf8_bytes
from chalicelib.adapters.aws_limits.text_rules import check_id, is_fifo

if TYPE_CHECKING:
    from chalicelib.adapters.aws_limits.refusal import Params

LARGEST_BYTES = 262_144
_SUBJECT = re.compile(r"[!-~][ -~]{0,99}")
_NAME = re.compile(r"[A-Za-z0-9_-]+(\.fifo)?")
_NAME_LONGEST = 256
_ENTRIES = "PublishBatchRequestEntries"


def check(operation: str, params: Params) -> None:
    """Refuse what SNS refuses of this call."""
    match operation:
        case "Publish":
            fifo = is_fifo(params.get("TopicArn") or params.get("TargetArn") or "")
            _check_message(params, fifo, "")
        case "PublishBatch":
            _check_publish_batch(params)
        case "CreateTopic":
            _check_topic(params)


def _check_publish_batch(params: Params) -> None:
    entries = params[_ENTRIES]
    check_batch(entries, _ENTRIES)
    fifo = is_fifo(params["TopicArn"])
    total = sum(_check_message(entry, fifo, f"{_ENTRIES}[{place}].") for place, entry in enumerate(entries))
    check_bytes(total, LARGEST_BYTES, _ENTRIES)


def _check_message(message: Params, fifo: bool, where: str) -> int:  # noqa: FBT001 - the kind of the topic
    if not message["Message"]:
        refuse(f"{where}Message", "must not be empty")
    subject = message.get("Subject")
    if subject is not None and not _SUBJECT.fullmatch(subject):
        refuse(f"{where}Subject", "must be 1 to 100 printable ASCII characters, the first no blank")
    attributes = message.get("MessageAttributes") or {}
    check_attributes(attributes, f"{where}MessageAttributes")
    check_id(message.get("MessageGroupId"), f"{where}MessageGroupId")
    check_id(message.get("MessageDeduplicationId"), f"{where}MessageDeduplicationId")
    if fifo and message.get("MessageGroupId") is None:
        refuse(f"{where}MessageGroupId", "is required on a FIFO topic")
    size = utf8_bytes(message["Message"]) + attributes_size(attributes)
    check_bytes(size, LARGEST_BYTES, f"{where}Message")
    return size


def _check_topic(params: Params) -> None:
    name, attributes = params["Name"], params.get("Attributes") or {}
    if len(name) > _NAME_LONGEST or not _NAME.fullmatch(name):
        refuse("Name", "must be 1 to 256 of A-Z a-z 0-9 _ -, the ending .fifo counted in")
    if is_fifo(name) != (attributes.get("FifoTopic") == "true"):
        refuse("Attributes.FifoTopic", "must be true exactly when the name ends with .fifo")
