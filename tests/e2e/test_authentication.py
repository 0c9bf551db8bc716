"""Endpoints that ask who calls, on the whole stack: over TLS of their owner's authority."""

import json
import ssl
from collections.abc import Iterator

import pytest
import trustme

from tests.e2e.customer import Customer
from tests.receiver.server import Receiver

TOKEN, CLIENT_SECRET = "e2e-t0ken-0123456789", "e2e-hush-0123456789"
ISSUED = {"status": 200, "body": json.dumps({"access_token": TOKEN, "expires_in": 3_600})}


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def serving(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.fixture
def provider(authority: trustme.CA) -> Iterator[Receiver]:
    """Listen with TLS, for whoever asks for a token."""
    with Receiver(ssl_context=serving(authority)) as receiver:
        yield receiver


@pytest.fixture
def gateway(authority: trustme.CA) -> Iterator[Receiver]:
    """Listen with TLS, for clients alone whose certificates the authority has issued."""
    context = serving(authority)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    with Receiver(ssl_context=context) as receiver:
        yield receiver


def certified(authority: trustme.CA) -> dict[str, str]:
    leaf = authority.issue_cert("relay.example")
    return {
        "certificate": leaf.cert_chain_pems[0].bytes().decode(),
        "key": leaf.private_key_pem.bytes().decode(),
    }


def test_a_token_a_certificate_and_an_authority_of_its_own_carry_an_endpoint_s_events(
    customer: Customer, gateway: Receiver, provider: Receiver, authority: trustme.CA
) -> None:
    token_url = provider.script("token", ISSUED)
    hook = customer.hook(
        gateway.url("/sink"),
        auth={
            "oauth2": {"token_url": token_url, "client_id": "relay", "client_secret": CLIENT_SECRET},
            "client_certificate": certified(authority),
            "trusted_authorities": authority.cert_pem.bytes().decode(),
        },
    )
    for _ in range(2):
        posted = customer.post(hook.type)
        assert customer.ended(posted.delivery_id)["status"] == "succeeded"
    assert [each["headers"]["authorization"] for each in gateway.received()] == [f"Bearer {TOKEN}"] * 2
    assert {each["path"] for each in provider.received()} == {"/script/token"}


def test_whoever_is_not_trusted_gets_nothing(customer: Customer, gateway: Receiver) -> None:
    hook = customer.hook(gateway.url("/sink"), auth={"basic": {"username": "a", "password": CLIENT_SECRET}})
    posted = customer.post(hook.type)
    (attempt,) = customer.tried(posted.delivery_id, 1)["attempts"]
    assert attempt["fault"] == "certificate_untrusted"
    assert gateway.received() == []
