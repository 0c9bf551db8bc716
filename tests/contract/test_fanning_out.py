"""Later fan-outs: a cursor and a chunk's rows in one transaction, resumed wherever they were left."""

from dataclasses import replace

from chalicelib.adapters.dynamodb import keys, rows
from chalicelib.adapters.dynamodb.capturing import DynamoCapturing, DynamoFanningOut
from chalicelib.adapters.dynamodb.records import Merge
from chalicelib.application.fan_out import FanOutLater
from chalicelib.application.ports import Fanout
from chalicelib.domain.allowance import Pace
from chalicelib.domain.change import Change
from chalicelib.domain.endpoint import Endpoint, EndpointState
from chalicelib.domain.event import Event
from chalicelib.domain.gate import Queue
from tests.contract.given import (
    NOW_MS,
    NOW_S,
    TENANT,
    Stores,
    endpoint,
    event,
    lane_of,
    later,
    owing,
    without_moto,
)
from tests.fakes.fixed_clock import FixedClock
from tests.fakes.memory_bells import MemoryBells
from tests.fakes.memory_payloads import MemoryPayloads


def started(stores: Stores, posted: Event) -> Fanout:
    stores.capturing.commit([later(posted)], NOW_S)
    found = stores.fanning_out.pending(TENANT, posted.id)
    assert found is not None
    return found


def owed_to(stores: Stores, endpoints: list[Endpoint]) -> list[int]:
    return [len(stores.work.peek(lane_of(each), 10)) for each in endpoints]


class TestAdvance:
    def test_a_chunk_and_the_cursor_are_written_together(self, stores: Stores) -> None:
        posted, endpoints = event(), [endpoint(number) for number in range(3)]
        fanout = started(stores, posted)
        chunk = owing(posted, endpoints[:2])
        after = replace(fanout, cursor=endpoints[1].id)
        assert stores.fanning_out.advance(fanout, chunk, after)
        assert owed_to(stores, endpoints) == [1, 1, 0]
        moved = stores.fanning_out.pending(TENANT, posted.id)
        assert moved == Fanout(TENANT, posted.id, "order.paid", endpoints[1].id)

    def test_what_is_paid_for_and_when_it_is_due_is_kept_with_the_cursor(self, stores: Stores) -> None:
        posted, endpoints = event(), [endpoint(number) for number in range(2)]
        stores.capturing.commit([replace(later(posted), pace=Pace(7, NOW_MS + 900, 100_000))], NOW_S)
        fanout = stores.fanning_out.pending(TENANT, posted.id)
        assert fanout == Fanout(TENANT, posted.id, "order.paid", pace=Pace(7, NOW_MS + 900, 100_000))
        after = replace(fanout, cursor=endpoints[0].id, pace=Pace(6, NOW_MS + 900, 100_000))
        assert stores.fanning_out.advance(fanout, owing(posted, endpoints[:1]), after)
        waits = replace(after, pace=Pace(5, NOW_MS + 60_000, 100_000))
        assert stores.fanning_out.advance(after, (), waits)
        assert stores.fanning_out.pending(TENANT, posted.id) == waits

    def test_whoever_comes_second_writes_nothing(self, stores: Stores) -> None:
        posted, endpoints = event(), [endpoint(number) for number in range(2)]
        fanout = started(stores, posted)
        after = replace(fanout, cursor=endpoints[0].id)
        assert stores.fanning_out.advance(fanout, owing(posted, endpoints[:1]), after)
        for other in (replace(fanout, cursor=endpoints[1].id), None):
            chunk = owing(posted, endpoints[1:])
            assert not stores.fanning_out.advance(fanout, chunk, other)
        assert owed_to(stores, endpoints) == [1, 0]

    def test_the_last_chunk_ends_it(self, stores: Stores) -> None:
        posted, last = event(), endpoint()
        fanout = started(stores, posted)
        assert stores.fanning_out.advance(fanout, owing(posted, [last]), None)
        assert stores.fanning_out.pending(TENANT, posted.id) is None
        assert not stores.fanning_out.advance(fanout, (), None)
        assert owed_to(stores, [last]) == [1]


def test_only_what_waits_long_enough_is_walked(stores: Stores) -> None:
    old, new = event(1, at_ms=NOW_MS - 60_001), event(2)
    stores.capturing.commit([later(old), later(new)], NOW_S)
    waiting = list(stores.fanning_out.waiting(NOW_MS - 60_000))
    assert waiting == [Fanout(TENANT, old.id, "order.paid")]


def use_case(capturing: DynamoCapturing, fanning_out: DynamoFanningOut, bells: MemoryBells) -> FanOutLater:
    return FanOutLater(fanning_out, capturing, MemoryPayloads(), bells, FixedClock(NOW_MS))


@without_moto
def test_more_endpoints_than_a_transaction_holds_are_reached_in_chunks(stores: Stores) -> None:
    endpoints = [endpoint(number) for number in range(81)]
    packed = {each.id: rows.subscriber_value(each) for each in endpoints}
    stores.tables.together([Merge(keys.subscription(TENANT, "order.paid"), packed)])
    posted, bells = event(), MemoryBells()
    started(stores, posted)
    fan_out = use_case(stores.capturing, stores.fanning_out, bells)
    assert fan_out.run(TENANT, posted.id) == 81
    assert owed_to(stores, endpoints) == [1] * 81
    assert len(bells.rung) == 81
    assert fan_out.run(TENANT, posted.id) == 0
    assert stores.fanning_out.pending(TENANT, posted.id) is None


def test_it_rings_where_an_endpoint_was_seen_to_ring_and_no_lane_that_needs_no_bell(stores: Stores) -> None:
    """As ingest does: an endpoint that hangs meets nobody on a shard for having many beside it."""
    plain, slow, off = (endpoint(number) for number in range(3))
    for each in (plain, slow, off):
        stores.endpoints.create(each)
    apart = Change((), {"queue": Queue.SLOW.value}, {})
    assert stores.gates.change([((TENANT, slow.id), apart)])[0].made
    assert stores.endpoints.replace(off, replace(off, state=EndpointState.DISABLED).next_to(off, NOW_MS))
    bells = MemoryBells()
    fan_out = use_case(stores.capturing, stores.fanning_out, bells)
    for number in (1, 2):
        bells.take_rung()
        started(stores, event(number))
        assert fan_out.run(TENANT, event(number).id) == 3
    rung = {each.lane.endpoint_id: each.queue for each in bells.rung}
    assert rung == {plain.id: Queue.SHARD, slow.id: Queue.SLOW}
    assert owed_to(stores, [plain, slow, off]) == [2, 2, 2]
