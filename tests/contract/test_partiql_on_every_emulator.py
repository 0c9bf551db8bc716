"""The statements of one batch do the same on ministack and on moto behind its launcher."""

import uuid
from functools import cache
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

Item = dict[str, Any]
LEASE: Item = {"M": {"h": {"S": "me"}, "u": {"N": "100"}, "n": {"N": "3"}}}
CONDITION_FAILED = "ConditionalCheckFailed"


def number(value: int) -> Item:
    return {"N": str(value)}


def text(value: str) -> Item:
    return {"S": value}


@cache
def client(endpoint_url: str) -> Any:  # noqa: ANN401 - boto3 makes its clients at run time
    """Make the client of an emulator once: it takes a fifth of a second."""
    session: Any = boto3.Session(
        aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1"
    )
    return session.client("dynamodb", endpoint_url=endpoint_url)


class Table:
    """A table of one test's own, spoken to in batches of statements."""

    def __init__(self, endpoint_url: str, *, ranged: bool) -> None:
        self.client = client(endpoint_url)
        self.name = f"t-{uuid.uuid4()}"
        self.keys = ["pk", "sk"] if ranged else ["pk"]
        self.client.create_table(
            TableName=self.name,
            KeySchema=[
                {"AttributeName": key, "KeyType": kind}
                for key, kind in zip(self.keys, ("HASH", "RANGE"), strict=False)
            ],
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in self.keys],
            BillingMode="PAY_PER_REQUEST",
        )

    def run(self, *statements: tuple[str, list[Item]]) -> list[Item]:
        """Execute a batch; `"t"` in a statement stands for the table."""
        entries = [
            {
                "Statement": statement.replace('"t"', f'"{self.name}"'),
                "Parameters": parameters,
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
            for statement, parameters in statements
        ]
        responses: list[Item] = self.client.batch_execute_statement(Statements=entries)["Responses"]
        return responses

    def put(self, **attributes: Item) -> None:
        self.client.put_item(TableName=self.name, Item=attributes)

    def get(self, **key: Item) -> Item | None:
        found = self.client.get_item(TableName=self.name, Key=key, ConsistentRead=True)
        item: Item | None = found.get("Item")
        return item


@pytest.fixture
def gates(emulator: str) -> Table:
    table = Table(emulator, ranged=False)
    table.put(pk=text("a"), tat=number(0), slots=number(8), st=text("closed"))
    return table


@pytest.fixture
def rows(emulator: str) -> Table:
    table = Table(emulator, ranged=True)
    table.put(pk=text("lane"), sk=text("1"), made=number(0))
    return table


def test_a_new_item_is_inserted_and_an_existing_one_is_a_duplicate(gates: Table) -> None:
    insert = """INSERT INTO "t" VALUE {'pk':?,'tat':?,'binary':?,'lease':?}"""
    first, second = gates.run(
        (insert, [text("a"), number(1), {"B": b"\x00\xff"}, LEASE]),
        (insert, [text("b"), number(1), {"B": b"\x00\xff"}, LEASE]),
    )
    assert first["Error"]["Code"] == "DuplicateItem"
    assert second == {"TableName": gates.name}
    assert gates.get(pk=text("a"))["tat"] == number(0)  # type: ignore[index]
    assert gates.get(pk=text("b")) == {
        "pk": text("b"), "tat": number(1), "binary": {"B": b"\x00\xff"}, "lease": LEASE,
    }  # fmt: skip


def test_an_update_returns_the_new_item(gates: Table) -> None:
    admit = (
        'UPDATE "t" SET tat=? SET slots=slots-? SET L0=? WHERE pk=? AND st=? AND tat<=? AND slots>=? '
        "AND L0 IS MISSING AND hold_at IS MISSING RETURNING ALL NEW *"
    )
    known = [text("a"), text("closed"), number(5), number(3)]
    admitted = gates.run((admit, [number(1000), number(3), LEASE, *known]))
    item = {"pk": text("a"), "tat": number(1000), "slots": number(5), "st": text("closed"), "L0": LEASE}
    assert admitted == [{"TableName": gates.name, "Item": item}]


def test_a_refused_update_returns_the_item_that_refused_it_and_changes_nothing(gates: Table) -> None:
    (refused,) = gates.run(
        (
            'UPDATE "t" SET tat=tat+? WHERE pk=? AND tat>? RETURNING ALL NEW *',
            [number(1), text("a"), number(5)],
        )
    )
    before = {"pk": text("a"), "tat": number(0), "slots": number(8), "st": text("closed")}
    assert (refused["Error"]["Code"], refused["Error"]["Item"]) == (CONDITION_FAILED, before)
    assert gates.get(pk=text("a")) == before


def test_every_statement_of_a_batch_has_its_own_fate(gates: Table) -> None:
    update = 'UPDATE "t" SET tat=? WHERE pk=? AND st=?'
    codes = [
        response.get("Error", {}).get("Code")
        for response in gates.run(
            (update, [number(1), text("a"), text("open")]),
            (update, [number(2), text("a"), text("closed")]),
            (update, [number(3), text("nobody"), text("closed")]),
        )
    ]
    assert codes == [CONDITION_FAILED, None, CONDITION_FAILED]
    assert gates.get(pk=text("a"))["tat"] == number(2)  # type: ignore[index]


def test_an_update_of_a_missing_item_fails_without_a_condition_too(gates: Table) -> None:
    (response,) = gates.run(('UPDATE "t" SET tat=? WHERE pk=?', [number(1), text("nobody")]))
    assert response["Error"]["Code"] == CONDITION_FAILED
    assert "Item" not in response["Error"]
    assert gates.get(pk=text("nobody")) is None


def test_nested_paths_are_set_counted_compared_and_removed(gates: Table) -> None:
    gates.run(('UPDATE "t" SET L0=? WHERE pk=?', [LEASE, text("a")]))
    taken, late, settled = (
        gates.run(statement)[0]
        for statement in (
            (
                'UPDATE "t" SET L0.u=? SET L0.n=L0.n-? WHERE pk=? AND L0.h=? AND L0.u<=? RETURNING ALL NEW *',
                [number(7), number(1), text("a"), text("me"), number(100)],
            ),
            ('UPDATE "t" REMOVE L0 WHERE pk=? AND L0.h=?', [text("a"), text("other")]),
            (
                'UPDATE "t" SET slots=slots+? REMOVE L0 WHERE pk=? AND L0.h=? RETURNING ALL NEW *',
                [number(2), text("a"), text("me")],
            ),
        )
    )
    assert taken["Item"]["L0"]["M"] == {"h": text("me"), "u": number(7), "n": number(2)}
    assert late["Error"]["Code"] == CONDITION_FAILED
    assert settled["Item"]["slots"] == number(10)
    assert "L0" not in settled["Item"]


def test_present_and_missing_attributes_are_told_apart(gates: Table) -> None:
    missing = 'UPDATE "t" SET hold_at=? WHERE pk=? AND hold_at IS MISSING'
    present = 'UPDATE "t" REMOVE hold_at WHERE pk=? AND hold_at IS NOT MISSING'
    fates = [
        "Error" in gates.run(statement)[0]
        for statement in (
            (present, [text("a")]),
            (missing, [number(1), text("a")]),
            (missing, [number(1), text("a")]),
            (present, [text("a")]),
        )
    ]
    assert fates == [True, False, True, False]


def test_reserved_words_may_be_quoted(gates: Table) -> None:
    (response,) = gates.run(
        (
            'UPDATE "t" SET "status"=? SET "ttl"=? WHERE pk=? AND "status" IS MISSING RETURNING ALL NEW *',
            [text("x"), number(1), text("a")],
        )
    )
    assert (response["Item"]["status"], response["Item"]["ttl"]) == (text("x"), number(1))


def test_a_delete_succeeds_on_what_is_not_there_and_fails_on_what_is_otherwise(rows: Table) -> None:
    plain, guarded = 'DELETE FROM "t" WHERE pk=? AND sk=?', 'DELETE FROM "t" WHERE pk=? AND sk=? AND made=?'
    key = [text("lane"), text("1")]
    otherwise, *succeeded = rows.run(
        (guarded, [*key, number(9)]),
        (guarded, [text("lane"), text("nowhere"), number(0)]),
        (plain, [text("lane"), text("nowhere")]),
        (guarded, [*key, number(0)]),
    )
    item = {"pk": text("lane"), "sk": text("1"), "made": number(0)}
    assert (otherwise["Error"]["Code"], otherwise["Error"]["Item"]) == (CONDITION_FAILED, item)
    assert succeeded == [{"TableName": rows.name}] * 3
    assert rows.get(pk=text("lane"), sk=text("1")) is None


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(('UPDATE "t" SET made=? WHERE pk=?', [number(1), text("lane")]), id="no range key"),
        pytest.param(('DELETE FROM "t" WHERE sk=?', [text("1")]), id="no hash key"),
        pytest.param(("SOMETHING ELSE", [text("1")]), id="no statement"),
    ],
)
def test_a_statement_that_makes_no_sense_fails_alone(rows: Table, statement: tuple[str, list[Item]]) -> None:
    bad, good = rows.run(
        statement, ('UPDATE "t" SET made=? WHERE pk=? AND sk=?', [number(5), text("lane"), text("1")])
    )
    assert bad["Error"]["Code"] == "ValidationError"
    assert "Error" not in good


def test_a_table_that_is_not_there_fails_its_statement_alone(rows: Table) -> None:
    bad, good = rows.run(
        ('DELETE FROM "nowhere" WHERE pk=?', [text("a")]),
        ('DELETE FROM "t" WHERE pk=? AND sk=?', [text("lane"), text("1")]),
    )
    assert bad["Error"]["Code"] == "ResourceNotFound"
    assert "Error" not in good


def test_more_than_25_statements_are_refused_as_a_whole(gates: Table) -> None:
    with pytest.raises(ClientError) as refusal:
        gates.run(*[('DELETE FROM "t" WHERE pk=?', [text(str(n))]) for n in range(26)])
    assert refusal.value.response["Error"]["Code"] == "ValidationException"
