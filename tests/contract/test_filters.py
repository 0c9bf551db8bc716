"""Filters in the store: a mark in the subscription row, the filter in the endpoint's, read once a process."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from chalicelib.adapters.dynamodb import keys, rows
from chalicelib.adapters.dynamodb.capturing import DynamoCapturing
from chalicelib.adapters.dynamodb.records import Merge
from chalicelib.application.ports import Subscriber, Unavailable
from chalicelib.domain.endpoint import Endpoint, EndpointState, Ordering
from chalicelib.domain.pattern import members_of
from tests.contract.given import (
    NOW_MS,
    NOW_S,
    STRANGER,
    TENANT,
    Stores,
    endpoint,
    event,
    later,
    subscriber,
)

Calls = Callable[[], int]
LARGE, SMALL = '{"amount":[{"numeric":[">",100]}]}', '{"amount":[{"numeric":["<=",100]}]}'


def filtered(
    number: int = 1, filter_: str = LARGE, event_types: tuple[str, ...] = ("order.paid",)
) -> Endpoint:
    return replace(endpoint(number, event_types), filter=filter_)


def made(stores: Stores, *endpoints: Endpoint) -> None:
    for each in endpoints:
        assert stores.endpoints.create(each)


def takers(stores: Stores, event_type: str = "order.paid") -> tuple[Subscriber, ...]:
    return stores.capturing.subscribers(TENANT, [event_type])[event_type]


def passes(
    capturing: DynamoCapturing, of: Endpoint, amount: int, row: Subscriber | None = None
) -> bool | None:
    """Say whether an amount passes an endpoint's filter; None when it has none."""
    pattern = capturing.filters(TENANT, [row or subscriber(of)]).get(of.id)
    members = members_of(event(body=b'{"amount":%d}' % amount))
    return None if pattern is None or members is None else pattern.matches(members)


class TestRows:
    def test_an_endpoint_comes_back_with_its_filter(self, stores: Stores) -> None:
        of = filtered()
        made(stores, of)
        assert stores.endpoints.get(TENANT, of.id) == of

    def test_the_subscription_row_carries_a_short_mark_and_never_the_filter(self, stores: Stores) -> None:
        plain, of = endpoint(2), filtered()
        line = replace(filtered(3, SMALL), ordering=Ordering.ENDPOINT)
        made(stores, plain, of, line)
        assert takers(stores) == (subscriber(of), subscriber(plain), subscriber(line))
        assert [(each.filter != "", each.ordered) for each in takers(stores)] == [
            (True, False),
            (False, False),
            (True, True),
        ]
        assert len(of.filter_mark) == 16
        assert of.filter_mark != line.filter_mark

    @pytest.mark.parametrize("filter_", [SMALL, ""], ids=["another", "none"])
    def test_a_changed_filter_is_in_every_subscription_row_with_the_change(
        self, stores: Stores, filter_: str
    ) -> None:
        old = filtered(event_types=("a", "b.*"))
        made(stores, old)
        new = replace(old, version=2, filter=filter_)
        assert stores.endpoints.replace(old, new)
        assert stores.endpoints.get(TENANT, old.id) == new
        assert takers(stores, "a") == takers(stores, "b.c") == (subscriber(new),)

    def test_a_change_of_something_else_leaves_the_rows_alone(self, stores: Stores) -> None:
        old = filtered()
        made(stores, old)
        at = keys.subscription(TENANT, "order.paid")
        other: list[int | str] = [7, old.created_ms, 0, "another mark"]
        stores.tables.together([Merge(at, {old.id: other})])
        assert stores.endpoints.replace(old, replace(old, version=2, description="new"))
        assert [each.filter for each in takers(stores)] == ["another mark"]

    def test_rows_of_before_there_were_filters_have_none(self, stores: Stores) -> None:
        of = endpoint()
        row = {name: value for name, value in rows.endpoint_row(of).items() if name != "filter"}
        assert row == rows.endpoint_row(of)
        assert rows.subscriber_value(of) == [of.limits.lanes, of.created_ms]


class TestReading:
    def test_a_filter_is_read_once_and_for_all_that_are_new_in_one_call(
        self, stores: Stores, calls: Calls
    ) -> None:
        many = [filtered(number) for number in range(5)]
        made(stores, *many[:3])
        calls()
        assert len(stores.capturing.filters(TENANT, map(subscriber, many[:3]))) == 3
        assert calls() == 1
        assert len(stores.capturing.filters(TENANT, map(subscriber, many[:3]))) == 3
        assert calls() == 0
        made(stores, *many[3:])
        calls()
        assert len(stores.capturing.filters(TENANT, map(subscriber, many))) == 5
        assert calls() == 1

    def test_endpoints_without_a_filter_cost_no_call(self, stores: Stores, calls: Calls) -> None:
        plain = endpoint()
        made(stores, plain)
        calls()
        assert stores.capturing.filters(TENANT, [subscriber(plain)]) == {}
        assert calls() == 0

    def test_another_mark_is_another_filter(self, stores: Stores) -> None:
        old = filtered()
        made(stores, old)
        assert passes(stores.capturing, old, 500)
        new = replace(old, version=2, filter=SMALL)
        assert stores.endpoints.replace(old, new)
        assert not passes(stores.capturing, new, 500)
        assert stores.endpoints.replace(new, replace(old, version=3))
        assert passes(stores.capturing, old, 500)

    def test_a_filter_that_changed_meanwhile_counts_as_it_is_now(self, stores: Stores) -> None:
        old = filtered()
        made(stores, old)
        assert stores.endpoints.replace(old, replace(old, version=2, filter=SMALL))
        assert not passes(stores.capturing, old, 500)

    def test_a_filter_or_an_endpoint_that_is_gone_meanwhile_is_none(self, stores: Stores) -> None:
        bare, lost = filtered(1), filtered(2)
        made(stores, bare)
        assert stores.endpoints.replace(bare, replace(bare, version=2, filter=""))
        assert passes(stores.capturing, bare, 500) is None
        assert passes(stores.capturing, lost, 500) is None

    def test_a_tenant_does_not_see_anothers_filter(self, stores: Stores) -> None:
        of = filtered()
        made(stores, of)
        assert passes(stores.capturing, of, 500)
        assert stores.capturing.filters(STRANGER, [subscriber(of)]) == {}

    def test_a_filter_of_a_language_that_this_version_does_not_know_cannot_be_read(
        self, stores: Stores
    ) -> None:
        of = filtered(1, '{"amount":[{"newer-than-this":1}]}')
        made(stores, of)
        with pytest.raises(Unavailable):
            stores.capturing.filters(TENANT, [subscriber(of)])

    def test_a_deleted_endpoint_is_no_subscriber_whatever_its_filter(self, stores: Stores) -> None:
        of = filtered()
        made(stores, of)
        gone = replace(of, state=EndpointState.DELETED).next_to(of, NOW_MS)
        assert stores.endpoints.replace(of, gone)
        assert takers(stores) == ()


def test_a_later_fan_out_reads_the_event_it_is_of(stores: Stores) -> None:
    posted = event(body=b'{"amount":5}')
    stores.capturing.commit([later(posted)], NOW_S)
    found = stores.fanning_out.event(TENANT, posted.id)
    assert found is not None
    assert found.event == posted
    assert stores.fanning_out.event(STRANGER, posted.id) is None
