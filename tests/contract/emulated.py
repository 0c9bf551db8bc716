"""Clients of an emulator, made as the functions make theirs, once each."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from http.client import HTTPMessage
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse

from chalicelib.adapters import clients
from chalicelib.adapters.aws_json import JsonService
from chalicelib.adapters.aws_limits import CallCounter, count_calls, refuse_what_aws_refuses


@cache
def strict_client(service: str, url: str) -> Any:  # noqa: ANN401 - boto3's clients have no common type
    """Make the client that the functions use, strict, for one emulator."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ENDPOINT_URL", url)
        client = clients.make(service, validate=True)
    refuse_what_aws_refuses(client)
    return client


@cache
def json_service(name: str, url: str) -> JsonService:
    """Make the lean client that the functions use, over the strict one."""
    return JsonService(strict_client(name, url))


@cache
def counter(service: str, url: str) -> CallCounter:
    """Count the calls of that client, and the bytes it reads."""
    return count_calls(strict_client(service, url), read_bytes=True)


@contextmanager
def answered(
    service: str, url: str, operation: str, answers: Iterable[tuple[int, Mapping[str, Any] | bytes]]
) -> Iterator[list[Mapping[str, Any]]]:
    """Answer the next calls of one operation in AWS's place, then let calls through again.

    An answer is a status and a JSON document, or bytes that are none. Gives the requests that were to leave.
    """
    left = list(answers)
    asked: list[Mapping[str, Any]] = []

    def answer(request: Any, **_: object) -> AWSResponse | None:  # noqa: ANN401 - botocore's request
        asked.append(json.loads(request.body))
        if not left:
            return None
        status, document = left.pop(0)
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        return AWSResponse(url, status, _no_headers(), Raw(body))

    events = strict_client(service, url).meta.events
    hook = f"before-send.{service}.{operation}"
    events.register_last(hook, answer)
    try:
        yield asked
    finally:
        events.unregister(hook, answer)


def _no_headers() -> Any:  # noqa: ANN401 - botocore's type is private to it
    return HTTPMessage()


class Raw:
    """A body as botocore's responses want it."""

    def __init__(self, body: bytes) -> None:
        """Give this body, once."""
        self._body = body

    def stream(self) -> Iterator[bytes]:
        """Give the body in one piece."""
        yield self._body
