"""The IAM policy of each function, one file below infra/policies.

`python -m infra.policy` writes the files anew from the table in infra/functions.py.
"""

import json
from pathlib import Path
from typing import Any, Final

from infra.functions import FUNCTIONS, Function
from infra.template import HERE

POLICIES: Final = HERE / "policies"
_REF_IS_ARN: Final = frozenset({"NoticesTopic"})
_LOG_GROUPS: Final = "arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group"


def path(function: Function) -> Path:
    """Say where a function's policy is kept."""
    return POLICIES / f"{function.name}.json"


def text(function: Function) -> str:
    """Give the file's content."""
    return json.dumps(document(function), indent=2) + "\n"


def document(function: Function, deployed_name: str = "") -> dict[str, Any]:
    """Give the policy document: what the table grants, and writing to the function's own log.

    `deployed_name` is the function's when it is not the one that the packaged template gives it.
    """
    actions: dict[tuple[str, str], set[str]] = {}
    for grant in function.grants:
        actions.setdefault((grant.resource, grant.part), set()).update(grant.actions)
    statements = [
        {"Effect": "Allow", "Action": sorted(allowed), "Resource": _arn(resource, part)}
        for (resource, part), allowed in actions.items()
    ]
    return {
        "Version": "2012-10-17",
        "Statement": [_logs(deployed_name or f"${{Prefix}}{function.deployed_name}"), *statements],
    }


def _arn(resource: str, part: str) -> dict[str, Any]:
    """Give the ARN of a resource of the template, or of a part of it; one outside is given."""
    if resource.startswith("arn:"):
        return {"Fn::Sub": resource}
    if resource in _REF_IS_ARN:
        return {"Ref": resource}
    return {"Fn::Sub": f"${{{resource}.Arn}}{part}"} if part else {"Fn::GetAtt": [resource, "Arn"]}


def _logs(deployed_name: str) -> dict[str, Any]:
    """Allow writing to the streams of one log group, whose names are Lambda's."""
    return {
        "Effect": "Allow",
        "Action": ["logs:CreateLogStream", "logs:PutLogEvents"],
        "Resource": {"Fn::Sub": f"{_LOG_GROUPS}:/aws/lambda/{deployed_name}:*"},
    }


def write() -> None:
    """Write every policy and remove those of functions that are no more."""
    for stale in POLICIES.glob("*.json"):
        stale.unlink()
    for function in FUNCTIONS:
        path(function).write_text(text(function), encoding="utf-8")


if __name__ == "__main__":
    write()
