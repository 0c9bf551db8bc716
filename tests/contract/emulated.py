"""Clients of an emulator, made as the functions make theirs, once each."""

from functools import cache
from typing import Any

import pytest

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
    """Count the calls of that client."""
    return count_calls(strict_client(service, url))
