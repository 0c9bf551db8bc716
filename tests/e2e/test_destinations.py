"""Requests go where they may and nowhere else: redirects hop by hop, and what production refuses."""

import base64
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest

from infra.local.emulator import Emulator, EmulatorName, default_venv, free_port
from infra.local.plan import Plan
from infra.local.processes import Child, Leash, Start
from tests.e2e.conftest import ODD_JSON
from tests.e2e.customer import Customer, outcome


@pytest.mark.parametrize("code", [301, 302, 303])
def test_f068_these_redirects_are_not_followed(customer: Customer, code: int) -> None:
    moved = {"status": code, "headers": {"Location": f"/sink/moved/{code}"}}
    hook, delivery_id = customer.deliver(customer.script(moved))
    delivery = customer.ended(delivery_id)
    assert (delivery["status"], delivery["reason"]) == ("dead", "permanent_failure")
    there = f"{customer.stack.receiver_url}/sink/moved/{code}"
    assert delivery["attempts"][0]["detail"].startswith(f"redirects to {there}; only 307 and 308")
    assert [each["id"] for each in customer.dead_letters(hook.id)] == [delivery_id]
    assert customer.received(path=f"/sink/moved/{code}") == []


@pytest.mark.parametrize("code", [307, 308])
@pytest.mark.parametrize("origin", ["", "http://localhost"])
def test_these_redirects_are_followed_where_requests_may_go(
    customer: Customer, code: int, origin: str
) -> None:
    there = f"{origin}:{customer.stack.ports.receiver}/verify" if origin else "/verify"
    hook = customer.hook(f"/redirect?code={code}&to={there}")
    posted = customer.post(hook.type, ODD_JSON)
    assert customer.ended(posted.delivery_id)["status"] == "succeeded"
    first, second = customer.received(delivery_id=posted.delivery_id)
    assert (first["path"], second["path"], second["verified"]) == ("/redirect", "/verify", True)
    assert first["body_base64"] == second["body_base64"]
    assert [each["headers"]["relay-attempt"] for each in (first, second)] == ["1", "1"]


def test_redirects_are_followed_three_times_at_most(customer: Customer) -> None:
    path = customer.script({"status": 307, "headers": {"Location": "#again"}})
    _, delivery_id = customer.deliver(path)
    delivery = customer.ended(delivery_id)
    assert [outcome(each) for each in delivery["attempts"]] == [("permanent", 307, None)]
    assert len(customer.received(delivery_id=delivery_id)) == 4


def test_a_long_redirect_is_followed_whole(customer: Customer) -> None:
    there = "/verify?then=" + "x" * 1_000
    _, delivery_id = customer.deliver(customer.script({"status": 307, "headers": {"Location": there}}))
    assert customer.ended(delivery_id)["status"] == "succeeded"
    assert customer.received(delivery_id=delivery_id)[1]["target"] == there


def test_a_redirect_with_bytes_no_url_has_is_followed_with_those_encoded(customer: Customer) -> None:
    head = "HTTP/1.1 307 Odd\r\nLocation: /sink/caf\u00e9 au lait\r\nContent-Length: 0\r\n\r\n"
    odd = {"raw_b64": base64.b64encode(head.encode("utf-8")).decode()}
    _, delivery_id = customer.deliver(customer.script(odd))
    assert customer.ended(delivery_id)["status"] == "succeeded"
    assert customer.received(delivery_id=delivery_id)[1]["target"] == "/sink/caf%C3%A9%20au%20lait"


@pytest.mark.parametrize("location", ["ftp://127.0.0.1/", "http://user@127.0.0.1/", "http://[::1"])
def test_f069_a_redirect_to_where_no_request_may_go_ends_the_delivery(
    customer: Customer, location: str
) -> None:
    _, delivery_id = customer.deliver(customer.script({"status": 307, "headers": {"Location": location}}))
    delivery = customer.ended(delivery_id)
    assert (delivery["status"], delivery["reason"]) == ("dead", "refused")
    assert len(customer.received(delivery_id=delivery_id)) == 1


@pytest.fixture(scope="module")
def production(customer: Customer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Ask a second API of the stack, which runs with the development switch off."""
    ports = customer.stack.ports
    emulator = Emulator(EmulatorName.MINISTACK, ports.emulator, customer.stack.state, default_venv())
    plan = Plan(emulator, free_port(), ports.receiver, 1, "relay-", "app:app", 1.0)
    log = tmp_path_factory.mktemp("production") / "api.log"
    switched_off = {**plan.environment(), "RELAY_ALLOW_PRIVATE_ENDPOINTS": "false"}
    with Leash() as leash, httpx.Client(base_url=plan.api_url, trust_env=False) as client:
        child = Child(replace(plan.api(), environment=switched_off, log=log), leash)
        assert child.wait_ready(child.has_told, 60, lambda: None) is Start.READY, log.read_text()
        yield client
        child.stop()


@pytest.mark.parametrize(
    "url, code",
    [
        ("https://127.0.0.1/", "destination_not_allowed"),
        ("https://10.1.2.3/", "destination_not_allowed"),
        ("https://169.254.169.254/latest/meta-data/", "destination_not_allowed"),
        ("https://[::1]/", "destination_not_allowed"),
        ("https://[::ffff:127.0.0.1]/", "destination_not_allowed"),
        ("https://2130706433/", "url_invalid"),
        ("https://0x7f.1/", "url_invalid"),
        ("http://example.com/", "url_invalid"),
        ("https://example.com:8443/", "url_invalid"),
        ("https://user:pass@example.com/", "url_invalid"),
    ],
)
def test_without_the_development_switch_only_public_https_is_taken(
    production: httpx.Client, url: str, code: str
) -> None:
    refused = production.post("/v1/endpoints", json={"url": url, "event_types": ["*"]})
    assert (refused.status_code, refused.json()["code"]) == (400, code)
    assert url not in refused.text


def test_without_the_development_switch_a_public_address_is_taken(
    production: httpx.Client, customer: Customer
) -> None:
    asked = {"url": "https://example.com/hook", "event_types": ["never.posted"]}
    assert production.post("/v1/endpoints", json=asked).status_code == 201
