"""The stack beside `chalice deploy`: all of Relay that is no function, and each function's role and log.

Chalice makes functions, event sources, schedules and the API by calls of its own. It can make no table, and
a policy that names what a template has it hands on as it is; so the roles are the stack's too.
"""

from functools import reduce
from typing import Any, Final

from infra import policy
from infra.functions import FUNCTIONS, Function
from infra.overlay import attached
from infra.template import MERGE, NETWORK, RESOURCES, merge, read
from infra.watching import alarms, cloudwatch

SUFFIX: Final = "-beside-chalice"
"""Ends the stack's name: a stage is deployed in one stack, or with this one beside chalice."""
_APP: Final = "relay"
_RETENTION: Final = "LogRetentionDays"
_TRUST: Final = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ],
}
_OF_FUNCTIONS: Final = frozenset({"OperatorKeySha256"})
_NETWORK: Final = {
    "EgressSecurityGroupId": "EgressSecurityGroup",
    "EgressSubnetAId": "EgressSubnetA",
    "EgressSubnetBId": "EgressSubnetB",
}


def deployed_name(function: Function, stage: str) -> str:
    """Give the name that chalice gives a function."""
    return f"{_APP}-{stage}" if function.name == "api_handler" else f"{_APP}-{stage}-{function.name}"


def role_output(function: Function) -> str:
    """Name the output that has the ARN of a function's role."""
    return f"{function.role_id}Arn"


def template(stage: str) -> dict[str, Any]:
    """Give the stack's template; its parameters are those of the whole that concern no function."""
    functions = [_of(function, stage) for function in FUNCTIONS]
    pieces = [read(NETWORK), _of_no_function(read(MERGE)), alarms.resources(), cloudwatch.resources()]
    described = reduce(merge, [*pieces, *functions], read(RESOURCES))
    network = {
        name: {"Condition": "InNetwork", "Value": {"Ref": logical_id}}
        for name, logical_id in _NETWORK.items()
    }
    _deny_interfaces(described, stage)
    return merge(described, {"Outputs": network})


def _of_no_function(by_hand: dict[str, Any]) -> dict[str, Any]:
    """Give what is written by hand and neither a function's nor the API's."""
    made_by_chalice = {"RestAPI", *(each.logical_id for each in FUNCTIONS)}
    resources = {name: each for name, each in by_hand["Resources"].items() if name not in made_by_chalice}
    parameters = {name: each for name, each in by_hand["Parameters"].items() if name not in _OF_FUNCTIONS}
    return {"Parameters": parameters, "Conditions": by_hand["Conditions"], "Resources": resources}


def _of(function: Function, stage: str) -> dict[str, Any]:
    """Give what the stack has for a function."""
    name = deployed_name(function, stage)
    log_group = {"LogGroupName": f"/aws/lambda/{name}", "RetentionInDays": {"Ref": _RETENTION}}
    resources = {
        function.role_id: {"Type": "AWS::IAM::Role", "Properties": _role(function, name)},
        f"{function.logical_id}LogGroup": {
            "Type": "AWS::Logs::LogGroup",
            "DeletionPolicy": "Delete",
            "UpdateReplacePolicy": "Delete",
            "Properties": log_group,
        },
    }
    arn = {"Fn::GetAtt": [function.role_id, "Arn"]}
    return {"Resources": resources, "Outputs": {role_output(function): {"Value": arn}}}


def _role(function: Function, name: str) -> dict[str, Any]:
    """Give a role with the function's policy."""
    document = policy.document(function, name)
    return {
        "AssumeRolePolicyDocument": _TRUST,
        "Policies": [{"PolicyName": "asks", "PolicyDocument": document}],
        **attached(function)[function.role_id]["Properties"],
    }


def _deny_interfaces(described: dict[str, Any], stage: str) -> None:
    """Keep the code of functions from their network's interfaces, by the names that chalice gives them."""
    _, denied = described["Resources"]["EgressInterfacesPolicy"]["Properties"]["PolicyDocument"]["Statement"]
    functions = (
        f"arn:${{AWS::Partition}}:lambda:${{AWS::Region}}:${{AWS::AccountId}}:function:{_APP}-{stage}*"
    )
    denied["Condition"] = {"ArnLike": {"lambda:SourceFunctionArn": {"Fn::Sub": functions}}}
