"""Gates: conditional changes, exact; and what reconcile walks."""

from collections.abc import Callable
from dataclasses import replace

from chalicelib.application.ports import Changed
from chalicelib.domain import gate as gates
from chalicelib.domain.change import Change, Op, Test
from chalicelib.domain.endpoint import Endpoint, Limits
from chalicelib.domain.gate import TAKE_OVER_GRACE, Ask, Breaker, Gate, Grant, Told
from chalicelib.domain.outcome import Evidence
from tests.contract.given import NOW_MS, NOW_US, RULES, TENANT, Stores, endpoint

Calls = Callable[[], int]
SECOND = 1_000_000
KEYS = tuple(f"{number:015d}#delivery#0000#0001" for number in range(10))


def owner(of: Endpoint) -> tuple[str, str]:
    return of.tenant, of.id


def gate_of(stores: Stores, of: Endpoint) -> Gate:
    return stores.gates.read([owner(of)])[owner(of)]


def ask(stores: Stores, of: Endpoint, lane: str, now: int, keys: tuple[str, ...] = KEYS) -> Grant:
    answer = gates.ask(gate_of(stores, of), Ask(lane, f"visit to {lane} at {now}", keys), now, RULES)
    assert isinstance(answer, Grant)
    return answer


def make(stores: Stores, of: Endpoint, change: Change) -> Changed:
    (made,) = stores.gates.change([(owner(of), change)])
    return made


class TestChange:
    def test_a_change_is_answered_with_the_gate_as_it_then_is(self, stores: Stores) -> None:
        of = endpoint(limits=Limits(10, 20, 8))
        stores.endpoints.create(of)
        grant = ask(stores, of, "0", NOW_US)
        made = make(stores, of, grant.change)
        assert made.made
        assert made.gate == gate_of(stores, of)
        assert made.gate is not None
        assert (made.gate.slots, made.gate.leases["0"].keys) == (0, KEYS[:8])

    def test_a_refused_change_is_answered_with_what_stood_in_its_way(self, stores: Stores) -> None:
        of = endpoint()
        stores.endpoints.create(of)
        grant = ask(stores, of, "0", NOW_US)
        make(stores, of, grant.change)
        standing = gate_of(stores, of)
        assert make(stores, of, grant.change) == Changed(made=False, gate=standing)

    def test_a_gate_that_is_not_there_is_none(self, stores: Stores) -> None:
        of = endpoint()
        assert make(stores, of, gates.hold_until(NOW_US)) == Changed(made=False, gate=None)
        assert stores.gates.read([owner(of)]) == {}

    def test_answers_come_in_the_order_asked(self, stores: Stores, calls: Calls) -> None:
        some = [endpoint(number) for number in range(5)]
        for each in some[::2]:
            stores.endpoints.create(each)
        calls()
        answers = stores.gates.change([(owner(each), gates.hold_until(5)) for each in some])
        assert [answer.made for answer in answers] == [True, False, True, False, True]
        assert calls() == 1
        assert set(stores.gates.read([owner(each) for each in some])) == {owner(each) for each in some[::2]}
        assert calls() == 1

    def test_two_lanes_of_one_gate_in_one_call_share_its_slots(self, stores: Stores) -> None:
        of = endpoint(limits=Limits(10, 20, 12))
        stores.endpoints.create(of)
        first, second = ask(stores, of, "0", NOW_US), ask(stores, of, "1", NOW_US)
        answers = stores.gates.change([(owner(of), first.change), (owner(of), second.change)])
        assert [answer.made for answer in answers] == [True, False]
        gate = gate_of(stores, of)
        assert (gate.slots, gate.slots + gate.held_slots) == (2, 12)


class TestLeases:
    def test_what_a_lease_took_comes_back_when_it_is_settled(self, stores: Stores) -> None:
        of = endpoint(limits=Limits(10, 20, 8))
        stores.endpoints.create(of)
        grant = ask(stores, of, "0", NOW_US, KEYS[:3])
        make(stores, of, grant.change)
        settled = gates.settle(grant.claim, [Told(Evidence.FAILING)] * 2, NOW_US, RULES)
        assert make(stores, of, settled).made
        gate = gate_of(stores, of)
        assert (gate.slots, gate.leases, gate.fails) == (8, {}, 2)
        assert not make(stores, of, settled).made

    def test_a_dead_holder_is_taken_over_once_and_can_change_nothing_afterwards(self, stores: Stores) -> None:
        of = endpoint(limits=Limits(10, 20, 8))
        stores.endpoints.create(of)
        dead = ask(stores, of, "0", NOW_US, KEYS[:3])
        make(stores, of, dead.change)
        later = NOW_US + RULES.lease + TAKE_OVER_GRACE
        heir, rival = ask(stores, of, "0", later, KEYS[:5]), ask(stores, of, "0", later + 1, KEYS[:5])
        assert heir.takes_over == dead.claim.lease
        assert make(stores, of, heir.change).made
        assert not make(stores, of, rival.change).made
        assert not make(stores, of, gates.settle(dead.claim, (), later, RULES)).made
        assert not make(stores, of, gates.release(dead.claim.lease, "0")).made
        gate = gate_of(stores, of)
        assert (gate.slots, gate.held_slots) == (3, 5)

    def test_an_open_breaker_lets_one_probe_through(self, stores: Stores) -> None:
        of = endpoint()
        stores.endpoints.create(of)
        make(stores, of, Change((), {"fails": RULES.threshold}, {}))
        assert make(stores, of, gates.opening(gate_of(stores, of), NOW_US, RULES)).made
        after = NOW_US + RULES.cooldown
        first, second = ask(stores, of, "0", after), ask(stores, of, "1", after)
        assert [make(stores, of, each.change).made for each in (first, second)] == [True, False]
        assert gate_of(stores, of).state is Breaker.HALF_OPEN
        assert make(stores, of, gates.settle(first.claim, [Told(Evidence.ALIVE)], after, RULES)).made
        assert gate_of(stores, of).state is Breaker.CLOSED

    def test_a_hold_is_only_ever_lengthened(self, stores: Stores) -> None:
        of = endpoint()
        stores.endpoints.create(of)
        moments = [NOW_US + 5 * SECOND, NOW_US + SECOND, NOW_US + 9 * SECOND]
        assert [make(stores, of, gates.hold_until(each)).made for each in moments] == [True, False, True]
        assert gate_of(stores, of).hold_until == moments[2]


class TestWatching:
    def test_what_is_armed_is_walked_with_its_gate_as_it_is(self, stores: Stores) -> None:
        some = [endpoint(number, limits=Limits(10, 20, 25)) for number in range(9)]
        for each in some:
            stores.endpoints.create(each)
        stores.capturing.arm([owner(each) for each in some[:8]], NOW_MS)
        watched = {each.endpoint_id: each for each in stores.watching.armed()}
        assert set(watched) == {each.id for each in some[:8]}
        one = watched[some[0].id]
        assert (one.tenant, one.lanes, one.seen_us) == (TENANT, 3, 0)
        assert one.gate == gate_of(stores, some[0])

    def test_disarming_stops_the_walk_and_leaves_the_gate(self, stores: Stores) -> None:
        of = endpoint()
        stores.endpoints.create(of)
        before = gate_of(stores, of)
        stores.capturing.arm([owner(of)], NOW_MS)
        (watched,) = stores.watching.armed()
        assert stores.watching.disarm(watched, watched.armed_until_ms + 1)
        assert list(stores.watching.armed()) == []
        assert not stores.watching.disarm(watched, watched.armed_until_ms + 1)
        assert gate_of(stores, of) == before

    def test_what_was_armed_again_meanwhile_stays(self, stores: Stores) -> None:
        of = endpoint()
        stores.endpoints.create(of)
        stores.capturing.arm([owner(of)], NOW_MS)
        (watched,) = stores.watching.armed()
        assert not stores.watching.disarm(watched, watched.armed_until_ms)
        again = Change((), {"armed_until": watched.armed_until_ms + 3_600_000}, {})
        make(stores, of, again)
        assert not stores.watching.disarm(watched, watched.armed_until_ms + 1)
        assert [each.endpoint_id for each in stores.watching.armed()] == [of.id]

    def test_a_visit_leaves_when_it_was_there(self, stores: Stores) -> None:
        of = endpoint()
        stores.endpoints.create(of)
        stores.capturing.arm([owner(of)], NOW_MS)
        make(stores, of, ask(stores, of, "0", NOW_US).change)
        assert [each.seen_us for each in stores.watching.armed()] == [NOW_US]


def test_a_missing_attribute_is_no_free_pass(stores: Stores) -> None:
    of = endpoint()
    stores.endpoints.create(of)
    for op in (Op.EQ, Op.LE, Op.LT, Op.GE, Op.GT):
        test = Test("L0.u", op, NOW_US)
        assert not make(stores, of, Change((test,), {"seen": 1}, {})).made
    assert gate_of(stores, of) == replace(gate_of(stores, of), leases={})
