from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.adapters.aws_limits.reserved_words import RESERVED
from tests.unit.aws_limits import Limit, Params, call, refusal_of

N = {"N": "1"}
S = {"S": "x"}
TEXTS = {":p", ":q", ":lo", ":hi"}
KEY = {"pk": {"S": "p"}, "sk": {"S": "s"}}


Names = dict[str, str] | None
Values = dict[str, Any] | None


def request(names: Names, values: Values, **fields: object) -> Params:
    """Define every :placeholder that the expressions mention: what `values` has, a text, or else a number."""
    text = " ".join(str(value) for name, value in fields.items() if name.endswith("Expression"))
    defined = {name: S if name in TEXTS else N for name in re.findall(r":[A-Za-z0-9_]+", text)}
    defined |= values or {}
    optional = {"ExpressionAttributeNames": names, "ExpressionAttributeValues": defined}
    return {"TableName": "relay-owed"} | fields | {name: value for name, value in optional.items() if value}


def update(expression: str, names: Names = None, values: Values = None, **fields: object) -> Params:
    return request(names, values, Key=KEY, UpdateExpression=expression, **fields)


def delete_if(expression: str, values: Values = None) -> Params:
    return request(None, values, Key=KEY, ConditionExpression=expression)


def query(expression: str, values: Values = None, **fields: object) -> Params:
    return request(None, values, KeyConditionExpression=expression, **fields)


def scan(expression: str, values: Values = None) -> Params:
    return request(None, values, FilterExpression=expression)


def get(projection: str, names: Names = None) -> Params:
    return request(names, None, Key=KEY, ProjectionExpression=projection)


def ors(count: int) -> str:
    return " OR ".join(f"a = :v{place}" for place in range(count))


GOOD_UPDATES = [
    "SET tat = :now, slots = slots - :n, L0 = :lease",
    "SET tat = tat + :n REMOVE L0",
    "SET a = if_not_exists(a, :zero) + :one",
    "SET a = :x - b.c[0].d",
    "SET a = (:x)",
    "SET a = (a + :x)",
    "SET a = (a) + :x",
    "set a = :x remove b, c.d add e :n delete f :s",
    "SET a.b = :x, a.c = :y, d[0] = :z, d[1] = :u",
    "SET a = b, b = a",
]
BAD_UPDATES = {
    "SET a = a * :x": "only + and -",
    "SET a = a / :x": "only + and -",
    "SET a = :x * :y": "only + and -",
    "SET a = a + :x - :y": "only one + or -",
    "SET a = a + :x * :y": "only one + or -",
    "SET a = (a + :x) + :y": "only one + or -",
    "SET a = :x, a = :y": "a and a overlap",
    "SET a = :x, a.b = :y": "a and a.b overlap",
    "SET a.b = :x REMOVE a": "a.b and a overlap",
    "SET a[0] = :x REMOVE a[0]": "overlap",
    "SET a.b = :x, a[0] = :y": "conflict",
    "SET a = :x SET b = :y": "one SET only",
    "SET pk = :x": "pk is part of the key",
    "SET sk = :x": "sk is part of the key",
    "REMOVE sk": "sk is part of the key",
    "ADD sk :x": "sk is part of the key",
    "SET hold = :x": "hold is a reserved word",
    "REMOVE Status": "Status is a reserved word",
    "SET a.ttl = :x": "ttl is a reserved word",
    "SET a = state": "state is a reserved word",
    "SET a = :x,": "syntax",
    "SET a :x": "expected =",
    "SET a = :x b": "syntax",
    "CHANGE a": "expected SET",
    "SET a = max(a, :x)": "knows no function max",
    "SET a = if_not_exists(a)": "takes 2 operands",
    "SET a = if_not_exists(:x, :y)": "needs an attribute",
    "SET a = list_append(a, :x)": "list_append cannot take a value of type N",
    "DELETE a :x": "DELETE cannot take a value of type N",
    "ADD a b": "needs a value placeholder",
    "SET a = b[x]": "expected a position",
    "SET a = 1": "expected an attribute",
    "SET a = 'x'": "unexpected",
    "REMOVE a;": "unexpected",
    "   ": "must not be empty",
}
GOOD_CONDITIONS = [
    "attribute_not_exists(pk)",
    "st = :closed AND tat <= :now AND slots >= :n AND attribute_not_exists(L0)",
    "(attribute_not_exists(L0) OR L0.u <= :now) AND NOT a = :x",
    "(a = :x)",
    "(a = :x AND (b = :y))",
    "(a = :x) AND (b = :y)",
    "(a) = (:x)",
    "a BETWEEN :x AND :y AND b IN (:z, :u)",
    "size(a) > :x",
    "NOT (a = :x)",
    "a <> b",
    "contains(a, :x)",
]
BAD_CONDITIONS = {
    "a + :x < :y": "no arithmetic",
    "a < :x + :y": "no arithmetic",
    "a < :x - :y": "no arithmetic",
    "a * :x < :y": "no arithmetic",
    "a / :x < :y": "no arithmetic",
    "(a + :x) < :y": "no arithmetic",
    "((a = :x))": "redundant parentheses",
    "((a)) = :x": "redundant parentheses",
    "a = ((:x))": "redundant parentheses",
    "b = :y AND ((a = :x OR c = :z))": "redundant parentheses",
    "count = :x": "count is a reserved word",
    "a.timestamp = :x": "timestamp is a reserved word",
    "size(name) > :x": "name is a reserved word",
    "a = a": "with itself",
    "a": "is no condition",
    "size(a)": "is no condition",
    "a = :x AND b": "is no condition",
    "a = (b = :x)": "where an operand must",
    "a = attribute_exists(b)": "where an operand must",
    "exists(a)": "knows no function exists",
    "Attribute_exists(a)": "knows no function Attribute_exists",
    "attribute_exists(a, b)": "takes 1 operands",
    "attribute_exists(:x)": "needs an attribute",
    "begins_with(a, :x)": "begins_with cannot take a value of type N",
    "attribute_type(a, :x)": "needs one of",
    "begins_with(:x, a)": "begins_with cannot take a value of type N",
    "size(:x) > :y": "size cannot take a value of type N",
    "size(size(a)) > :y": "size cannot take size()",
    "a = :x b": "nothing more",
    "a = :x)": "nothing more",
    "(a = :x": "expected )",
    "a != :x": "unexpected",
    "a == :x": "syntax",
    "a IS MISSING": "is no condition",
    "a IN [:x]": "expected (",
    "a IN ()": "1 to 100",
    "": "must not be empty",
}
KEY_CONDITIONS = {
    "equality on the hash key": Limit(
        "dynamodb.query", query("pk = :p"), query("pk > :p"), "KeyConditionExpression"
    ),
    "a range on the range key": Limit(
        "dynamodb.query",
        query("pk = :p AND sk <= :hi"),
        query("pk = :p AND sk <> :hi"),
        "KeyConditionExpression",
    ),
    "both bounds": Limit(
        "dynamodb.query",
        query("pk = :p AND sk BETWEEN :lo AND :hi"),
        query("pk = :p AND sk > :lo AND sk < :hi"),
        "KeyConditionExpression",
    ),
    "a prefix": Limit(
        "dynamodb.query",
        query("pk = :p AND begins_with(sk, :lo)"),
        query("pk = :p AND contains(sk, :lo)"),
        "KeyConditionExpression",
    ),
    "AND alone": Limit(
        "dynamodb.query",
        query("(pk = :p) AND (sk = :hi)"),
        query("pk = :p OR pk = :q"),
        "KeyConditionExpression",
    ),
    "values alone": Limit("dynamodb.query", query(":p = pk"), query("pk = a"), "KeyConditionExpression"),
    "values of the key's type": Limit(
        "dynamodb.query", query("pk = :p"), query("pk = :n"), "KeyConditionExpression"
    ),
    "values that are not empty": Limit(
        "dynamodb.query",
        query("pk = :p"),
        query("pk = :p", values={":p": {"S": ""}}),
        "KeyConditionExpression",
    ),
    "the table's key": Limit(
        "dynamodb.query",
        query("armed_shard = :p", IndexName="armed"),
        query("armed_shard = :p"),
        "KeyConditionExpression",
    ),
    "a range on a key attribute": Limit(
        "dynamodb.query", query("pk = :p AND sk > :lo"), query("pk = :p AND a > :n"), "KeyConditionExpression"
    ),
    "a condition at all": Limit(
        "dynamodb.query", query("pk = :p"), {"TableName": "relay-owed"}, "KeyConditionExpression"
    ),
    "a filter beside the key": Limit(
        "dynamodb.query",
        query("pk = :p", FilterExpression="a > :a"),
        query("pk = :p", FilterExpression="a > :a OR sk = :n"),
        "FilterExpression",
    ),
    "a filter beside the index's key": Limit(
        "dynamodb.query",
        query("armed_shard = :p", IndexName="armed", FilterExpression="pk = :n"),
        query("armed_shard = :p", IndexName="armed", FilterExpression="armed_shard = :n"),
        "FilterExpression",
    ),
    "no consistent read of a global index": Limit(
        "dynamodb.query",
        query("armed_shard = :p", IndexName="armed") | {"TableName": "relay-gates"},
        query("armed_shard = :p", IndexName="armed", ConsistentRead=True) | {"TableName": "relay-gates"},
        "ConsistentRead",
    ),
}
PLACEHOLDERS = {
    "a name that is used": Limit(
        "dynamodb.update_item",
        update("SET #a = :x", names={"#a": "hold"}),
        update("SET #a = :x", names={"#a": "hold", "#b": "ttl"}),
        "ExpressionAttributeNames",
    ),
    "a name that is defined": Limit(
        "dynamodb.update_item",
        update("SET #a = :x", names={"#a": "hold"}),
        update("SET #a = :x, #b = :y", names={"#a": "hold"}),
        "UpdateExpression",
    ),
    "a value that is used": Limit(
        "dynamodb.update_item",
        update("SET a = :x"),
        update("SET a = :x", values={":y": N}),
        "ExpressionAttributeValues",
    ),
    "a value that is defined": Limit(
        "dynamodb.update_item",
        update("SET a = :x"),
        {"TableName": "relay-owed", "Key": KEY, "UpdateExpression": "SET a = :x"},
        "UpdateExpression",
    ),
    "a value used by any expression": Limit(
        "dynamodb.update_item",
        update("SET a = :x", ConditionExpression="a < :y"),
        update("SET a = :x", ConditionExpression="a < :y", values={":z": N}),
        "ExpressionAttributeValues",
    ),
    "names only with something in it": Limit(
        "dynamodb.update_item",
        update("SET a = :x"),
        update("SET a = :x") | {"ExpressionAttributeNames": {}},
        "ExpressionAttributeNames",
    ),
    "values only with something in it": Limit(
        "dynamodb.update_item",
        update("REMOVE a"),
        update("REMOVE a") | {"ExpressionAttributeValues": {}},
        "ExpressionAttributeValues",
    ),
    "a well-formed name": Limit(
        "dynamodb.update_item",
        update("SET #_1 = :x", names={"#_1": "hold"}),
        update("SET a = :x", names={"hold": "hold"}),
        "ExpressionAttributeNames",
    ),
    "a name of 255": Limit(
        "dynamodb.update_item",
        update(f"SET #{'a' * 254} = :x", names={f"#{'a' * 254}": "b"}),
        update(f"SET #{'a' * 255} = :x", names={f"#{'a' * 255}": "b"}),
        "ExpressionAttributeNames",
    ),
    "a value that can be stored": Limit(
        "dynamodb.update_item",
        update("SET a = :x", values={":x": {"SS": ["a"]}}),
        update("SET a = :x", values={":x": {"SS": []}}),
        "ExpressionAttributeValues.:x",
    ),
    "values of 2 MB": Limit(
        "dynamodb.scan",
        scan("a = :x", values={":x": {"S": "x" * 2_097_152}}),
        scan("a = :x", values={":x": {"S": "x" * 2_097_153}}),
        "ExpressionAttributeValues",
    ),
}
SHAPES = {
    "an update of 4 KB": Limit(
        "dynamodb.update_item",
        update(f"REMOVE {'a' * 4_089}"),
        update(f"REMOVE {'a' * 4_090}"),
        "UpdateExpression",
    ),
    "300 operators": Limit(
        "dynamodb.delete_item",
        delete_if(ors(150)),
        delete_if(f"{ors(150)} OR NOT a = :v0"),
        "ConditionExpression",
    ),
    "100 choices": Limit(
        "dynamodb.delete_item",
        delete_if(f"a IN ({', '.join(f':v{place}' for place in range(100))})"),
        delete_if(f"a IN ({', '.join(f':v{place}' for place in range(101))})"),
        "ConditionExpression",
    ),
    "an order only where there is one": Limit(
        "dynamodb.delete_item",
        delete_if("a = :x", values={":x": {"BOOL": True}}),
        delete_if("a < :x", values={":x": {"BOOL": True}}),
        "ConditionExpression",
    ),
    "bounds in order": Limit(
        "dynamodb.delete_item",
        delete_if("a BETWEEN :x AND :y", {":x": {"N": "9"}, ":y": {"N": "10"}}),
        delete_if("a BETWEEN :x AND :y", {":x": {"S": "9"}, ":y": {"S": "10"}}),
        "ConditionExpression",
    ),
    "bounds of one type": Limit(
        "dynamodb.delete_item",
        delete_if("a BETWEEN :x AND :y", {":x": {"B": b"a"}, ":y": {"B": b"a"}}),
        delete_if("a BETWEEN :x AND :y", {":x": {"B": b"a"}, ":y": {"S": "a"}}),
        "ConditionExpression",
    ),
    "sums of numbers": Limit(
        "dynamodb.update_item",
        update("SET a = a + :x"),
        update("SET a = a + :x", values={":x": S}),
        "UpdateExpression",
    ),
    "an expiry that is a number": Limit(
        "dynamodb.update_item",
        update("SET #t = if_not_exists(#t, :x)", names={"#t": "ttl"}),
        update("SET #t = if_not_exists(#t, :x)", names={"#t": "ttl"}, values={":x": S}),
        "UpdateExpression",
    ),
    "a projection without overlaps": Limit(
        "dynamodb.get_item", get("a.b, a.c, d[0]"), get("a.b, a"), "ProjectionExpression"
    ),
    "a projection without reserved words": Limit(
        "dynamodb.get_item", get("a, #n", names={"#n": "name"}), get("a, name"), "ProjectionExpression"
    ),
    "an update that writes 400 KB": Limit(
        "dynamodb.update_item",
        update("SET a.b = :x REMOVE cd", values={":x": {"S": "x" * (409_600 - 3 - 19 - 6 - 3)}}),
        update("SET a.b = :x REMOVE cd", values={":x": {"S": "x" * (409_600 - 3 - 19 - 6 - 2)}}),
        "UpdateExpression",
    ),
    "an index's key that is not empty": Limit(
        "dynamodb.update_item",
        update("SET armed_shard = :x", values={":x": S}) | {"TableName": "relay-gates", "Key": {"pk": S}},
        update("SET armed_shard = :x", values={":x": {"S": ""}})
        | {"TableName": "relay-gates", "Key": {"pk": S}},
        "UpdateExpression",
    ),
}


@pytest.mark.parametrize("expression", GOOD_UPDATES)
def test_an_update_that_dynamodb_takes_passes(expression: str) -> None:
    call(
        "dynamodb.update_item",
        update(expression, values={":s": {"SS": ["x"]}} if ":s" in expression.split() else {}),
    )


@pytest.mark.parametrize("expression,rule", BAD_UPDATES.items(), ids=BAD_UPDATES)
def test_an_update_that_dynamodb_refuses_is_refused(expression: str, rule: str) -> None:
    refusal = refusal_of("dynamodb.update_item", update(expression))
    assert refusal.parameter == "UpdateExpression"
    assert rule in refusal.rule


@pytest.mark.parametrize("expression", GOOD_CONDITIONS)
def test_a_condition_that_dynamodb_takes_passes(expression: str) -> None:
    call("dynamodb.delete_item", delete_if(expression))
    call("dynamodb.scan", scan(expression))


@pytest.mark.parametrize("expression,rule", BAD_CONDITIONS.items(), ids=BAD_CONDITIONS)
def test_a_condition_that_dynamodb_refuses_is_refused(expression: str, rule: str) -> None:
    refusal = refusal_of("dynamodb.delete_item", delete_if(expression))
    assert refusal.parameter == "ConditionExpression"
    assert rule in refusal.rule
    assert refusal_of("dynamodb.scan", scan(expression)).parameter == "FilterExpression"


@pytest.mark.parametrize("limit", KEY_CONDITIONS.values(), ids=KEY_CONDITIONS)
def test_a_query_says_what_a_key_condition_can_say(limit: Limit) -> None:
    limit.check()


@pytest.mark.parametrize("limit", PLACEHOLDERS.values(), ids=PLACEHOLDERS)
def test_placeholders_are_defined_and_used(limit: Limit) -> None:
    limit.check()


@pytest.mark.parametrize("limit", SHAPES.values(), ids=SHAPES)
def test_an_expression_keeps_to_the_limits_of_dynamodb(limit: Limit) -> None:
    limit.check()


def test_all_573_reserved_words_are_known() -> None:
    assert len(RESERVED) == 573
    assert {
        "ABORT",
        "COUNT",
        "HOLD",
        "LAST",
        "NAME",
        "STATE",
        "STATUS",
        "TIMESTAMP",
        "TTL",
        "ZONE",
    } <= RESERVED


@given(st.sampled_from(sorted(RESERVED)), st.booleans())
def test_a_reserved_word_needs_a_placeholder_in_any_case(word: str, lower: bool) -> None:  # noqa: FBT001
    written = word.lower() if lower else word
    assert "reserved" in refusal_of("dynamodb.update_item", update(f"SET a.{written} = :x")).rule
    call("dynamodb.update_item", update("SET a.#w = :x", names={"#w": written}))


@given(
    st.recursive(
        st.sampled_from(["a = :x", "b < :y", "attribute_exists(c)"]),
        lambda inner: st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(
            lambda parts: f"({parts[0]}) {parts[1]} ({parts[2]})"
        ),
        max_leaves=8,
    )
)
def test_parentheses_are_redundant_exactly_when_doubled(condition: str) -> None:
    values = {name: N for name in (":x", ":y") if name in condition}
    call("dynamodb.delete_item", delete_if(f"({condition})", values=values))
    refusal = refusal_of("dynamodb.delete_item", delete_if(f"(({condition}))", values=values))
    assert refusal.rule == "has redundant parentheses"
