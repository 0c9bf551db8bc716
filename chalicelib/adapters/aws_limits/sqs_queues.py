"""SQS queues: names, attributes, and which of them go together."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from chalicelib.adapters.aws_limits.refusal import check_range, refuse
from chalicelib.adapters.aws_limits.text_rules import is_fifo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chalicelib.adapters.aws_limits.refusal import Params

_NAME = re.compile(r"[A-Za-z0-9_-]+(\.fifo)?")
_NAME_LONGEST = 80
_QUEUE_ARN = re.compile(r"arn:[a-z-]+:sqs:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+(\.fifo)?")
_RANGES = {
    "DelaySeconds": (0, 900),
    "KmsDataKeyReusePeriodSeconds": (60, 86_400),
    "MaximumMessageSize": (1_024, 1_048_576),
    "MessageRetentionPeriod": (60, 1_209_600),
    "ReceiveMessageWaitTimeSeconds": (0, 20),
    "VisibilityTimeout": (0, 43_200),
}
_FIFO_VALUES = {
    "ContentBasedDeduplication": ("true", "false"),
    "DeduplicationScope": ("messageGroup", "queue"),
    "FifoThroughputLimit": ("perQueue", "perMessageGroupId"),
}
_OTHERS = frozenset(
    {"FifoQueue", "KmsMasterKeyId", "Policy", "RedriveAllowPolicy", "RedrivePolicy", "SqsManagedSseEnabled"},
)
_RECEIVES_MOST = 1_000
_PERMISSIONS = ("allowAll", "denyAll", "byQueue")
_SOURCES_MOST = 10


def check_new_queue(params: Params) -> None:
    """Refuse a queue whose name, kind and attributes do not fit together."""
    name, attributes = params["QueueName"], params.get("Attributes") or {}
    if len(name) > _NAME_LONGEST or not _NAME.fullmatch(name):
        refuse("QueueName", "must be 1 to 80 of A-Z a-z 0-9 _ -, the ending .fifo counted in")
    if is_fifo(name) != (attributes.get("FifoQueue") == "true"):
        refuse("Attributes.FifoQueue", "must be true exactly when the name ends with .fifo")
    check_queue_attributes(attributes, fifo=is_fifo(name), new=True)


def check_queue_attributes(attributes: Mapping[str, str], *, fifo: bool, new: bool) -> None:
    """Refuse unknown attributes, values out of range, and combinations that the queue's kind forbids."""
    for name in attributes:
        if name not in _RANGES and name not in _FIFO_VALUES and name not in _OTHERS:
            refuse(f"Attributes.{name}", "is no attribute of a queue that can be set")
    for name, (lowest, highest) in _RANGES.items():
        _check_number(attributes, name)
        check_range(attributes, name, lowest, highest, "Attributes.")
    _check_fifo(attributes, fifo=fifo, new=new)
    _check_redrive(attributes, fifo=fifo)
    _check_redrive_allowed(attributes)


def _check_number(attributes: Mapping[str, str], name: str) -> None:
    text = attributes.get(name)
    if text is not None and not re.fullmatch(r"[0-9]{1,10}", text):
        refuse(f"Attributes.{name}", "must be a whole number")


def _check_fifo(attributes: Mapping[str, str], *, fifo: bool, new: bool) -> None:
    if "FifoQueue" in attributes and not new:
        refuse("Attributes.FifoQueue", "cannot be changed after the queue was made")
    if attributes.get("FifoQueue") == "false":
        refuse("Attributes.FifoQueue", "must be left out for a standard queue")
    for name, allowed in _FIFO_VALUES.items():
        if name in attributes and not fifo:
            refuse(f"Attributes.{name}", "is for FIFO queues only")
        if name in attributes and attributes[name] not in allowed:
            refuse(f"Attributes.{name}", f"must be one of {', '.join(allowed)}")
    _check_throughput(attributes, new=new)


def _check_throughput(attributes: Mapping[str, str], *, new: bool) -> None:
    if attributes.get("FifoThroughputLimit") != "perMessageGroupId":
        return
    scope = attributes.get("DeduplicationScope", "queue" if new else "messageGroup")
    if scope != "messageGroup":
        refuse("Attributes.FifoThroughputLimit", "perMessageGroupId needs DeduplicationScope=messageGroup")


def _check_redrive(attributes: Mapping[str, str], *, fifo: bool) -> None:
    policy = _policy(attributes, "RedrivePolicy")
    if policy is None:
        return
    target, most = policy.get("deadLetterTargetArn"), policy.get("maxReceiveCount")
    if not isinstance(target, str) or most is None:
        refuse("Attributes.RedrivePolicy", "needs deadLetterTargetArn and maxReceiveCount")
    if not _QUEUE_ARN.fullmatch(target):
        refuse("Attributes.RedrivePolicy.deadLetterTargetArn", "must be the ARN of a queue")
    if not re.fullmatch(r"[0-9]{1,9}", str(most)) or not 1 <= int(most) <= _RECEIVES_MOST:
        refuse("Attributes.RedrivePolicy.maxReceiveCount", f"must lie between 1 and {_RECEIVES_MOST}")
    if is_fifo(target) != fifo:
        refuse("Attributes.RedrivePolicy.deadLetterTargetArn", "must be a queue of the same kind")


def _check_redrive_allowed(attributes: Mapping[str, str]) -> None:
    policy = _policy(attributes, "RedriveAllowPolicy")
    if policy is None:
        return
    permission, sources = policy.get("redrivePermission"), policy.get("sourceQueueArns")
    if permission not in _PERMISSIONS:
        refuse("Attributes.RedriveAllowPolicy.redrivePermission", f"must be one of {', '.join(_PERMISSIONS)}")
    if (permission == "byQueue") != bool(sources) or len(sources or ()) > _SOURCES_MOST:
        refuse("Attributes.RedriveAllowPolicy.sourceQueueArns", "must be 1 to 10 queues, with byQueue only")


def _policy(attributes: Mapping[str, str], name: str) -> dict[str, Any] | None:
    text = attributes.get(name)
    if not text:
        return None
    try:
        policy = json.loads(text)
    except ValueError:
        policy = None
    if not isinstance(policy, dict):
        refuse(f"Attributes.{name}", "must be a JSON object")
    return policy
