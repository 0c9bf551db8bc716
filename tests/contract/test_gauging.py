"""Gauges and canaries: what is kept is found again, and lanes are counted in passing."""

from dataclasses import replace

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.gauging import DynamoGauging, DynamoGlancing
from chalicelib.adapters.dynamodb.records import Glance, Insert, Key, Tables
from chalicelib.adapters.dynamodb.reporting import DynamoReporting
from chalicelib.adapters.sqs import Queues, SqsCanaries, shards
from chalicelib.application.ports import Unavailable
from chalicelib.application.ports.gauging import Canaries, Glimpse
from chalicelib.application.ports.reporting import Reported
from chalicelib.domain import metrics
from chalicelib.domain.delivery import Lane, Owed
from chalicelib.domain.gauging import Run, Seen, Signs
from chalicelib.domain.metrics import Schedule
from chalicelib.wire import bell as wire
from infra.local.provision import Provisioned
from tests.contract.emulated import json_service
from tests.contract.given import MEMORY, NOW_MS, everywhere
from tests.fakes.memory_canaries import MemoryCanaries

LANE = Lane("acme", "ep_01a22a7c-5366-79c3-90eb-70e6bdfad2fa", "0")
ORDERED = Lane(LANE.tenant, LANE.endpoint_id, "o0")
SHARD = "shard-0.fifo"
RESCUED = (metrics.RESCUED.name, "")


def owed(tables: Tables, count: int, lane: Lane = LANE) -> list[Owed]:
    """Owe deliveries a second apart; of an ordered lane the first is ready last."""
    rows = [
        Owed(
            lane,
            f"01a22a7c-5366-79c3-90eb-{number:012d}",
            "evt_1",
            NOW_MS + 1_000 * (-number if lane.ordered else number),
            0,
            sequence=number,
        )
        for number in range(1, count + 1)
    ]
    stored = {"event": "evt_1", "noise": "x" * 200}
    ready = [{"ready_ms": row.ready_ms} if lane.ordered else {} for row in rows]
    tables.each([Insert(keys.owed(row), {**stored, **more}) for row, more in zip(rows, ready, strict=True)])
    return rows


class TestGlances:
    def test_an_empty_lane_is_owed_nothing(self, tables: Tables) -> None:
        assert DynamoGlancing(tables).glance([LANE], 100) == [Glimpse()]

    def test_lanes_are_seen_in_the_order_asked(self, tables: Tables) -> None:
        first = owed(tables, 3)[0]
        seen = DynamoGlancing(tables).glance([ORDERED, LANE, ORDERED], 100)
        assert seen == [Glimpse(), Glimpse(3, first.ready_ms), Glimpse()]

    def test_of_an_ordered_lane_the_first_row_says_when_it_is_ready(self, tables: Tables) -> None:
        first = owed(tables, 2, ORDERED)[0]
        (seen,) = DynamoGlancing(tables).glance([ORDERED], 100)
        assert seen == Glimpse(2, first.ready_ms)

    @pytest.mark.parametrize("count, most", [(40, 100), (40, 30)])
    def test_rows_are_counted_up_to_a_bound(self, tables: Tables, count: int, most: int) -> None:
        owed(tables, count)
        (seen,) = DynamoGlancing(tables).glance([LANE], most)
        assert (seen.count, seen.complete) == (min(count, most), count < most)

    def test_little_of_a_row_is_read(self, tables: Tables) -> None:
        first = owed(tables, 1, ORDERED)[0]
        seen = tables.glance(keys.OWED, keys.lane(ORDERED), ("ready_ms",), 10)
        assert seen == Glance({"sk": keys.owed(first).sk, "ready_ms": first.ready_ms}, 1, more=False)


class TestSigns:
    def test_of_a_new_installation_nothing_is_known(self, tables: Tables) -> None:
        assert DynamoGauging(tables).signs([SHARD]) == Signs()

    def test_the_newest_reading_stands_and_the_first_says_since_when(self, tables: Tables) -> None:
        gauging = DynamoGauging(tables)
        oldest, depth = (metrics.OLDEST_PENDING.name, ""), (metrics.DEPTH.name, "")
        gauging.keep(Seen(NOW_MS, {oldest: 61.5, depth: 7, (metrics.BREAKERS.name, "open"): 2}))
        gauging.keep(Seen(NOW_MS + 60_000, {depth: 0}))
        assert gauging.signs([]) == Signs(NOW_MS, Seen(NOW_MS + 60_000, {depth: 0}))

    def test_an_older_canary_changes_nothing(self, tables: Tables) -> None:
        gauging = DynamoGauging(tables)
        for rung_ms in (NOW_MS, NOW_MS + 60_000, NOW_MS + 1):
            gauging.came_through(SHARD, rung_ms)
        assert gauging.signs([SHARD, "shard-1.fifo"]).canaries == {SHARD: NOW_MS + 60_000}

    def test_the_last_run_of_each_schedule_is_known(self, tables: Tables) -> None:
        gauging = DynamoGauging(tables)
        for run in (Run(NOW_MS, 3), Run(NOW_MS + 1)):
            gauging.finished(Schedule.RETENTION, run)
        gauging.finished(Schedule.NOTIFY, Run(NOW_MS))
        assert gauging.signs([]).runs == {
            Schedule.RETENTION: Run(NOW_MS + 1),
            Schedule.NOTIFY: Run(NOW_MS),
        }

    def test_each_change_is_one_write(self, tables: Tables) -> None:
        DynamoGauging(tables).finished(Schedule.NOTIFY, Run(NOW_MS))
        at = Key(keys.METRICS, "run#notify")
        assert tables.get([at]) == {at: {"pk": "run#notify", "at_ms": NOW_MS, "overdue": 0}}


class TestReports:
    def test_each_takes_the_place_of_the_one_before_and_is_found_again(self, tables: Tables) -> None:
        store = DynamoReporting(tables)
        assert store.last() is None
        first = Reported(1, NOW_MS, {RESCUED: 3}, {})
        assert store.write_down(first, None)
        assert store.last() == first
        told = store.mark_told(first)
        assert store.last() == told == replace(first, told=True)
        second = Reported(2, NOW_MS + 60_000, {RESCUED: 5}, {RESCUED: 3})
        assert store.write_down(second, told)
        assert store.last() == second

    def test_only_one_of_two_takes_a_place(self, tables: Tables) -> None:
        store = DynamoReporting(tables)
        first = Reported(1, NOW_MS, {}, {})
        assert store.write_down(first, None)
        assert not store.write_down(replace(first, at_ms=NOW_MS + 1), None)
        assert not store.write_down(Reported(2, NOW_MS, {}, {}), first)
        store.mark_told(first)
        assert store.write_down(Reported(2, NOW_MS, {}, {}), first)
        assert not store.write_down(Reported(2, NOW_MS + 1, {}, {}), first)

    def test_a_later_report_is_not_marked_by_an_earlier_one(self, tables: Tables) -> None:
        store = DynamoReporting(tables)
        first, second = Reported(1, NOW_MS, {}, {}), Reported(2, NOW_MS, {}, {})
        store.write_down(first, None)
        store.write_down(second, store.mark_told(first))
        store.mark_told(first)
        assert store.last() == second


@pytest.fixture(params=everywhere)
def canaries(request: pytest.FixtureRequest) -> Canaries:
    if request.param == MEMORY:
        return MemoryCanaries(shards(1))
    made: Provisioned = request.getfixturevalue(f"{request.param}_provisioned")
    service = json_service("sqs", made.endpoint_url)
    return SqsCanaries(service, Queues(service, made.prefix), shards(1))


def test_a_canary_goes_through_each_shard_and_is_no_bell(provisioned: Provisioned) -> None:
    service = json_service("sqs", provisioned.endpoint_url)
    canaries = SqsCanaries(service, Queues(service, provisioned.prefix), shards(2))
    assert canaries.queues == (SHARD, "shard-1.fifo")
    assert canaries.ring(NOW_MS) == 0
    for name in ("shard-0", "shard-1"):
        (message,) = service.call("ReceiveMessage", QueueUrl=provisioned.queues[name])["Messages"]
        assert wire.rung_canary(message["Body"]) == NOW_MS
        with pytest.raises(wire.NotABellError):
            wire.load(message["Body"])
    assert canaries.most_in_flight() == 1


def test_f141_what_is_worked_on_is_counted_and_what_waits_is_not(provisioned: Provisioned) -> None:
    service = json_service("sqs", provisioned.endpoint_url)
    canaries = SqsCanaries(service, Queues(service, provisioned.prefix), shards(2))
    assert canaries.ring(NOW_MS) == 0
    assert canaries.most_in_flight() == 0
    service.call("ReceiveMessage", QueueUrl=provisioned.queues["shard-1"])
    assert canaries.most_in_flight() == 1


def test_a_queue_without_messages_has_none_in_flight(canaries: Canaries) -> None:
    assert canaries.most_in_flight() == 0
    assert canaries.ring(NOW_MS) == 0
    assert canaries.most_in_flight() == 0


def test_a_canary_that_cannot_be_sent_is_counted_and_a_queue_that_fails_is_told(ministack: str) -> None:
    service = json_service("sqs", ministack)
    canaries = SqsCanaries(service, Queues(service, "nobody-"), shards(4))
    assert canaries.ring(NOW_MS) == 4
    with pytest.raises(Unavailable):
        canaries.most_in_flight()


@pytest.mark.parametrize(
    "text", ["", "{}", '{"canary": "5"}', '{"canary": -1}', '{"canary": 5, "x": 1}', '{"lane": "a#b#0"}']
)
def test_no_other_message_is_a_canary(text: str) -> None:
    assert wire.rung_canary(text) is None
