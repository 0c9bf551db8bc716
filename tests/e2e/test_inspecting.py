"""The inspector against the receiver's log, its line against the receiver, and the test of an endpoint."""

import base64
import hashlib
import subprocess
from typing import Any

import pytest

from tests.e2e.conftest import ODD_JSON
from tests.e2e.customer import Customer, Record

BODIES = {
    "odd JSON": (ODD_JSON, "application/json"),
    "every byte": (bytes(range(256)), "application/octet-stream"),
    "what a shell reads": (b'@it\'s $(id) `id` "!!" \\\n', "text/plain; charset=utf-8"),
    "60 KB": (b"".join(hashlib.sha256(n.to_bytes(2)).digest() for n in range(1_875)), "image/png"),
}
CUSTOM = {"X-Api-Key": "e2e-custom-value-84721", "x-team": "billing-e2e-84721"}
FORMS: dict[str, Record] = {
    "relay": {"signature": "relay"},
    "standard": {"signature": "standard"},
    "ordered": {"ordering": "endpoint"},
}


def inspected(customer: Customer, delivery_id: str, **query: str) -> Any:  # noqa: ANN401 - JSON
    answer = customer.api.get(f"/v1/deliveries/{delivery_id}/request", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def bytes_of(request: Record) -> bytes:
    if request["body"] is not None:
        return str(request["body"]).encode()
    return base64.b64decode(request["body_base64"])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BODIES)
def test_what_is_shown_is_what_the_receiver_got_header_by_header(
    customer: Customer, name: str, form: str
) -> None:
    body, content_type = BODIES[name]
    hook = customer.hook("/verify/{key}", headers=CUSTOM, **FORMS[form])
    posted = customer.post(hook.type, body, content_type)
    customer.tried(posted.delivery_id)
    (got,) = customer.received(delivery_id=posted.delivery_id)
    request = inspected(customer, posted.delivery_id)["request"]
    masked = {each.lower(): "********" for each in CUSTOM}
    shown = [(each["name"].lower(), each["value"]) for each in request["headers"]]
    assert shown == list({**got["headers"], **masked}.items())
    assert hashlib.sha256(bytes_of(request)).hexdigest() == got["body_sha256"]
    assert (request["method"], request["size_bytes"]) == ("POST", len(body))


@pytest.mark.parametrize("name", BODIES)
def test_the_line_is_run_and_its_signature_holds(customer: Customer, name: str) -> None:
    body, content_type = BODIES[name]
    hook = customer.hook("/sink")
    posted = customer.post(hook.type, body, content_type)
    customer.tried(posted.delivery_id)
    to = f"{customer.stack.receiver_url}/verify/{hook.type}"
    line = inspected(customer, posted.delivery_id, to=to)["curl"]
    subprocess.run(["/bin/sh", "-c", line], check=True, capture_output=True, timeout=30)
    (again,) = customer.received(delivery_id=posted.delivery_id, path=f"/verify/{hook.type}")
    assert (again["verified"], again["body_sha256"]) == (True, hashlib.sha256(body).hexdigest())


def test_every_attempt_and_every_generation_can_be_looked_at(customer: Customer) -> None:
    hook = customer.hook(customer.script({"status": 503, "headers": {"Retry-After": "1"}}, {"status": 200}))
    posted = customer.post(hook.type)
    customer.ended(posted.delivery_id)
    customer.api.post(f"/v1/deliveries/{posted.delivery_id}/replay").raise_for_status()
    customer.arrived(3, delivery_id=posted.delivery_id)
    customer.ended(posted.delivery_id)
    got = customer.received(delivery_id=posted.delivery_id)
    places = [("0", "1"), ("0", "2"), ("1", "1")]
    for received, (generation, attempt) in zip(got, places, strict=True):
        said = inspected(customer, posted.delivery_id, generation=generation, attempt=attempt)
        shown = {each["name"].lower(): each["value"] for each in said["request"]["headers"]}
        assert shown == received["headers"]


def test_a_test_answers_with_its_attempt(customer: Customer) -> None:
    hook = customer.hook("/verify/{key}")
    answer = customer.api.post(f"/v1/endpoints/{hook.id}/test")
    assert answer.status_code == 200, answer.text
    said = answer.json()
    assert (said["status"], said["attempt"]["status"]) == ("succeeded", 200)
    (got,) = customer.received(delivery_id=said["delivery_id"])
    assert (got["verified"], got["headers"]["relay-event-type"]) == (True, "relay.test")


def test_a_test_that_fails_is_tried_once(customer: Customer) -> None:
    hook = customer.hook("/always500")
    said = customer.api.post(f"/v1/endpoints/{hook.id}/test").json()
    assert (said["status"], said["attempt"]["status"]) == ("dead", 500)
    assert customer.dead_letters(hook.id) == []
    assert customer.count(delivery_id=said["delivery_id"]) == 1
