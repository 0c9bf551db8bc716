"""Traces in the template: off unless its parameter says so; then for every function, with the permission."""

from itertools import product
from typing import Any

import pytest

from infra.functions import FUNCTIONS, Function
from tests.infra.lookup import FUNCTION, ROLE, of_type

EACH = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)


def chosen(value: Any, conditions: dict[str, bool]) -> Any:  # noqa: ANN401 - a piece of a template
    """Give what CloudFormation makes of nested conditions."""
    while isinstance(value, dict) and "Fn::If" in value:
        condition, then, otherwise = value["Fn::If"]
        value = then if conditions[condition] else otherwise
    return value


def test_they_are_off_and_on_an_emulator_whatever_the_parameter(template: dict[str, Any]) -> None:
    assert template["Parameters"]["Traces"]["Default"] == "off"
    assert template["Conditions"]["Traced"] == {
        "Fn::And": [{"Condition": "OnAws"}, {"Fn::Equals": [{"Ref": "Traces"}, "xray"]}]
    }
    assert template["Resources"]["TracesPolicy"]["Condition"] == "Traced"


@EACH
def test_a_function_is_traced_and_may_say_so_only_then(function: Function, template: dict[str, Any]) -> None:
    about = of_type(template, FUNCTION)[function.logical_id]
    attached = of_type(template, ROLE)[function.role_id]["ManagedPolicyArns"]
    assert about["Environment"]["Variables"]["RELAY_TRACES"] == {"Ref": "Traces"}
    for traced, placed in product((True, False), repeat=2):
        conditions = {"Traced": traced, "InNetwork": placed}
        assert chosen(about["Tracing"], conditions) == ("Active" if traced else "PassThrough")
        policies = ["TracesPolicy"] * traced + ["EgressInterfacesPolicy"] * (placed and function.sends)
        given = chosen(attached, conditions)
        assert given == ([{"Ref": name} for name in policies] or {"Ref": "AWS::NoValue"})


def test_the_permission_is_to_hand_on_and_nothing_else(template: dict[str, Any]) -> None:
    policy = of_type(template, "AWS::IAM::ManagedPolicy")["TracesPolicy"]
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert statement["Action"] == ["xray:PutTelemetryRecords", "xray:PutTraceSegments"]
