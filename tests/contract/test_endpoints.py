"""Endpoints with their subscriptions and gates, changed together; API keys."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from chalicelib.adapters.dynamodb import keys, rows
from chalicelib.adapters.dynamodb.records import Insert
from chalicelib.application.ports import Unavailable
from chalicelib.domain import gate as gates
from chalicelib.domain import ids
from chalicelib.domain.auth import Auth, Basic, ClientCertificate, OAuth2
from chalicelib.domain.change import Change
from chalicelib.domain.endpoint import EVENT_TYPES_MAX, Endpoint, EndpointState, Limits, WrappedSecret
from chalicelib.domain.gate import Ask, Breaker, Gate, Grant, Hold, HoldReason, Spell, Told
from chalicelib.domain.outcome import Evidence
from tests.contract.given import (
    NOW_MS,
    NOW_US,
    RULES,
    STRANGER,
    TENANT,
    Stores,
    endpoint,
    subscriber,
    without_moto,
)

SEALED = WrappedSecret(b"sealed")
AUTHS: list[Auth[WrappedSecret]] = [
    Auth(Basic("relay", SEALED)),
    Auth(certificate=ClientCertificate("a chain", SEALED)),
    Auth(authorities="some certificates"),
    Auth(oauth2=OAuth2("https://id.example/token", "relay", SEALED)),
    Auth(oauth2=OAuth2("https://id.example/token", "relay", SEALED, "scope", "audience", in_body=True)),
    Auth(None, ClientCertificate("a chain", SEALED), "more", OAuth2("https://id.example/", "r", SEALED)),
]


def gate_of(stores: Stores, of: Endpoint) -> Gate:
    return stores.gates.read([(of.tenant, of.id)])[of.tenant, of.id]


def subscribed(stores: Stores, event_type: str) -> list[str]:
    found = stores.capturing.subscribers(TENANT, [event_type])
    return [each.endpoint_id for each in found[event_type]]


def changed(old: Endpoint, **changes: object) -> Endpoint:
    return replace(old, version=old.version + 1, **changes)  # type: ignore[arg-type]  # any field


class TestCreate:
    def test_configuration_subscriptions_and_gate_are_there_together(self, stores: Stores) -> None:
        of = endpoint(1, ("order.*", "user.*"), Limits(50, 60, 25))
        stores.endpoints.create(of)
        assert stores.endpoints.get(TENANT, of.id) == of
        assert subscribed(stores, "order.x") == subscribed(stores, "user.y") == [of.id]
        gate = gate_of(stores, of)
        assert (gate.rate, gate.burst, gate.cap, gate.slots, gate.enabled) == (50, 60, 25, 25, True)
        assert gate.leases == {}

    @pytest.mark.parametrize("auth", AUTHS)
    def test_what_it_is_authenticated_with_comes_back_and_certificates_have_it_looked_at(
        self, stores: Stores, auth: Auth[WrappedSecret]
    ) -> None:
        of = replace(endpoint(), auth=auth)
        stores.endpoints.create(of)
        assert stores.endpoints.get(TENANT, of.id) == of
        looked_at = [each.endpoint_id for each in stores.noticing.alerts(NOW_US + 60_000_000)]
        assert looked_at == ([of.id] if auth.by_tls else [])
        bare = changed(of, auth=None)
        assert stores.endpoints.replace(of, bare)
        assert stores.endpoints.get(TENANT, of.id) == bare

    def test_an_id_taken_twice_is_refused_and_changes_nothing(self, stores: Stores) -> None:
        of = endpoint()
        stores.endpoints.create(of)
        with pytest.raises(Unavailable):
            stores.endpoints.create(replace(of, url="https://thief.example/", event_types=("*",)))
        assert stores.endpoints.get(TENANT, of.id) == of
        assert subscribed(stores, "anything.else") == []

    def test_what_is_not_there_is_none(self, stores: Stores) -> None:
        of = endpoint()
        stores.endpoints.create(of)
        assert stores.endpoints.get(STRANGER, of.id) is None
        assert stores.endpoints.get(TENANT, endpoint(1).id) is None

    def test_a_delivery_leads_to_its_endpoint(self, stores: Stores) -> None:
        for number in range(3):
            stores.endpoints.create(endpoint(number))
        of = endpoint(1)
        delivery = ids.delivery_id("evt_" + str(ids.uuid7(1, 1)), of.id)
        assert stores.endpoints.tagged(TENANT, ids.tag_of(delivery)) == [of.id]
        assert stores.endpoints.tagged(STRANGER, ids.tag_of(delivery)) == []
        assert stores.endpoints.tagged(TENANT, "00000000") == []

    def test_the_rows_beside_it_are_no_endpoints(self, stores: Stores) -> None:
        stores.endpoints.create(endpoint())
        assert stores.endpoints.page(TENANT, "", 10).items == (endpoint(),)


class TestReplace:
    def test_the_second_of_two_changes_is_refused_whole(self, stores: Stores) -> None:
        old = endpoint(1, ("a",))
        stores.endpoints.create(old)
        first = changed(old, url="https://first.example/")
        second = changed(old, event_types=("b",), limits=Limits(1, 1, 1))
        assert stores.endpoints.replace(old, first)
        assert not stores.endpoints.replace(old, second)
        assert stores.endpoints.get(TENANT, old.id) == first
        assert (subscribed(stores, "a"), subscribed(stores, "b")) == ([old.id], [])
        assert gate_of(stores, old).cap == old.limits.max_concurrency

    def test_what_was_never_there_cannot_be_changed(self, stores: Stores) -> None:
        old = endpoint()
        assert not stores.endpoints.replace(old, changed(old))
        assert stores.endpoints.get(TENANT, old.id) is None
        assert subscribed(stores, "order.paid") == []

    def test_subscriptions_come_and_go_with_it(self, stores: Stores) -> None:
        old = endpoint(1, ("kept", "dropped"))
        stores.endpoints.create(old)
        stores.endpoints.create(endpoint(2, ("dropped",)))
        assert stores.endpoints.replace(old, changed(old, event_types=("kept", "new")))
        assert subscribed(stores, "kept") == subscribed(stores, "new") == [old.id]
        assert subscribed(stores, "dropped") == [endpoint(2).id]

    def test_the_gate_follows_its_limits_and_keeps_its_leases(self, stores: Stores) -> None:
        old = endpoint(1, limits=Limits(10, 20, 8))
        stores.endpoints.create(old)
        owner = (TENANT, old.id)
        grant = gates.ask(gate_of(stores, old), Ask("0", "me", tuple("abcde")), NOW_US, RULES)
        assert isinstance(grant, Grant)
        assert stores.gates.change([(owner, grant.change)])[0].made
        assert stores.endpoints.replace(old, changed(old, limits=Limits(30, 40, 3)))
        gate = gate_of(stores, old)
        assert (gate.rate, gate.burst, gate.cap, gate.slots) == (30, 40, 3, -2)
        assert gate.slots + gate.held_slots == gate.cap
        stores.gates.change([(owner, gates.release(grant.claim.lease, grant.claim.lane))])
        assert gate_of(stores, old).slots == 3

    def test_more_lanes_are_told_to_all_who_fan_out(self, stores: Stores) -> None:
        old = endpoint(1, ("a", "b.*"), Limits(10, 20, 8))
        stores.endpoints.create(old)
        wide = changed(old, limits=Limits(10, 20, 31))
        assert stores.endpoints.replace(old, wide)
        found = stores.capturing.subscribers(TENANT, ["a", "b.c"])
        assert found == {"a": (subscriber(wide),), "b.c": (subscriber(wide),)}
        stores.capturing.arm([(TENANT, old.id)], 0)
        assert [each.lanes for each in stores.watching.armed()] == [4]

    def test_fewer_lanes_leave_the_old_ones_watched(self, stores: Stores) -> None:
        old = endpoint(1, limits=Limits(10, 20, 31))
        stores.endpoints.create(old)
        narrow = changed(old, limits=Limits(10, 20, 8))
        assert stores.endpoints.replace(old, narrow)
        assert stores.capturing.subscribers(TENANT, ["order.paid"]) == {"order.paid": (subscriber(narrow),)}
        stores.capturing.arm([(TENANT, old.id)], 0)
        assert [each.lanes for each in stores.watching.armed()] == [4]

    def test_a_disabled_endpoint_shuts_its_gate_and_keeps_its_subscriptions(self, stores: Stores) -> None:
        old = endpoint()
        stores.endpoints.create(old)
        off = changed(old, state=EndpointState.DISABLED, state_reason="410")
        assert stores.endpoints.replace(old, off)
        assert stores.endpoints.get(TENANT, old.id) == off
        assert not gate_of(stores, old).enabled
        assert subscribed(stores, "order.paid") == [old.id]
        assert stores.endpoints.replace(off, changed(off, state=EndpointState.ENABLED))
        assert gate_of(stores, old).enabled

    def test_a_deleted_endpoint_leaves_nothing_but_its_tombstone(self, stores: Stores) -> None:
        old = endpoint()
        stores.endpoints.create(old)
        gone = changed(old, state=EndpointState.DELETED)
        assert stores.endpoints.replace(old, gone)
        assert stores.endpoints.get(TENANT, old.id) == gone
        assert subscribed(stores, "order.paid") == []
        assert gate_of(stores, old).enabled, "what is still owed has to be looked at, to be ended"
        assert stores.endpoints.page(TENANT, "", 10).items == ()
        assert stores.endpoints.tagged(TENANT, ids.endpoint_tag(old.id)) == [old.id]

    @without_moto
    def test_every_subscription_may_change_at_once(self, stores: Stores) -> None:
        old = endpoint(1, tuple(f"old.{number}" for number in range(EVENT_TYPES_MAX)))
        stores.endpoints.create(old)
        new = changed(old, event_types=tuple(f"new.{number}" for number in range(EVENT_TYPES_MAX)))
        assert stores.endpoints.replace(old, new)
        assert (subscribed(stores, "old.7"), subscribed(stores, "new.7")) == ([], [old.id])


class TestSwitch:
    """What a change of state or URL does to the gate and to history, in the transaction of the change."""

    OFF_MS, ON_MS = NOW_MS, NOW_MS + 60_000

    def disabled(self, stores: Stores, old: Endpoint) -> Endpoint:
        off = replace(old, state=EndpointState.DISABLED).next_to(old, self.OFF_MS)
        assert stores.endpoints.replace(old, off)
        return off

    def enabled(self, stores: Stores, off: Endpoint) -> bool:
        on = replace(off, state=EndpointState.ENABLED).next_to(off, self.ON_MS)
        return stores.endpoints.replace(off, on)

    def holds(self, stores: Stores, of: Endpoint) -> tuple[Spell, ...]:
        found = stores.reading.health(of.tenant, of.id, 10, NOW_MS)
        assert found is not None
        return found.holds

    def test_an_endpoint_is_held_from_when_it_is_disabled(self, stores: Stores) -> None:
        old = endpoint()
        stores.endpoints.create(old)
        self.disabled(stores, old)
        gate, off_us = gate_of(stores, old), self.OFF_MS * 1000
        assert gates.current_hold(gate, off_us + 5) == Spell(HoldReason.DISABLED, off_us, 0)
        assert gates.held_sum(gate, off_us + 5) == 5
        assert self.holds(stores, old) == (), "history gets a hold when it is over"

    def test_other_changes_while_it_is_disabled_leave_since_when(self, stores: Stores) -> None:
        old = endpoint()
        stores.endpoints.create(old)
        off = self.disabled(stores, old)
        slower = replace(off, limits=Limits(5, 5, 4)).next_to(off, self.OFF_MS + 1_000)
        assert stores.endpoints.replace(off, slower)
        moved = replace(slower, url="https://new.example/").next_to(slower, self.OFF_MS + 2_000)
        assert stores.endpoints.replace(slower, moved)
        gate = gate_of(stores, old)
        assert (gate.enabled, gate.off_from, gate.rate, gate.cap) == (False, self.OFF_MS * 1000, 5, 4)
        assert self.holds(stores, old) == ()
        assert self.enabled(stores, moved)
        assert [each.since for each in self.holds(stores, old)] == [self.OFF_MS * 1000]

    def test_enabling_writes_the_hold_and_ends_it_in_one_transaction(
        self, stores: Stores, calls: Callable[[], int]
    ) -> None:
        old = endpoint()
        stores.endpoints.create(old)
        off = self.disabled(stores, old)
        calls()
        assert self.enabled(stores, off)
        assert calls() == 1
        on_us = self.ON_MS * 1000
        assert self.holds(stores, old) == (Spell(HoldReason.DISABLED, self.OFF_MS * 1000, on_us),)
        gate = gate_of(stores, old)
        assert (gate.enabled, gates.current_hold(gate, on_us)) == (True, None)
        assert gates.held_sum(gate, on_us + 99) == on_us - self.OFF_MS * 1000
        waited = gates.held_between(gate, self.OFF_MS * 1000 + 5, on_us + 99)
        assert waited == (on_us - self.OFF_MS * 1000 - 5, HoldReason.DISABLED)

    def test_a_refused_enabling_writes_nothing(self, stores: Stores) -> None:
        old = endpoint()
        stores.endpoints.create(old)
        off = self.disabled(stores, old)
        assert stores.endpoints.replace(off, replace(off, description="first").next_to(off, self.OFF_MS))
        assert not self.enabled(stores, off)
        assert not gate_of(stores, old).enabled
        assert self.holds(stores, old) == ()

    def test_deleting_a_disabled_endpoint_ends_its_hold_as_well(self, stores: Stores) -> None:
        """What it still owes is then looked at, to be ended."""
        old = endpoint()
        stores.endpoints.create(old)
        off = self.disabled(stores, old)
        gone = replace(off, state=EndpointState.DELETED).next_to(off, self.ON_MS)
        assert stores.endpoints.replace(off, gone)
        assert [each.reason for each in self.holds(stores, old)] == [HoldReason.DISABLED]
        assert gate_of(stores, old).enabled

    def test_disabled_twice_it_was_held_twice(self, stores: Stores) -> None:
        old = endpoint()
        stores.endpoints.create(old)
        now, at_ms = old, NOW_MS
        for turn in range(4):
            state = EndpointState.ENABLED if turn % 2 else EndpointState.DISABLED
            then = replace(now, state=state).next_to(now, at_ms + turn * 1_000)
            assert stores.endpoints.replace(now, then)
            now = then
        spans = [(each.since - NOW_US, each.until - NOW_US) for each in self.holds(stores, old)]
        assert spans == [(2_000_000, 3_000_000), (0, 1_000_000)]
        assert gates.held_sum(gate_of(stores, old), NOW_US + 9_000_000) == 2_000_000

    def test_a_new_url_closes_the_breaker_and_begins_the_ramp(self, stores: Stores) -> None:
        old = endpoint()
        stores.endpoints.create(old)
        owner = (TENANT, old.id)
        stores.gates.change([(owner, Change((), {"fails": RULES.threshold}, {}))])
        assert stores.gates.change([(owner, gates.opening(gate_of(stores, old), NOW_US, RULES))])[0].made
        assert isinstance(gates.ask(gate_of(stores, old), Ask("0", "me", ("k",)), NOW_US, RULES), Hold)
        moved = replace(old, url="https://new.example/").next_to(old, NOW_MS + 1)
        assert stores.endpoints.replace(old, moved)
        gate = gate_of(stores, old)
        assert (gate.state, gate.fails, gate.ramp_from) == (Breaker.CLOSED, 0, (NOW_MS + 1) * 1000)
        assert isinstance(gates.ask(gate, Ask("0", "me", ("k",)), NOW_US + 1_000, RULES), Grant)

    def test_what_the_old_url_said_is_no_evidence_of_the_new(self, stores: Stores) -> None:
        old = endpoint()
        stores.endpoints.create(old)
        owner = (TENANT, old.id)
        grant = gates.ask(gate_of(stores, old), Ask("0", "me", ("k",)), NOW_US, RULES)
        assert isinstance(grant, Grant)
        stores.gates.change([(owner, grant.change)])
        assert stores.endpoints.replace(old, replace(old, url="https://new.example/").next_to(old, NOW_MS))
        told = [Told(Evidence.FAILING)]
        late = gates.settle(grant.claim, told, NOW_US, RULES)
        assert not stores.gates.change([(owner, late)])[0].made
        back = gates.release(grant.claim.lease, grant.claim.lane)
        assert stores.gates.change([(owner, back)])[0].made
        gate = gate_of(stores, old)
        assert (gate.fails, gate.slots) == (0, gate.cap)

    def test_a_description_leaves_the_gate_alone(self, stores: Stores) -> None:
        old = endpoint()
        stores.endpoints.create(old)
        before = gate_of(stores, old)
        assert stores.endpoints.replace(old, replace(old, description="new").next_to(old, NOW_MS))
        assert gate_of(stores, old) == before


class TestPage:
    def test_the_newest_come_first_and_each_once(self, stores: Stores) -> None:
        everything = [endpoint(number) for number in range(5)]
        for each in everything:
            stores.endpoints.create(each)
        deleted = everything[3]
        stores.endpoints.replace(deleted, changed(deleted, state=EndpointState.DELETED))
        expected = [each for each in reversed(everything) if each is not deleted]
        for limit in (1, 3, 4):
            assert self.paged(stores, limit) == expected

    def test_f120_exactly_as_many_as_the_limit_are_the_last_page(self, stores: Stores) -> None:
        for number in range(3):
            stores.endpoints.create(endpoint(number))
        page = stores.endpoints.page(TENANT, "", 3)
        assert (len(page.items), page.after) == (3, "")

    def test_f120_what_is_made_meanwhile_moves_no_page(self, stores: Stores) -> None:
        for number in range(4):
            stores.endpoints.create(endpoint(number))
        first = stores.endpoints.page(TENANT, "", 2)
        stores.endpoints.create(endpoint(9))
        second = stores.endpoints.page(TENANT, first.after, 2)
        assert [*first.items, *second.items] == [endpoint(number) for number in (3, 2, 1, 0)]

    @without_moto
    def test_f120_a_stretch_of_deleted_ones_is_no_end(self, stores: Stores) -> None:
        stores.endpoints.create(endpoint(0))
        gone = [replace(endpoint(number), state=EndpointState.DELETED) for number in range(1, 105)]
        stores.tables.each([Insert(keys.endpoint(TENANT, each.id), rows.endpoint_row(each)) for each in gone])
        assert stores.endpoints.page(TENANT, "", 2).items == (endpoint(0),)

    def test_no_tenant_sees_anothers(self, stores: Stores) -> None:
        stores.endpoints.create(endpoint(1, tenant=STRANGER))
        assert stores.endpoints.page(TENANT, "", 10).items == ()

    def paged(self, stores: Stores, limit: int) -> list[Endpoint]:
        found: list[Endpoint] = []
        after = ""
        while True:
            page = stores.endpoints.page(TENANT, after, limit)
            assert len(page.items) <= limit
            found += page.items
            if not page.after:
                return found
            after = page.after


def test_a_change_of_the_gate_between_reading_and_replacing_is_kept(stores: Stores) -> None:
    old = endpoint()
    stores.endpoints.create(old)
    stores.gates.change([((TENANT, old.id), Change((), {"fails": 7}, {"slots": -2}))])
    assert stores.endpoints.replace(old, changed(old, limits=Limits(10, 20, 10)))
    gate = gate_of(stores, old)
    assert (gate.fails, gate.slots, gate.cap) == (7, 8, 10)


class TestQuota:
    def test_one_too_many_is_refused_whole(self, stores: Stores) -> None:
        for number in range(3):
            assert stores.endpoints.create(endpoint(number), at_most=3)
        new = endpoint(3, ("order.made",))
        assert not stores.endpoints.create(new, at_most=3)
        assert stores.endpoints.get(TENANT, new.id) is None
        assert stores.capturing.subscribers(TENANT, ["order.made"])["order.made"] == ()
        assert stores.endpoints.count(TENANT) == 3

    def test_a_deleted_one_gives_its_place_back_once(self, stores: Stores) -> None:
        old = endpoint(1)
        for each in (old, endpoint(2)):
            assert stores.endpoints.create(each)
        off = replace(old, version=2, state=EndpointState.DISABLED)
        assert stores.endpoints.replace(old, off)
        assert stores.endpoints.count(TENANT) == 2, "a disabled one keeps its place"
        gone = replace(off, version=3, state=EndpointState.DELETED)
        assert [stores.endpoints.replace(off, gone) for _ in range(2)] == [True, False]
        assert stores.endpoints.count(TENANT) == 1

    def test_every_tenant_has_places_of_its_own(self, stores: Stores) -> None:
        assert stores.endpoints.count(STRANGER) == 0
        assert stores.endpoints.create(endpoint(1), at_most=1)
        assert stores.endpoints.create(endpoint(2, tenant=STRANGER), at_most=1)

    def test_a_lowered_quota_takes_nothing_away(self, stores: Stores) -> None:
        for number in range(3):
            assert stores.endpoints.create(endpoint(number))
        assert not stores.endpoints.create(endpoint(3), at_most=2)
        assert len(stores.endpoints.page(TENANT, "", 10).items) == 3
