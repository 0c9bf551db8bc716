from __future__ import annotations

import json
from typing import Any

import pytest
from boto3.dynamodb.types import Binary

from chalicelib.adapters.aws_limits import AwsWouldRefuse, KnownTables, TableKeys, refuse_what_aws_refuses
from tests.unit.aws_limits import (
    NOWHERE,
    Limit,
    Params,
    answered,
    answering_client,
    call,
    refusal_of,
    session,
)

S = {"S": "x"}
MIB = 1_048_576
ITEM_350_KB = 350 * 1_024


def key(name: str = "k") -> Params:
    return {"pk": {"S": name}, "sk": {"S": "s"}}


def item(name: str, size: int) -> Params:
    """Make an item of exactly this many bytes."""
    head = key(name) | {"b": {"B": b""}}
    return head | {"b": {"B": bytes(size - len("pk" + name + "sk" + "s" + "b"))}}


def puts(*items: Params) -> Params:
    return {"RequestItems": {"relay-owed": [{"PutRequest": {"Item": one}} for one in items]}}


def gets(*names: str, **fields: object) -> Params:
    return {"RequestItems": {"relay-owed": {"Keys": [key(name) for name in names], **fields}}}


def transaction(*actions: Params) -> Params:
    return {"TransactItems": list(actions)}


def action(kind: str, **fields: object) -> Params:
    return {kind: {"TableName": "relay-owed", **fields}}


def put_action(one: Params) -> Params:
    return action("Put", Item=one)


def reads(*names: str) -> Params:
    return transaction(*(action("Get", Key=key(name)) for name in names))


def names(count: int) -> list[str]:
    return [f"k{place}" for place in range(count)]


def put_to(table: str) -> Params:
    return {"TableName": table, "Item": key()}


def new_table(name: str, *attributes: str) -> Params:
    return {
        "TableName": name,
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": one, "AttributeType": "S"} for one in attributes],
        "BillingMode": "PAY_PER_REQUEST",
    }


BATCHES = {
    "25 writes": Limit(
        "dynamodb.batch_write_item",
        puts(*map(key, names(25))),
        puts(*map(key, names(26))),
        "RequestItems.relay-owed",
    ),
    "25 writes over all tables": Limit(
        "dynamodb.batch_write_item",
        {
            "RequestItems": puts(*map(key, names(24)))["RequestItems"]
            | {"relay-subs": [{"PutRequest": {"Item": {"pk": S}}}]}
        },
        {
            "RequestItems": puts(*map(key, names(25)))["RequestItems"]
            | {"relay-subs": [{"PutRequest": {"Item": {"pk": S}}}]}
        },
        "RequestItems",
    ),
    "distinct writes": Limit(
        "dynamodb.batch_write_item",
        puts(key("a"), key("b")),
        {
            "RequestItems": {
                "relay-owed": [
                    {"PutRequest": {"Item": key("a") | {"b": S}}},
                    {"DeleteRequest": {"Key": key("a")}},
                ]
            }
        },
        "RequestItems.relay-owed[1]",
    ),
    "one action an entry": Limit(
        "dynamodb.batch_write_item",
        puts(key()),
        {
            "RequestItems": {
                "relay-owed": [{"PutRequest": {"Item": key()}, "DeleteRequest": {"Key": key("b")}}]
            }
        },
        "RequestItems.relay-owed[0]",
    ),
    "an item of 400 KB in a batch": Limit(
        "dynamodb.batch_write_item",
        puts(item("a", 409_600)),
        puts(item("a", 409_601)),
        "RequestItems.relay-owed[0].PutRequest.Item",
    ),
    "100 reads": Limit(
        "dynamodb.batch_get_item", gets(*names(100)), gets(*names(101)), "RequestItems.relay-owed.Keys"
    ),
    "100 reads over all tables": Limit(
        "dynamodb.batch_get_item",
        {"RequestItems": gets(*names(99))["RequestItems"] | {"relay-subs": {"Keys": [{"pk": S}]}}},
        {"RequestItems": gets(*names(100))["RequestItems"] | {"relay-subs": {"Keys": [{"pk": S}]}}},
        "RequestItems",
    ),
    "distinct reads": Limit(
        "dynamodb.batch_get_item", gets("a", "b"), gets("a", "b", "a"), "RequestItems.relay-owed.Keys[2]"
    ),
    "a projection in a batch": Limit(
        "dynamodb.batch_get_item",
        gets("a", ProjectionExpression="st"),
        gets("a", ProjectionExpression="status"),
        "RequestItems.relay-owed.ProjectionExpression",
    ),
}
TRANSACTIONS = {
    "100 actions": Limit(
        "dynamodb.transact_write_items",
        transaction(*(put_action(key(name)) for name in names(100))),
        transaction(*(put_action(key(name)) for name in names(101))),
        "TransactItems",
    ),
    "one action on an item": Limit(
        "dynamodb.transact_write_items",
        transaction(
            put_action(key("a")), action("ConditionCheck", Key=key("b"), ConditionExpression="a = b")
        ),
        transaction(
            put_action(key("a")), action("ConditionCheck", Key=key("a"), ConditionExpression="a = b")
        ),
        "TransactItems[1]",
    ),
    "4 MB": Limit(
        "dynamodb.transact_write_items",
        transaction(
            *(put_action(item(f"k{n}", MIB // 4)) for n in range(10)),
            *(put_action(item(f"l{n}", MIB // 4)) for n in range(6)),
        ),
        transaction(
            *(put_action(item(f"k{n}", MIB // 4)) for n in range(10)),
            *(put_action(item(f"l{n}", MIB // 4)) for n in range(5)),
            put_action(item("m0", MIB // 4 + 1)),
        ),
        "TransactItems",
    ),
    "a token of 36": Limit(
        "dynamodb.transact_write_items",
        transaction(put_action(key())) | {"ClientRequestToken": "t" * 36},
        transaction(put_action(key())) | {"ClientRequestToken": "t" * 37},
        "ClientRequestToken",
    ),
    "one action an entry": Limit(
        "dynamodb.transact_write_items",
        transaction(put_action(key())),
        transaction(put_action(key()) | action("Delete", Key=key("b"))),
        "TransactItems[0]",
    ),
    "expressions in a transaction": Limit(
        "dynamodb.transact_write_items",
        transaction(action("Update", Key=key(), UpdateExpression="REMOVE a", ConditionExpression="b = c")),
        transaction(action("Update", Key=key(), UpdateExpression="REMOVE a", ConditionExpression="b = ttl")),
        "TransactItems[0].Update.ConditionExpression",
    ),
    "keys in a transaction": Limit(
        "dynamodb.transact_write_items",
        transaction(action("Update", Key=key(), UpdateExpression="REMOVE a")),
        transaction(action("Update", Key=key(), UpdateExpression="REMOVE sk")),
        "TransactItems[0].Update.UpdateExpression",
    ),
    "100 reads": Limit(
        "dynamodb.transact_get_items", reads(*names(100)), reads(*names(101)), "TransactItems"
    ),
    "distinct reads": Limit(
        "dynamodb.transact_get_items", reads("a", "b"), reads("a", "a"), "TransactItems[1]"
    ),
}
NAMES = {
    "a table's name of 255": Limit("dynamodb.put_item", put_to("t" * 255), put_to("t" * 256), "TableName"),
    "a table's name of 3": Limit("dynamodb.put_item", put_to("a_b"), put_to("ab"), "TableName"),
    "a table's characters": Limit("dynamodb.put_item", put_to("a.B-0"), put_to("a:b"), "TableName"),
    "a table's ARN": Limit(
        "dynamodb.put_item",
        put_to("arn:aws:dynamodb:us-east-1:000000000000:table/relay-owed"),
        put_to("arn:aws:dynamodb:us-east-1:0:table/relay-owed"),
        "TableName",
    ),
    "a new table's name": Limit(
        "dynamodb.create_table", new_table("abc", "pk"), new_table("ab", "pk"), "TableName"
    ),
    "exactly the key attributes": Limit(
        "dynamodb.create_table", new_table("abc", "pk"), new_table("abc", "pk", "a"), "AttributeDefinitions"
    ),
    "an index's characters": Limit(
        "dynamodb.scan",
        {"TableName": "relay-gates", "IndexName": "a.B_-"},
        {"TableName": "relay-gates", "IndexName": "a/b"},
        "IndexName",
    ),
}
KEYS = {
    "exactly the key": Limit(
        "dynamodb.get_item",
        {"TableName": "relay-owed", "Key": key()},
        {"TableName": "relay-owed", "Key": key() | {"a": S}},
        "Key",
    ),
    "all of the key": Limit(
        "dynamodb.delete_item",
        {"TableName": "relay-subs", "Key": {"pk": S}},
        {"TableName": "relay-owed", "Key": {"pk": S}},
        "Key",
    ),
    "a key that is not empty": Limit(
        "dynamodb.update_item",
        {"TableName": "relay-owed", "Key": key("a")},
        {"TableName": "relay-owed", "Key": key("")},
        "Key.pk",
    ),
    "what a put can return": Limit(
        "dynamodb.put_item",
        put_to("relay-owed") | {"ReturnValues": "ALL_OLD"},
        put_to("relay-owed") | {"ReturnValues": "ALL_NEW"},
        "ReturnValues",
    ),
    "a start key that can be stored": Limit(
        "dynamodb.scan",
        {"TableName": "relay-owed", "ExclusiveStartKey": key()},
        {"TableName": "relay-owed", "ExclusiveStartKey": {"pk": {"N": "x"}}},
        "ExclusiveStartKey.pk",
    ),
}


@pytest.mark.parametrize("limit", BATCHES.values(), ids=BATCHES)
def test_a_batch_keeps_to_the_limits_of_dynamodb(limit: Limit) -> None:
    limit.check()


@pytest.mark.parametrize("limit", TRANSACTIONS.values(), ids=TRANSACTIONS)
def test_a_transaction_keeps_to_the_limits_of_dynamodb(limit: Limit) -> None:
    limit.check()


@pytest.mark.parametrize("limit", NAMES.values(), ids=NAMES)
def test_a_name_keeps_to_the_limits_of_dynamodb(limit: Limit) -> None:
    limit.check()


@pytest.mark.parametrize("limit", KEYS.values(), ids=KEYS)
def test_a_request_for_one_item_keeps_to_the_limits_of_dynamodb(limit: Limit) -> None:
    limit.check()


def test_a_table_nobody_described_is_taken_to_have_pk_and_sk() -> None:
    call("dynamodb.put_item", {"TableName": "unheard-of", "Item": {"pk": S}})
    call("dynamodb.get_item", {"TableName": "unheard-of", "Key": {"id": S}})
    put = {"TableName": "unheard-of", "Item": {"pk": S, "sk": {"S": ""}}}
    assert refusal_of("dynamodb.put_item", put).parameter == "Item.sk"
    update = {"TableName": "unheard-of", "Key": {"id": S}, "UpdateExpression": "REMOVE id"}
    assert refusal_of("dynamodb.update_item", update).parameter == "UpdateExpression"


def test_a_client_learns_keys_from_the_table_it_creates_or_describes() -> None:
    described = {
        "TableName": "learned",
        "KeySchema": [
            {"AttributeName": "id", "KeyType": "HASH"},
            {"AttributeName": "at", "KeyType": "RANGE"},
        ],
        "AttributeDefinitions": [
            {"AttributeName": "id", "AttributeType": "S"},
            {"AttributeName": "at", "AttributeType": "N"},
            {"AttributeName": "shard", "AttributeType": "S"},
        ],
        "GlobalSecondaryIndexes": [
            {"IndexName": "by-shard", "KeySchema": [{"AttributeName": "shard", "KeyType": "HASH"}]}
        ],
    }
    tables = KnownTables()
    describing = answering_client("dynamodb", json.dumps({"Table": described}).encode())
    refuse_what_aws_refuses(describing, tables)
    describing.describe_table(TableName="learned")
    other = answering_client("dynamodb")
    refuse_what_aws_refuses(other, tables)
    other.put_item(TableName="learned", Item={"id": S, "at": {"N": "1"}, "pk": {"S": ""}})
    for bad in ({"id": S}, {"id": S, "at": S}, {"id": S, "at": {"N": "1"}, "shard": {"S": ""}}):
        with pytest.raises(AwsWouldRefuse):
            other.put_item(TableName="learned", Item=bad)


def test_a_client_learns_which_attribute_expires_items() -> None:
    client = answering_client("dynamodb")
    refuse_what_aws_refuses(client, KnownTables({"events": TableKeys("pk", None)}))
    client.put_item(TableName="events", Item={"pk": S, "gone_at": S})
    client.update_time_to_live(
        TableName="events", TimeToLiveSpecification={"Enabled": True, "AttributeName": "gone_at"}
    )
    with pytest.raises(AwsWouldRefuse, match="must be a number"):
        client.put_item(TableName="events", Item={"pk": S, "gone_at": S})


def test_a_client_without_its_own_validation_still_finds_wrong_types() -> None:
    client = answering_client("dynamodb", parameter_validation=False)
    refuse_what_aws_refuses(client)
    with pytest.raises(AwsWouldRefuse, match="Missing required parameter"):
        client.put_item(TableName="relay-owed")
    with pytest.raises(AwsWouldRefuse, match="Invalid type"):
        client.put_item(TableName="relay-owed", Item={"pk": S, "n": {"N": 1}})


def test_a_resource_is_looked_at_after_its_values_were_converted() -> None:
    resource: Any = session().resource("dynamodb", endpoint_url=NOWHERE)
    resource.meta.client.meta.events.register("before-send", lambda **_: answered(200))
    refuse_what_aws_refuses(resource.meta.client)
    table = resource.Table("relay-subs")
    table.put_item(Item={"pk": "p", "payload": Binary(b"x" * (409_600 - 10))})
    with pytest.raises(AwsWouldRefuse, match="Item: must take at most 409600 bytes, takes 409601"):
        table.put_item(Item={"pk": "p", "payload": Binary(b"x" * (409_600 - 9))})
