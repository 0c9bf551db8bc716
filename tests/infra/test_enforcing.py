"""What the enforcing emulator holds policies against."""

import json

import pytest

from infra.local.ministack_enforcing import statement_checks


@pytest.mark.parametrize(
    "statement, check",
    [
        ("""INSERT INTO "relay-history" VALUE {'pk': ?}""", ("dynamodb:PartiQLInsert", "relay-history")),
        ("""UPDATE "relay-gates" SET tat=? WHERE pk=?""", ("dynamodb:PartiQLUpdate", "relay-gates")),
        ("""DELETE FROM "relay-owed" WHERE pk=?""", ("dynamodb:PartiQLDelete", "relay-owed")),
        ("""SELECT * FROM "relay-owed" WHERE pk=?""", ("dynamodb:PartiQLSelect", "relay-owed")),
        ("""SELECT pk FROM "t"."armed" WHERE a=?""", ("dynamodb:PartiQLSelect", "t/index/armed")),
        ("EXISTS(SELECT * FROM x)", ("dynamodb:PartiQLUnknown", "*")),
    ],
)
def test_each_statement_is_held_against_its_own_action_and_table(
    statement: str, check: tuple[str, str]
) -> None:
    alone = json.dumps({"Statement": statement}).encode()
    other = """DELETE FROM "other" WHERE pk=?"""
    batch = json.dumps({"Statements": [{"Statement": statement}, {"Statement": other}]}).encode()
    assert list(statement_checks(alone)) == [check]
    assert list(statement_checks(batch)) == [check, ("dynamodb:PartiQLDelete", "other")]
