"""What a rebuild writes, on every store: what history says, over what is lost or wrong, and nothing else."""

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.adapters.dynamodb import keys, rows
from chalicelib.adapters.dynamodb.rebuilding import DynamoRebuilding
from chalicelib.adapters.dynamodb.records import Delete, Insert, Key, Put
from chalicelib.application.rebuild import Rebuild, Rebuilt
from chalicelib.domain.delivery import Again, Owed, given_up
from chalicelib.domain.endpoint import Endpoint, Limits
from chalicelib.domain.gate import HoldReason, Spell
from chalicelib.domain.outcome import DeathReason
from tests.contract.given import (
    NOW_MS,
    NOW_US,
    RULES,
    TENANT,
    Stores,
    endpoint,
    failure,
    posted,
    success,
    uncounted,
)
from tests.fakes.fixed_clock import FixedClock

WIDE = Limits(max_concurrency=25)


@pytest.fixture
def rebuild(stores: Stores) -> Rebuild:
    return Rebuild(DynamoRebuilding(stores.tables), FixedClock(NOW_MS + 60_000), RULES)


def full(stores: Stores) -> tuple[Endpoint, list[Owed]]:
    """Have an endpoint with deliveries that wait, were tried, have arrived and are dead; give the owed."""
    of = endpoint(limits=WIDE)
    stores.endpoints.create(of)
    owed = [posted(stores, number, of) for number in range(30)]
    stores.work.insert([(each, success(each)) for each in owed[:10]])
    stores.work.close(uncounted(*owed[:10]), [])
    stores.work.move([(each, given_up(each, DeathReason.REFUSED, NOW_MS)) for each in owed[10:15]])
    later = [
        replace(each, made=1, counted=1, first_ms=NOW_MS, ready_ms=NOW_MS + 90_000) for each in owed[15:20]
    ]
    moves = [
        (old, Again(replace(failure(old), next_ms=new.ready_ms), new))
        for old, new in zip(owed[15:20], later, strict=True)
    ]
    assert all(stores.work.move(moves))
    spell = Spell(HoldReason.RATE_LIMIT, NOW_US - 9_000_000, NOW_US - 2_000_000)
    stores.work.insert([], [((TENANT, of.id), spell)])
    return of, [*later, *owed[20:]]


def derived(stores: Stores) -> dict[Key, Any]:
    tables = (keys.OWED, keys.DEAD_LETTERS)
    found = {
        Key(table, each["pk"], each["sk"]): dict(each)
        for table in tables
        for each in stores.tables.walk(table)
    }
    for record in found.values():
        record.pop("held_before_ms", None)
    return found


def test_what_is_whole_stays_as_it_is(stores: Stores, rebuild: Rebuild) -> None:
    of, owed = full(stores)
    before = derived(stores)
    assert len(before) == len(owed) + 5
    assert rebuild.run() == Rebuilt(endpoints=1)
    assert derived(stores) == before
    assert [each.endpoint_id for each in stores.watching.armed()] == [of.id]


def test_what_is_lost_comes_back(stores: Stores, rebuild: Rebuild) -> None:
    of, owed = full(stores)
    before = derived(stores)
    lost = list(before)[::3]
    gate = keys.gate(TENANT, of.id)
    stores.tables.each([Delete(key) for key in (*lost, gate)])
    done = rebuild.run()
    dead = sum(key.table == keys.DEAD_LETTERS for key in lost)
    assert (done.gates, done.owed, done.dead_letters) == (1, len(lost) - dead, dead)
    assert (done.removed, done.unexplained) == (0, 0)
    assert derived(stores) == before
    (made,) = stores.gates.read([(TENANT, of.id)]).values()
    assert (made.slots, made.cap, made.lanes, made.held_sum) == (25, 25, 3, 7_000_000)
    tried = [each for number in range(made.lanes) for each in stores.work.peek(lane(owed, number), 50)]
    assert {each.held_before_ms for each in tried if each.first_ms} == {7_000}


def lane(owed: list[Owed], number: int | str) -> Any:  # noqa: ANN401 - a Lane
    return replace(owed[0].lane, number=str(number))


def test_what_is_wrong_is_put_right(stores: Stores, rebuild: Rebuild) -> None:
    of, owed = full(stores)
    before = derived(stores)
    tried, arrived = owed[0], posted(stores, 99, of)
    stores.work.insert([(arrived, success(arrived))])
    wrong = rows.owed_row(replace(tried, counted=9))
    early = replace(tried, made=0, ready_ms=NOW_MS)
    strange = replace(tried, generation=3, made=0)
    stores.tables.together([Put(keys.owed(tried), wrong), *(_insert(each) for each in (early, strange))])
    done = rebuild.run()
    assert (done.corrected, done.removed, done.unexplained, done.owed) == (1, 2, 1, 0)
    assert derived(stores) == before | {keys.owed(strange): _record(strange)}


def _insert(owed: Owed) -> Insert:
    return Insert(keys.owed(owed), rows.owed_row(owed))


def _record(owed: Owed) -> dict[str, Any]:
    return {**keys.owed(owed).parts, **rows.owed_row(owed)}
