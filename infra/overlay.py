"""What is laid over the template that `chalice package` writes.

Chalice knows neither partial batch answers, nor queues of the same template, nor caps as parameters; the
hand-written rest is in merge_template.yaml. What an operator looks at is made in infra/watching.
"""

from collections.abc import Mapping
from functools import reduce
from typing import Any, Final

from infra.functions import FUNCTIONS, Function
from infra.template import MERGE, NETWORK, RESOURCES, merge, read
from infra.watching import alarms, cloudwatch

_NOTHING: Final = {"Ref": "AWS::NoValue"}
_FROM_TEMPLATE: Final[Mapping[str, Any]] = {
    "RELAY_AUDIT_BUCKET": {"Ref": "AuditBucket"},
    "RELAY_NOTICES_TOPIC_ARN": {"Ref": "NoticesTopic"},
    "RELAY_OPERATOR_KEY_SHA256": {"Ref": "OperatorKeySha256"},
    "RELAY_PAYLOAD_BUCKET": {"Ref": "PayloadsBucket"},
    "RELAY_RESOURCE_PREFIX": {"Ref": "Prefix"},
}
"""Variables whose value in .chalice/config.json only holds a place."""


def overlay(variables_of: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Give all of it; `variables_of` names each function's environment variables as configured."""
    pieces = [_piece(function, variables_of.get(function.name, {})) for function in FUNCTIONS]
    pieces += [alarms.resources(), cloudwatch.resources()]
    return reduce(merge, pieces, reduce(merge, map(read, (NETWORK, MERGE)), read(RESOURCES)))


def _piece(function: Function, variables: Mapping[str, str]) -> dict[str, Any]:
    """Give what one function adds: its caps as parameters, its log group, its properties."""
    name = function.logical_id
    log_group = {"Fn::Sub": f"/aws/lambda/${{Prefix}}{function.deployed_name}"}
    resources = {
        f"{name}LogGroup": {
            "Type": "AWS::Logs::LogGroup",
            "DeletionPolicy": "Delete",
            "UpdateReplacePolicy": "Delete",
            "Properties": {"LogGroupName": log_group, "RetentionInDays": {"Ref": "LogRetentionDays"}},
        },
        name: {"DependsOn": [f"{name}LogGroup"], "Properties": _properties(function, variables)},
        **attached(function),
    }
    if function.sends:
        resources = merge(resources, _in_network(function))
    wanted = {"Fn::Not": [{"Fn::Equals": [{"Ref": reserved(function)}, "-1"]}]}
    capped = {f"{name}Capped": {"Fn::And": [{"Condition": "OnAws"}, wanted]}}
    return {"Parameters": _parameters(function), "Conditions": capped, "Resources": resources}


def _in_network(function: Function) -> dict[str, Any]:
    """Give what puts a function into the egress network."""
    where = {
        "SecurityGroupIds": [{"Ref": "EgressSecurityGroup"}],
        "SubnetIds": [{"Ref": "EgressSubnetA"}, {"Ref": "EgressSubnetB"}],
    }
    return {function.logical_id: {"Properties": {"VpcConfig": {"Fn::If": ["InNetwork", where, _NOTHING]}}}}


def attached(function: Function) -> dict[str, Any]:
    """Give what a function's role may do besides its own policy, each under a condition."""
    traces, interfaces = {"Ref": "TracesPolicy"}, {"Ref": "EgressInterfacesPolicy"}
    traced: Any = [traces]
    untraced: Any = _NOTHING
    if function.sends:
        traced = {"Fn::If": ["InNetwork", [traces, interfaces], [traces]]}
        untraced = {"Fn::If": ["InNetwork", [interfaces], _NOTHING]}
    return {function.role_id: {"Properties": {"ManagedPolicyArns": {"Fn::If": ["Traced", traced, untraced]}}}}


def reserved(function: Function) -> str:
    """Name the parameter that caps a function."""
    return f"{function.logical_id}ReservedConcurrency"


def maximum(function: Function) -> str:
    """Name the parameter that caps a function's event source."""
    return f"{function.logical_id}MaximumConcurrency"


def _parameters(function: Function) -> dict[str, Any]:
    """Give a function's caps as parameters."""
    most = f"Most copies of {function.name} at once"
    aside = {
        "Type": "Number",
        "Default": function.most,
        "MinValue": -1,
        "Description": f"{most}, set aside for it; 0 stops it, -1 sets nothing aside.",
    }
    if not function.queue:
        return {reserved(function): aside}
    at_once = {
        "Type": "Number",
        "Default": function.most,
        "MinValue": 2,
        "MaxValue": 1000,
        "Description": f"{most} that its queue asks for; not above {reserved(function)}.",
    }
    return {reserved(function): aside, maximum(function): at_once}


def _properties(function: Function, variables: Mapping[str, str]) -> dict[str, Any]:
    """Give what is changed or added in a function's own properties."""
    capped = [f"{function.logical_id}Capped", {"Ref": reserved(function)}, _NOTHING]
    environment = {key: _FROM_TEMPLATE[key] for key in variables if key in _FROM_TEMPLATE}
    emulator = {"AWS_ENDPOINT_URL": {"Fn::If": ["OnAws", _NOTHING, {"Ref": "EndpointUrl"}]}}
    properties: dict[str, Any] = {
        "FunctionName": {"Fn::Sub": f"${{Prefix}}{function.deployed_name}"},
        "ReservedConcurrentExecutions": {"Fn::If": capped},
        "Environment": {"Variables": environment | emulator | {"RELAY_TRACES": {"Ref": "Traces"}}},
        "Tracing": {"Fn::If": ["Traced", "Active", "PassThrough"]},
    }
    return properties | ({"Events": _events(function)} if function.queue else {})


def _events(function: Function) -> dict[str, Any]:
    """Tie a function to its queue, with partial batch answers and a cap."""
    source = {
        "Queue": {"Fn::Sub": f"${{{function.queue}.Arn}}"},
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "ScalingConfig": {"Fn::If": ["OnAws", {"MaximumConcurrency": {"Ref": maximum(function)}}, _NOTHING]},
    }
    return {f"{function.logical_id}SqsEventSource": {"Properties": source}}
