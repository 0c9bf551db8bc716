"""The contract of the API as an OpenAPI 3.1 document, made from the operations and the shapes they name.

It is made when it is asked for: a function that nobody asks for it does not pay for it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from chalicelib.domain.errors import ErrorCode
from chalicelib.domain.request import VERSION
from chalicelib.wire import answers
from chalicelib.wire.operations import OPERATIONS, PATH, Answer, Bytes, ListOf, Operation, Parameter

_RETRY_AFTER = {
    "description": "After so many seconds the same request can pass.",
    "required": True,
    "schema": {"type": "integer", "minimum": 1},
}
JSON, PROBLEM = "application/json", "application/problem+json"
_REF = "#/components/schemas/{model}"
_PART = re.compile(r"\{(\w+)\}")
_ANY: Mapping[str, Any] = {JSON: {"schema": {}}, "*/*": {"schema": {}}}
_ABOUT = (
    "Relay delivers webhooks. Send `Authorization: Bearer relay_…` with every request. What a code means, and"
    " its cure, is in docs/errors.md. Members may be added to answers at any time; a request with a member or"
    " a query parameter that is not known is refused."
)

Mode = Literal["validation", "serialization"]
StatusOf = Callable[[ErrorCode], HTTPStatus]


class _Untitled(GenerateJsonSchema):
    """Leaves out the titles that only repeat the names of members."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ANN401, ARG002 - pydantic's signature
        return False


class _Shapes:
    """The JSON schemas of everything that operations take and answer, each named shape once."""

    def __init__(self) -> None:
        wanted: dict[tuple[str, Mode], Any] = {}
        for shape, mode in [(answers.ProblemAnswer, "serialization"), *_shapes()]:
            wanted[repr(shape), mode] = shape
        made, rest = TypeAdapter.json_schemas(
            [(name, mode, TypeAdapter(shape)) for (name, mode), shape in wanted.items()],
            ref_template=_REF,
            schema_generator=_Untitled,
        )
        self._made = made
        self.named: Mapping[str, Any] = rest["$defs"]

    def of(self, shape: Any, mode: Mode = "serialization") -> Mapping[str, Any]:  # noqa: ANN401 - any type
        """Give the schema of a shape: mostly a reference."""
        if isinstance(shape, ListOf):
            return {
                "type": "object",
                "properties": {
                    "items": {"type": "array", "items": self.of(shape.item)},
                    "cursor": {"type": ["string", "null"]},
                },
                "required": ["items", "cursor"],
            }
        return self._made[repr(shape), mode]


def document(status_of: StatusOf) -> dict[str, Any]:
    """Write the whole contract; `status_of` says with which status a code is answered."""
    shapes = _Shapes()
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(
            operation, shapes, status_of
        )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Relay",
            "version": VERSION,
            "description": _ABOUT,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "paths": paths,
        "components": {
            "schemas": dict(sorted(shapes.named.items())),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}],
    }


def _shapes() -> Iterator[tuple[Any, Mode]]:
    for operation in OPERATIONS:
        if isinstance(operation.body, type):
            yield operation.body, "validation"
        for answer in operation.answers.values():
            shape = answer.shape.item if isinstance(answer.shape, ListOf) else answer.shape
            if shape is not None and not isinstance(shape, Bytes):
                yield shape, "serialization"


def _operation(of: Operation, shapes: _Shapes, status_of: StatusOf) -> dict[str, Any]:
    parts = [PATH[name] for name in _PART.findall(of.path)]
    written: dict[str, Any] = {
        "operationId": of.id,
        "summary": of.says,
        "parameters": [
            *(_parameter(each, "path") for each in parts),
            *(_parameter(each, "query") for each in of.query),
            *(_parameter(each, "header") for each in of.headers),
        ],
        "responses": _responses(of, shapes, status_of),
    }
    if of.roles is None:
        written["security"] = []
    else:
        written["description"] = f"For keys with the role {' or '.join(sorted(of.roles))}."
    if of.body is not None:
        taken = _ANY if isinstance(of.body, Bytes) else {JSON: {"schema": shapes.of(of.body, "validation")}}
        written["requestBody"] = {"required": not of.body_optional, "content": taken}
    return written


def _parameter(of: Parameter, place: str) -> dict[str, Any]:
    required = of.required or place == "path"
    return {"name": of.name, "in": place, "description": of.says, "required": required, "schema": of.schema}


def _responses(of: Operation, shapes: _Shapes, status_of: StatusOf) -> dict[str, Any]:
    responses = {str(status): _answer(each, shapes) for status, each in of.answers.items()}
    codes: dict[HTTPStatus, list[str]] = {}
    for code in sorted(of.codes):
        codes.setdefault(status_of(code), []).append(code.value)
    for status, ones in sorted(codes.items()):
        told = responses.setdefault(str(status.value), {"description": ", ".join(ones), "content": {}})
        told["content"][PROBLEM] = {"schema": _problem(ones, shapes)}
        if status is HTTPStatus.TOO_MANY_REQUESTS:
            told["headers"] = {"Retry-After": _RETRY_AFTER}
    return responses


def _answer(of: Answer, shapes: _Shapes) -> dict[str, Any]:
    written: dict[str, Any] = {"description": of.says}
    if isinstance(of.shape, Bytes):
        written["content"] = {"*/*": {"schema": {}}}
    elif of.shape is not None:
        written["content"] = {JSON: {"schema": shapes.of(of.shape)}}
    if of.headers:
        written["headers"] = {
            each.name: {"description": each.says, "required": each.required, "schema": each.schema}
            for each in of.headers
        }
    return written


def _problem(codes: list[str], shapes: _Shapes) -> dict[str, Any]:
    return {"allOf": [shapes.of(answers.ProblemAnswer), {"properties": {"code": {"enum": codes}}}]}
