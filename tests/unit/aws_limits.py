"""Clients whose calls never leave the process: each is answered with an empty success, unless refused."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config

from chalicelib.adapters.aws_limits import AwsWouldRefuse, KnownTables, TableKeys, refuse_what_aws_refuses

if TYPE_CHECKING:
    from collections.abc import Mapping

Params = dict[str, Any]

NOWHERE = "http://127.0.0.1:9"

TABLES = {
    "relay-owed": TableKeys("pk", "sk", {"pk": "S", "sk": "S"}),
    "relay-subs": TableKeys("pk", None, {"pk": "S"}),
    "relay-gates": TableKeys(
        "pk",
        None,
        {"pk": "S", "armed_shard": "S", "armed_until": "N"},
        index_keys={"armed_shard": 2_048, "armed_until": 1_024},
        global_indexes=frozenset({"armed"}),
    ),
}
_XML = {
    "sns": b"<R><PublishResult/><PublishBatchResult/><CreateTopicResult/><ResponseMetadata/></R>",
    "s3": b"<R/>",
}


class _Raw(io.BytesIO):
    def stream(self) -> list[bytes]:
        return [self.read()]


def answering_client(service: str, answer: bytes | None = None, **settings: Any) -> Any:  # noqa: ANN401 - boto3's
    """Make a client that is answered without a network, and whose calls are not looked at."""
    make: Any = session().client
    client = make(service, endpoint_url=NOWHERE, config=Config(**settings))
    body = _XML.get(service, b"{}") if answer is None else answer
    client.meta.events.register("before-send", lambda **_: answered(200, body))
    return client


def answered(status: int, body: bytes = b"{}") -> AWSResponse:
    """Make an answer that came from nowhere."""
    return AWSResponse(NOWHERE, status, HTTPHeaders(), _Raw(body))


@cache
def session() -> boto3.Session:
    """Make the session of all clients here; hooks go on clients, never on it."""
    return boto3.Session(region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test")


@cache
def guarded_client(service: str) -> Any:  # noqa: ANN401 - boto3's clients are made while the program runs
    """Make a client that refuses what AWS refuses and knows the tables above; one for all tests."""
    client = answering_client(service)
    refuse_what_aws_refuses(client, KnownTables(TABLES))
    return client


def call(operation: str, params: Mapping[str, Any]) -> None:
    """Make a call such as `sqs.send_message`; it succeeds unless it is refused."""
    service, name = operation.split(".")
    getattr(guarded_client(service), name)(**params)


def refusal_of(operation: str, params: Mapping[str, Any]) -> AwsWouldRefuse:
    """Make a call that must be refused, and return the refusal."""
    with pytest.raises(AwsWouldRefuse) as refused:
        call(operation, params)
    return refused.value


@dataclass(frozen=True, slots=True)
class Limit:
    """A call that just passes, the same call one step further, and the parameter that is then named."""

    operation: str
    passes: Params
    refused: Params
    parameter: str

    def check(self) -> None:
        """Check that the limit stands exactly where it should."""
        call(self.operation, self.passes)
        assert refusal_of(self.operation, self.refused).parameter == self.parameter
