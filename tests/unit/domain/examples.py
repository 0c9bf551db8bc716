"""The secret, endpoint, event and delivery that the tests of the core start from."""

from dataclasses import replace
from typing import Any

from hypothesis import settings

from chalicelib.domain.delivery import Lane, Owed
from chalicelib.domain.endpoint import Endpoint
from chalicelib.domain.event import Event
from chalicelib.domain.secret import Secret

FEW = settings(max_examples=25)

KEY = bytes(range(32))
SECRET_TEXT = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
SECRET = Secret(SECRET_TEXT)
OTHER_SECRET = Secret("whsec_/////////////////////////////////////////w==")

EVENT_ID = "evt_019ab697-e87b-748d-8567-89abcdef0123"
ENDPOINT_ID = "ep_019a7afd-1e00-7aaa-aaaa-aaaaaaaaaaaa"
DELIVERY_ID = "019ab697-e87b-77c3-aa57-0f07dd900c04"
RECEIVED_MS = 1_764_000_000_123
RECEIVED_S = 1_764_000_000

# What one of several parsers would write otherwise: the blanks, 1.0, the escape, the final LF.
AWKWARD_BODY = b'{"a": 1.0,  "b":"\\u2028x","c":[ ]}\n'


def endpoint(**changes: Any) -> Endpoint:  # noqa: ANN401 - any field, as in replace()
    """Make an endpoint that takes everything, with some fields changed."""
    made = Endpoint("tn_1", ENDPOINT_ID, "https://hooks.example.com/in?a=1", ("*",), RECEIVED_MS - 1_000)
    return replace(made, **changes)


def event(body: bytes = b'{"id":7}', content_type: str = "application/json") -> Event:
    """Make an event of type order.paid."""
    return Event("tn_1", EVENT_ID, "order.paid", content_type, body, RECEIVED_MS)


def owed(**changes: Any) -> Owed:  # noqa: ANN401 - as endpoint()
    """Make an owed delivery that is ready and untried, with some fields changed."""
    lane = Lane("tn_1", ENDPOINT_ID, "0")
    return replace(Owed(lane, DELIVERY_ID, EVENT_ID, RECEIVED_MS), **changes)
