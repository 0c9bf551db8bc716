"""Where events are accepted: subscriptions, arming, the capture transaction, idempotency claims."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.capturing import DynamoCapturing
from chalicelib.adapters.dynamodb.records import Delete
from chalicelib.application.ports import Capture, Fanout, StoredEvent, Unavailable
from chalicelib.domain.delivery import Created
from tests.contract import given
from tests.contract.given import (
    HOUR_MS,
    NOW_MS,
    NOW_S,
    NOW_US,
    STRANGER,
    TENANT,
    Stores,
    capture,
    claim,
    endpoint,
    event,
    later,
    subscriber,
    without_moto,
)
from tests.fakes.faults import Step
from tests.fakes.memory_tables import MemoryTables

Calls = Callable[[], int]
DAY_S = 86_400


class TestSubscribers:
    def test_each_endpoint_that_takes_a_type_is_there_once_in_order(self, stores: Stores) -> None:
        exact = endpoint(1, ("order.paid",))
        everything = endpoint(3, ("*", "order.paid", "order.*"))
        below = endpoint(2, ("order.*", "user.*"))
        for each in (everything, exact, below, endpoint(4, ("order.payment", "user.*"))):
            stores.endpoints.create(each)
        found = stores.capturing.subscribers(TENANT, {"order.paid"})
        assert found == {"order.paid": tuple(subscriber(each) for each in (exact, below, everything))}

    def test_every_type_asked_for_is_answered(self, stores: Stores) -> None:
        paid, deep = endpoint(1, ("order.paid",)), endpoint(2, ("a.b.*",))
        stores.endpoints.create(paid)
        stores.endpoints.create(deep)
        found = stores.capturing.subscribers(TENANT, ["order.paid", "a.b.c.d", "a.b", "nobody"])
        assert found == {
            "order.paid": (subscriber(paid),),
            "a.b.c.d": (subscriber(deep),),
            "a.b": (),
            "nobody": (),
        }

    def test_no_tenant_sees_anothers(self, stores: Stores) -> None:
        stores.endpoints.create(endpoint(1, ("*",), tenant=STRANGER))
        assert stores.capturing.subscribers(TENANT, ["order.paid"]) == {"order.paid": ()}


class TestArming:
    def until(self, stores: Stores) -> int | None:
        found = [each.armed_until_ms for each in stores.watching.armed()]
        return found[0] if found else None

    def test_an_armed_endpoint_is_watched_for_ten_minutes_and_more(self, stores: Stores) -> None:
        of = endpoint()
        stores.endpoints.create(of)
        assert self.until(stores) is None
        stores.capturing.arm([(TENANT, of.id), (TENANT, "ep_gone")], NOW_MS)
        assert (self.until(stores) or 0) >= NOW_MS + 10 * 60_000

    def test_it_is_written_once_an_hour(self, stores: Stores, calls: Calls) -> None:
        of = endpoint()
        stores.endpoints.create(of)
        stores.capturing.arm([(TENANT, of.id)], NOW_MS)
        calls()
        stores.capturing.arm([(TENANT, of.id)], NOW_MS + HOUR_MS - 1)
        stores.capturing.arm([], NOW_MS)
        assert calls() == 0
        stores.capturing.arm([(TENANT, of.id)], NOW_MS + HOUR_MS + 1)
        assert calls() == 1
        assert (self.until(stores) or 0) >= NOW_MS + HOUR_MS + 10 * 60_000


class TestCommit:
    def test_an_event_is_there_with_all_that_it_owes(self, stores: Stores) -> None:
        of = endpoint(1)
        stores.endpoints.create(of)
        one = capture(event(7, body=b"\0\xff not JSON"), [of], claim())
        assert stores.capturing.commit([one], NOW_S) == [None]
        owing = one.owing[0]
        assert stores.reading.event(TENANT, one.stored.event.id, NOW_MS) == one.stored
        assert stores.work.peek(owing.owed.lane, 10) == [owing.owed]
        found = stores.reading.delivery(TENANT, of.id, owing.owed.delivery_id, NOW_US)
        assert found is not None
        assert found.rows == (owing.created,)
        assert isinstance(owing.created, Created)
        assert stores.capturing.claimed(TENANT, "key-1", NOW_S) == one.claim

    def test_a_body_kept_apart_is_named_by_its_key(self, stores: Stores) -> None:
        posted = event(body=b"large")
        stored = StoredEvent(posted, 5, "acme/evt", "none")
        stores.capturing.commit([Capture(stored)], NOW_S)
        found = stores.reading.event(TENANT, posted.id, NOW_MS)
        assert found == replace(stored, event=replace(posted, body=b""))

    def test_what_is_fanned_out_later_waits(self, stores: Stores) -> None:
        posted = event()
        stores.capturing.commit([later(posted)], NOW_S)
        assert stores.fanning_out.pending(TENANT, posted.id) == Fanout(TENANT, posted.id, "order.paid")

    def test_an_id_taken_twice_is_refused_and_nothing_is_written(self, stores: Stores) -> None:
        stores.capturing.commit([capture(event(1))], NOW_S)
        with pytest.raises(Unavailable):
            stores.capturing.commit([later(event(1)), capture(event(2))], NOW_S)
        assert stores.reading.event(TENANT, event(2).id, NOW_MS) is None
        assert stores.fanning_out.pending(TENANT, event(1).id) is None

    @without_moto
    def test_a_batch_is_written_whatever_its_size(self, stores: Stores) -> None:
        endpoints = [endpoint(number) for number in range(40)]
        batch = [capture(event(number), endpoints, claim(f"key-{number}")) for number in range(3)]
        batch += [capture(event(number), (), claim(f"key-{number}")) for number in range(3, 60)]
        assert stores.capturing.commit(batch, NOW_S) == [None] * 60
        for each in (batch[0], batch[59]):
            assert stores.reading.event(TENANT, each.stored.event.id, NOW_MS) == each.stored
        owed = [each.owing[39].owed for each in batch[:3]]
        assert stores.work.peek(owed[0].lane, 10) == sorted(owed, key=lambda each: each.delivery_id)

    @without_moto
    def test_a_batch_of_a_hundred_with_keys_is_captured_for_later(self, stores: Stores) -> None:
        """Three rows each: the event, its fan-out and its claim."""
        batch = [later(event(number), claim(f"key-{number}")) for number in range(100)]
        assert stores.capturing.commit(batch, NOW_S) == [None] * 100
        assert len(list(stores.fanning_out.waiting(NOW_MS + 1))) == 100

    def test_f116_the_largest_rows_fit(self, stores: Stores) -> None:
        body = bytes(range(256)) * 256
        posted = event(body=body, event_type="t" * 128)
        stored = StoredEvent(posted, len(body), "", "inline", tuple(f"ep_{n:036d}" for n in range(48)))
        long_claim = claim("k" * 255, answer="a" * 4_096)
        assert stores.capturing.commit([Capture(stored, (), long_claim)], NOW_S) == [None]
        found = stores.reading.event(TENANT, posted.id, NOW_MS)
        assert found is not None
        assert found.event.body == body
        assert stores.capturing.claimed(TENANT, "k" * 255, NOW_S) == long_claim


class TestClaims:
    def test_a_repeat_gets_the_first_answer_and_writes_nothing(self, stores: Stores) -> None:
        first, second = capture(event(1), (), claim(answer="first")), capture(event(2), (), claim(answer="2"))
        assert stores.capturing.commit([first], NOW_S) == [None]
        assert stores.capturing.commit([second], NOW_S + DAY_S - 1) == [first.claim]
        assert stores.reading.event(TENANT, event(2).id, NOW_MS) is None

    def test_a_repeat_harms_no_other_event_of_its_batch(self, stores: Stores) -> None:
        first = capture(event(1), (), claim(answer="first"))
        stores.capturing.commit([first], NOW_S)
        batch = [
            capture(event(2), (), claim("another")),
            capture(event(3), (), claim(answer="again")),
            capture(event(4)),
        ]
        assert stores.capturing.commit(batch, NOW_S) == [None, first.claim, None]
        kept = [stores.reading.event(TENANT, event(number).id, NOW_MS) for number in (2, 3, 4)]
        assert [each is not None for each in kept] == [True, False, True]

    def test_the_same_key_twice_in_a_batch_is_a_repeat(self, stores: Stores) -> None:
        batch = [capture(event(number), (), claim(answer=f"{number}")) for number in (1, 2, 3)]
        assert stores.capturing.commit(batch, NOW_S) == [None, batch[0].claim, batch[0].claim]

    def test_no_tenant_repeats_anothers(self, stores: Stores) -> None:
        mine = capture(event(1), (), claim())
        theirs = replace(mine, stored=replace(mine.stored, event=replace(event(2), tenant=STRANGER)))
        assert stores.capturing.commit([mine], NOW_S) == [None]
        assert stores.capturing.commit([theirs], NOW_S) == [None]
        assert stores.capturing.claimed("ac", "me#key-1", NOW_S) is None

    def test_f119_an_expired_claim_is_absent_though_it_is_there(self, stores: Stores) -> None:
        old = claim(expires_s=NOW_S - 3_600)
        stores.capturing.commit([capture(event(1), (), old)], NOW_S - DAY_S)
        assert stores.capturing.claimed(TENANT, old.key, NOW_S - 3_601) == old
        assert stores.capturing.claimed(TENANT, old.key, NOW_S - 3_600) is None
        assert stores.capturing.claimed(TENANT, old.key, NOW_S) is None

    def test_f119_an_expired_claim_is_overwritten(self, stores: Stores) -> None:
        old, new = claim(expires_s=NOW_S), claim(answer="new")
        stores.capturing.commit([capture(event(1), (), old)], NOW_S - DAY_S)
        assert stores.capturing.commit([capture(event(2), (), new), capture(event(3))], NOW_S) == [None, None]
        assert stores.capturing.claimed(TENANT, new.key, NOW_S) == new
        assert stores.reading.event(TENANT, event(2).id, NOW_MS) is not None

    def test_f119_an_expired_claim_that_vanishes_meanwhile_stands_in_nobodys_way(self) -> None:
        """The store deletes an expired row between the look at it and the write over it."""
        tables, new = MemoryTables(), claim(answer="new")
        DynamoCapturing(tables).commit([capture(event(1), (), claim(expires_s=NOW_S))], NOW_S - DAY_S)

        def expire(step: Step) -> None:
            if step.method == "get":
                MemoryTables(tables.records).each([Delete(keys.idempotency(TENANT, "key-1"))])

        tables.faults.after = expire
        assert DynamoCapturing(tables).commit([capture(event(2), (), new)], NOW_S) == [None]
        assert DynamoCapturing(tables).claimed(TENANT, "key-1", NOW_S) == new

    def test_f119_of_two_over_one_expired_claim_the_first_wins(self) -> None:
        tables, first, second = MemoryTables(), claim(answer="first"), claim(answer="second")
        DynamoCapturing(tables).commit([capture(event(1), (), claim(expires_s=NOW_S))], NOW_S - DAY_S)
        other = DynamoCapturing(MemoryTables(tables.records))

        def overtake(step: Step) -> None:
            tables.faults.clear()
            assert other.commit([capture(event(2), (), first)], NOW_S) == [None]

        tables.faults.after = overtake
        assert DynamoCapturing(tables).commit([capture(event(3), (), second)], NOW_S) == [first]


class TestOutages:
    """F113, the store's side: whatever fails, an accepted event is there with all that it owes."""

    @pytest.fixture
    def memory(self) -> MemoryTables:
        return MemoryTables()

    def accepted(self, stores: Stores, number: int) -> bool:
        return stores.reading.event(TENANT, event(number).id, NOW_MS) is not None

    @pytest.mark.parametrize("after", [False, True])
    def test_f113_a_failed_commit_is_told_and_a_repeat_is_no_second_event(
        self, memory: MemoryTables, *, after: bool
    ) -> None:
        of = endpoint()
        given.stores_over(MemoryTables(memory.records)).endpoints.create(of)
        failing, healthy = given.stores_over(memory), given.stores_over(MemoryTables(memory.records))
        failing.capturing.commit([capture(event(0))], NOW_S)
        memory.faults.fail_next(method="together", after=after)
        first = capture(event(1), [of], claim(answer="first"))
        with pytest.raises(Unavailable):
            failing.capturing.commit([first], NOW_S)
        assert self.accepted(healthy, 1) is after
        second = capture(event(2), [of], claim(answer="second"))
        assert healthy.capturing.commit([second], NOW_S) == [first.claim if after else None]
        owed = healthy.work.peek((first if after else second).owing[0].owed.lane, 10)
        assert owed == [(first if after else second).owing[0].owed]

    def test_f113_a_process_that_dies_at_any_write_leaves_all_or_nothing(self) -> None:
        for write in range(1, 4):
            for after in (False, True):
                memory, of = MemoryTables(), endpoint()
                given.stores_over(memory).endpoints.create(of)
                dying = MemoryTables(memory.records)
                dying.faults.kill_at(write, after=after)
                one = capture(event(1), [of], claim())
                given.run_until_killed(partial(given.accept, DynamoCapturing(dying), of, one))
                stores = given.stores_over(memory)
                owed = stores.work.peek(one.owing[0].owed.lane, 10)
                assert bool(owed) == self.accepted(stores, 1)
                assert bool(owed) == (stores.capturing.claimed(TENANT, "key-1", NOW_S) is not None)
                if owed:
                    assert [each.endpoint_id for each in stores.watching.armed()] == [of.id]
