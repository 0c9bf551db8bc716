"""ministack that holds roles to their policies as AWS does: `python -m infra.local.ministack_enforcing`.

As shipped, with AUTH=true, it holds batches of statements and of messages against actions that AWS does not
know, and a policy about a key against the alias in the request; and it takes an API's binary media types from
a property that AWS does not need. Functions that are deployed there as on AWS would be refused, or garbled.

Runs on the emulator's own Python, and only on the version whose insides it knows.
"""

import importlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from typing import Any

_KNOWN = "1.5.33"
_STATEMENT = re.compile(
    r"""\s*(?:(?P<insert>INSERT\s+INTO)|(?P<update>UPDATE)|(?P<delete>DELETE\s+FROM)|(?P<select>SELECT\b.*?\bFROM))
        \s+"(?P<table>[^"]+)"(?:\."(?P<index>[^"]+)")?""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_BY_STATEMENTS = frozenset({"dynamodb:BatchExecuteStatement", "dynamodb:ExecuteStatement"})
_MEDIA_TYPES = "x-amazon-apigateway-binary-media-types"

Checks = list[tuple[str, str]]


def statement_checks(body: bytes) -> Iterator[tuple[str, str]]:
    """Give the action, and the table or index, of each statement of a request."""
    asked = json.loads(body)
    for each in asked.get("Statements", [asked]):
        read = _STATEMENT.match(each["Statement"])
        if read is None:
            yield "dynamodb:PartiQLUnknown", "*"
            continue
        (verb,) = (name for name in ("insert", "update", "delete", "select") if read[name])
        index = f"/index/{read['index']}" if read["index"] else ""
        yield f"dynamodb:PartiQL{verb.capitalize()}", read["table"] + index


def mend_statements(actions: Any) -> None:  # noqa: ANN401 - ministack has no types
    """Hold each statement of a batch against the policies by itself, as parts of a transaction are."""
    shipped: Callable[[str, bytes, str, str], Checks] = actions.dynamodb_transaction_checks

    def mended(action: str, body: bytes, region: str, account_id: str) -> Checks:
        if action not in _BY_STATEMENTS:
            return shipped(action, body, region, account_id)
        start = f"arn:aws:dynamodb:{region}:{account_id}:table/"
        return [(verb, start + table) for verb, table in statement_checks(body)]

    actions.dynamodb_transaction_checks = mended


def mend_messages(actions: Any) -> None:  # noqa: ANN401 - as above
    """Let who may send, delete or hide a message do so with ten of them."""
    shipped: Callable[..., str | None] = actions.extract_iam_action

    def mended(service: str, *request: Any) -> str | None:  # noqa: ANN401 - as above
        action = shipped(service, *request)
        return action.removesuffix("Batch") if action and service == "sqs" else action

    actions.extract_iam_action = mended


def mend_keys(actions: Any, kms: Any) -> None:  # noqa: ANN401 - as above
    """Hold a policy about a key against the key, by whatever name the request calls it."""
    shipped: Callable[..., str] = actions.extract_resource_arn

    def mended(service: str, *request: Any) -> str:  # noqa: ANN401 - as above
        arn = shipped(service, *request)
        if service == "kms" and ":alias/" in arn:
            region, account_id = request[-2:]
            return f"arn:aws:kms:{region}:{account_id}:key/{kms._aliases.get(arn)}"  # noqa: SLF001 - no other way
        return arn

    actions.extract_resource_arn = mended


def mend_media_types(handlers: dict[str, dict[str, Any]]) -> None:
    """Take an API's binary media types from its definition too."""
    handler = handlers["AWS::ApiGateway::RestApi"]
    create = handler["create"]

    def created(logical_id: str, props: Mapping[str, Any], stack_name: str) -> Any:  # noqa: ANN401 - as above
        given = props.get("Body", {}).get(_MEDIA_TYPES, [])
        return create(logical_id, {"BinaryMediaTypes": given, **props}, stack_name)

    handler["create"] = created


def main() -> None:
    """Mend ministack, then run it with roles enforced."""
    if version("ministack") != _KNOWN:
        sys.exit(f"The enforcing emulator knows ministack {_KNOWN} only, not {version('ministack')}.")
    os.environ.update(AUTH="true")
    actions = importlib.import_module("ministack.core.iam_actions")
    mend_statements(actions)
    mend_messages(actions)
    mend_keys(actions, importlib.import_module("ministack.services.kms"))
    provisioners = importlib.import_module("ministack.services.cloudformation.provisioners")
    mend_media_types(provisioners._RESOURCE_HANDLERS)  # noqa: SLF001 - no other way
    importlib.import_module("ministack.app").main()


if __name__ == "__main__":
    main()
