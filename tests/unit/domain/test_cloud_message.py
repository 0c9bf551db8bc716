"""What queues and buses are told: the event as it is, and Relay's headers in what each has for that."""

import base64
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain import request as requests
from chalicelib.domain.cloud import message
from chalicelib.domain.delivery import Lane
from chalicelib.domain.endpoint import Transport
from chalicelib.domain.signing import SignatureForm
from tests.unit.domain.clouds import ARNS, CLOUDS, FIFO, ROLE, in_aws
from tests.unit.domain.examples import DELIVERY_ID, ENDPOINT_ID, EVENT_ID, FEW, event, owed

SQS, BUS = Transport.SQS, Transport.EVENTBRIDGE
_TAKEN = re.compile("[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]+")


def errand(transport: Transport, body: bytes = b'{"id":7}', **changes: object) -> requests.Errand:
    made = message.build(in_aws(transport), event(body), owed(**changes)).errand
    assert made is not None
    return made


@pytest.mark.parametrize("transport", CLOUDS)
def test_an_errand_names_the_role_and_for_whom_it_is_assumed(transport: Transport) -> None:
    request = message.build(in_aws(transport), event(), owed())
    assert request.errand is not None
    assert (request.errand.role, request.errand.external_id) == (ROLE, "relay:tn_1")
    assert (request.url, request.signed_with, request.custom) == (ARNS[transport], (), ())


def test_a_queue_gets_the_bytes_and_relays_headers_as_attributes() -> None:
    assert errand(SQS, b'{"a": 1.0,  "b":"x"}\n').parameters == {
        "MessageBody": '{"a": 1.0,  "b":"x"}\n',
        "MessageAttributes": {
            name: {"DataType": "String", "StringValue": value}
            for name, value in {
                "Relay-Delivery-Id": DELIVERY_ID,
                "Relay-Event-Id": EVENT_ID,
                "Relay-Event-Type": "order.paid",
                "Relay-Event-Time": "2025-11-24T16:00:00.123Z",
                "Relay-Attempt": "1",
                "Relay-Generation": "0",
                "Content-Type": "application/json",
            }.items()
        },
    }


@FEW
@given(st.binary(min_size=1, max_size=40) | st.text(min_size=1, max_size=20).map(str.encode))
def test_f024_whatever_the_bytes_a_queue_takes_them_and_its_reader_has_them_back(body: bytes) -> None:
    parameters = errand(SQS, body, sequence=7).parameters
    text, attributes = parameters["MessageBody"], parameters["MessageAttributes"]
    assert _TAKEN.fullmatch(text)
    assert len(attributes) <= 10, "a queue takes ten"
    coded = message.ENCODING in attributes
    assert (base64.b64decode(text) if coded else text.encode()) == body


def test_a_fifo_queue_is_told_the_order_and_what_it_has_had() -> None:
    def said(**changes: object) -> tuple[str, str]:
        request = message.build(in_aws(SQS, url=FIFO), event(), owed(**changes))
        assert request.errand is not None
        of = request.errand.parameters
        return of["MessageGroupId"], of["MessageDeduplicationId"]

    ordered = Lane("tn_1", ENDPOINT_ID, "o0")
    assert said() == (EVENT_ID, DELIVERY_ID)
    assert said(made=3) == said(), "a retry of what arrived is taken once"
    assert said(lane=ordered, sequence=4) == (ENDPOINT_ID, DELIVERY_ID)
    assert said(generation=2) == (EVENT_ID, f"{DELIVERY_ID}.2"), "a replay is a new one"
    assert "MessageGroupId" not in errand(SQS).parameters


def test_a_bus_gets_json_as_its_detail() -> None:
    of = dict(errand(BUS, b'{"a": 1.0,  "b":"x"}\n', generation=1).parameters)
    named = dict(each.split(":", 1) for each in of.pop("Resources"))
    assert of == {
        "EventBusName": ARNS[BUS],
        "Source": "relay",
        "DetailType": "order.paid",
        "Time": 1_764_000_000.123,
        "Detail": '{"a": 1.0,  "b":"x"}\n',
    }
    assert (named["Relay-Delivery-Id"], named["Relay-Generation"]) == (DELIVERY_ID, "1")


@pytest.mark.parametrize(
    "body, detail",
    [
        (b"plain", {"body": "plain"}),
        (b"[1]", {"body": "[1]"}),
        (b'{"a":NaN}', {"body": '{"a":NaN}'}),
        (b"\xef\xbb\xbf{}", {"body": "\ufeff{}"}),
        (b"\xff", {"body_base64": "/w=="}),
        (b"[" * 100_000, {"body": "[" * 100_000}),
    ],
)
def test_what_is_no_json_object_has_one_around_it(body: bytes, detail: object) -> None:
    assert json.loads(errand(BUS, body).parameters["Detail"]) == detail


def test_a_size_counts_what_each_service_counts() -> None:
    assert errand(SQS, b"x" * 1000).size - errand(SQS, b"x").size == 999
    assert errand(SQS, b"x").size == 1 + sum(
        len(name) + len("String") + len(of["StringValue"])
        for name, of in errand(SQS, b"x").parameters["MessageAttributes"].items()
    )
    assert errand(BUS, b"{}").size == 14 + len("relay") + len("order.paid") + 2 + sum(
        len(each) for each in errand(BUS, b"{}").parameters["Resources"]
    )


@pytest.mark.parametrize("transport", CLOUDS)
def test_what_history_keeps_tells_later_what_was_said(transport: Transport) -> None:
    of = in_aws(transport)
    request = message.build(of, event(), owed())
    kept = requests.kept(of, request)
    assert (kept.url, kept.form, kept.signature) == (ARNS[transport], SignatureForm.NONE, "")
    told = dict(message.again(kept.url, transport, event(), owed()))
    assert (told["Relay-Delivery-Id"], told["Relay-Attempt"]) == (DELIVERY_ID, "1")
