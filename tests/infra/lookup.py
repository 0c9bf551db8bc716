"""Ways to look into a template."""

from collections.abc import Mapping
from typing import Any

TABLE = "AWS::DynamoDB::Table"
QUEUE = "AWS::SQS::Queue"
FUNCTION = "AWS::Serverless::Function"
ROLE = "AWS::IAM::Role"

Named = dict[str, Mapping[str, Any]]


def of_type(template: Mapping[str, Any], kind: str) -> Named:
    """Give the properties of every resource of a type, by logical id."""
    resources = template["Resources"].items()
    return {name: about["Properties"] for name, about in resources if about.get("Type") == kind}


def sources(template: Mapping[str, Any]) -> Named:
    """Give the properties of every queue's event source, by the function's logical id."""
    events = {name: about.get("Events", {}) for name, about in of_type(template, FUNCTION).items()}
    return {
        name: event["Properties"]
        for name, about in events.items()
        for event in about.values()
        if event["Type"] == "SQS"
    }


def queue_of(source: Mapping[str, Any]) -> str:
    """Give the logical id of the queue behind an event source."""
    return str(source["Queue"]["Fn::Sub"]).removeprefix("${").removesuffix(".Arn}")
