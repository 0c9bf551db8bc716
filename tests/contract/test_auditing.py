"""The audit: a record is there exactly when its change was made, and stays as it was written."""

from dataclasses import replace

import pytest

from chalicelib.adapters.dynamodb import auditing, keys
from chalicelib.application.ports import Asking, Unavailable
from chalicelib.domain import audit, ids
from chalicelib.domain.audit import Action, Difference, Record
from chalicelib.domain.endpoint import ORDERED_MAX, EndpointState, Ordering
from chalicelib.domain.retention import DAY_MS
from tests.contract.given import BY, NOW_MS, STRANGER, TENANT, Stores, audited, endpoint, without_moto

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


class TestPage:
    NOW_MS = NOW_MS + 10_000

    def written(self, stores: Stores, count: int) -> list[Record]:
        """Write records of a thing and of its neighbour in turn, a second apart, newest last."""
        made = []
        for number in range(count):
            action = Action.ENDPOINT_DISABLED if number % 2 else Action.ENDPOINT_ENABLED
            at_ms = NOW_MS + number * 1_000
            name = ids.new_id(audit.PREFIX, at_ms, number)
            made.append(Record(TENANT, name, at_ms, action, f"ep_{number % 2}", BY))
        stores.tables.each([auditing.recorded(each) for each in made])
        return made

    def walked(self, stores: Stores, asking: Asking, limit: int) -> list[Record]:
        found: list[Record] = []
        after = ""
        for _ in range(50):
            page = stores.auditing.page(TENANT, asking, after, limit, self.NOW_MS)
            assert len(page.items) <= limit
            found += page.items
            after = page.after
            if not after:
                return found
        raise AssertionError("the list does not end")

    @pytest.mark.parametrize("limit", [1, 2, 3, 5, 50])
    def test_the_newest_come_first_and_each_once(self, stores: Stores, limit: int) -> None:
        made = self.written(stores, 5)
        assert self.walked(stores, Asking(), limit) == made[::-1]

    def test_it_is_asked_by_action_by_subject_and_by_time(self, stores: Stores) -> None:
        made = self.written(stores, 6)
        assert self.walked(stores, Asking(Action.ENDPOINT_DISABLED), 2) == [made[5], made[3], made[1]]
        assert self.walked(stores, Asking(subject="ep_0"), 2) == [made[4], made[2], made[0]]
        between = Asking(since_ms=NOW_MS + 1_000, until_ms=NOW_MS + 4_000)
        assert self.walked(stores, between, 2) == [made[3], made[2], made[1]]
        assert self.walked(stores, Asking(since_ms=NOW_MS + 4_000, until_ms=NOW_MS), 2) == []

    def test_what_is_written_meanwhile_moves_no_page(self, stores: Stores) -> None:
        made = self.written(stores, 4)
        first = stores.auditing.page(TENANT, Asking(), "", 2, self.NOW_MS)
        newer = Record(TENANT, ids.new_id(audit.PREFIX, NOW_MS + 9_000, 9), 0, Action.KEY_CREATED, "k", BY)
        stores.tables.each([auditing.recorded(newer)])
        second = stores.auditing.page(TENANT, Asking(), first.after, 2, self.NOW_MS)
        assert [*first.items, *second.items] == made[::-1]

    def test_a_record_past_its_days_is_listed_no_more(self, stores: Stores) -> None:
        (old,) = self.written(stores, 1)
        until_ms = old.at_ms + 400 * DAY_MS
        assert stores.auditing.page(TENANT, Asking(), "", 5, until_ms - 1_000).items == (old,)
        assert stores.auditing.page(TENANT, Asking(), "", 5, until_ms).items == ()

    def test_another_tenant_s_are_not_there(self, stores: Stores) -> None:
        self.written(stores, 1)
        assert stores.auditing.page(STRANGER, Asking(), "", 5, self.NOW_MS).items == ()

    @without_moto
    def test_a_page_looks_at_a_thousand_and_goes_on(self, stores: Stores) -> None:
        made = self.written(stores, 1_100)
        rare = Record(
            TENANT, ids.new_id(audit.PREFIX, NOW_MS - 1, 1), NOW_MS - 1, Action.KEY_CREATED, "k", BY
        )
        stores.tables.each([auditing.recorded(rare)])
        page = stores.auditing.page(TENANT, Asking(Action.KEY_CREATED), "", 5, self.NOW_MS)
        assert (page.items, page.after in {each.id for each in made}) == ((), True)
        assert self.walked(stores, Asking(Action.KEY_CREATED), 5) == [rare]
