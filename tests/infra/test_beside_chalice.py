"""What `chalice deploy` finds made: the stack beside it, and a copy of the app that names what is there."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from infra import policy
from infra.deploying import chalice_copy
from infra.deploying.account import Account
from infra.deploying.beside_chalice import deployed_name, role_output, template
from infra.deploying.chalice_copy import ChaliceCopy
from infra.deploying.stage import Stage
from infra.functions import FUNCTIONS, Function
from tests.infra.test_lint import CFN_LINT

EACH = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
STAGE = Stage("trial", "relay-trial-", "eu-central-1", {"NotifyReservedConcurrency": "-1"}, {})
NETWORK = {"EgressSubnetAId": "subnet-a", "EgressSubnetBId": "subnet-b", "EgressSecurityGroupId": "sg-1"}
OUTPUTS = {
    **NETWORK,
    **{role_output(each): f"arn:aws:iam::000000000000:role/{each.name}" for each in FUNCTIONS},
    "AuditBucketName": "audit",
    "NoticesTopicArn": "arn:aws:sns:eu-central-1:000000000000:notices",
    "PayloadsBucketName": "payloads",
}


@pytest.fixture(scope="module")
def beside() -> dict[str, Any]:
    return template(STAGE.name)


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packaged: object) -> ChaliceCopy:
    """Give a copy in a folder of its own; the dependencies have been fetched for the package."""
    monkeypatch.setattr(chalice_copy, "folder", lambda stage: tmp_path / stage.name)
    monkeypatch.setattr(chalice_copy, "deployed", lambda stage: tmp_path / "deployed" / f"{stage.name}.json")
    return ChaliceCopy(STAGE, Account(STAGE.region), OUTPUTS, "0" * 64)


def configured(written: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((written / ".chalice" / "config.json").read_text(encoding="utf-8"))
    return config


def test_the_stack_has_all_of_the_one_stack_that_is_no_function(
    beside: dict[str, Any], template: dict[str, Any]
) -> None:
    kinds = ("AWS::Serverless::", "AWS::Lambda::")
    whole = {name for name, each in template["Resources"].items() if not each["Type"].startswith(kinds)}
    assert whole - beside["Resources"].keys() <= {name for name in whole if name.startswith("EndpointAPI")}


@EACH
def test_each_role_has_the_policy_of_its_function_and_the_log_that_chalice_names(
    beside: dict[str, Any], function: Function
) -> None:
    name = deployed_name(function, STAGE.name)
    (kept,) = beside["Resources"][function.role_id]["Properties"]["Policies"]
    logs, *rest = kept["PolicyDocument"]["Statement"]
    assert rest == policy.document(function)["Statement"][1:]
    assert logs["Resource"]["Fn::Sub"].endswith(f":/aws/lambda/{name}:*")
    group = beside["Resources"][f"{function.logical_id}LogGroup"]["Properties"]
    assert group == {"LogGroupName": f"/aws/lambda/{name}", "RetentionInDays": {"Ref": "LogRetentionDays"}}


def test_no_code_of_a_function_makes_interfaces_in_its_network(beside: dict[str, Any]) -> None:
    statements = beside["Resources"]["EgressInterfacesPolicy"]["Properties"]["PolicyDocument"]["Statement"]
    (denied,) = [each for each in statements if each["Effect"] == "Deny"]
    functions = denied["Condition"]["ArnLike"]["lambda:SourceFunctionArn"]["Fn::Sub"]
    assert functions.endswith(":function:relay-trial*")


def test_the_stack_is_one_that_cloudformation_takes(beside: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "beside.json"
    path.write_text(json.dumps(beside), encoding="utf-8")
    linted = subprocess.run([CFN_LINT, path], capture_output=True, text=True, check=False)
    assert linted.returncode == 0, linted.stdout


def test_the_copy_names_what_the_stack_has_made(copy: ChaliceCopy) -> None:
    about = configured(copy.write())["stages"][STAGE.name]["lambda_functions"]
    assert about.keys() == {each.name for each in FUNCTIONS}
    for function in FUNCTIONS:
        one = about[function.name]
        assert (one["manage_iam_role"], one["iam_role_arn"]) == (False, OUTPUTS[role_output(function)])
        assert one["environment_variables"]["RELAY_RESOURCE_PREFIX"] == STAGE.prefix
        assert one.get("reserved_concurrency") == (None if function.name == "notify" else function.most)
        inside = (["subnet-a", "subnet-b"], ["sg-1"]) if function.sends else (None, None)
        assert (one.get("subnet_ids"), one.get("security_group_ids")) == inside
    assert about["notify"]["environment_variables"]["RELAY_NOTICES_TOPIC_ARN"] == OUTPUTS["NoticesTopicArn"]
    assert about["api_handler"]["environment_variables"]["RELAY_PAYLOAD_BUCKET"] == "payloads"


def test_the_copy_is_fed_by_the_queues_of_its_stage(copy: ChaliceCopy) -> None:
    text = (copy.write() / "app.py").read_text(encoding="utf-8")
    assert text.count(f'queue="{STAGE.prefix}') == sum(bool(each.queue) for each in FUNCTIONS)


def test_an_operator_whom_nobody_names_stays_and_so_does_what_chalice_knows(copy: ChaliceCopy) -> None:
    written = copy.write()
    noted = written / ".chalice" / "deployed" / "trial.json"
    noted.write_text("{}", encoding="utf-8")
    ChaliceCopy(STAGE, Account(STAGE.region), OUTPUTS).write()
    kept = configured(written)["stages"][STAGE.name]["lambda_functions"]["api_handler"]
    assert kept["environment_variables"]["RELAY_OPERATOR_KEY_SHA256"] == "0" * 64
    assert noted.read_text(encoding="utf-8") == "{}"
