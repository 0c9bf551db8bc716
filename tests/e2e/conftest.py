"""The stack that most of these tests share: a whole Relay with short timeouts, and a customer of it."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.e2e.customer import Customer, Posted
from tests.e2e.stack import RelayStack

ODD_JSON = b'{"a": 1.0,  "b":"\\u2028x","c":[ ]}\n'
CONNECT_S, READ_S, TOTAL_S = 1, 2, 3
QUICK = {
    "RELAY_CONNECT_TIMEOUT_SECS": str(CONNECT_S),
    "RELAY_READ_TIMEOUT_SECS": str(READ_S),
    "RELAY_TOTAL_TIMEOUT_SECS": str(TOTAL_S),
    "RELAY_LEASE_SECS": "7",
    "RELAY_BREAKER_COOLDOWN_SECS": "2",
    "RELAY_BREAKER_MAX_COOLDOWN_SECS": "4",
    "RELAY_RAMP_SECS": "2",
}


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RelayStack]:
    with RelayStack(tmp_path_factory.mktemp("shared"), settings=QUICK) as stack:
        yield stack


@pytest.fixture(scope="session")
def customer(shared: RelayStack) -> Iterator[Customer]:
    with Customer(shared) as customer:
        yield customer


@dataclass(frozen=True, slots=True)
class Early:
    """Deliveries that last, begun with the first test that knows of them.

    A quick profile lasts 78 s on average; the first of ten `exhausting` ends in half of that.
    """

    exhausting: list[str]
    retried: Posted


@pytest.fixture(scope="session")
def early(customer: Customer) -> Early:
    later = {"status": 503, "headers": {"Retry-After": "1"}}
    hook = customer.hook(customer.script(later, later, later, {"status": 200}), retry_profile="quick")
    exhausting = [customer.deliver("/always500", retry_profile="quick")[1] for _ in range(10)]
    return Early(exhausting, customer.post(hook.type, ODD_JSON))
