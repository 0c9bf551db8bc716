"""The statements Relay writes mean the same when they are put as single-item requests."""

import pytest

from infra.local.partiql import Delete, Insert, Returning, StatementError, Update, parse
from infra.local.partiql_requests import error_of, request_of

ONE, TWO, ME = {"N": "1"}, {"N": "2"}, {"S": "me"}
PK, SK = {"S": "p"}, {"S": "s"}


def test_an_insert_is_a_put_of_a_new_item() -> None:
    statement = parse("""INSERT INTO "relay-gates" VALUE {'pk':?,'tat':?, 'st':'closed'}""", [PK, ONE])
    assert isinstance(statement, Insert)
    request = request_of(statement, ["pk"], "ALL_OLD")
    assert request.action == "PutItem"
    assert request.body == {
        "TableName": "relay-gates",
        "Item": {"pk": PK, "tat": ONE, "st": {"S": "closed"}},
        "ConditionExpression": "attribute_not_exists(#n0)",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        "ExpressionAttributeNames": {"#n0": "pk"},
    }


def test_an_update_keeps_its_changes_its_conditions_and_its_order_of_parameters() -> None:
    statement = parse(
        'UPDATE "t" SET a=? SET b=b+? SET c=c-? SET "d".x=? REMOVE e WHERE pk=? AND sk=? AND a=? AND y<=? '
        "AND z>? AND e IS MISSING AND f IS NOT MISSING AND L0.h=? RETURNING ALL NEW *",
        [{"N": str(number)} for number in range(4)]
        + [PK, SK]
        + [{"N": str(number)} for number in range(4, 8)],
    )
    assert isinstance(statement, Update)
    assert statement.returning is Returning.NEW
    request = request_of(statement, ["pk", "sk"], "NONE")
    body = request.body
    assert (request.action, body["Key"], body["ReturnValues"]) == (
        "UpdateItem",
        {"pk": PK, "sk": SK},
        "ALL_NEW",
    )
    names, values = body["ExpressionAttributeNames"], body["ExpressionAttributeValues"]

    def spelled(text: str) -> str:
        for placeholder in sorted(names, key=len, reverse=True):
            text = text.replace(placeholder, names[placeholder])
        for placeholder in sorted(values, key=len, reverse=True):
            text = text.replace(placeholder, values[placeholder]["N"])
        return text

    assert spelled(body["UpdateExpression"]) == "SET a = 0, b = b + 1, c = c - 2, d.x = 3 REMOVE e"
    assert spelled(body["ConditionExpression"]) == (
        "attribute_exists(pk) AND a = 4 AND y <= 5 AND z > 6 AND attribute_not_exists(e) "
        "AND attribute_exists(f) AND L0.h = 7"
    )
    assert "ReturnValuesOnConditionCheckFailure" not in body


def test_a_delete_asks_for_nothing_but_what_it_names() -> None:
    plain = parse('DELETE FROM "t" WHERE pk=? AND sk=?', [PK, SK])
    assert isinstance(plain, Delete)
    assert request_of(plain, ["pk", "sk"], "ALL_OLD").body == {
        "TableName": "t", "Key": {"pk": PK, "sk": SK}, "ReturnValues": "NONE",
    }  # fmt: skip
    guarded = parse('DELETE FROM "t" WHERE pk=? AND sk=? AND made=? RETURNING ALL OLD *', [PK, SK, ME])
    body = request_of(guarded, ["pk", "sk"], "ALL_OLD").body
    assert (body["ConditionExpression"], body["ReturnValues"]) == (
        "attribute_not_exists(#n1) OR (#n0 = :v0)",
        "ALL_OLD",
    )


def test_names_may_be_quoted_and_values_written_out() -> None:
    statement = parse(
        """UPDATE "t" SET "order" = 'it''s' SET n = 1.5 SET b = true SET l[0] = b WHERE pk = 'p'"""
    )
    assert isinstance(statement, Update)
    assert [assignment.value for assignment in statement.sets] == [
        {"S": "it's"},
        {"N": "1.5"},
        {"BOOL": True},
        None,
    ]
    assert statement.sets[3].path == ("l", 0)


@pytest.mark.parametrize(
    "text, parameters",
    [
        ("UPDATE t SET a=? WHERE pk=?", [ONE]),
        ("UPDATE t SET a=? WHERE pk=?", [ONE, PK, TWO]),
        ("UPDATE t WHERE pk=?", [PK]),
        ("UPDATE t SET a=? WHERE pk=? AND (b=? OR c=?)", [ONE, PK, ONE, ONE]),
        ("UPDATE t SET a=? WHERE pk=? OR sk=?", [ONE, PK, SK]),
        ("UPDATE t SET a=? WHERE pk=? RETURNING MODIFIED NEW *", [ONE, PK]),
        ("DELETE FROM t", []),
        ("MERGE INTO t", []),
        ("UPDATE t SET a=` WHERE pk=?", [PK]),
        ("", []),
    ],
)
def test_other_statements_are_refused(text: str, parameters: list[dict[str, str]]) -> None:
    with pytest.raises(StatementError):
        parse(text, parameters)


@pytest.mark.parametrize("text", ['UPDATE "t" SET a=1 WHERE pk=?', 'DELETE FROM "t" WHERE pk=? AND sk > 1'])
def test_a_key_that_is_not_given_whole_is_refused(text: str) -> None:
    with pytest.raises(StatementError, match="all key attributes"):
        request_of(parse(text, [PK]), ["pk", "sk"], "NONE")


def test_errors_get_the_codes_of_a_batch() -> None:
    kind = "com.amazonaws.dynamodb.v20120810#"
    failed = {"__type": kind + "ConditionalCheckFailedException", "message": "no", "Item": {"pk": PK}}
    insert, delete = parse("INSERT INTO t VALUE {'pk':?}", [PK]), parse("DELETE FROM t WHERE pk=?", [PK])
    assert error_of(delete, failed) == {"Code": "ConditionalCheckFailed", "Message": "no", "Item": {"pk": PK}}
    assert error_of(insert, failed)["Code"] == "DuplicateItem"
    assert error_of(delete, {"__type": kind + "ValidationException"})["Code"] == "ValidationError"
    assert error_of(delete, {"__type": kind + "ResourceNotFoundException"})["Code"] == "ResourceNotFound"
    assert error_of(delete, {"__type": "Surprise"})["Code"] == "InternalServerError"
