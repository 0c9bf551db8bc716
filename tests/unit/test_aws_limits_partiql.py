from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.aws_limits import Limit, Params, call, refusal_of

S = {"S": "x"}
N = {"N": "1"}
OWED = '"relay-owed"'
GATES = '"relay-gates"'
SUBS = '"relay-subs"'
WHOLE = "pk=? AND sk=?"


def statement(text: str, *parameters: Params) -> Params:
    """Give every question mark a text, unless parameters are given."""
    given_ = list(parameters) or [S] * text.count("?")
    return {"Statement": text, **({"Parameters": given_} if given_ else {})}


def batch(*statements: str | Params) -> Params:
    return {"Statements": [one if isinstance(one, dict) else statement(one) for one in statements]}


def transaction(*statements: str | Params) -> Params:
    return {"TransactStatements": batch(*statements)["Statements"]}


def update(clauses: str, where: str = "pk='p'", *parameters: Params) -> Params:
    return statement(f"UPDATE {GATES} {clauses} WHERE {where}", *parameters)


def insert(key: str, table: str = SUBS) -> str:
    return f"INSERT INTO {table} VALUE {{'pk':'{key}'}}"


def delete(key: str) -> str:
    return f"DELETE FROM {SUBS} WHERE pk='{key}'"


def select(key: str) -> str:
    return f"SELECT * FROM {SUBS} WHERE pk='{key}'"


def filler(length: int) -> str:
    text = f"SELECT * FROM {SUBS} WHERE pk=''"
    return text[:-1] + "x" * (length - len(text)) + "'"


GATE_STATEMENTS = [
    (
        f"""UPDATE {GATES} SET tat=? SET slots=slots-? SET seen=? SET L0=?
        WHERE pk=? AND st=? AND tat<=? AND slots>=? AND L0 IS MISSING AND hold_at IS MISSING
        RETURNING ALL NEW *""",
        [N, N, N, {"M": {"h": S, "u": N}}, S, S, N, N],
    ),
    (f"UPDATE {GATES} SET tat=tat+? WHERE pk=? AND tat>? AND tat<=? RETURNING ALL NEW *", [N, S, N, N]),
    (f"UPDATE {GATES} SET slots=slots+? REMOVE L0 WHERE pk=? AND L0.h=? RETURNING ALL NEW *", [N, S, S]),
    (f"UPDATE {GATES} SET tat=tat+? WHERE pk=? AND (L0 IS MISSING AND NOT L1.u<=?)", [N, S, N]),
    (f"SELECT * FROM {GATES} WHERE pk=? AND (L0 IS MISSING OR L0.u<=?)", [S, N]),
    (f"UPDATE {GATES} SET L0.u=? SET L0.n=L0.n-? WHERE pk=? AND L0.h=?", [N, N, S, S]),
    (f"UPDATE {GATES} SET a=?, b=? WHERE pk=?", [N, N, S]),
    (f'UPDATE {GATES} SET "status"=?, "ttl"=? WHERE pk=? AND "hold" IS NOT MISSING', [S, N, S]),
    (f"UPDATE {GATES} SET a=list_append(a, ?) REMOVE b, c.d WHERE pk=?;", [{"L": [S]}, S]),
    (f"UPDATE {GATES} SET a=SET_ADD(a, <<'x','y'>>) SET b=set_delete(b, ?) WHERE pk=?", [{"NS": ["1"]}, S]),
    (f"UPDATE {GATES} SET a={{'b':[1,-2.5e3,true,null,'it''s']}} WHERE ?=pk", [S]),
    (f"INSERT INTO {OWED} VALUE {{'pk':?,'sk':?,'ttl':?,'status':'x','a':{{'b':<<1,2>>}}}}", [S, S, N]),
    (f"DELETE FROM {OWED} WHERE (pk=? AND sk=?) AND NOT tat=? RETURNING ALL OLD *", [S, S, N]),
    (f"DELETE FROM {OWED} WHERE {WHOLE} AND attribute_exists(a.b) AND begins_with(c, 'x')", [S, S]),
    (f"SELECT pk, a.b[0] FROM {OWED} WHERE pk=? AND sk BETWEEN ? AND ? ORDER BY sk DESC", [S, S, S]),
    (f'SELECT * FROM {GATES}."armed" WHERE armed_shard=? AND armed_until<=? -- soon', [S, N]),
    (f"SELECT * FROM {OWED} /* all */ WHERE pk IN [?, 'x'] AND a != 1", [S]),
]
BAD_STATEMENTS = {
    update("SET a=a*?", "pk='p'", N)["Statement"]: "only + and -",
    update("SET a=a/2")["Statement"]: "only + and -",
    update("SET a=a+1-2")["Statement"]: "only one + or -",
    update("SET a=a+'x'")["Statement"]: "+ cannot take a value of type S",
    update("SET a=1", "pk='p' AND a+1<2")["Statement"]: "no arithmetic",
    update("SET a=1", "pk='p' AND a<2-1")["Statement"]: "no arithmetic",
    update("SET a=1", "pk='p' AND ((b=1))")["Statement"]: "redundant parentheses",
    update("SET a=1 SET a=2")["Statement"]: "overlap",
    update("SET a=1, a.b=2")["Statement"]: "overlap",
    update("SET a.b=1 REMOVE a")["Statement"]: "overlap",
    update("SET pk='q'")["Statement"]: "pk is part of the key",
    update("SET status='x'")["Statement"]: "status is a reserved word and must stand in double quotes",
    update("SET a=1", "pk='p' AND hold IS MISSING")["Statement"]: "hold is a reserved word",
    update("SET ttl=1")["Statement"]: "reserved word",
    update("SET \"ttl\"='x'")["Statement"]: "must be a number",
    update("SET a=<<>>")["Statement"]: "at least one",
    update("SET a=<<1,'x'>>")["Statement"]: "either texts or numbers",
    update("SET a=<<1,1.0>>")["Statement"]: "twice",
    update("SET a=1e126")["Statement"]: "range of numbers",
    update("SET a=if_not_exists(a, 1)")["Statement"]: "knows no function if_not_exists",
    update("SET a=set_add(b, <<1>>)")["Statement"]: "must be the attribute that is set",
    update("SET a=set_add(a, 1)")["Statement"]: "set_add cannot take a value of type N",
    update("SET a=1", "a=1")["Statement"]: "pk equals",
    update("SET a=1", "pk>'p'")["Statement"]: "pk equals",
    update("SET a=1", "pk='p' OR a=1")["Statement"]: "pk equals",
    update("SET a=1", "pk='p' AND (a=1 OR b=1)")["Statement"]: "no OR",
    f"DELETE FROM {SUBS} WHERE pk='p' AND NOT (a=1 OR b=1)": "no OR",
    update("SET a=1", "NOT pk='p'")["Statement"]: "pk equals",
    update("SET a=1", "pk IN ['p']")["Statement"]: "pk equals",
    update("SET a=1", "pk='p' AND pk='q'")["Statement"]: "two things",
    update("SET a=1", "pk=''")["Statement"]: "must not be empty",
    update("SET a=1", "pk=1")["Statement"]: "must be S",
    update("SET armed_shard=''")["Statement"]: "must not be empty",
    f"UPDATE {GATES} SET a=1": "pk equals",
    f"UPDATE {OWED} SET a=1 WHERE pk='p'": "sk equals",
    f"DELETE FROM {OWED} WHERE sk='s'": "pk equals",
    f"DELETE FROM {SUBS} WHERE pk='p' RETURNING ALL NEW *": "cannot return ALL NEW",
    f"DELETE FROM {SUBS} WHERE pk='p' ORDER BY pk": "nothing more",
    f"INSERT INTO {OWED} VALUE {{'pk':'p'}}": "lacks the key attribute sk",
    f"INSERT INTO {SUBS} VALUE {{'pk':'p','pk':'q'}}": "twice",
    f"INSERT INTO {SUBS} VALUE {{'pk':'p'}} IF a": "nothing more",
    f"INSERT INTO {SUBS} VALUES ('p')": "expected VALUE",
    f"SELECT * FROM {SUBS} t WHERE pk='p'": "nothing more",
    f"SELECT * FROM {SUBS} WHERE": "expected an attribute",
    f"SELECT * FROM {SUBS} WHERE pk='p' # note": "unexpected",
    f"SELECT * FROM {SUBS} WHERE attribute_exists('a')": "needs an attribute",
    f"SELECT * FROM {SUBS} WHERE max(a)=1": "knows no function max",
    'SELECT * FROM "" WHERE pk=1': "must not be empty",
    'SELECT * FROM "ab" WHERE pk=1': "3 to 255",
    "SELECT * FROM relay-subs WHERE pk='p'": "nothing more",
    "REPLACE INTO x": "expected SELECT or INSERT or UPDATE or DELETE or EXISTS",
    f"EXISTS(SELECT * FROM {SUBS} WHERE pk='p' AND a=1)": "for transactions only",
}
PARAMETERS = {
    "a parameter for each question mark": Limit(
        "dynamodb.execute_statement",
        update("SET a=?", "pk=?", N, S),
        update("SET a=?", "pk=?", N),
        "Statement",
    ),
    "a question mark for each parameter": Limit(
        "dynamodb.execute_statement",
        update("SET a=?", "pk=?", N, S),
        update("SET a=?", "pk=?", N, S, S),
        "Statement",
    ),
    "no parameter inside a map": Limit(
        "dynamodb.execute_statement",
        update("SET a=?", "pk='p'", {"M": {"b": N}}),
        update("SET a={'b':?}", "pk='p'", N),
        "Statement",
    ),
    "no parameter inside a list": Limit(
        "dynamodb.execute_statement",
        update("SET a=list_append(a, ?)", "pk='p'", {"L": [N]}),
        update("SET a=list_append(a, [?])", "pk='p'", N),
        "Statement",
    ),
    "parameters that can be stored": Limit(
        "dynamodb.execute_statement",
        update("SET a=?", "pk='p'", {"SS": ["x"]}),
        update("SET a=?", "pk='p'", {"SS": []}),
        "Statement.Parameters[0]",
    ),
    "an item of 400 KB": Limit(
        "dynamodb.execute_statement",
        statement(f"INSERT INTO {SUBS} VALUE {{'pk':'p','a':?}}", {"S": "x" * (409_600 - 4)}),
        statement(f"INSERT INTO {SUBS} VALUE {{'pk':'p','a':?}}", {"S": "x" * (409_600 - 3)}),
        "Statement",
    ),
    "an update to 400 KB": Limit(
        "dynamodb.execute_statement",
        update("SET a=?", "pk='p'", {"S": "x" * (409_600 - 4)}),
        update("SET a=?", "pk='p'", {"S": "x" * (409_600 - 3)}),
        "Statement",
    ),
    "a literal of 32 levels": Limit(
        "dynamodb.execute_statement",
        update(f"SET a={'[' * 31}1{']' * 31}"),
        update(f"SET a={'[' * 32}1{']' * 32}"),
        "Statement[0]" + "[0]" * 31,
    ),
    "a statement of 8,192 characters": Limit(
        "dynamodb.execute_statement",
        {"Statement": "SELECT * FROM abc" + " " * (8_192 - 17)},
        {"Statement": "SELECT * FROM abc" + " " * (8_193 - 17)},
        "Statement",
    ),
    "no consistent read of a global index": Limit(
        "dynamodb.execute_statement",
        {"Statement": f'SELECT * FROM {GATES}."armed"'},
        {"Statement": f'SELECT * FROM {GATES}."armed"', "ConsistentRead": True},
        "ConsistentRead",
    ),
}
BATCHES = {
    "25 statements": Limit(
        "dynamodb.batch_execute_statement",
        batch(*(insert(f"k{place}") for place in range(25))),
        batch(*(insert(f"k{place}") for place in range(26))),
        "Statements",
    ),
    "all reads or all writes": Limit(
        "dynamodb.batch_execute_statement",
        batch(insert("a"), delete("b")),
        batch(insert("a"), select("b")),
        "Statements",
    ),
    "distinct items": Limit(
        "dynamodb.batch_execute_statement",
        batch(insert("a"), delete("b")),
        batch(insert("a"), delete("b"), update("SET a=1"), delete("a")),
        "Statements[3]",
    ),
    "distinct reads": Limit(
        "dynamodb.batch_execute_statement",
        batch(select("a"), select("b")),
        batch(select("a"), select("a")),
        "Statements[1]",
    ),
    "reads by the key and nothing else": Limit(
        "dynamodb.batch_execute_statement",
        batch(select("a")),
        batch(f"{select('a')} AND b=1"),
        "Statements[0].Statement",
    ),
    "reads by the whole key": Limit(
        "dynamodb.batch_execute_statement",
        batch(f"SELECT * FROM {OWED} WHERE {WHOLE}"),
        batch(f"SELECT * FROM {OWED} WHERE pk=?"),
        "Statements[0].Statement",
    ),
    "no reads of an index": Limit(
        "dynamodb.batch_execute_statement",
        batch(f"SELECT * FROM {GATES} WHERE pk='p'"),
        batch(f"SELECT * FROM {GATES}.armed WHERE pk='p'"),
        "Statements[0].Statement",
    ),
    "a statement of 8,192 characters": Limit(
        "dynamodb.batch_execute_statement",
        batch(filler(2_000)),
        batch(filler(8_193)),
        "Statements[0].Statement",
    ),
    "a well-formed statement": Limit(
        "dynamodb.batch_execute_statement",
        batch(delete("a")),
        batch(delete("a"), "DELETE"),
        "Statements[1].Statement",
    ),
}
TRANSACTIONS = {
    "100 statements": Limit(
        "dynamodb.execute_transaction",
        transaction(*(insert(f"k{place}") for place in range(100))),
        transaction(*(insert(f"k{place}") for place in range(101))),
        "TransactStatements",
    ),
    "all reads or all writes": Limit(
        "dynamodb.execute_transaction",
        transaction(select("a"), select("b")),
        transaction(select("a"), insert("b")),
        "TransactStatements",
    ),
    "one statement on an item": Limit(
        "dynamodb.execute_transaction",
        transaction(insert("a"), delete("b")),
        transaction(insert("a"), delete("a")),
        "TransactStatements[1]",
    ),
    "nothing returned": Limit(
        "dynamodb.execute_transaction",
        transaction(delete("a")),
        transaction(f"{delete('a')} RETURNING ALL OLD *"),
        "TransactStatements[0].Statement",
    ),
    "EXISTS with a condition": Limit(
        "dynamodb.execute_transaction",
        transaction(f"EXISTS({select('a')} AND b IS MISSING)", insert("c")),
        transaction(f"EXISTS({select('a')})", insert("c")),
        "TransactStatements[0].Statement",
    ),
    "a token of 36": Limit(
        "dynamodb.execute_transaction",
        transaction(insert("a")) | {"ClientRequestToken": "t" * 36},
        transaction(insert("a")) | {"ClientRequestToken": "t" * 37},
        "ClientRequestToken",
    ),
}


@pytest.mark.parametrize("text,parameters", GATE_STATEMENTS)
def test_a_statement_that_dynamodb_takes_passes(text: str, parameters: list[Any]) -> None:
    call("dynamodb.execute_statement", statement(text, *parameters))


@pytest.mark.parametrize("text,rule", BAD_STATEMENTS.items(), ids=BAD_STATEMENTS)
def test_a_statement_that_dynamodb_refuses_is_refused(text: str, rule: str) -> None:
    refusal = refusal_of("dynamodb.execute_statement", statement(text, *([N] * text.count("?"))))
    assert rule in refusal.rule
    assert refusal.call == "dynamodb.ExecuteStatement"


@pytest.mark.parametrize("limit", PARAMETERS.values(), ids=PARAMETERS)
def test_a_statement_keeps_to_the_limits_of_dynamodb(limit: Limit) -> None:
    limit.check()


@pytest.mark.parametrize("limit", BATCHES.values(), ids=BATCHES)
def test_a_batch_of_statements_keeps_to_the_limits_of_dynamodb(limit: Limit) -> None:
    limit.check()


@pytest.mark.parametrize("limit", TRANSACTIONS.values(), ids=TRANSACTIONS)
def test_a_transaction_of_statements_keeps_to_the_limits_of_dynamodb(limit: Limit) -> None:
    limit.check()


@given(st.text(min_size=1, max_size=30))
def test_any_text_in_quotes_is_a_literal(text: str) -> None:
    quoted = text.replace("'", "''")
    call("dynamodb.execute_statement", {"Statement": f"DELETE FROM {SUBS} WHERE pk='{quoted}'"})


def test_a_refused_statement_never_shows_its_literals() -> None:
    text = f"SELECT * FROM {SUBS} 'whsec_secret'"
    assert "whsec_secret" not in str(refusal_of("dynamodb.execute_statement", {"Statement": text}))
