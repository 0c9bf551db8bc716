"""What docs/queues-and-buses.md shows is what is taken, and what it names is what is sent."""

import json
import re
from pathlib import Path

from chalicelib.domain.cloud import address, message
from chalicelib.domain.delivery import Lane
from chalicelib.domain.endpoint import Transport
from chalicelib.domain.outcome import Fault
from tests.unit.domain.clouds import in_aws
from tests.unit.domain.examples import ENDPOINT_ID, event, owed

PAGE = (Path(__file__).parents[2] / "docs" / "queues-and-buses.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
MIB, KIB = 1_048_576, 1_024


def test_the_endpoint_it_registers_may_be_one() -> None:
    given = json.loads(EXAMPLES[0].partition("\n")[2])
    arn = address.address(Transport(given["transport"]), given["url"])
    address.check_role(given["role"], arn)


def test_the_trust_policy_it_shows_lets_a_role_be_assumed_with_the_external_id_alone() -> None:
    (statement,) = json.loads(EXAMPLES[1])["Statement"]
    assert statement["Action"] == "sts:AssumeRole"
    assert statement["Condition"] == {"StringEquals": {"sts:ExternalId": "<external_id>"}}


def test_every_attribute_that_is_sent_is_named() -> None:
    ordered = owed(lane=Lane("tn_1", ENDPOINT_ID, "o0"), sequence=7)
    request = message.build(in_aws(Transport.SQS), event(b"\xff"), ordered)
    assert request.errand is not None
    sent = request.errand.parameters["MessageAttributes"]
    assert [name for name in sent if f"`{name}`" not in PAGE] == []
    assert len(sent) == 9


def test_the_sizes_and_the_fault_it_names_are_those_there_are() -> None:
    assert message.MAX_BYTES == {Transport.SQS: MIB, Transport.EVENTBRIDGE: 256 * KIB}
    assert ("above 1 MiB for a queue" in PAGE, "above 256 KiB for a bus" in PAGE) == (True, True)
    assert f"`{Fault.ACCESS_DENIED}`" in PAGE
    assert f"`{address.ROLE_PREFIX}`" in PAGE
