"""The audit: a record is there exactly when its change was made, and stays as it was written."""

from dataclasses import replace

import pytest

from chalicelib.adapters.dynamodb import auditing, keys
from chalicelib.application.ports import Unavailable
from chalicelib.domain.audit import Action, Difference, Record
from chalicelib.domain.endpoint import ORDERED_MAX, EndpointState, Ordering
from chalicelib.domain.retention import DAY_MS
from tests.contract.given import NOW_MS, TENANT, Stores, audited, endpoint

CHANGE = Difference({"url": "https://old.example/", "headers": {}}, {"url": "https://new.example/"})


def records(stores: Stores) -> list[Record]:
    return [auditing.record_of(row) for row in stores.tables.walk(keys.AUDIT)]


def test_a_record_is_read_as_it_was_written_and_kept_for_four_hundred_days(stores: Stores) -> None:
    record = replace(audited(Action.ENDPOINT_CREATED), change=CHANGE)
    stores.endpoints.create(endpoint(), record)
    (row,) = stores.tables.walk(keys.AUDIT)
    assert auditing.record_of(row) == record
    assert row["ttl"] * 1000 == NOW_MS + 400 * DAY_MS


def test_a_change_that_is_refused_leaves_no_record(stores: Stores) -> None:
    old = endpoint()
    stores.endpoints.create(old, audited(Action.ENDPOINT_CREATED))
    new = replace(old, description="new").next_to(old, NOW_MS)
    made, refused = audited(), audited()
    assert stores.endpoints.replace(old, new, made)
    assert not stores.endpoints.replace(old, replace(new, description="other"), refused)
    with pytest.raises(Unavailable):
        stores.endpoints.create(old, audited(Action.ENDPOINT_CREATED))
    assert [each.action for each in records(stores)].count(Action.ENDPOINT_CREATED) == 1
    assert made in records(stores)
    assert len(records(stores)) == 2


def test_an_ordered_endpoint_too_many_leaves_no_record(stores: Stores) -> None:
    many = [replace(endpoint(number), ordering=Ordering.ENDPOINT) for number in range(ORDERED_MAX + 1)]
    made = [stores.endpoints.create(each) for each in many]
    assert made == [True] * ORDERED_MAX + [False]
    assert len(records(stores)) == ORDERED_MAX


def test_no_record_is_ever_written_over(stores: Stores) -> None:
    """The change that would do so is refused with it."""
    old, first = endpoint(), audited(Action.ENDPOINT_CREATED)
    stores.endpoints.create(old, first)
    gone = replace(old, state=EndpointState.DELETED).next_to(old, NOW_MS)
    assert not stores.endpoints.replace(old, gone, replace(first, action=Action.ENDPOINT_DELETED))
    assert records(stores) == [first]
    assert stores.endpoints.get(TENANT, old.id) == old
