"""Chalice's command as it is, but for calls to API Gateway that the emulator answers unlike AWS.

Its `ImportRestApi` ignores what is imported, so a small stack makes the API; what its `UpdateRestApi` answers
chalice cannot read; and its `GetRestApi` leaves the type of the endpoint out. What is set up in a moment is
not waited for in steps of five seconds.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

from chalice.awsclient import TypedAWSClient
from chalice.cli import main

STACK = "relay-api-of-chalice"


def import_rest_api(self: Any, swagger_document: dict[str, Any], endpoint_type: str) -> str:  # noqa: ANN401
    binary = swagger_document["x-amazon-apigateway-binary-media-types"]
    about = {"Name": "relay", "Body": swagger_document, "BinaryMediaTypes": binary}
    api = {"Type": "AWS::ApiGateway::RestApi", "Properties": about}
    formation = self._client("cloudformation")
    formation.create_stack(StackName=STACK, TemplateBody=json.dumps({"Resources": {"Api": api}}))
    formation.get_waiter("stack_create_complete").wait(StackName=STACK, WaiterConfig={"Delay": 1})
    (made,) = formation.describe_stack_resources(StackName=STACK)["StackResources"]
    return str(made["PhysicalResourceId"])


def get_rest_api(self: Any, rest_api_id: str) -> dict[str, Any]:  # noqa: ANN401
    return {"id": rest_api_id, "endpointConfiguration": {"types": ["REGIONAL"]}}


def wait(kind: str) -> Callable[[Any, str], None]:
    """Wait as chalice does, but look ten times a second."""

    def until(self: Any, function_name: str) -> None:  # noqa: ANN401
        waiter = self._client("lambda").get_waiter(kind)
        waiter.wait(FunctionName=function_name, WaiterConfig={"Delay": 0.1, "MaxAttempts": 300})

    return until


MENDED = {
    "import_rest_api": import_rest_api,
    "get_rest_api": get_rest_api,
    "update_rest_api": lambda *_, **__: None,
    "update_api_from_swagger": lambda *_, **__: None,
    "_wait_for_active": wait("function_active"),
    "_wait_for_function_update": wait("function_updated"),
}

if __name__ == "__main__":
    for name, mended in MENDED.items():
        setattr(TypedAWSClient, name, mended)
    sys.exit(main())
