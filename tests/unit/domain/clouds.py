"""A queue and a bus in an account of somebody else's, for the tests of what is in AWS."""

from typing import Any

from chalicelib.domain.cloud.address import SERVICES
from chalicelib.domain.endpoint import Endpoint, Transport
from chalicelib.domain.signing import SignatureForm
from tests.unit.domain.examples import endpoint

CLOUDS = tuple(SERVICES)
ARNS = {
    Transport.SQS: "arn:aws:sqs:eu-west-1:123456789012:orders",
    Transport.EVENTBRIDGE: "arn:aws:events:eu-west-1:123456789012:event-bus/orders",
}
FIFO = "arn:aws:sqs:eu-west-1:123456789012:orders.fifo"
ROLE = "arn:aws:iam::123456789012:role/relay-deliver-orders"


def in_aws(transport: Transport, **changes: Any) -> Endpoint:  # noqa: ANN401 - any field, as in replace()
    """Make an endpoint in AWS that takes everything, with some fields changed."""
    usual = {"url": ARNS[transport], "role": ROLE, "signature": SignatureForm.NONE}
    return endpoint(transport=transport, **{**usual, **changes})
