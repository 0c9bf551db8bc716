"""Replays over every store: a generation is begun once, a bulk replay moves only from where it was read."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.application.ports import Extent, Generations, Owing
from chalicelib.application.replay import ancestor
from chalicelib.domain import ids
from chalicelib.domain.bulk_replay import BulkReplay, BulkState, Wanted
from chalicelib.domain.delivery import Created, Owed, Status, given_up
from chalicelib.domain.endpoint import REPLAY_LANE, Endpoint
from chalicelib.domain.outcome import DeathReason
from chalicelib.domain.replay import next_generation
from chalicelib.domain.retention import DAY_MS, PAYLOAD_DAYS, dead_until_s
from tests.contract.given import (
    HOUR_MS,
    NOW_MS,
    NOW_US,
    TENANT,
    Stores,
    endpoint,
    lane_of,
    posted,
    success,
    uncounted,
    without_moto,
)

LATER_MS = NOW_MS + 5_000


def arrived(stores: Stores, number: int, to: Endpoint, at_ms: int = NOW_MS) -> Owed:
    """Have one delivery that has succeeded."""
    owed = posted(stores, number, to, at_ms)
    assert stores.work.insert([(owed, success(owed))]) == [True]
    stores.work.close(uncounted(owed), [])
    return owed


def next_of(stores: Stores, owed: Owed, at_ms: int = LATER_MS) -> Owing:
    found = stores.reading.delivery(TENANT, owed.lane.endpoint_id, owed.delivery_id, NOW_US)
    assert found is not None
    return Owing(*next_generation(ancestor(TENANT, found, "order.paid"), at_ms))


def ttl_of(stores: Stores, owed: Owed) -> int:
    at = keys.event(TENANT, owed.event_id)
    return int(stores.tables.get([at])[at]["ttl"])


class TestBegin:
    def test_a_generation_is_begun_once(self, stores: Stores) -> None:
        to = endpoint()
        owed = arrived(stores, 1, to)
        following = next_of(stores, owed)
        assert stores.replaying.begin(following, LATER_MS)
        assert not stores.replaying.begin(following, LATER_MS)
        (row,) = stores.work.peek(lane_of(to, REPLAY_LANE), 10)
        assert row == following.owed
        assert (row.generation, row.ready_ms) == (1, LATER_MS)
        found = stores.reading.delivery(TENANT, to.id, owed.delivery_id, NOW_US)
        assert found is not None
        assert [each.generation for each in found.rows] == [0, 0, 1]
        assert found.rows[-1] == following.created

    def test_an_event_that_would_go_soon_is_kept(self, stores: Stores) -> None:
        to = endpoint()
        owed = arrived(stores, 1, to)
        before = ttl_of(stores, owed)
        assert stores.replaying.begin(next_of(stores, owed), LATER_MS)
        assert ttl_of(stores, owed) == before
        late_ms = NOW_MS + PAYLOAD_DAYS * DAY_MS - HOUR_MS
        following = next_of(stores, owed, late_ms)
        again = replace(following.owed, generation=2), replace(following.created, generation=2)
        assert stores.replaying.begin(Owing(*again), late_ms)
        assert ttl_of(stores, owed) == dead_until_s(late_ms)

    def test_an_event_that_is_gone_is_not_sent_again(self, stores: Stores) -> None:
        to = endpoint()
        owed = arrived(stores, 1, to)
        late_ms = NOW_MS + PAYLOAD_DAYS * DAY_MS + 1_000
        assert not stores.replaying.begin(next_of(stores, owed), late_ms)
        assert stores.work.peek(lane_of(to, REPLAY_LANE), 10) == []

    def test_an_ordered_event_s_place_goes_along(self, stores: Stores) -> None:
        to = endpoint()
        owed = arrived(stores, 1, to)
        found = next_of(stores, owed)
        placed = Owing(replace(found.owed, sequence=7), replace(found.created, sequence=7))
        assert stores.replaying.begin(placed, LATER_MS)
        (row,) = stores.work.peek(lane_of(to, REPLAY_LANE), 10)
        assert row.sequence == 7


def test_reconcile_walks_the_line_of_replays_until_the_endpoint_is_let_go(stores: Stores) -> None:
    to = endpoint()
    stores.endpoints.create(to)
    stores.replaying.expect(TENANT, to.id, NOW_MS)
    (watched,) = stores.watching.armed()
    assert watched.numbers == ("0", REPLAY_LANE)
    assert stores.watching.disarm(watched, watched.armed_until_ms + 1)
    assert list(stores.watching.armed()) == []
    assert not stores.gates.read([(TENANT, to.id)])[TENANT, to.id].replays


class TestDeadLetters:
    def test_they_are_listed_newest_first_with_what_was_replayed(self, stores: Stores) -> None:
        to = endpoint()
        owed = [posted(stores, number, to, NOW_MS + number) for number in range(3)]
        ends = [(each, given_up(each, DeathReason.SKIPPED, LATER_MS)) for each in owed]
        assert stores.work.move(ends) == [True] * 3
        assert stores.replaying.begin(next_of(stores, owed[1]), LATER_MS)
        page = stores.reading.dead_letters(TENANT, to.id, Extent("", 2), LATER_MS)
        assert [(each.ended.delivery_id, each.replayed) for each in page.items] == [
            (owed[2].delivery_id, False),
            (owed[1].delivery_id, True),
        ]
        rest = stores.reading.dead_letters(TENANT, to.id, Extent(page.after, 2), LATER_MS)
        assert [each.ended for each in rest.items] == [ends[0][1].ended]
        assert rest.after == ""

    def test_those_of_one_delivery_are_not_parted(self, stores: Stores) -> None:
        to = endpoint()
        owed = posted(stores, 1, to)
        stores.work.move([(owed, given_up(owed, DeathReason.SKIPPED, NOW_MS))])
        following = next_of(stores, owed)
        stores.replaying.begin(following, LATER_MS)
        stores.work.move([(following.owed, given_up(following.owed, DeathReason.SKIPPED, LATER_MS))])
        page = stores.reading.dead_letters(TENANT, to.id, Extent("", 1), LATER_MS)
        assert [(each.ended.generation, each.replayed) for each in page.items] == [(1, False), (0, True)]

    def test_an_expired_one_is_absent(self, stores: Stores) -> None:
        to = endpoint()
        owed = posted(stores, 1, to)
        stores.work.move([(owed, given_up(owed, DeathReason.SKIPPED, NOW_MS))])
        gone_ms = NOW_MS + 200 * DAY_MS
        assert stores.reading.dead_letters(TENANT, to.id, Extent("", 5), gone_ms).items == ()


def bulk(to: Endpoint, since_ms: int = 0, until_ms: int = LATER_MS) -> BulkReplay:
    wanted = Wanted(since_ms, until_ms, Status.SUCCEEDED, ("order.*", "*"))
    return BulkReplay(TENANT, ids.new_id("rp", NOW_MS, 5), to.id, wanted, NOW_MS, matched=3)


class TestBulk:
    def test_it_reads_back_as_it_was_written(self, stores: Stores) -> None:
        replay = replace(bulk(endpoint()), exact=False, reason="r", cursor="c", skipped=2, ended_ms=NOW_MS)
        stores.bulk_replays.start(replay)
        assert stores.bulk_replays.get(TENANT, replay.id) == replay
        assert stores.bulk_replays.get("other", replay.id) is None

    def test_only_one_that_runs_is_walked(self, stores: Stores) -> None:
        replay = bulk(endpoint())
        stores.bulk_replays.start(replay)
        begun = replay.begun(NOW_MS)
        assert stores.bulk_replays.replace(replay, begun)
        assert list(stores.bulk_replays.running()) == [(TENANT, replay.id, begun.due_ms)]
        paused = replace(begun.next(), state=BulkState.PAUSED)
        assert stores.bulk_replays.replace(begun, paused)
        assert list(stores.bulk_replays.running()) == []

    def test_whoever_comes_second_changes_nothing(self, stores: Stores) -> None:
        to = endpoint()
        replay = bulk(to)
        owed = arrived(stores, 1, to)
        stores.bulk_replays.start(replay)
        assert stores.bulk_replays.replace(replay, replay.begun(NOW_MS))
        assert not stores.bulk_replays.replace(replay, replay.over(BulkState.CANCELLED, NOW_MS))
        assert stores.bulk_replays.advance(replay, replay.next(), [next_of(stores, owed)], LATER_MS) is None
        assert stores.work.peek(lane_of(to, REPLAY_LANE), 10) == []

    def test_a_chunk_names_those_that_cannot_be_begun_and_writes_none(self, stores: Stores) -> None:
        to = endpoint()
        replay = bulk(to)
        stores.bulk_replays.start(replay)
        owing = [next_of(stores, arrived(stores, number, to)) for number in range(3)]
        assert stores.replaying.begin(owing[1], LATER_MS)
        moved = replace(replay.next(), cursor=owing[-1].owed.delivery_id, replayed=3)
        refused = stores.bulk_replays.advance(replay, moved, owing, LATER_MS)
        assert refused == frozenset({owing[1].owed.delivery_id})
        assert len(stores.work.peek(lane_of(to, REPLAY_LANE), 10)) == 1
        assert stores.bulk_replays.advance(replay, moved, [owing[0], owing[2]], LATER_MS) == frozenset()
        assert len(stores.work.peek(lane_of(to, REPLAY_LANE), 10)) == 3
        assert stores.bulk_replays.get(TENANT, replay.id) == moved

    @pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 100])
    def test_walking_finds_each_delivery_of_the_range_once_and_whole(
        self, stores: Stores, limit: int
    ) -> None:
        to, other = endpoint(), endpoint(1)
        owed = [arrived(stores, number, to, NOW_MS + number) for number in range(6)]
        arrived(stores, 9, other, NOW_MS + 2)
        replay = bulk(to, NOW_MS + 1, NOW_MS + 5)
        found: list[Generations] = []
        for _ in range(20):
            walked = stores.bulk_replays.walk(replay, limit)
            found += walked.deliveries
            if not walked.more:
                break
            replay = replace(replay, cursor=walked.deliveries[-1].delivery_id)
        assert [each.delivery_id for each in found] == [each.delivery_id for each in owed[1:5]]
        assert all(isinstance(each.rows[0], Created) and len(each.rows) == 2 for each in found)

    def test_events_past_their_retention_are_absent(self, stores: Stores) -> None:
        to = endpoint()
        owed = [arrived(stores, number, to) for number in range(2)]
        names = [each.event_id for each in owed]
        assert stores.bulk_replays.events(TENANT, names, NOW_MS).keys() == set(names)
        assert stores.bulk_replays.events(TENANT, names, NOW_MS + PAYLOAD_DAYS * DAY_MS) == {}
        assert stores.bulk_replays.events(TENANT, [], NOW_MS) == {}


@without_moto
def test_of_many_at_once_one_begins_a_generation(stores: Stores) -> None:
    to = endpoint()
    following = next_of(stores, arrived(stores, 1, to))
    with ThreadPoolExecutor(8) as pool:
        begun = list(pool.map(lambda _: stores.replaying.begin(following, LATER_MS), range(16)))
    assert sum(begun) == 1
    assert len(stores.work.peek(lane_of(to, REPLAY_LANE), 10)) == 1
