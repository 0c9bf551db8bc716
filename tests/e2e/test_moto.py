"""Relay delivers on moto as well: a selection of the other modules' tests on a stack with that emulator.

moto stands behind a lock, is asked without waiting inside it, and forgets everything in the end.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from infra.local.emulator import EmulatorName
from tests.e2e.conftest import QUICK
from tests.e2e.customer import Customer
from tests.e2e.stack import RelayStack
from tests.e2e.test_delivery import (
    test_a_batch_carries_bytes_too,
    test_a_changed_endpoint_binds_from_the_next_attempt,
    test_a_deleted_endpoint_ends_what_it_was_owed,
    test_a_delivery_is_signed_as_its_endpoint_wants,
    test_an_event_that_nobody_takes_is_kept,
    test_custom_headers_arrive_and_are_shown_masked,
    test_every_subscribed_endpoint_gets_its_own_delivery,
    test_gone_disables_the_endpoint_and_stops_what_is_pending,
    test_the_bytes_posted_are_the_bytes_sent_and_shown,
)
from tests.e2e.test_durability import check_one_event, identical

__all__ = [
    "test_a_batch_carries_bytes_too",
    "test_a_changed_endpoint_binds_from_the_next_attempt",
    "test_a_deleted_endpoint_ends_what_it_was_owed",
    "test_a_delivery_is_signed_as_its_endpoint_wants",
    "test_an_event_that_nobody_takes_is_kept",
    "test_custom_headers_arrive_and_are_shown_masked",
    "test_every_subscribed_endpoint_gets_its_own_delivery",
    "test_gone_disables_the_endpoint_and_stops_what_is_pending",
    "test_the_bytes_posted_are_the_bytes_sent_and_shown",
]
# moto copies all of its tables for each transaction, so a crowd is made of few.
SETTINGS = {**QUICK, "RELAY_INLINE_FANOUT_MAX": "3"}


@pytest.fixture(scope="module")
def customer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Customer]:
    state = tmp_path_factory.mktemp("moto")
    with (
        RelayStack(state, emulator=EmulatorName.MOTO, settings=SETTINGS) as stack,
        Customer(stack, patience_s=120) as customer,
    ):
        yield customer


def test_simultaneous_identical_requests_make_one_event_too(customer: Customer) -> None:
    hook = customer.hook("/verify/{key}")
    with ThreadPoolExecutor(100) as pool:
        check_one_event(customer, hook, identical(customer, hook, "on moto", pool))


def test_a_later_fan_out_reaches_every_endpoint_too(customer: Customer) -> None:
    hooks = [customer.hook("/sink", event_types=["crowd.paid"]) for _ in range(8)]
    posted = customer.post("crowd.paid")
    assert posted.fan_out == "later"
    for hook in hooks:
        (only,) = customer.all_ended(hook.id, 1)
        assert (only["status"], only["event_id"]) == ("succeeded", posted.event_id)
