"""Paths find the resource that API Gateway would find."""

import pytest

from infra.local.routing import RouteTable

ROUTES = RouteTable(
    {
        "/": ["GET"],
        "/v1/endpoints": ["GET", "POST"],
        "/v1/endpoints/{id}": ["GET", "PATCH", "DELETE"],
        "/v1/endpoints/{id}/deliveries": ["GET"],
        "/v1/endpoints/search": ["GET"],
        "/files/{proxy+}": ["GET"],
        "/files/index": ["GET"],
    },
)


@pytest.mark.parametrize(
    "path, resource, params",
    [
        ("/", "/", {}),
        ("/v1/endpoints", "/v1/endpoints", {}),
        ("/v1/endpoints/", "/v1/endpoints", {}),
        ("/v1/endpoints/e1", "/v1/endpoints/{id}", {"id": "e1"}),
        ("/v1/endpoints/search", "/v1/endpoints/search", {}),
        ("/v1/endpoints/search/deliveries", "/v1/endpoints/{id}/deliveries", {"id": "search"}),
        ("/v1/endpoints/a%2Fb", "/v1/endpoints/{id}", {"id": "a%2Fb"}),
        ("/v1/endpoints/a+b%20c", "/v1/endpoints/{id}", {"id": "a+b%20c"}),
        ("/files/a/b/c", "/files/{proxy+}", {"proxy": "a/b/c"}),
        ("/files/index", "/files/index", {}),
        ("/files/index/more", "/files/{proxy+}", {"proxy": "index/more"}),
    ],
)
def test_a_path_finds_the_most_literal_resource(path: str, resource: str, params: dict[str, str]) -> None:
    match = ROUTES.match(path)
    assert match is not None
    assert (match.resource, dict(match.params)) == (resource, params)


@pytest.mark.parametrize(
    "path", ["/v1", "/v1/endpoints/e1/nothing", "/v1/endpoints//deliveries", "/files", "/V1/endpoints"]
)
def test_other_paths_find_nothing(path: str) -> None:
    assert ROUTES.match(path) is None


def test_a_resource_says_which_methods_it_takes() -> None:
    match = ROUTES.match("/v1/endpoints/e1")
    assert match is not None
    assert set(match.methods) == {"GET", "PATCH", "DELETE"}


def test_two_placeholder_names_in_one_place_are_refused_as_api_gateway_would() -> None:
    with pytest.raises(ValueError, match="not both"):
        RouteTable({"/v1/endpoints/{id}": ["GET"], "/v1/endpoints/{endpoint}/deliveries": ["GET"]})
