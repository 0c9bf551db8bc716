"""Purges: all that is one tenant's goes, from every table and the payloads, and nothing of another's."""

from dataclasses import replace

import pytest

from chalicelib.adapters.dynamodb import auditing, keys
from chalicelib.adapters.dynamodb.limiting import DynamoAllowances
from chalicelib.adapters.dynamodb.purging import FOUND, Found
from chalicelib.adapters.dynamodb.records import Delete, Key
from chalicelib.adapters.dynamodb.trusting import DynamoTenants
from chalicelib.application.ingest import Post
from chalicelib.application.ports import Allowance, Factor, Wish
from chalicelib.application.ports.limiting import requests_of
from chalicelib.domain import bucket
from chalicelib.domain.api_key import ApiKey, Role
from chalicelib.domain.audit import RELAY, Action, Record
from chalicelib.domain.bulk_replay import Wanted
from chalicelib.domain.change import Record as Row
from chalicelib.domain.endpoint import Endpoint, EndpointState, Ordering, WrappedSecret
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.tenant import Tenant, TenantState
from infra import template
from tests.fakes.scripted_sender import in_turn, status
from tests.unit.application.interruptions import at_call, deaths
from tests.unit.application.process import QUIET_MS, Process
from tests.unit.application.world import BY, FAILS, LARGE, MINUTE_MS, OK, TENANT, World, lane_of

OTHER = "other"
BUSY_ROUNDS = 60
KNOWN_MS = 55_000


def opened(world: World, name: str) -> Tenant:
    """Open a tenant with a key and a second factor."""
    tenant = Tenant(name, created_ms=world.clock.now_ms())
    sealed = WrappedSecret(b"sealed")
    key = ApiKey(name, f"key_{name}", "digest", Role.ADMIN)
    assert DynamoTenants(world.usual.tables).create(tenant, Factor(sealed, sealed), key, None)
    return tenant


def filled(world: World, name: str) -> Tenant:
    """Let a tenant have something of everything: rows in each table, and payloads."""
    tenant = opened(world, name)
    usual = world.usual
    made = []
    for number, ordering in enumerate((Ordering.NONE, Ordering.NONE, Ordering.ENDPOINT)):
        world.clock.advance(ms=1)
        draft = Endpoint(name, "", f"https://{name}-{number}.example/", ("*",), 0, ordering=ordering)
        made.append(usual.manage.register(draft, BY).endpoint)
    for number in range(3):
        world.clock.advance(ms=1)
        post = Post(name, LARGE if number else b"{}", "application/json", "order.paid", f"key {number}")
        world.accept([post], usual)
    world.work_off(for_ms=10_000)
    usual.manage.disable(name, made[0].id, BY)
    world.accept([Post(name, b"{}", "application/json", "order.paid", None)], usual)
    wanted = Wanted(0, world.clock.now_ms())
    usual.order_replays.begin((name, made[1].id), wanted, None, BY)
    usual.order_purges.dead_letters((name, made[1].id), 1, BY)
    run(world)
    world.run(lambda it: it.notify.run(), usual)
    allowances = DynamoAllowances(usual.tables)
    allowances.take([Wish(Allowance(name, "events"), bucket.Bucket(10, 20), 1, 0)], world.clock.now_us())
    return tenant


@pytest.fixture
def world() -> World:
    world = World()
    world.sender.script = in_turn([status(404)])
    return world


def of_tenant(world: World, name: str) -> dict[Key, Row]:
    """Read all rows that are a tenant's, and the installation's that names it."""
    everything = world.records.by_key.items()
    return {at: row for at, row in everything if at.pk.partition("#")[0] == name or at.sk == name}


def begin(world: World, tenant: Tenant, process: Process | None = None) -> None:
    """Begin a purge, and forget the calls of whatever the tenant had under way."""
    world.run(lambda it: it.order_purges.tenant(tenant, BY), process or world.usual)


def run(world: World, process: Process | None = None) -> None:
    """Run the function once."""
    world.run(lambda it: it.purge_all.run(lambda: world.function_ms), process or world.usual)


def purge(world: World, process: Process | None = None) -> None:
    """Run the function each minute until no purge is left."""
    for _ in range(BUSY_ROUNDS):
        run(world, process)
        if not [row for row in world.records_of(keys.PURGES) if row["sk"] == keys.WHOLE]:
            return
        world.clock.advance(ms=MINUTE_MS)
    raise AssertionError("the purge does not end")


def records(world: World, action: Action) -> list[Record]:
    told = [auditing.record_of(row) for row in world.records_of(keys.AUDIT)]
    return [each for each in told if each.action is action]


def test_how_a_tenant_s_rows_are_found_is_said_of_every_table() -> None:
    """A new table is in resources.yaml; it is purged as well, or this tells."""
    source = template.read(template.RESOURCES)["Resources"]
    names = [each["Properties"]["TableName"] for each in source.values() if each["Type"].endswith("::Table")]
    described = {name["Fn::Sub"].removeprefix("${Prefix}") for name in names}
    assert described == set(FOUND)
    assert [table for table, found in FOUND.items() if found is Found.STAYS] == [keys.AUDIT]


def test_every_table_has_something_of_the_tenant_before(world: World) -> None:
    """So that what follows shows something."""
    filled(world, TENANT)
    begin(world, tenant_of(world, TENANT))
    without = {at.table for at in of_tenant(world, TENANT)} ^ set(FOUND)
    assert without <= {keys.STATS, keys.FANOUTS, keys.METRICS, keys.REGISTRY}
    assert world.kept


def tenant_of(world: World, name: str) -> Tenant:
    found = DynamoTenants(world.usual.tables).get(name)
    assert found is not None
    return found


def test_all_of_one_tenant_goes_and_nothing_of_another(world: World) -> None:
    mine = filled(world, TENANT)
    filled(world, OTHER)
    others, payloads = of_tenant(world, OTHER), {each for each in world.kept if each.startswith(OTHER)}
    begin(world, mine)
    purge(world)
    left = {at.table for at in of_tenant(world, TENANT)}
    assert left == {keys.AUDIT}
    assert of_tenant(world, OTHER) == others
    assert set(world.kept) == payloads
    assert payloads


def test_it_is_told_when_it_begins_and_when_all_is_gone(world: World) -> None:
    mine = filled(world, TENANT)
    begin(world, mine)
    (begun,) = records(world, Action.TENANT_PURGED)
    assert (begun.actor, begun.subject) == (BY, TENANT)
    assert (begun.change.before, begun.change.after) == ({"state": "active"}, {"state": "purging"})
    purge(world)
    _, over = records(world, Action.TENANT_PURGED)
    assert over.actor == RELAY
    assert over.change.after["state"] == "purged"
    assert int(str(over.change.after["rows"])) > 30
    assert over.change.after["payloads"] == 2
    closed = records(world, Action.ENDPOINT_DELETED)
    assert [each.actor for each in closed] == [RELAY] * 3


def test_a_purge_that_goes_on_is_begun_no_second_time(world: World) -> None:
    begin(world, filled(world, TENANT))
    begin(world, tenant_of(world, TENANT))
    assert len(records(world, Action.TENANT_PURGED)) == 1


def test_a_tenant_that_has_changed_since_it_was_read_is_not_purged(world: World) -> None:
    mine = filled(world, TENANT)
    with pytest.raises(RelayError) as told:
        world.usual.order_purges.tenant(replace(mine, version=7), BY)
    assert told.value.code is ErrorCode.VERSION_STALE
    assert tenant_of(world, TENANT).state is TenantState.ACTIVE
    assert records(world, Action.TENANT_PURGED) == []


def test_nothing_goes_before_whoever_writes_has_surely_ended(world: World) -> None:
    begin(world, filled(world, TENANT))
    run(world)
    before = of_tenant(world, TENANT)
    world.clock.advance(ms=QUIET_MS - 1)
    run(world)
    assert of_tenant(world, TENANT) == before
    world.clock.advance(ms=1)
    run(world)
    assert len(of_tenant(world, TENANT)) < len(before)


def test_what_was_written_late_goes_too(world: World) -> None:
    """By a request that was let in just before, and by one that made an endpoint."""
    begin(world, filled(world, TENANT))
    run(world)
    draft = Endpoint(TENANT, "", "https://late.example/", ("*",), 0)
    world.usual.manage.register(draft, BY)
    world.accept([Post(TENANT, LARGE, "application/json", "order.paid", "late")], Process(world))
    purge(world)
    assert {at.table for at in of_tenant(world, TENANT)} == {keys.AUDIT}
    assert not world.kept


def test_who_goes_on_asking_does_not_hold_it_up(world: World) -> None:
    """A request by a key that is known still uses up its allowance, and that is a row."""
    begin(world, filled(world, TENANT))
    allowances, key = DynamoAllowances(world.usual.tables), keys.api_key(TENANT, f"key_{TENANT}")
    known_until_ms = 0
    for _ in range(BUSY_ROUNDS):
        now_ms = world.clock.now_ms()
        if key in world.records.by_key:
            known_until_ms = now_ms + KNOWN_MS
        if now_ms < known_until_ms:
            wish = Wish(Allowance(TENANT, requests_of(key.sk)), bucket.Bucket(10, 20), 1, 0)
            allowances.take([wish], world.clock.now_us())
        run(world)
        world.clock.advance(ms=MINUTE_MS // 3)
    assert {at.table for at in of_tenant(world, TENANT)} == {keys.AUDIT}


@pytest.mark.parametrize("after", [False, True])
def test_killed_at_any_write_it_goes_on(after: bool) -> None:  # noqa: FBT001 - a parameter of the test
    begun = World()
    begun.sender.script = in_turn([status(404)])
    mine = filled(begun, TENANT)
    filled(begun, OTHER)
    others = of_tenant(begun, OTHER)
    begin(begun, mine)
    for death in deaths(20, after=after):
        world = World()
        world.records, world.kept = begun.records.copy(), dict(begun.kept)
        world.clock.advance_to(begun.clock.now_ms())
        world.usual = Process(world)
        dying = death.process(world)
        for _ in range(4):
            run(world, dying)
            world.clock.advance(ms=QUIET_MS)
        purge(world)
        assert {at.table for at in of_tenant(world, TENANT)} == {keys.AUDIT}
        assert of_tenant(world, OTHER) == others


def test_two_at_once_do_no_harm() -> None:
    begun = World()
    begun.sender.script = in_turn([status(404)])
    mine = filled(begun, TENANT)
    filled(begun, OTHER)
    others = of_tenant(begun, OTHER)
    begin(begun, mine)
    for number in range(1, 60, 3):
        world = World()
        world.records, world.kept = begun.records.copy(), dict(begun.kept)
        world.clock.advance_to(begun.clock.now_ms() + QUIET_MS)
        world.usual = Process(world)
        first = Process(world)
        at_call(first, number, lambda it=world: it.usual.purge_all.run(lambda: 60_000))  # type: ignore[misc]
        purge(world, first)
        assert {at.table for at in of_tenant(world, TENANT)} == {keys.AUDIT}
        assert of_tenant(world, OTHER) == others


def test_no_request_leaves_once_the_purge_has_begun_to_remove(world: World) -> None:
    """Deliveries are under way, retried and new, when it begins."""
    mine = opened(world, TENANT)
    world.sender.script = in_turn([FAILS, OK])
    endpoint = world.endpoint()
    world.deliveries(40)
    world.deliver()
    begin(world, mine)
    run(world)
    sent = len(world.sender.sent)
    world.work_off(for_ms=QUIET_MS)
    assert len(world.sender.sent) == sent, "the endpoint is deleted before anything is sent again"
    purge(world)
    for number in range(2):
        world.ring(lane_of(endpoint, str(number)))
    world.sweep()
    world.endings_called()
    world.work_off(for_ms=5 * MINUTE_MS)
    assert len(world.sender.sent) == sent
    assert {at.table for at in of_tenant(world, TENANT)} == {keys.AUDIT}


class TestDeadLetters:
    def died(self, world: World, count: int) -> Endpoint:
        """Let deliveries of an endpoint die, a second apart."""
        endpoint = world.endpoint()
        for _ in range(count):
            world.deliveries(1)
            world.work_off(for_ms=1_000)
        assert len(world.records_of(keys.DEAD_LETTERS)) == count
        return endpoint

    def test_those_of_an_endpoint_go_and_their_history_stays(self, world: World) -> None:
        endpoint = self.died(world, 3)
        another = world.endpoint("other.type")
        history = world.all_history()
        counted = world.usual.order_purges.dead_letters((TENANT, endpoint.id), None, BY)
        assert (counted.count, counted.exact) == (3, True)
        run(world)
        assert world.records_of(keys.DEAD_LETTERS) == []
        assert world.all_history() == history
        assert world.now(another).state is EndpointState.ENABLED

    def test_it_is_told_with_the_count(self, world: World) -> None:
        endpoint = self.died(world, 2)
        world.usual.order_purges.dead_letters((TENANT, endpoint.id), None, BY)
        (told,) = records(world, Action.DEAD_LETTERS_PURGED)
        assert (told.actor, told.subject) == (BY, endpoint.id)
        assert told.change.after["dead_letters"] == 2

    def test_only_those_given_up_on_before_a_moment_go(self, world: World) -> None:
        endpoint = self.died(world, 4)
        died_ms = sorted(row["at_ms"] for row in world.records_of(keys.DEAD_LETTERS))
        of = (TENANT, endpoint.id)
        assert world.usual.order_purges.dead_letters(of, died_ms[2], BY).count == 2
        run(world)
        assert sorted(row["at_ms"] for row in world.records_of(keys.DEAD_LETTERS)) == died_ms[2:]

    def test_what_dies_later_stays(self, world: World) -> None:
        endpoint = self.died(world, 1)
        world.usual.order_purges.dead_letters((TENANT, endpoint.id), None, BY)
        world.deliveries(1)
        world.work_off(for_ms=1_000)
        run(world)
        assert len(world.records_of(keys.DEAD_LETTERS)) == 1

    def test_a_rebuild_brings_none_of_them_back(self, world: World) -> None:
        endpoint = self.died(world, 3)
        died_ms = sorted(row["at_ms"] for row in world.records_of(keys.DEAD_LETTERS))
        world.usual.order_purges.dead_letters((TENANT, endpoint.id), died_ms[2], BY)
        run(world)
        left = world.records_of(keys.DEAD_LETTERS)
        lost = [each for each in world.records.by_key if each.table == keys.DEAD_LETTERS]
        world.usual.tables.each([Delete(each) for each in lost])
        world.run(lambda it: it.rebuild.run(), world.usual)
        assert world.records_of(keys.DEAD_LETTERS) == left

    @pytest.mark.parametrize("after", [False, True])
    def test_killed_at_any_write_it_goes_on(self, after: bool) -> None:  # noqa: FBT001 - a parameter
        begun = World()
        begun.sender.script = in_turn([status(404)])
        endpoint = self.died(begun, 5)
        begun.usual.order_purges.dead_letters((TENANT, endpoint.id), None, BY)
        for death in deaths(3, after=after):
            world = World()
            world.records = begun.records.copy()
            world.clock.advance_to(begun.clock.now_ms())
            world.usual = Process(world)
            run(world, death.process(world))
            run(world)
            assert world.records_of(keys.DEAD_LETTERS) == []

    def test_an_endpoint_that_is_not_there_has_none(self, world: World) -> None:
        opened(world, OTHER)
        endpoint = self.died(world, 1)
        for of in ((OTHER, endpoint.id), (TENANT, "ep_1"), (TENANT, "x" * 500)):
            with pytest.raises(RelayError) as told:
                world.usual.order_purges.dead_letters(of, None, BY)
            assert told.value.code is ErrorCode.NOT_FOUND
        assert records(world, Action.DEAD_LETTERS_PURGED) == []
