"""Lists are stable under inserts: while rows are written, a walk sees all that was there exactly once."""

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.application.ports import Extent
from chalicelib.domain.delivery import Status
from tests.contract.busy_history import ACTS, BusyHistory, Walk, pages, whole
from tests.contract.given import TENANT, stores_over
from tests.fakes.memory_tables import MemoryTables

ALL = Extent("", 1_000)
Acts = list[tuple[Callable[[BusyHistory, int], None], int]]
acts: st.SearchStrategy[Acts] = st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 10_000)), max_size=6)
LISTS = sorted(BusyHistory(stores_over(MemoryTables())).lists())


def do(busy: BusyHistory, some: Acts) -> None:
    for act, number in some:
        act(busy, number)


def always_there(before: set[str], walk: Walk) -> set[str]:
    """Give what was listed before and is listed still: of a list by status, what kept its status."""
    return before & set(whole(walk))


@pytest.mark.parametrize("name", LISTS)
@settings(max_examples=40)
@given(st.lists(acts, min_size=2, max_size=8), st.lists(acts, max_size=20), st.integers(1, 4))
def test_a_walk_sees_what_was_there_exactly_once_while_rows_are_written(
    name: str, before: list[Acts], meanwhile: list[Acts], limit: int
) -> None:
    busy = BusyHistory(stores_over(MemoryTables()))
    for some in before:
        do(busy, some)
    walk = busy.lists()[name]
    kept = set(whole(walk))
    seen: Counter[str] = Counter()
    left = list(meanwhile)
    for page in pages(walk, limit):
        seen.update(page)
        do(busy, left.pop() if left else [])
        kept = always_there(kept, walk)
    assert {each: seen[each] for each in kept} == dict.fromkeys(kept, 1)
    assert not [each for each, times in seen.items() if times > 1]


@pytest.mark.parametrize("name", LISTS)
@settings(max_examples=25)
@given(st.lists(acts, min_size=4, max_size=10), st.integers(1, 5))
def test_a_page_s_size_changes_nothing_of_what_is_listed(name: str, before: list[Acts], limit: int) -> None:
    busy = BusyHistory(stores_over(MemoryTables()))
    for some in before:
        do(busy, some)
    walk = busy.lists()[name]
    assert [each for page in pages(walk, limit) for each in page] == whole(walk)


@settings(max_examples=40)
@given(st.lists(acts, min_size=4, max_size=10), st.integers(1, 5))
def test_each_delivery_is_listed_by_its_status_and_by_no_other(before: list[Acts], limit: int) -> None:
    """Whether what waits is looked up among what is owed or for in history is a matter of the page's size."""
    busy = BusyHistory(stores_over(MemoryTables()))
    for some in before:
        do(busy, some)
    told = {
        each.delivery_id: each.status for each in busy.questions.deliveries(TENANT, busy.to.id, ALL).items
    }
    lists = busy.lists()
    for status in Status:
        listed = [each for page in pages(lists[f"{status.value} deliveries"], limit) for each in page]
        assert listed == [each for each, its in told.items() if its is status]
