"""What a function asks of AWS, by its calls, and what its policy allows."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from infra.functions import FUNCTIONS
from tests.handlers.relay import Relay, forget

Needed = tuple[str, str, str]
Params = Mapping[str, Any]
_TRANSACTED = {each: f"dynamodb:{each}Item" for each in ("Put", "Update", "Delete")} | {
    "ConditionCheck": "dynamodb:ConditionCheckItem"
}
_STATEMENTS = {each: f"dynamodb:PartiQL{each.title()}" for each in ("INSERT", "UPDATE", "DELETE")}
SERVICES = ("dynamodb", "sqs", "s3", "kms", "sns")
_HELD = {"Encrypt": "SecretsKey", "Decrypt": "SecretsKey"}
GRANTED: dict[str, set[Needed]] = {
    each.name: {(grant.resource, grant.part, action) for grant in each.grants for action in grant.actions}
    for each in FUNCTIONS
}
RECORDED: dict[str, set[Needed]] = {each.name: set() for each in FUNCTIONS}
"""What each function was seen to ask by now."""


def dynamodb(operation: str, params: Params) -> Iterator[Needed]:
    match operation:
        case "TransactWriteItems":
            for item in params["TransactItems"]:
                for kind, each in item.items():
                    yield each["TableName"], "", _TRANSACTED[kind]
        case "BatchExecuteStatement":
            for each in params["Statements"]:
                yield each["Statement"].split('"')[1], "", _STATEMENTS[each["Statement"].split()[0]]
        case "BatchGetItem":
            for table in params["RequestItems"]:
                yield table, "", "dynamodb:BatchGetItem"
        case _:
            index = params.get("IndexName")
            yield params["TableName"], f"/index/{index}" if index else "", f"dynamodb:{operation}"


def s3(operation: str, bucket: str) -> Iterator[Needed]:
    match operation:
        case "ListObjectsV2":
            yield bucket, "", "s3:ListBucket"
        case "DeleteObjects":
            yield bucket, "/*", "s3:DeleteObject"
        case _:
            yield bucket, "/*", f"s3:{operation}"


def sqs(operation: str, params: Params) -> Iterator[Needed]:
    queue = params.get("QueueName") or params["QueueUrl"].rpartition("/")[2]
    yield queue, "", f"sqs:{operation.removesuffix('Batch')}"


@dataclass(frozen=True, slots=True)
class Watch:
    """Holds what a function asks to what its policy allows."""

    relay: Relay
    services: Mapping[str, Any]

    @contextmanager
    def running(self, function: str) -> Iterator[set[Needed]]:
        """Watch all that is asked, as that function; gives what it was."""
        asked: set[Needed] = set()

        def note(params: Params, model: Any, **_: object) -> None:  # noqa: ANN401 - a botocore model
            asked.update(self._needed(model.service_model.service_name, model.name, params))

        for name, client in self.services.items():
            client.meta.events.register_last(f"before-parameter-build.{name}", note)
        try:
            yield asked
        finally:
            for name, client in self.services.items():
                client.meta.events.unregister(f"before-parameter-build.{name}", note)
        assert asked
        assert asked - GRANTED[function] == set()
        RECORDED[function] |= asked

    def _needed(self, service: str, operation: str, params: Params) -> Iterator[Needed]:
        match service:
            case "dynamodb":
                for table, part, action in dynamodb(operation, params):
                    yield self._logical(table, "Table"), part, action
            case "sqs":
                for queue, part, action in sqs(operation, params):
                    yield self._logical(queue, "Queue"), part, action
            case "kms":
                yield _HELD[operation], "", f"kms:{operation}"
            case "s3":
                yield from s3(operation, self._logical(params["Bucket"], "Bucket"))
            case "sns":
                yield "NoticesTopic", "", f"sns:{operation}"
            case _:
                raise AssertionError(f"{service} is asked, and no policy speaks of it")

    def _logical(self, name: str, kind: str) -> str:
        """Name a table or queue as the template does."""
        bare = name.removeprefix(self.relay.made.prefix).removesuffix(".fifo")
        return "".join(part.capitalize() for part in bare.split("-")) + kind

    @contextmanager
    def a_process(self, function: str) -> Iterator[set[Needed]]:
        """Watch a function from the start of its process: it knows no queue yet, no key and no gate."""
        forget()
        with self.running(function) as asked:
            yield asked
        forget()

    def deliver(self, queue: str = "shard-0") -> set[Needed]:
        """Hand all that rings on a queue to its function."""
        rung = self.relay.messages(queue)
        assert rung
        with self.running(f"deliver_{queue.replace('-', '_')}") as asked:
            self.relay.deliver(queue, rung)
        return asked
