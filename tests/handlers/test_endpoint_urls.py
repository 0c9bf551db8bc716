"""URLs at the door: one spelling for one place, a word to who registers it twice, and 400 for the rest."""

import pytest

from tests.handlers.conftest import MakeRelay
from tests.handlers.relay import Relay

PLACE = "https://example.com/h"


@pytest.mark.parametrize(
    "url, stored",
    [
        ("https://ex_ample.example.com/", "https://ex_ample.example.com/"),
        ("https://münchen.example/", "https://xn--mnchen-3ya.example/"),
        ("https://xn--fa-hia.example/", "https://xn--fa-hia.example/"),
        ("https://☃.example/", "https://xn--n3h.example/"),
    ],
)
def test_f092_working_hosts_are_registered_in_ascii(tenant: Relay, url: str, stored: str) -> None:
    made = tenant.endpoint(url=url)
    assert made["url"] == stored
    assert tenant.get(f"/v1/endpoints/{made['id']}").json["url"] == stored


@pytest.mark.parametrize(
    "url",
    [
        "https://faß.example/",
        "https://ex。ample.com/",
        "https://xn--a.example/",
        f"https://{'a' * 64}.example/",
        f"https://{'.'.join(['a' * 49] * 5)}.exam/",
        "https://-a-.example/",
    ],
    ids=["two readings", "another dot", "no A-label", "label of 64", "name of 254", "hyphens"],
)
def test_f092_hosts_that_cannot_be_are_400(tenant: Relay, url: str) -> None:
    made = tenant.endpoint()
    for answer in (
        tenant.post("/v1/endpoints", {"url": url, "event_types": ["*"]}),
        tenant.patch(made, {"url": url}),
    ):
        assert answer.is_problem(400, "url_invalid", "url")


@pytest.mark.parametrize("url", ["https://EXAMPLE.com:443/h", f"{PLACE}/", f"{PLACE}?", f"{PLACE}/?", PLACE])
def test_f094_who_registers_a_place_again_is_told_by_which_endpoints_it_is_taken(
    tenant: Relay, url: str
) -> None:
    tenant.endpoint(url="https://example.com/other")
    first, second = tenant.endpoint(url=PLACE), tenant.endpoint(url=url)
    assert "warnings" not in first
    (warning,) = second["warnings"]
    assert first["id"] in warning
    (again,) = tenant.endpoint(url="HTTPS://example.com/h")["warnings"]
    assert first["id"] in again
    assert second["id"] in again
    assert "warnings" not in tenant.get(f"/v1/endpoints/{second['id']}").json


def test_f094_another_place_a_deleted_endpoint_and_another_tenant_s_are_no_reason_to_warn(
    tenant: Relay,
) -> None:
    tenant.another("stranger").endpoint(url=PLACE)
    tenant.delete(tenant.endpoint(url=PLACE))
    for url in (PLACE, "https://example.com/H", f"{PLACE}?a=1", f"{PLACE}/x", "https://www.example.com/h"):
        assert "warnings" not in tenant.endpoint(url=url)


def test_f094_an_ordered_endpoint_of_a_taken_place_is_told_both(tenant: Relay) -> None:
    first = tenant.endpoint(url=PLACE)
    order, place = tenant.endpoint(url=PLACE, ordering="endpoint")["warnings"]
    assert "holds up" in order
    assert first["id"] in place


@pytest.mark.parametrize("size", [2_049, 8_193, 70_000])
def test_f095_a_long_url_is_400_with_the_limit(tenant: Relay, size: int) -> None:
    url = "https://example.com/" + "a" * (size - 20)
    answer = tenant.post("/v1/endpoints", {"url": url, "event_types": ["*"]})
    assert answer.is_problem(400, "url_invalid", "url")
    assert "2048" in answer.json["expected"]


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com:0/",
        "https://example.com:22/",
        "https://example.com:25/",
        "https://example.com:99999/",
        "https:///h",
        "http:",
        "ftp://example.com/",
        "https://-a-.example/",
    ],
)
def test_f095_odd_ports_and_urls_are_400_as_shipped(make_relay: MakeRelay, url: str) -> None:
    answer = make_relay(RELAY_ALLOW_KEYLESS="true").post("/v1/endpoints", {"url": url, "event_types": ["*"]})
    assert answer.is_problem(400, "url_invalid", "url")
    assert answer.json["expected"]
