"""Authentication: a key opens its own tenant in its own role, and everything else is one refusal."""

from dataclasses import dataclass, replace
from itertools import count

import pytest

from chalicelib.adapters.dynamodb.trusting import DynamoKeys, DynamoTenants
from chalicelib.application.authenticate import Authenticate, Caller, KnownKeys
from chalicelib.application.ports import Factor
from chalicelib.domain.api_key import (
    DEVELOPMENT_ID,
    DEVELOPMENT_KEY,
    GIVEN,
    USE_NOTED_EVERY_MS,
    ApiKey,
    Role,
    development_key,
    digest,
    key_text,
    names_in,
)
from chalicelib.domain.audit import RELAY, Action, Record
from chalicelib.domain.endpoint import WrappedSecret
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.secret import Secret
from chalicelib.domain.tenant import DEFAULT_TENANT, Quotas, Tenant, development_tenant
from tests.fakes.fixed_clock import FixedClock
from tests.fakes.memory_tables import MemoryTables

KEY = "relay_acme.k1.secret-of-acme"
OPERATOR_KEY = "relay_operator.nobody-knows"
KEEP_MS = 30_000
ACME = Tenant("acme", quotas=Quotas(endpoints=7))
FACTOR = Factor(WrappedSecret(b"totp"), WrappedSecret(b"signing"))
_NUMBERS = count(1)


@dataclass(frozen=True, slots=True)
class World:
    """One store, a clock, and as many processes over them as a test wants."""

    tables: MemoryTables
    keys: DynamoKeys
    tenants: DynamoTenants
    clock: FixedClock

    def process(self, *, keyless: bool = False, operator: str = "") -> Authenticate:
        """Start a process, which knows no key yet."""
        return Authenticate(self.keys, KnownKeys(KEEP_MS), self.clock, keyless, operator)

    def key(self, key_id: str) -> ApiKey:
        """Read a key that is there."""
        found = self.keys.get("acme", key_id)
        assert found is not None
        return found

    def revoke(self, key_id: str) -> None:
        """Revoke a key, as another process does it."""
        assert self.keys.revoke(self.key(key_id), record())

    def reads(self) -> int:
        """Count the calls to the store since this was last asked."""
        count = len(self.tables.faults.steps)
        self.tables.faults.steps.clear()
        return count


@pytest.fixture
def world() -> World:
    tables = MemoryTables()
    made = World(tables, DynamoKeys(tables), DynamoTenants(tables), FixedClock())
    made.tenants.create(ACME, FACTOR, ApiKey("acme", "k0", digest("relay_acme.k0.s"), Role.ADMIN), record())
    made.keys.put(ApiKey("acme", "k1", digest(KEY), Role.PRODUCER, used_ms=made.clock.now_ms()))
    return made


def record() -> Record:
    return Record("acme", f"aud_{next(_NUMBERS)}", 1, Action.KEY_REVOKED, "k1", RELAY)


def is_refused(process: Authenticate, key: str = KEY) -> bool:
    try:
        process.caller(Secret(f"Bearer {key}"))
    except RelayError as refused:
        return refused.code is ErrorCode.UNAUTHENTICATED
    return False


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_a_key_opens_its_tenant_in_its_role(world: World, scheme: str) -> None:
    assert world.process().caller(Secret(f"{scheme} {KEY}")) == Caller("acme", Role.PRODUCER, "k1", ACME)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        KEY,
        f"Basic {KEY}",
        f"Bearer {KEY}x",
        f"Bearer {KEY[:-1]}",
        "Bearer relay_other.k1.secret-of-acme",
        "Bearer relay_acme.k2.secret-of-acme",
        "Bearer relay_acme..secret-of-acme",
        "Bearer relay_.k1.secret-of-acme",
        "Bearer relay_acme.k1",
        "Bearer relay_acme.k1.a.b",
        "Bearer relay_acme.k1.é",
        f"Bearer {KEY}{'x' * 600}",
        f"Bearer {DEVELOPMENT_KEY}",
        f"Bearer {OPERATOR_KEY}",
    ],
)
def test_everything_else_is_refused_alike(world: World, header: str | None) -> None:
    with pytest.raises(RelayError) as refused:
        world.process().caller(None if header is None else Secret(header))
    assert refused.value.code is ErrorCode.UNAUTHENTICATED
    assert refused.value.detail == "The API key is missing or not valid."


def test_only_where_it_is_allowed_no_key_is_the_default_tenant_s(world: World) -> None:
    process = world.process(keyless=True)
    expected = Caller(DEFAULT_TENANT, Role.ADMIN, DEVELOPMENT_ID, development_tenant())
    assert process.caller(None) == expected
    assert is_refused(process, "wrong")


def test_the_development_key_is_the_default_tenant_s(world: World) -> None:
    world.tenants.create(development_tenant(5), FACTOR, development_key(), record())
    expected = Caller(DEFAULT_TENANT, Role.ADMIN, DEVELOPMENT_ID, development_tenant(5))
    assert world.process().caller(Secret(f"Bearer {DEVELOPMENT_KEY}")) == expected
    assert world.process(keyless=True).caller(None) == expected


def test_a_key_whose_tenant_is_not_there_opens_nothing_but_on_one_s_own_machine(world: World) -> None:
    key = "relay_nobody.k1.secret"
    world.keys.put(ApiKey("nobody", "k1", digest(key), Role.ADMIN))
    assert is_refused(world.process(), key)
    assert world.process(keyless=True).caller(Secret(f"Bearer {key}")).account == Tenant("nobody")


def test_the_operator_is_known_by_the_hash_of_the_key(world: World) -> None:
    world.reads()
    process = world.process(operator=digest(OPERATOR_KEY))
    caller = process.caller(Secret(f"Bearer {OPERATOR_KEY}"))
    assert (caller.tenant, caller.role) == ("", Role.OPERATOR)
    assert is_refused(process, OPERATOR_KEY + "x")
    assert is_refused(world.process(), OPERATOR_KEY)
    assert world.reads() == 0


@pytest.mark.parametrize("role", GIVEN)
def test_the_operator_may_nothing_of_a_tenant_s_and_a_tenant_nothing_of_the_operator_s(role: Role) -> None:
    for caller, asked in ((Caller("", Role.OPERATOR), role), (Caller("acme", role), Role.OPERATOR)):
        with pytest.raises(RelayError) as refused:
            caller.must_be(asked)
        assert refused.value.code is ErrorCode.FORBIDDEN


def test_a_thousand_requests_read_the_key_once_and_write_nothing(world: World) -> None:
    process = world.process()
    world.reads()
    for _ in range(1_000):
        process.caller(Secret(f"Bearer {KEY}"))
    assert world.reads() == 1


def test_what_is_no_key_is_asked_for_each_time_and_never_remembered(world: World) -> None:
    process = world.process()
    assert is_refused(process, "relay_acme.k7.soon")
    world.keys.put(ApiKey("acme", "k7", digest("relay_acme.k7.soon"), Role.VIEWER))
    assert not is_refused(process, "relay_acme.k7.soon")


def test_a_revoked_key_is_refused_within_a_minute_where_it_was_known_and_at_once_elsewhere(
    world: World,
) -> None:
    knows, other = world.process(), world.process()
    assert not is_refused(knows)
    world.revoke("k1")
    assert is_refused(other)
    world.clock.advance(ms=KEEP_MS)
    assert KEEP_MS < 60_000
    assert is_refused(knows)


def test_a_key_that_is_in_use_all_the_time_is_read_again_all_the_same(world: World) -> None:
    process = world.process()
    assert not is_refused(process)
    world.revoke("k1")
    for _ in range(KEEP_MS // 1000 - 1):
        world.clock.advance(ms=1_000)
        assert not is_refused(process)
    world.clock.advance(ms=1_000)
    assert is_refused(process)


def test_where_a_key_was_revoked_it_is_forgotten_at_once(world: World) -> None:
    process = world.process()
    assert not is_refused(process)
    world.revoke("k1")
    process.known.forget(("acme", "k1"))
    assert is_refused(process)


def test_an_expired_key_is_refused_at_its_moment_wherever_it_is_known(world: World) -> None:
    until_ms = world.clock.now_ms() + 5_000
    key = "relay_acme.k8.short"
    world.keys.put(ApiKey("acme", "k8", digest(key), Role.VIEWER, expires_ms=until_ms))
    process = world.process()
    assert not is_refused(process, key)
    world.clock.advance_to(until_ms - 1)
    assert not is_refused(process, key)
    world.clock.advance_to(until_ms)
    assert is_refused(process, key)


def test_a_clock_that_was_set_back_prolongs_nothing(world: World) -> None:
    process = world.process()
    assert not is_refused(process)
    earlier = FixedClock(world.clock.now_ms() - 3_600_000)
    set_back = Authenticate(world.keys, process.known, earlier)
    world.reads()
    assert not is_refused(set_back)
    assert world.reads() == 1


def test_changed_quotas_hold_within_a_minute(world: World) -> None:
    process = world.process()
    assert process.caller(Secret(f"Bearer {KEY}")).account.quotas.endpoints == 7
    world.tenants.replace(ACME, replace(ACME, quotas=Quotas(endpoints=8)).next_to(ACME), record())
    world.clock.advance(ms=KEEP_MS)
    assert process.caller(Secret(f"Bearer {KEY}")).account.quotas.endpoints == 8


def test_a_use_is_noted_every_few_minutes_however_many_processes_there_are(world: World) -> None:
    processes = [world.process() for _ in range(3)]
    began_ms = world.clock.now_ms()
    noted = set()
    for _ in range(60 * 15):
        world.clock.advance(ms=1_000)
        for each in processes:
            each.caller(Secret(f"Bearer {KEY}"))
        noted.add((world.key("k1").used_ms - began_ms) // 1000)
    assert noted == {0, 300, 600, 900}
    writes = [step for step in world.tables.faults.steps if step.method == "each"]
    assert len(writes) <= 3 * len(processes)


def test_a_use_that_cannot_be_noted_is_a_use_all_the_same(world: World) -> None:
    world.clock.advance(ms=USE_NOTED_EVERY_MS)
    process = world.process()
    world.tables.faults.fail_next(method="each")
    assert not is_refused(process)


def test_a_role_may_do_what_names_it() -> None:
    Caller("acme", Role.ADMIN).must_be(Role.ADMIN, Role.PRODUCER)
    Caller("acme", Role.VIEWER).must_be(Role.PRODUCER, Role.VIEWER)
    with pytest.raises(RelayError) as refused:
        Caller("acme", Role.VIEWER).must_be(Role.PRODUCER, Role.ADMIN)
    assert refused.value.code is ErrorCode.FORBIDDEN
    assert refused.value.expected == "a key with the role admin or producer"


def test_keys_that_are_made_cannot_be_guessed_and_are_kept_as_hashes(world: World) -> None:
    text = key_text("acme", "k9", bytes(range(32))).reveal()
    assert names_in(text) == ("acme", "k9")
    assert len(text.rpartition(".")[2]) == 43
    assert text.rpartition(".")[2] not in repr(ApiKey("acme", "k9", digest(text), Role.ADMIN))
