"""Purging on every store: rows go table by table, and a purge is begun, noted and finished once."""

from dataclasses import replace

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.purging import DynamoPurging
from chalicelib.adapters.dynamodb.records import Insert, Key
from chalicelib.adapters.dynamodb.trusting import tenant_row
from chalicelib.domain.audit import Action
from chalicelib.domain.endpoint import EndpointState, Ordering
from chalicelib.domain.purge import LetterPurge, Purge, Stage, Swept
from chalicelib.domain.tenant import Tenant, TenantState
from tests.contract.given import (
    NOW_MS,
    NOW_S,
    STRANGER,
    TENANT,
    Stores,
    audited,
    capture,
    claim,
    endpoint,
    event,
)

_LOOKED_AT = (
    keys.ENDPOINTS,
    keys.SUBS,
    keys.GATES,
    keys.OWED,
    keys.HISTORY,
    keys.EVENTS,
    keys.IDEMPOTENCY,
)
PURGED = audited(Action.TENANT_PURGED, TENANT)


@pytest.fixture
def purging(stores: Stores) -> DynamoPurging:
    return DynamoPurging(stores.tables)


def begun(stores: Stores, purging: DynamoPurging, stage: Stage = Stage.CLOSING) -> Purge:
    """Write a tenant and begin its purge."""
    old = Tenant(TENANT)
    stores.tables.each([Insert(keys.tenant(TENANT), tenant_row(old))])
    new = replace(old, state=TenantState.PURGING).next_to(old)
    purge = Purge(TENANT, NOW_MS, NOW_MS, stage)
    assert purging.begin(old, new, purge, audited(Action.TENANT_PURGED, TENANT))
    assert not purging.begin(old, new, purge, audited(Action.TENANT_PURGED, TENANT))
    return purge


def left(stores: Stores, tenant: str = TENANT) -> dict[str, int]:
    """Count a tenant's rows by table."""
    counted: dict[str, int] = {}
    for table in (
        keys.ENDPOINTS,
        keys.SUBS,
        keys.GATES,
        keys.OWED,
        keys.HISTORY,
        keys.EVENTS,
        keys.IDEMPOTENCY,
    ):
        rows = [each for each in stores.tables.walk(table) if each["pk"].partition("#")[0] == tenant]
        counted |= {table: len(rows)} if rows else {}
    return counted


def swept(purging: DynamoPurging, purge: Purge) -> int:
    """Do one stage to its end."""
    removed = 0
    for _ in range(100):
        step = purging.sweep(purge, 4)
        removed += step.removed
        if not step.after:
            return removed
        purge = replace(purge, cursor=step.after)
    raise AssertionError("the stage does not end")


def filled(stores: Stores) -> None:
    """Let a tenant, and a stranger beside it, have rows in the tables that matter."""
    mine = [endpoint(1), replace(endpoint(2), ordering=Ordering.ENDPOINT)]
    for each in [*mine, endpoint(3, tenant=STRANGER)]:
        assert stores.endpoints.create(each)
    for number in range(3):
        one = capture(event(number), mine[:1], claim(f"key {number}"))
        assert stores.capturing.commit([one], NOW_S) == [None]
    for each in mine:
        assert stores.endpoints.replace(
            each, replace(each, state=EndpointState.DELETED).next_to(each, NOW_MS)
        )


def test_each_stage_removes_its_own_and_the_last_leaves_nothing(
    stores: Stores, purging: DynamoPurging
) -> None:
    filled(stores)
    others = left(stores, STRANGER)
    purge = begun(stores, purging)
    before = left(stores)
    assert before.keys() >= {keys.OWED, keys.HISTORY, keys.EVENTS, keys.IDEMPOTENCY, keys.GATES}
    assert swept(purging, replace(purge, stage=Stage.OWN)) == 2, "the endings of what was deleted"
    swept(purging, replace(purge, stage=Stage.ENDPOINTS))
    assert not left(stores).keys() & {keys.OWED, keys.HISTORY, keys.GATES}
    assert swept(purging, replace(purge, stage=Stage.EVENTS)) == 4
    swept(purging, replace(purge, stage=Stage.SCANS))
    assert left(stores).keys() == {keys.ENDPOINTS}
    swept(purging, replace(purge, stage=Stage.LAST))
    assert left(stores) == {}
    assert left(stores, STRANGER) == others


def test_a_purge_is_noted_over_what_was_read_and_finished_once(
    stores: Stores, purging: DynamoPurging
) -> None:
    purge = begun(stores, purging)
    assert list(purging.waiting()) == [purge]
    noted = purge.after(Swept(3, ""), NOW_MS, 1_000)
    assert noted is not None
    assert purging.note(purge, noted)
    assert not purging.note(purge, noted)
    assert list(purging.waiting()) == [noted]
    assert not purging.finish(purge, PURGED)
    assert purging.finish(noted, PURGED)
    assert not purging.finish(noted, PURGED)
    assert list(purging.waiting()) == []
    assert list(stores.tables.walk(keys.TENANTS)) == []


class TestLetters:
    def letters(self, stores: Stores, count: int) -> None:
        rows = [
            Insert(Key(keys.DEAD_LETTERS, f"{TENANT}#ep_1", f"{number:04d}#0000"), {"at_ms": NOW_MS + number})
            for number in range(count)
        ]
        stores.tables.each(rows)

    def test_those_before_a_moment_are_counted_and_go_in_pages(
        self, stores: Stores, purging: DynamoPurging
    ) -> None:
        self.letters(stores, 7)
        assert purging.count_letters(TENANT, "ep_1", NOW_MS + 5, 100) == (5, True)
        purge = LetterPurge(TENANT, "ep_1", NOW_MS + 5, NOW_MS)
        assert purging.begin_letters(None, purge, audited(Action.DEAD_LETTERS_PURGED))
        removed = 0
        while not purge.done:
            step = purging.sweep_letters(purge, 3)
            removed += step.removed
            assert purging.note_letters(purge, purge.after(step))
            purge = purge.after(step)
        assert removed == 5
        assert len(list(stores.tables.walk(keys.DEAD_LETTERS))) == 2
        assert list(purging.letters_waiting()) == []
        assert purging.letters(TENANT, "ep_1") == purge, "the mark stays"

    def test_begun_again_it_takes_no_less(self, stores: Stores, purging: DynamoPurging) -> None:
        first = LetterPurge(TENANT, "ep_1", NOW_MS + 5, NOW_MS)
        assert purging.begin_letters(None, first, audited(Action.DEAD_LETTERS_PURGED))
        assert not purging.begin_letters(None, first, audited(Action.DEAD_LETTERS_PURGED))
        second = first.again(NOW_MS, NOW_MS + 9)
        assert second.before_ms == NOW_MS + 5
        assert purging.begin_letters(first, second, audited(Action.DEAD_LETTERS_PURGED))
        assert list(purging.letters_waiting()) == [second]
        assert list(purging.waiting()) == []
