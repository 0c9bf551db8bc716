"""Holds what the API answers to what the contract says of it: status, headers, media type, every member."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from chalicelib.domain.errors import ErrorCode
from chalicelib.handlers import problems
from chalicelib.wire import answers, operations
from chalicelib.wire.operations import Bytes, ListOf

CLOSED = ConfigDict(extra="forbid", strict=True)


def hold_to_contract(method: str, path: str, status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Fail unless the operation declares this very answer."""
    operation = operations.find(method, path)
    if headers["content-type"] == problems.CONTENT_TYPE:
        _hold_to_shape(answers.ProblemAnswer, body)
        code = ErrorCode(json.loads(body)["code"])
        assert code in operation.codes, f"{operation.id} answers {code}, which its row does not declare"
        assert status == problems.status_of(code)
        return
    assert status in operation.answers, f"{operation.id} answers {status}, which its row does not declare"
    declared = operation.answers[status]
    missing = [each.name for each in declared.headers if each.required and each.name.lower() not in headers]
    assert not missing, f"{operation.id} lacks {missing}"
    if declared.shape is None:
        assert body == b""
    elif not isinstance(declared.shape, Bytes):
        assert headers["content-type"] == "application/json"
        _hold_to_shape(declared.shape, body)


def _hold_to_shape(shape: Any, body: bytes) -> None:  # noqa: ANN401 - any type
    if not isinstance(shape, ListOf):
        _closed(shape).validate_json(b"[" + body + b"]")
        return
    page = json.loads(body)
    assert list(page) == ["items", "cursor"]
    assert page["cursor"] is None or isinstance(page["cursor"], str)
    _closed(shape.item).validate_json(json.dumps(page["items"]))


@cache
def _closed(shape: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - any type
    """Make the reader of many of a shape; a list takes a configuration, which a shape itself does not."""
    return TypeAdapter(list[shape], config=CLOSED)
