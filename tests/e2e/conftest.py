"""The stack that most of these tests share: a whole Relay with short timeouts, and a customer of it."""

from collections.abc import Iterator

import pytest

from tests.e2e.customer import Customer
from tests.e2e.stack import RelayStack

CONNECT_S, READ_S, TOTAL_S = 1, 2, 3
QUICK = {
    "RELAY_CONNECT_TIMEOUT_SECS": str(CONNECT_S),
    "RELAY_READ_TIMEOUT_SECS": str(READ_S),
    "RELAY_TOTAL_TIMEOUT_SECS": str(TOTAL_S),
    "RELAY_LEASE_SECS": "7",
}


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RelayStack]:
    with RelayStack(tmp_path_factory.mktemp("shared"), settings=QUICK) as stack:
        yield stack


@pytest.fixture(scope="session")
def customer(shared: RelayStack) -> Iterator[Customer]:
    with Customer(shared) as customer:
        yield customer


@pytest.fixture(scope="session")
def exhausting(customer: Customer) -> list[str]:
    """Give the ids of deliveries of the quick profile that always fail, begun with the first test.

    They last 78 s on average; the first of ten ends in half of that.
    """
    return [customer.deliver("/always500", retry_profile="quick")[1] for _ in range(10)]
