"""The mended ministack answers as the one that was shipped, sooner."""

import random
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pytest

from infra.local.emulator import EmulatorName, free_port, running

ROWS = 600
FIFO = {"FifoQueue": "true", "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}


@dataclass(frozen=True)
class Place:
    dynamodb: Any
    sqs: Any


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, Place]]:
    session: Any = boto3.Session(
        aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1"
    )
    state = tmp_path_factory.mktemp("emulators")
    with (
        running(EmulatorName.MINISTACK, state / "shipped", free_port()) as shipped,
        running(EmulatorName.MINISTACK, state / "mended", free_port(), fast=True) as mended,
    ):
        made = [
            Place(session.client("dynamodb", endpoint_url=url), session.client("sqs", endpoint_url=url))
            for url in (shipped, mended)
        ]
        for place in made:
            _fill(place)
        yield made[0], made[1]


def _fill(place: Place) -> None:
    place.dynamodb.create_table(
        TableName="rows",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
        BillingMode="PAY_PER_REQUEST",
    )
    numbers = random.Random(1).sample(range(10 * ROWS), ROWS)
    rows = [
        {"pk": {"S": "lane"}, "sk": {"S": f"{number:06d}"}, "n": {"N": str(number)}} for number in numbers
    ]
    for at in range(0, ROWS, 25):
        chunk = [{"PutRequest": {"Item": row}} for row in rows[at : at + 25]]
        place.dynamodb.batch_write_item(RequestItems={"rows": chunk})


def _asked(chance: random.Random) -> dict[str, Any]:
    low, high = sorted(f"{chance.randrange(10 * ROWS):06d}" for _ in range(2))
    condition, values = chance.choice(
        [
            ("", {}),
            (" AND sk <= :a", {":a": {"S": high}}),
            (" AND #k > :a", {":a": {"S": low}}),
            (" AND sk BETWEEN :a AND :b", {":a": {"S": low}, ":b": {"S": high}}),
            (" AND begins_with(sk, :a)", {":a": {"S": low[:3]}}),
            (" AND sk = :a", {":a": {"S": low}}),
        ]
    )
    query: dict[str, Any] = {
        "TableName": "rows",
        "KeyConditionExpression": "pk = :p" + condition,
        "ExpressionAttributeValues": {":p": {"S": "lane"}, **values},
        "ScanIndexForward": chance.random() < 0.5,
        "Limit": chance.choice([1, 10, 200]),
    }
    if "#k" in condition:
        query["ExpressionAttributeNames"] = {"#k": "sk"}
    if chance.random() < 0.3:
        query |= {"FilterExpression": "n < :n"}
        query["ExpressionAttributeValues"] |= {":n": {"N": "9000"}}
    return query


def _pages(place: Place, query: dict[str, Any], most: int = 3) -> list[dict[str, Any]]:
    pages: list[dict[str, Any]] = []
    more: dict[str, Any] = {}
    while len(pages) < most:
        page = place.dynamodb.query(**query, **more)
        page.pop("ResponseMetadata")
        pages.append(page)
        if "LastEvaluatedKey" not in page:
            break
        more = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    return pages


def test_every_query_is_answered_the_same(places: tuple[Place, Place]) -> None:
    shipped, mended = places
    chance = random.Random(2)
    for _ in range(30):
        query = _asked(chance)
        assert _pages(mended, query) == _pages(shipped, query), query


def test_what_comes_and_goes_is_seen_at_once(places: tuple[Place, Place]) -> None:
    _, mended = places
    first = {
        "TableName": "rows",
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "lane"}},
        "Limit": 1,
    }
    before = mended.dynamodb.query(**first)["Items"]
    row = {"pk": {"S": "lane"}, "sk": {"S": "!"}}
    mended.dynamodb.put_item(TableName="rows", Item=row)
    assert mended.dynamodb.query(**first)["Items"] == [row]
    mended.dynamodb.transact_write_items(TransactItems=[{"Delete": {"TableName": "rows", "Key": row}}])
    assert mended.dynamodb.query(**first)["Items"] == before


def test_the_head_of_a_long_lane_is_found_many_times_sooner(places: tuple[Place, Place]) -> None:
    head = {
        "TableName": "rows",
        "KeyConditionExpression": "pk = :p AND sk <= :a",
        "ExpressionAttributeValues": {":p": {"S": "lane"}, ":a": {"S": "999999"}},
        "Limit": 11,
    }
    took = []
    for place in places:
        place.dynamodb.query(**head)
        began = time.perf_counter()
        for _ in range(5):
            place.dynamodb.query(**head)
        took.append(time.perf_counter() - began)
    assert took[1] < took[0] / 4


def test_a_long_poll_wakes_at_once(places: tuple[Place, Place]) -> None:
    sqs = places[1].sqs
    url = sqs.create_queue(QueueName=f"q-{uuid.uuid4()}.fifo", Attributes=FIFO)["QueueUrl"]
    waits: list[float] = []
    for number in range(10):
        sent = threading.Timer(0.05, _send, (sqs, url, number))
        sent.start()
        (message,) = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=5)["Messages"]
        waits.append(time.time() - float(message["Body"]))
        gone = sqs.delete_message_batch(
            QueueUrl=url, Entries=[{"Id": "1", "ReceiptHandle": message["ReceiptHandle"]}]
        )
        assert [entry["Id"] for entry in gone["Successful"]] == ["1"]
        sent.join()
    assert sorted(waits)[5] < 0.05


def _send(sqs: Any, url: str, number: int) -> None:  # noqa: ANN401 - boto3 makes its clients at run time
    sqs.send_message(
        QueueUrl=url, MessageBody=str(time.time()), MessageGroupId="g", MessageDeduplicationId=str(number)
    )


def test_a_deleted_group_wakes_who_waits_for_it(places: tuple[Place, Place]) -> None:
    sqs = places[1].sqs
    url = sqs.create_queue(QueueName=f"q-{uuid.uuid4()}.fifo", Attributes=FIFO)["QueueUrl"]
    for number in range(2):
        _send(sqs, url, number)
    (first,) = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1)["Messages"]
    delete = threading.Timer(
        0.1, sqs.delete_message, kwargs={"QueueUrl": url, "ReceiptHandle": first["ReceiptHandle"]}
    )
    delete.start()
    assert len(sqs.receive_message(QueueUrl=url, WaitTimeSeconds=5)["Messages"]) == 1
    delete.join()


def test_deduplication_and_stale_handles_stay_as_they_were(places: tuple[Place, Place]) -> None:
    for place in places:
        url = place.sqs.create_queue(QueueName=f"q-{uuid.uuid4()}.fifo", Attributes=FIFO)["QueueUrl"]
        for _ in range(2):
            _send(place.sqs, url, 1)
        (message,) = place.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
        entry = {"Id": "1", "ReceiptHandle": message["ReceiptHandle"]}
        assert "Successful" in place.sqs.delete_message_batch(QueueUrl=url, Entries=[entry])
        again = place.sqs.delete_message_batch(QueueUrl=url, Entries=[entry])
        assert again["Failed"][0]["Code"] == "ReceiptHandleIsInvalid"
        _send(place.sqs, url, 1)
        assert "Messages" not in place.sqs.receive_message(QueueUrl=url)


STATEMENTS = [
    """INSERT INTO "rows" VALUE {'pk':?,'sk':?,'n':?,'m':{'deep':[?, 1, 'two']}}""",
    """UPDATE "rows" SET "n"="n"+? SET "m"."deep"[0]=? WHERE pk=? AND sk=? AND "n"<? RETURNING ALL NEW *""",
    """UPDATE "rows" SET "own"=? REMOVE "n" WHERE pk=? AND sk=? AND "own" IS MISSING RETURNING ALL NEW *""",
    """UPDATE "rows" SET "bag"=<<?, ?>> WHERE pk=? AND sk=? RETURNING MODIFIED NEW *""",
    """DELETE FROM "rows" WHERE pk=? AND sk=? AND "n"=? RETURNING ALL OLD *""",
    """UPDATE "nothere" SET "n"=? WHERE pk=? AND sk=?""",
    """UPDATE "rows" WHERE pk=? AND sk=?""",
    """SELECT * FROM "rows" WHERE pk=? AND sk=?""",
]


def _parameters(chance: random.Random, count: int) -> list[dict[str, Any]]:
    """Make parameters that mostly suit a statement: few keys, so that rows meet again, and odd values."""
    likely: list[dict[str, Any]] = [{"S": "few"}, {"S": "one"}, {"S": "two"}, {"N": "1"}, {"N": "2"}]
    odd: list[dict[str, Any]] = [
        {"BOOL": True},
        {"L": [{"N": "1"}]},
        {"M": {"a": {"S": "x"}}},
        {"N": "1e200"},
    ]
    return [chance.choice(odd if chance.random() < 0.1 else likely) for _ in range(count)]


def _executed(place: Place, statements: list[dict[str, Any]]) -> list[dict[str, Any]]:
    answer = place.dynamodb.batch_execute_statement(Statements=statements)
    return list(answer["Responses"])


def test_every_statement_is_answered_the_same_and_leaves_the_same(places: tuple[Place, Place]) -> None:
    shipped, mended = places
    chance, seen = random.Random(3), set()
    for _ in range(80):
        statements = []
        for text in chance.sample(STATEMENTS, 4):
            given = _parameters(chance, text.count("?") - (chance.random() < 0.05))
            after_key = {"INSERT": 0, "UPDATE": text.partition(" WHERE")[0].count("?")}.get(text[:6], 0)
            if chance.random() < 0.9:
                key = [{"S": "few"}, {"S": chance.choice(["one", "two"])}]
                given[after_key : after_key + 2] = key[: len(given) - after_key]
            statements.append(
                {"Statement": text, "Parameters": given, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
            )
        answered = _executed(mended, statements)
        assert answered == _executed(shipped, statements), statements
        seen |= {each.get("Error", {}).get("Code", "done") for each in answered}
    assert seen >= {"done", "ConditionalCheckFailed", "DuplicateItem", "ResourceNotFound", "ValidationError"}
    few = {"TableName": "rows", "KeyConditionExpression": "pk = :p"}
    left = [
        _pages(place, few | {"ExpressionAttributeValues": {":p": {"S": "few"}}})
        for place in (mended, shipped)
    ]
    assert left[0] == left[1]
