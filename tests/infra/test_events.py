"""The sample payloads are shaped as AWS sends them."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from chalicelib.domain.gate import Queue
from chalicelib.wire.bell import load, load_delayed
from infra.package import ROOT

EVENTS = ROOT / "events"
SQS = sorted(EVENTS.glob("sqs_*.json"))
RECORD = {
    "messageId",
    "receiptHandle",
    "body",
    "attributes",
    "messageAttributes",
    "md5OfBody",
    "eventSource",
    "eventSourceARN",
    "awsRegion",
}
FIFO_ONLY = {"SequenceNumber", "MessageGroupId", "MessageDeduplicationId"}


def sample(path: Path) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return parsed


def test_there_is_one_sample_per_trigger() -> None:
    names = {path.stem for path in EVENTS.iterdir()}
    assert names == {
        "api_proxy",
        "schedule",
        "sqs_delayed",
        "sqs_endings",
        "sqs_fan_out",
        "sqs_fifo",
        "sqs_replays",
    }


@pytest.mark.parametrize("path", SQS, ids=lambda path: path.stem)
def test_messages_are_whole(path: Path) -> None:
    for record in sample(path)["Records"]:
        assert record.keys() == RECORD
        assert record["md5OfBody"] == hashlib.md5(record["body"].encode(), usedforsecurity=False).hexdigest()
        fifo = record["eventSourceARN"].endswith(".fifo")
        assert FIFO_ONLY & record["attributes"].keys() == (FIFO_ONLY if fifo else set())


@pytest.mark.parametrize("path", SQS, ids=lambda path: path.stem)
def test_no_two_messages_share_an_id(path: Path) -> None:
    records = sample(path)["Records"]
    assert len({record["messageId"] for record in records}) == len(records)


def test_a_fifo_batch_mixes_two_groups_in_order() -> None:
    records = sample(EVENTS / "sqs_fifo.json")["Records"]
    groups = [record["attributes"]["MessageGroupId"] for record in records]
    assert len(set(groups)) == 2
    assert groups[0] == groups[2]
    numbers = [int(record["attributes"]["SequenceNumber"]) for record in records]
    assert numbers == sorted(numbers)


def test_the_bells_are_those_that_relay_reads() -> None:
    for record in sample(EVENTS / "sqs_fifo.json")["Records"]:
        assert load(record["body"]).lane.name == record["attributes"]["MessageGroupId"]
    delayed = [load_delayed(record["body"]) for record in sample(EVENTS / "sqs_delayed.json")["Records"]]
    assert [queue for _, queue in delayed] == [Queue.SHARD, Queue.SLOW]
    assert {lane.tenant for lane, _ in delayed} == {"default"}


def test_a_request_is_a_whole_proxy_event() -> None:
    event = sample(EVENTS / "api_proxy.json")
    assert event["headers"] == {name: values[-1] for name, values in event["multiValueHeaders"].items()}
    context: dict[str, Any] = event["requestContext"]
    assert {"requestId", "stage", "identity", "requestTimeEpoch", "resourcePath"} <= context.keys()
    assert event["isBase64Encoded"] is False


def test_a_schedule_names_its_source_and_time() -> None:
    event = sample(EVENTS / "schedule.json")
    assert (event["source"], event["detail-type"]) == ("aws.events", "Scheduled Event")
    assert event["time"].endswith("Z")
