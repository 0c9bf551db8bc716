"""The contract: /openapi.json is made from the rows, shapes and models that the API itself works with."""

import json
import re
from typing import Any

import pytest
from pydantic import BaseModel

import app as lambdas
from chalicelib.domain.api_key import Role
from chalicelib.domain.errors import ErrorCode
from chalicelib.domain.request import VERSION
from chalicelib.handlers import problems
from chalicelib.wire import bodies
from chalicelib.wire.operations import OPERATIONS, Operation
from tests.handlers.relay import Relay

ROUTES = {
    (method, path): entry.view_name
    for path, methods in lambdas.app.routes.items()
    for method, entry in methods.items()
}


@pytest.fixture
def document(empty_guarded: Relay) -> Any:  # noqa: ANN401 - JSON
    anyone = Relay(empty_guarded.made, empty_guarded.clients)
    answer = anyone.get("/openapi.json")
    assert answer.status == 200
    return answer.json


def test_the_routes_are_those_of_the_contract(document: Any) -> None:  # noqa: ANN401 - JSON
    named = {
        (method.upper(), path): operation["operationId"]
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert named == ROUTES


def test_its_version_is_relay_s(document: Any) -> None:  # noqa: ANN401 - JSON
    assert (document["openapi"], document["info"]["version"]) == ("3.1.0", VERSION)


def test_whoever_has_it_already_does_not_get_it_again(empty_guarded: Relay) -> None:
    first = empty_guarded.get("/openapi.json")
    again = empty_guarded.call("GET", "/openapi.json", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    other = empty_guarded.call("GET", "/openapi.json", headers={"If-None-Match": '"another"'})
    assert other.body == first.body


def test_every_reference_leads_somewhere(document: Any) -> None:  # noqa: ANN401 - JSON
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
    assert named <= set(document["components"]["schemas"])
    assert named


def test_every_body_that_is_parsed_is_in_the_contract(document: Any) -> None:  # noqa: ANN401 - JSON
    parsed = {
        name
        for name, each in vars(bodies).items()
        if isinstance(each, type) and issubclass(each, BaseModel) and each is not BaseModel
    }
    assert parsed - {"BatchItem"} <= set(document["components"]["schemas"])


def test_every_code_is_in_the_contract_and_given_by_some_operation(document: Any) -> None:  # noqa: ANN401 - JSON
    assert set(document["components"]["schemas"]["ErrorCode"]["enum"]) == set(ErrorCode)
    assert set().union(*(each.codes for each in OPERATIONS)) == set(ErrorCode)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.id)
def test_every_code_of_an_operation_stands_under_its_status(operation: Operation, document: Any) -> None:  # noqa: ANN401 - JSON
    responses = document["paths"][operation.path][operation.method.lower()]["responses"]
    for code in operation.codes:
        told = responses[str(problems.status_of(code).value)]["content"][problems.CONTENT_TYPE]["schema"]
        assert code.value in told["allOf"][1]["properties"]["code"]["enum"]


def test_what_changes_something_is_for_admins_and_what_is_read_for_viewers() -> None:
    """Who may ask is said once, in the rows; this is the rule that they follow, and its exceptions."""
    exceptions = {
        "post_event": {Role.PRODUCER, Role.ADMIN},
        "post_events": {Role.PRODUCER, Role.ADMIN},
        "get_payload": {Role.ADMIN},
        "list_audit": {Role.OPERATOR, Role.ADMIN},
        "list_keys": {Role.ADMIN},
        "create_tenant": {Role.OPERATOR},
        "recover_tenant": {Role.OPERATOR},
        "list_tenants": {Role.OPERATOR, Role.VIEWER, Role.ADMIN},
        "get_tenant": {Role.OPERATOR, Role.VIEWER, Role.ADMIN},
        "patch_tenant": {Role.OPERATOR, Role.ADMIN},
        "purge_tenant": {Role.OPERATOR, Role.ADMIN},
        "metrics": {Role.OPERATOR},
        "healthz": None,
        "egress_ranges": None,
        "readyz": None,
        "openapi": None,
    }
    for each in OPERATIONS:
        usual = {Role.VIEWER, Role.ADMIN} if each.method == "GET" else {Role.ADMIN}
        assert each.roles == exceptions.get(each.id, usual), each.id


def test_a_media_type_that_nobody_asked_for_is_no_reason_to_refuse_in_foreign_words(
    empty_guarded: Relay,
) -> None:
    """Chalice answers 415 by itself where a route names no media types; answers are held to their row."""
    for each in OPERATIONS:
        path = re.sub(r"\{\w+\}", "x", each.path)
        answer = empty_guarded.call(
            each.method, path, b"<x/>", {"Content-Type": "text/xml", "Accept": "text/xml"}
        )
        assert answer.status != 415, each.id
