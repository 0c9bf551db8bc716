"""What a queue's or bus's address may be, by which role it is reached, and for whom Relay says it acts.

Nothing of an address is a host: the partition and the region say where AWS is, by AWS's own rule.
Source: docs/decisions/0023.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from chalicelib.domain.endpoint import Transport
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.gate import Queue

ROLE_PREFIX = "relay-deliver-"
_REGIONS = {
    "aws": r"(?:us|eu|ap|sa|ca|me|af|il|mx)-[a-z]{2,16}-[1-9]",
    "aws-cn": r"cn-[a-z]{2,16}-[1-9]",
    "aws-us-gov": r"us-gov-[a-z]{2,16}-[1-9]",
}
_ROLE = re.compile(
    rf"arn:(?P<partition>{'|'.join(_REGIONS)}):iam::(?P<account>[0-9]{{12}})"
    rf":role/{ROLE_PREFIX}[A-Za-z0-9+=,.@_-]{{1,50}}",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Service:
    """What Relay knows of a service: its name in ARNs, what may be named there, and words for it."""

    name: str
    address: re.Pattern[str]
    address_is: str


def _service(name: str, resource: str, address_is: str) -> Service:
    places = "|".join(f"{partition}:{name}:{region}" for partition, region in _REGIONS.items())
    return Service(name, re.compile(rf"arn:(?:{places}):[0-9]{{12}}:{resource}", re.ASCII), address_is)


SERVICES: Mapping[Transport, Service] = MappingProxyType(
    {
        Transport.SQS: _service(
            "sqs",
            r"(?:[A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo)",
            "the ARN of a queue, such as arn:aws:sqs:eu-west-1:123456789012:orders",
        ),
        Transport.EVENTBRIDGE: _service(
            "events",
            r"event-bus/[A-Za-z0-9._-]{1,256}",
            "the ARN of an event bus, such as arn:aws:events:eu-west-1:123456789012:event-bus/orders",
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Address:
    """An ARN taken apart; `name` is what stands after the account."""

    partition: str
    region: str
    account: str
    name: str


def in_cloud(transport: Transport) -> bool:
    """Say whether an endpoint of a transport is a queue or bus of AWS."""
    return transport in SERVICES


def transport_of(url: str) -> Transport | None:
    """Say what kind of such an endpoint's address a URL is, None for none."""
    return next((each for each, service in SERVICES.items() if service.address.fullmatch(url)), None)


def parts(arn: str) -> Address:
    """Take a checked ARN apart."""
    _, partition, _, region, account, name = arn.split(":", 5)
    return Address(partition, region, account, name)


def address(transport: Transport, url: str) -> str:
    """Give an endpoint's address; raises RelayError naming what it has to be."""
    service = SERVICES[transport]
    if not service.address.fullmatch(url):
        raise RelayError(
            ErrorCode.URL_INVALID,
            f"The URL is not the address of an {transport.value} endpoint.",
            field="url",
            expected=service.address_is,
        )
    return url


def check_role(role: str, url: str) -> None:
    """Raise RelayError unless a role may be assumed, and belongs to the account of an address."""
    found = _ROLE.fullmatch(role)
    of = parts(url)
    if found is None or (found["partition"], found["account"]) != (of.partition, of.account):
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            "`role` is no role that Relay may assume for this endpoint.",
            field="role",
            expected=f"arn:{of.partition}:iam::{of.account}:role/{ROLE_PREFIX}…: a role whose name begins so,"
            " in the account of the URL",
        )


def external_id(tenant: str) -> str:
    """Give what Relay names to each role it assumes for a tenant, and for no other.

    Relay makes it and no tenant can choose it: a role that demands it lets nobody else's endpoint in.
    """
    return f"relay:{tenant}"


def queue_of(transport: Transport) -> Queue:
    """Say on which queue a new endpoint rings: what is in AWS has its own for good."""
    return Queue.CLOUD if in_cloud(transport) else Queue.SHARD
