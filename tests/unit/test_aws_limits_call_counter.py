from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config

from chalicelib.adapters.aws_limits import CallCounter, count_calls
from tests.unit.aws_limits import NOWHERE, answered, answering_client

if TYPE_CHECKING:
    from collections.abc import Callable

S = {"S": "x"}
CONSUMED = {"TableName": "relay-owed", "CapacityUnits": 2.5}
WRITES: list[tuple[str, dict[str, Any]]] = [
    ("put_item", {"TableName": "relay-owed", "Item": {"pk": S}}),
    ("update_item", {"TableName": "relay-owed", "Key": {"pk": S}}),
    ("delete_item", {"TableName": "relay-owed", "Key": {"pk": S}}),
    ("batch_write_item", {"RequestItems": {"relay-owed": [{"DeleteRequest": {"Key": {"pk": S}}}]}}),
    ("transact_write_items", {"TransactItems": [{"Delete": {"TableName": "relay-owed", "Key": {"pk": S}}}]}),
    ("execute_statement", {"Statement": ' delete from "relay-owed" where pk=1'}),
    ("batch_execute_statement", {"Statements": [{"Statement": 'UPDATE "relay-owed" SET a=1 WHERE pk=1'}]}),
    ("execute_transaction", {"TransactStatements": [{"Statement": "EXISTS(SELECT * FROM abc WHERE pk=1)"}]}),
]
READS: list[tuple[str, dict[str, Any]]] = [
    ("get_item", {"TableName": "relay-owed", "Key": {"pk": S}}),
    ("query", {"TableName": "relay-owed"}),
    ("execute_statement", {"Statement": 'select * from "relay-owed"'}),
    ("batch_execute_statement", {"Statements": [{"Statement": 'SELECT * FROM "relay-owed" WHERE pk=1'}]}),
]
SINGLE = {"put_item", "update_item", "delete_item", "execute_statement", "get_item", "query"}


def dynamodb(operation: str = "put_item") -> Any:  # noqa: ANN401 - boto3's clients are made while the program runs
    consumed = CONSUMED if operation in SINGLE else [CONSUMED, CONSUMED]
    return answering_client("dynamodb", json.dumps({"ConsumedCapacity": consumed}).encode())


def test_calls_are_counted_by_service_and_operation() -> None:
    client = answering_client("sqs")
    counter = count_calls(client)
    for _ in range(3):
        client.receive_message(QueueUrl="http://127.0.0.1:9/0/q")
    client.delete_message(QueueUrl="http://127.0.0.1:9/0/q", ReceiptHandle="r")
    assert counter.calls() == {("sqs", "ReceiveMessage"): 3, ("sqs", "DeleteMessage"): 1}


def test_a_total_may_be_asked_for_some_services() -> None:
    counter = CallCounter()
    for service in ("sqs", "dynamodb", "dynamodb", "kms"):
        counter.add_call(service, "Any")
    assert (counter.total(), counter.total("dynamodb"), counter.total("dynamodb", "kms")) == (4, 2, 3)
    assert counter.total("s3") == 0


def test_a_request_that_is_sent_again_counts_again() -> None:
    session = boto3.Session(region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test")
    counter = count_calls(session)
    retries = Config(retries={"mode": "standard", "total_max_attempts": 2})
    client = session.client("dynamodb", endpoint_url=NOWHERE, config=retries)
    answers = iter([500, 200])

    client.meta.events.register("before-send", lambda **_: answered(next(answers)))  # type: ignore[arg-type]  # an answer is used
    client.get_item(TableName="relay-owed", Key={"pk": S})
    assert counter.calls() == {("dynamodb", "GetItem"): 2}


@pytest.mark.parametrize("operation,params", WRITES)
def test_write_units_of_every_write_are_summed(operation: str, params: dict[str, Any]) -> None:
    client = dynamodb(operation)
    counter = count_calls(client, write_units=True)
    getattr(client, operation)(**params)
    assert counter.write_units == (2.5 if operation in SINGLE else 5.0)


@pytest.mark.parametrize("operation,params", READS)
def test_reads_add_no_write_units(operation: str, params: dict[str, Any]) -> None:
    client = dynamodb(operation)
    counter = count_calls(client, write_units=True)
    getattr(client, operation)(**params)
    assert counter.write_units == 0
    assert counter.total() == 1


def test_a_call_is_left_as_it_was_unless_write_units_are_asked_for() -> None:
    seen: list[object] = []

    def look(params: dict[str, Any], **_: object) -> None:
        seen.append(json.loads(params["body"]).get("ReturnConsumedCapacity"))

    for write_units in (False, True):
        client = dynamodb()
        count_calls(client, write_units=write_units)
        client.meta.events.register("before-call", look)
        client.put_item(TableName="relay-owed", Item={"pk": S})
        client.put_item(TableName="relay-owed", Item={"pk": S}, ReturnConsumedCapacity="INDEXES")
    assert seen == [None, "INDEXES", "TOTAL", "INDEXES"]


def test_nothing_is_lost_under_threads() -> None:
    counter = CallCounter()

    def work() -> None:
        for _ in range(2_000):
            counter.add_call("sqs", "SendMessage")
            counter.add_write_units(0.5)

    _together(work, 8)
    assert counter.total("sqs") == 16_000
    assert counter.write_units == 8_000


def _together(work: Callable[[], None], threads: int) -> None:
    running = [threading.Thread(target=work) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def test_a_reset_starts_again_at_nothing() -> None:
    counter = CallCounter()
    counter.add_call("sqs", "SendMessage")
    counter.add_write_units(1)
    counter.reset()
    assert (counter.calls(), counter.write_units) == ({}, 0)


@pytest.mark.parametrize(
    "operation, params, answer, size",
    [
        ("get_item", {"TableName": "t", "Key": {"pk": S}}, {"Item": {"pk": S, "n": {"N": "12"}}}, 6),
        ("query", {"TableName": "t"}, {"Items": [{"pk": S}, {"pk": S}]}, 6),
        (
            "batch_get_item",
            {"RequestItems": {"t": {"Keys": [{"pk": S}]}}},
            {"Responses": {"t": [{"pk": S}]}},
            3,
        ),
        ("put_item", {"TableName": "t", "Item": {"pk": S}}, {}, 0),
    ],
)
def test_what_reads_answer_is_weighed_as_aws_does(
    operation: str, params: dict[str, Any], answer: dict[str, Any], size: int
) -> None:
    client = answering_client("dynamodb", json.dumps(answer).encode())
    counter = count_calls(client, read_bytes=True)
    getattr(client, operation)(**params)
    assert counter.read_bytes == size
    counter.reset()
    assert counter.read_bytes == 0
