"""ARNs and roles: what may be an address, by which role, and that where AWS is, is nobody's choice."""

import pytest

from chalicelib.domain.cloud import address
from chalicelib.domain.display import displayed_url, url_tokens
from chalicelib.domain.endpoint import Transport
from chalicelib.domain.errors import RelayError
from chalicelib.domain.gate import Queue
from tests.unit.domain.clouds import ARNS, CLOUDS, FIFO, ROLE

SQS, BUS = Transport.SQS, Transport.EVENTBRIDGE
GOOD = [
    (SQS, ARNS[SQS]),
    (SQS, FIFO),
    (SQS, "arn:aws-cn:sqs:cn-north-1:123456789012:q"),
    (SQS, "arn:aws-us-gov:sqs:us-gov-west-1:123456789012:q"),
    (SQS, "arn:aws:sqs:ap-southeast-2:123456789012:" + "q" * 80),
    (BUS, ARNS[BUS]),
    (BUS, "arn:aws:events:us-east-1:123456789012:event-bus/default"),
]
BAD = [
    (SQS, ARNS[BUS]),
    (BUS, ARNS[SQS]),
    (SQS, "https://sqs.eu-west-1.amazonaws.com/123456789012/orders"),
    (SQS, "arn:aws:sqs:evil.example:123456789012:orders"),
    (SQS, "arn:aws:sqs:eu-west-1.evil-1:123456789012:orders"),
    (SQS, "arn:aws:sqs:cn-north-1:123456789012:orders"),
    (SQS, "arn:aws-cn:sqs:eu-west-1:123456789012:orders"),
    (SQS, "arn:aws:sqs:us-gov-west-1:123456789012:orders"),
    (SQS, "arn:other:sqs:eu-west-1:123456789012:orders"),
    (SQS, "arn:aws:sqs::123456789012:orders"),
    (SQS, "arn:aws:sqs:eu-west-1:12345678901:orders"),
    (SQS, "arn:aws:sqs:eu-west-1:\uff11\uff12\uff13456789012:orders"),
    (SQS, "arn:aws:sqs:eu-west-1:123456789012:or/../ders"),
    (SQS, "arn:aws:sqs:eu-west-1:123456789012:orders\n"),
    (SQS, "arn:aws:sqs:eu-west-1:123456789012:" + "q" * 81),
    (SQS, "arn:aws:sns:eu-west-1:123456789012:orders"),
    (BUS, "arn:aws:events:eu-west-1:123456789012:rule/orders"),
    (BUS, "arn:aws:events:eu-west-1:123456789012:event-bus/aws.partner/x"),
]
BAD_ROLES = [
    "",
    "arn:aws:iam::123456789012:role/admin",
    "arn:aws:iam::123456789012:role/x/relay-deliver-orders",
    "arn:aws:iam::123456789012:role/relay-deliver-",
    "arn:aws:iam::123456789012:role/relay-deliver-*",
    "arn:aws:iam::123456789012:role/relay-deliver-a/b",
    "arn:aws:iam::123456789012:user/relay-deliver-orders",
    "arn:aws:iam::999999999999:role/relay-deliver-orders",
    "arn:aws-cn:iam::123456789012:role/relay-deliver-orders",
    ROLE + "\n",
    ROLE + "x" * 60,
]


@pytest.mark.parametrize("transport, arn", GOOD)
def test_an_arn_of_a_partition_and_one_of_its_regions_is_an_address(transport: Transport, arn: str) -> None:
    assert address.address(transport, arn) == arn
    assert address.transport_of(arn) is transport
    of = address.parts(arn)
    assert (of.account, of.partition in arn, of.region in arn) == ("123456789012", True, True)


@pytest.mark.parametrize("transport, arn", BAD)
def test_nothing_else_is(transport: Transport, arn: str) -> None:
    with pytest.raises(RelayError, match=r"^url_invalid") as refused:
        address.address(transport, arn)
    assert refused.value.field == "url"


def test_a_role_named_for_relay_in_the_account_of_the_address_may_be_assumed() -> None:
    address.check_role(ROLE, ARNS[SQS])


@pytest.mark.parametrize("role", BAD_ROLES)
def test_no_other_role_may(role: str) -> None:
    with pytest.raises(RelayError, match=r"^field_invalid") as refused:
        address.check_role(role, ARNS[SQS])
    assert refused.value.field == "role"


def test_each_tenant_has_an_external_id_of_its_own_that_it_cannot_choose() -> None:
    assert address.external_id("tn_1") == address.external_id("tn_1")
    assert len({address.external_id(each) for each in ("tn_1", "tn_2", "tn_11")}) == 3


@pytest.mark.parametrize("transport", CLOUDS)
def test_an_arn_is_shown_as_it_is(transport: Transport) -> None:
    assert displayed_url(ARNS[transport]) == ARNS[transport]
    assert url_tokens(ARNS[transport]) == ()


def test_what_is_in_aws_rings_on_a_queue_of_its_own() -> None:
    assert {each for each in Transport if address.queue_of(each) is Queue.CLOUD} == set(CLOUDS)
