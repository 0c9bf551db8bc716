"""What reconcile walks, and what ingest sees of gates in passing: all of it, and at no call more."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count, islice

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Delete, Insert, Update
from chalicelib.domain import gate as gates
from chalicelib.domain.change import Change
from chalicelib.domain.endpoint import ORDERED_LANE, Endpoint, Limits, Ordering
from chalicelib.domain.gate import Gate, Queue
from tests.contract.given import (
    NOW_MS,
    RULES,
    TENANT,
    Stores,
    endpoint,
    lane_of,
    without_moto,
)

Calls = Callable[[], int]
SECOND_MS = 1_000


def gates_alone(stores: Stores, some: Iterable[Endpoint], **marks: object) -> None:
    """Write the gates of endpoints and nothing else of them."""
    record = gates.new_record(10, 20, 8, rules=RULES)
    stores.tables.each([Insert(keys.gate(each.tenant, each.id), {**record, **marks}) for each in some])


def of_one_shard(number: int) -> list[Endpoint]:
    """Make so many endpoints that the `armed` index lists under one value."""
    every = (endpoint(each) for each in count())
    return list(islice((each for each in every if keys.armed_shard(each.id) == "0"), number))


class TestArmed:
    @without_moto
    def test_more_gates_than_the_store_is_asked_for_at_once_are_all_walked_each_once(
        self, stores: Stores, calls: Calls
    ) -> None:
        """Four calls: the index of each shard, and 120 gates a hundred at a time."""
        some = of_one_shard(120)
        gates_alone(stores, some, armed_shard="0", armed_until=NOW_MS, lanes=2)
        calls()
        walked = list(stores.watching.armed())
        assert calls() == 4
        assert sorted(each.endpoint_id for each in walked) == [each.id for each in some]
        assert {(each.tenant, each.lanes, each.armed_until_ms) for each in walked} == {(TENANT, 2, NOW_MS)}

    @without_moto
    def test_what_is_disarmed_while_others_are_looked_at_is_left_out(self, stores: Stores) -> None:
        some = of_one_shard(120)
        gates_alone(stores, some, armed_shard="0", armed_until=NOW_MS)
        walk = iter(stores.watching.armed())
        first = next(walk)
        seen = {first.endpoint_id, *(each.endpoint_id for each in islice(walk, 99))}
        (gone, *_) = (each for each in some if each.id not in seen)
        disarmed = Change((), {}, {}, ("armed_shard", "armed_until"))
        stores.tables.each([Update(keys.gate(TENANT, gone.id), disarmed)])
        rest = {each.endpoint_id for each in walk}
        assert seen | rest == {each.id for each in some} - {gone.id}

    def test_an_ordered_endpoint_is_watched_in_its_one_lane(self, stores: Stores) -> None:
        wide = Limits(10, 20, 25)
        ordered = replace(endpoint(1, limits=wide), ordering=Ordering.ENDPOINT)
        plain = endpoint(2, limits=wide)
        for each in (ordered, plain):
            assert stores.endpoints.create(each)
        stores.capturing.arm([(TENANT, ordered.id), (TENANT, plain.id)], NOW_MS)
        numbers = {each.endpoint_id: each.numbers for each in stores.watching.armed()}
        assert numbers == {ordered.id: (ORDERED_LANE,), plain.id: ("0", "1", "2")}

    def test_a_change_of_its_limits_leaves_an_ordered_endpoint_what_it_is(self, stores: Stores) -> None:
        old = replace(endpoint(), ordering=Ordering.ENDPOINT)
        stores.endpoints.create(old)
        wider = replace(old, limits=Limits(10, 20, 40)).next_to(old, NOW_MS)
        assert stores.endpoints.replace(old, wider)
        stores.capturing.arm([(TENANT, old.id)], NOW_MS)
        (watched,) = stores.watching.armed()
        assert watched.numbers == (ORDERED_LANE,)


class TestGatesSeen:
    """Who took a type before has its gate read along with the subscriptions, once a second."""

    def looked(self, stores: Stores, now_ms: int, *kinds: str) -> None:
        stores.capturing.subscribers(TENANT, kinds or ("order.paid",), now_ms)

    def seen(self, stores: Stores, now_ms: int, *of: Endpoint) -> dict[str, Gate]:
        found = stores.capturing.gates_seen([(each.tenant, each.id) for each in of], now_ms)
        return {endpoint_id: gate for (_, endpoint_id), gate in found.items()}

    def change(self, stores: Stores, of: Endpoint, **sets: object) -> None:
        (made,) = stores.gates.change([((of.tenant, of.id), Change((), sets, {}))])
        assert made.made

    def test_looking_costs_no_call_of_its_own_and_asking_none(self, stores: Stores, calls: Calls) -> None:
        some = [endpoint(number) for number in range(3)]
        for each in some:
            stores.endpoints.create(each)
        calls()
        self.looked(stores, NOW_MS)
        assert calls() == 1
        assert self.seen(stores, NOW_MS, *some) == {}, "who takes the type was not known before"
        self.looked(stores, NOW_MS + 1)
        assert calls() == 1
        found = self.seen(stores, NOW_MS + 1, *some)
        assert calls() == 0
        owners = [(TENANT, each.id) for each in some]
        assert {(TENANT, name): gate for name, gate in found.items()} == stores.gates.read(owners)

    def test_they_are_looked_at_again_after_a_second_and_forgotten_after_two(
        self, stores: Stores, calls: Calls
    ) -> None:
        of = endpoint()
        stores.endpoints.create(of)
        for at_ms in (0, 1):
            self.looked(stores, NOW_MS + at_ms)
        self.change(stores, of, queue=Queue.SLOW.value)
        calls()
        self.looked(stores, NOW_MS + SECOND_MS)
        assert self.seen(stores, NOW_MS + SECOND_MS, of)[of.id].queue is Queue.SHARD
        self.looked(stores, NOW_MS + SECOND_MS + 1)
        assert calls() == 2
        assert self.seen(stores, NOW_MS + SECOND_MS + 1, of)[of.id].queue is Queue.SLOW
        assert self.seen(stores, NOW_MS + 3 * SECOND_MS, of) != {}
        assert self.seen(stores, NOW_MS + 3 * SECOND_MS + 1, of) == {}

    def test_each_type_brings_its_own_takers_and_no_stranger_s(self, stores: Stores) -> None:
        paid, other = endpoint(1, ("order.paid",)), endpoint(2, ("user.*",))
        stranger = endpoint(3, ("*",), tenant="other")
        for each in (paid, other, stranger):
            stores.endpoints.create(each)
        for at_ms in (0, 1):
            self.looked(stores, NOW_MS + at_ms, "order.paid")
        assert set(self.seen(stores, NOW_MS + 1, paid, other, stranger)) == {paid.id}
        for at_ms in (2, 3):
            self.looked(stores, NOW_MS + at_ms, "order.paid", "user.new")
        assert set(self.seen(stores, NOW_MS + 3, paid, other, stranger)) == {paid.id, other.id}

    def test_one_that_takes_the_type_no_more_is_looked_at_no_more(self, stores: Stores) -> None:
        old = endpoint()
        stores.endpoints.create(old)
        for at_ms in (0, 1):
            self.looked(stores, NOW_MS + at_ms)
        assert stores.endpoints.replace(old, replace(old, event_types=("b",)).next_to(old, NOW_MS))
        for at_ms in (SECOND_MS, 3 * SECOND_MS, 4 * SECOND_MS):
            self.looked(stores, NOW_MS + at_ms)
        assert self.seen(stores, NOW_MS + 4 * SECOND_MS, old) == {}

    def test_a_gate_that_is_not_there_is_left_out(self, stores: Stores) -> None:
        of = endpoint()
        stores.endpoints.create(of)
        self.looked(stores, NOW_MS)
        stores.tables.each([Delete(keys.gate(TENANT, of.id))])
        self.looked(stores, NOW_MS + 1)
        assert self.seen(stores, NOW_MS + 1, of) == {}

    @without_moto
    def test_however_many_take_however_many_types_it_is_no_call_more(
        self, stores: Stores, calls: Calls
    ) -> None:
        """Of 110 gates as many are looked at as the call that has to be made leaves room for."""
        some = [endpoint(number, ("*",)) for number in range(110)]
        for each in some:
            stores.endpoints.create(each)
        few, deep, many = ("a",), ("a" + ".a" * 60,), tuple(f"t{number}.x" for number in range(49))
        for kinds in (few, deep, many):
            fresh = replace(stores, capturing=type(stores.capturing)(stores.tables))
            self.looked(fresh, NOW_MS, *kinds)
            calls()
            self.looked(fresh, NOW_MS + 1, *kinds)
            assert calls() == 1
            assert self.seen(fresh, NOW_MS + 1, *some)
            for at_ms in range(2, 300):
                if len(self.seen(fresh, NOW_MS + at_ms, *some)) == len(some):
                    break
                self.looked(fresh, NOW_MS + at_ms, *kinds)
                assert calls() == 1
            assert len(self.seen(fresh, NOW_MS + 300, *some)) == len(some), "in the end all have their turn"

    def test_a_lane_whose_bell_is_on_its_way_is_seen_to_need_none(self, stores: Stores) -> None:
        of = endpoint()
        stores.endpoints.create(of)
        now_us = NOW_MS * 1000
        lane = lane_of(of)
        begun = gates.hold_begun(
            stores.gates.read([(TENANT, of.id)])[TENANT, of.id],
            gates.HoldReason.RATE_LIMIT,
            now_us,
            lane=lane.number,
            due=now_us + 60 * gates.SECOND,
        )
        assert begun is not None
        assert stores.gates.change([((TENANT, of.id), begun)])[0].made
        for at_ms in (0, 1):
            self.looked(stores, NOW_MS + at_ms)
        gate = self.seen(stores, NOW_MS + 1, of)[of.id]
        assert gates.expects_bell(gate, lane.number, now_us)
        assert not gates.expects_bell(gate, "1", now_us)
