"""F129: what a request carries in confidence is kept nowhere but where it is sent from."""

import pytest

from chalicelib.domain.outcome import Fault, Reply
from chalicelib.domain.request import Request
from chalicelib.domain.secret import MASK, Secret
from tests.fakes.scripted_sender import Answer
from tests.unit.application.world import World

URL = "https://h.example/hook/T0K3N-abc?key=S3CR3T"
HEADERS = (("Authorization", Secret("Bearer tok-0123456789")), ("X-Api-Key", Secret("k3y-0123456789")))
CONFIDENTIAL = ("T0K3N-abc", "S3CR3T", "tok-0123456789", "k3y-0123456789", "whsec_")


def echo(request: Request) -> bytes:
    head = "".join(f"{name}: {value}\n" for name, value in request.all_headers)
    secrets = " ".join(each.reveal() for each in request.signed_with)
    return f"POST {request.url}\n{head}\n{secrets}".encode()


def kept(world: World) -> str:
    """Give all that is stored, but for the row of the endpoint itself."""
    return str([record for key, record in world.records.by_key.items() if key.table != "endpoints"])


def test_f129_a_500_that_echoes_the_request_is_kept_without_its_credentials(world: World) -> None:
    world.sender.script = lambda request: Answer(Reply(status=500, body=echo(request)))
    endpoint = world.endpoint(headers=HEADERS)
    world.change(endpoint, url=URL)
    (delivery,) = world.deliveries(1)
    world.work_off()
    (attempt,) = world.attempts(delivery)
    assert f"POST https://h.example/hook/{MASK}?key={MASK}\n".encode() in attempt.response
    assert f"X-Api-Key: {MASK}\n".encode() in attempt.response
    assert b"Relay-Event-Type: order.paid\n" in attempt.response
    assert f"Relay-Signature: {MASK}\n".encode() in attempt.response
    assert not [each for each in CONFIDENTIAL if each in kept(world)]


@pytest.mark.parametrize("length", range(10, 700, 23))
def test_f129_a_credential_that_the_cap_cuts_in_two_is_not_kept_by_half(world: World, length: int) -> None:
    world.sender.script = lambda request: Answer(
        Reply(status=500, body=echo(request)[:length], truncated=True)
    )
    endpoint = world.endpoint(headers=HEADERS)
    world.change(endpoint, url=URL)
    world.deliveries(1)
    world.work_off()
    assert not [each for each in ("T0K3N-a", "tok-012", "k3y-012", "whsec_") if each in kept(world)]


def test_f129_a_fault_that_quotes_the_request_is_kept_without_its_credentials(world: World) -> None:
    world.sender.script = lambda request: Answer(
        Reply(fault=Fault.PROTOCOL_ERROR, detail=f"no HTTP: {echo(request)!r}")
    )
    endpoint = world.endpoint(headers=HEADERS)
    world.change(endpoint, url=URL)
    (delivery,) = world.deliveries(1)
    world.work_off()
    assert world.attempts(delivery)[0].detail.startswith("no HTTP: ")
    assert not [each for each in CONFIDENTIAL if each in kept(world)]
