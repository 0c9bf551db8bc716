"""What each function may do, and that it may do no more."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from infra import policy
from infra.functions import FUNCTIONS, GET, INSERT_ALONE, PUT, QUERY, ROLES_OF_OTHERS, SEND, Function
from infra.template import HERE
from tests.infra.lookup import QUEUE, of_type

EACH = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
NAMED = {function.name: function for function in FUNCTIONS}


def statements(function: Function) -> list[dict[str, Any]]:
    written: dict[str, Any] = json.loads(policy.path(function).read_text(encoding="utf-8"))
    listed: list[dict[str, Any]] = written["Statement"]
    return listed


def allowed(function: Function, resource: Mapping[str, Any]) -> set[str]:
    return {
        action
        for statement in statements(function)
        if statement["Resource"] == resource
        for action in statement["Action"]
    }


def arn(resource: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [resource, "Arn"]}


def test_the_files_are_what_the_table_says_and_no_others() -> None:
    files = {path.name: path.read_text(encoding="utf-8") for path in policy.POLICIES.iterdir()}
    expected = {policy.path(function).name: policy.text(function) for function in FUNCTIONS}
    assert files == expected, "run `python -m infra.policy`"


def test_every_configured_function_uses_its_own_policy() -> None:
    config = json.loads((HERE.parent / ".chalice" / "config.json").read_text(encoding="utf-8"))
    (stage,) = config["stages"].values()
    used = {name: about["iam_policy_file"] for name, about in stage["lambda_functions"].items()}
    assert used == {name: f"../infra/policies/{name}.json" for name in NAMED}
    assert config["autogen_policy"] is False


@EACH
def test_no_action_is_a_wildcard(function: Function) -> None:
    for statement in statements(function):
        assert statement["Effect"] == "Allow"
        assert not [action for action in statement["Action"] if "*" in action]


@EACH
def test_no_resource_is_a_wildcard_but_log_streams_payloads_and_roles_of_others(function: Function) -> None:
    for resource in (statement["Resource"] for statement in statements(function)):
        text = resource.get("Fn::Sub", "")
        whole = text.removesuffix(":*") if ":log-group:" in text else text
        whole = whole.replace(ROLES_OF_OTHERS, "")
        for bucket in ("PayloadsBucket", "AuditBucket"):
            whole = whole.replace(f"${{{bucket}.Arn}}/*", "")
        assert "*" not in whole


@EACH
def test_every_resource_is_one_of_the_template(function: Function, source: dict[str, Any]) -> None:
    for grant in function.grants:
        assert grant.resource in {*source["Resources"], ROLES_OF_OTHERS}


@EACH
def test_whoever_rings_replays_rings_those_of_what_is_in_aws(function: Function) -> None:
    rings = [queue for queue in ("ReplayQueue", "CloudQueue") if SEND[1] in allowed(function, arn(queue))]
    assert rings != ["ReplayQueue"]


def test_one_function_alone_assumes_roles_and_only_those_named_for_relay() -> None:
    assert ROLES_OF_OTHERS == "arn:${AWS::Partition}:iam::*:role/relay-deliver-*"
    assuming = {
        name: [each for each in statements(function) if "sts:AssumeRole" in each["Action"]]
        for name, function in NAMED.items()
    }
    alone = {"Effect": "Allow", "Action": ["sts:AssumeRole"], "Resource": {"Fn::Sub": ROLES_OF_OTHERS}}
    assert {name: found for name, found in assuming.items() if found} == {"deliver_cloud": [alone]}


@EACH
def test_history_is_append_only(function: Function) -> None:
    changing = {
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
        "dynamodb:PartiQLUpdate",
        "dynamodb:PartiQLDelete",
    }
    may = {
        "retention": {"dynamodb:PartiQLUpdate"},
        "purge": {"dynamodb:PartiQLDelete"},
    }
    assert allowed(function, arn("HistoryTable")) & changing == may.get(function.name, set())


@EACH
def test_nobody_changes_or_removes_what_the_audit_has(function: Function) -> None:
    may = allowed(function, arn("AuditTable"))
    assert may <= {GET, QUERY, PUT, INSERT_ALONE}
    assert allowed(function, {"Fn::Sub": "${AuditBucket.Arn}/*"}) <= {"s3:PutObject"}


@EACH
def test_a_function_takes_messages_of_its_own_queue_alone(function: Function, source: dict[str, Any]) -> None:
    taken = {
        queue for queue in of_type(source, QUEUE) if "sqs:ReceiveMessage" in allowed(function, arn(queue))
    }
    assert taken == ({function.queue} if function.queue else set())


def test_only_the_api_wraps_secrets_and_only_senders_unwrap_them() -> None:
    wraps = {
        name for name, function in NAMED.items() if "kms:Encrypt" in allowed(function, arn("SecretsKey"))
    }
    unwraps = {
        name for name, function in NAMED.items() if "kms:Decrypt" in allowed(function, arn("SecretsKey"))
    }
    assert wraps == {"api_handler"}
    senders = {name for name in NAMED if name.startswith("deliver_")}
    assert unwraps == wraps | senders - {"deliver_cloud"}, "what is in AWS has no secret"


def test_only_the_api_writes_subscriptions_and_keys_and_only_a_purge_removes_them() -> None:
    writes = {"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"}
    for table in ("SubsTable", "TenantsTable", "IdempotencyTable"):
        writers = {name for name, function in NAMED.items() if allowed(function, arn(table)) & writes}
        assert writers - {"purge"} == {"api_handler"}
        assert "dynamodb:PutItem" not in allowed(NAMED["purge"], arn(table))


def test_the_api_deletes_nothing_but_keys() -> None:
    found = statements(NAMED["api_handler"])
    deleting = [each for each in found if any("Delete" in action for action in each["Action"])]
    assert [each["Resource"] for each in deleting] == [arn("TenantsTable")]


@EACH
def test_who_reads_payloads_is_told_when_one_is_gone(function: Function) -> None:
    """Without the right to list, S3 says forbidden of what is not there."""
    reads = "s3:GetObject" in allowed(function, {"Fn::Sub": "${PayloadsBucket.Arn}/*"})
    lists = "s3:ListBucket" in allowed(function, arn("PayloadsBucket"))
    assert lists is (reads or function.name in {"retention", "purge"})


def _lengths() -> Iterator[int]:
    return (len("".join(policy.text(function).split())) for function in FUNCTIONS)


def test_every_policy_fits_into_a_role() -> None:
    assert max(_lengths()) < 10_240
