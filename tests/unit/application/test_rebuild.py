"""Rebuild: what is derived is made again from history, and nobody who asks can tell the difference."""

import random
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.adapters.dynamodb import keys, rows
from chalicelib.adapters.dynamodb.records import Delete, Insert, Key, Put
from chalicelib.application.ports import Extent
from chalicelib.application.rebuild import Rebuilt
from chalicelib.domain import gate as gates
from chalicelib.domain.delivery import Owed, Status
from chalicelib.domain.endpoint import Endpoint, EndpointState, Limits, Ordering
from chalicelib.domain.gate import Breaker
from chalicelib.domain.request import Request
from chalicelib.domain.retention import DAY_MS, DEAD_DAYS
from chalicelib.wire import answers
from tests.fakes.scripted_sender import DIES, Answer, status
from tests.unit.application.interruptions import deaths
from tests.unit.application.invariants import check
from tests.unit.application.process import Process
from tests.unit.application.world import AMPLE, BY, FAILS, MINUTE_MS, OK, TAKE_OVER_MS, TENANT, World

DERIVED = (keys.OWED, keys.DEAD_LETTERS, keys.GATES)
DISABLED, ENABLED = EndpointState.DISABLED, EndpointState.ENABLED
KINDS = {"good": 8, "failing": 3, "flaky": 5, "dead": 9, "lost": 2, "off": 9, "wide": 40, "line": 6}
PENDING = ("good", "failing", "off", "wide", "stuck", "line")
Dump = dict[str, Any]


def answer(request: Request) -> Answer:
    """Answer by the type of the event, which names what is to become of its delivery."""
    headers = dict(request.headers)
    kind, first = headers["Relay-Event-Type"], headers["Relay-Attempt"] == "1"
    if kind == "dead":
        return status(404)
    if kind == "lost" and first:
        return DIES
    fails = kind in {"failing", "stuck"} or (kind == "flaky" and first)
    return FAILS if fails else OK


def full_world() -> World:
    """Make a world with deliveries of every status, retried, unknown, held, ordered and replayed ones."""
    world = World()
    world.sender.script = answer
    of = {kind: world.endpoint(kind, limits=AMPLE) for kind in KINDS if kind not in {"wide", "line"}}
    of["wide"] = world.endpoint("wide", limits=Limits(100_000, 100_000, 35))
    world.endpoint("line", "stuck", ordering=Ordering.ENDPOINT)
    world.hold(of["good"], 5_000)
    world.change(of["off"], state=DISABLED)
    said = {kind: [world.post(kind)["delivery_ids"][0] for _ in range(n)] for kind, n in KINDS.items()}
    for _ in range(5):
        world.deliver(Process(world))
        world.work_off(for_ms=TAKE_OVER_MS)
        world.sweep()
    world.change(of["off"], state=ENABLED)
    world.work_off(for_ms=MINUTE_MS)
    for delivery in (*said["good"][:3], *said["dead"][:4], *said["flaky"][:2]):
        world.usual.replay.run(TENANT, delivery, BY)
    world.work_off(for_ms=MINUTE_MS)
    world.change(of["off"], state=DISABLED)
    owed_by(world, said)
    world.change(of["wide"], limits=AMPLE)
    return world


def owed_by(world: World, said: dict[str, list[str]]) -> None:
    """Leave something owed of every kind, with nobody sending: posted, retried, replayed, behind a head."""
    world.post("stuck")
    world.work_off(for_ms=2 * MINUTE_MS)
    for kind in PENDING:
        for _ in range(6):
            world.post(kind)
    for delivery in (*said["good"][3:6], *said["dead"][:2], *said["wide"][:9]):
        world.usual.replay.run(TENANT, delivery, BY)
    world.purge()
    world.clock.advance(ms=MINUTE_MS)


def dumped(world: World) -> Dump:
    """Give all that the API answers of deliveries, their attempts and dead letters, by what was asked."""
    asked = world.usual.questions
    told: Dump = {}
    for record in world.records_of(keys.ENDPOINTS):
        if record["sk"].startswith("ep_"):
            listed = asked.deliveries(TENANT, record["sk"], Extent("", 1_000)).items
            told[f"{record['sk']} deliveries"] = [answers.delivery(each) for each in listed]
            dead = asked.dead_letters(TENANT, record["sk"], Extent("", 1_000)).items
            told[f"{record['sk']} dead letters"] = [answers.dead_letter(each) for each in dead]
            for each in listed:
                one = asked.delivery(TENANT, each.delivery_id)
                told[each.delivery_id] = answers.delivery(one)
    return told


def derived(world: World, *tables: str) -> dict[Key, Any]:
    """Give the rows of derived tables; of gates only which there are."""
    return {
        key: None if key.table == keys.GATES else record
        for key, record in world.records.by_key.items()
        if key.table in (tables or DERIVED)
    }


def lose(world: World, share: float = 0.1, seed: int = 1) -> int:
    """Lose a share of the owed rows and of the dead letters, and all gates; how many owed rows."""
    dice = random.Random(seed)
    lost = {}
    for table in (keys.OWED, keys.DEAD_LETTERS):
        here = sorted(key for key in world.records.by_key if key.table == table)
        lost[table] = dice.sample(here, min(len(here), max(1, round(len(here) * share))))
    every_gate = [key for key in world.records.by_key if key.table == keys.GATES]
    world.usual.tables.each(
        [Delete(key) for key in (*lost[keys.OWED], *lost[keys.DEAD_LETTERS], *every_gate)]
    )
    return len(lost[keys.OWED])


def rebuild(world: World, process: Process | None = None) -> Rebuilt | None:
    """Rebuild in a process of its own; None when it was killed."""
    return world.run(lambda it: it.rebuild.run(), process or Process(world))


def unlike_held(record: Any) -> Any:  # noqa: ANN401 - a record
    """Leave out of an owed row what its endpoint had been held before: that is told from history's holds."""
    return {name: value for name, value in record.items() if name != "held_before_ms"} if record else record


@pytest.fixture(scope="module")
def made() -> World:
    return full_world()


@pytest.fixture
def world(made: World) -> World:
    """Give a copy of the full world."""
    world = World()
    world.records = made.records.copy()
    world.clock.advance_to(made.clock.now_ms())
    world.sender.sent = list(made.sender.sent)
    world.sender.script = lambda _: OK
    world.kept = dict(made.kept)
    world.usual = Process(world)
    return world


def test_the_world_has_deliveries_of_every_kind(world: World) -> None:
    shown = [each for name, each in dumped(world).items() if not name.startswith("ep_")]
    assert {each["status"] for each in shown} == {Status.PENDING, Status.SUCCEEDED, Status.DEAD}
    assert {each["generation"] for each in shown} == {0, 1, 2}
    outcomes = {attempt["outcome"] for each in shown for attempt in each["attempts"]}
    assert outcomes >= {"success", "retryable", "permanent", "unknown"}
    pending = [each for each in shown if each["status"] == Status.PENDING]
    assert {len(each["attempts"]) for each in pending} >= {0, 4, 5}
    assert any(each["hold"] for each in pending)
    lanes = {each.lane.number for each in world.owed()}
    assert lanes >= {"0", "1", "2", "3", "o0", "r0"}


@pytest.mark.parametrize("seed", range(10))
def test_what_was_lost_comes_back_and_the_api_answers_as_before(world: World, seed: int) -> None:
    before, rows_before = dumped(world), derived(world)
    lost = lose(world, seed=seed)
    assert derived(world) != rows_before
    done = rebuild(world)
    assert done is not None
    assert (done.owed, done.removed, done.unexplained) == (lost, 0, 0)
    assert done.gates == done.endpoints == 8
    assert dumped(world) == before
    after = derived(world)
    assert after.keys() == rows_before.keys()
    assert {key: unlike_held(after[key]) for key in after} == {
        key: unlike_held(rows_before[key]) for key in rows_before
    }


def test_everything_derived_can_be_lost(world: World) -> None:
    before = dumped(world)
    world.usual.tables.each([Delete(key) for key in derived(world)])
    assert rebuild(world) is not None
    assert dumped(world) == before


def test_a_rebuild_of_what_is_whole_changes_nothing(world: World) -> None:
    before = dict(world.records.by_key)
    done = rebuild(world)
    assert done == Rebuilt(endpoints=8)
    changed = {key for key, record in world.records.by_key.items() if before.get(key) != record}
    assert {key.table for key in changed} <= {keys.GATES}


def test_nothing_that_succeeded_is_sent_again_and_everything_owed_is(world: World) -> None:
    owed = {(each.delivery_id, each.generation) for each in world.owed()}
    off = {each.delivery_id for each in world.owed() if not world.gate(world_endpoint(world, each)).enabled}
    lose(world)
    rebuild(world)
    sent = len(world.sender.sent)
    work_on(world)
    again = [
        (each.delivery_id, int(dict(each.request.headers)["Relay-Generation"]))
        for each in world.sender.sent[sent:]
    ]
    assert len(again) == len(set(again))
    assert set(again) == {each for each in owed if each[0] not in off}
    check_slots(world)


def work_on(world: World) -> None:
    """Let an hour pass with a sweep a minute."""
    for _ in range(60):
        world.sweep()
        world.work_off(for_ms=MINUTE_MS)


def world_endpoint(world: World, owed: Owed) -> Endpoint:
    """Read the endpoint of an owed row."""
    found = world.usual.endpoints.get(owed.lane.tenant, owed.lane.endpoint_id)
    assert found is not None
    return found


def check_slots(world: World) -> None:
    for record in world.records_of(keys.GATES):
        gate = gates.read(record)
        assert gate.slots + gate.held_slots == gate.cap


def test_gates_begin_closed_full_and_on_their_ramp(world: World) -> None:
    lose(world)
    rebuild(world)
    for record in world.records_of(keys.GATES):
        gate = gates.read(record)
        assert (gate.state, gate.slots, gate.tat) == (Breaker.CLOSED, gate.cap, 0)
        assert gate.ramp_from == world.clock.now_us()
        assert gate.leases == {}


def test_a_gate_knows_its_lanes_its_switch_and_how_long_it_was_held(made: World, world: World) -> None:
    lose(world)
    rebuild(world)
    for key, record in made.records.by_key.items():
        if key.table == keys.GATES:
            old, new = gates.read(record), gates.read(world.records.by_key[key])
            assert (new.lanes, new.ordered) == (old.lanes, old.ordered)
            replays = any(each.lane.replay and key.pk in each.lane.name for each in world.owed())
            assert new.replays >= replays
            assert (new.enabled, new.off_from) == (old.enabled, old.off_from)
            now = world.clock.now_us()
            assert abs(gates.held_sum(new, now) - gates.held_sum(old, now)) < 1_000


def test_time_held_still_does_not_count_against_what_is_owed(made: World, world: World) -> None:
    lose(world, share=0.5)
    rebuild(world)
    now = world.clock.now_us()
    for owed in world.owed():
        at = keys.owed(owed)
        of = keys.gate(owed.lane.tenant, owed.lane.endpoint_id)
        if owed.first_ms:
            old = rows.owed_of(made.records.by_key[at])
            held = [
                gates.held_sum(gates.read(it.records.by_key[of]), now) // 1000 - row.held_before_ms
                for it, row in ((made, old), (world, owed))
            ]
            assert abs(held[0] - held[1]) <= 1


def test_rows_of_what_is_over_go_and_rows_that_are_wrong_are_mended(world: World) -> None:
    row = next(each for each in world.owed() if each.made and not each.lane.ordered)
    over = next(
        each for each in dumped(world).values() if isinstance(each, dict) and each["status"] == "succeeded"
    )
    lane = replace(row.lane, endpoint_id=over["endpoint_id"])
    stale = Owed(lane, over["id"], over["event_id"], row.ready_ms, over["generation"], made=0)
    early = replace(row, made=row.made - 1, ready_ms=row.ready_ms - 1)
    twice = replace(row, ready_ms=row.ready_ms + 5)
    whole = derived(world, keys.OWED)
    wrong = replace(row, counted=row.counted + 3)
    world.usual.tables.each([Insert(keys.owed(each), rows.owed_row(each)) for each in (stale, early, twice)])
    world.usual.tables.together([Put(keys.owed(row), rows.owed_row(wrong))])
    done = rebuild(world)
    assert done is not None
    assert (done.removed, done.corrected, done.owed) == (3, 1, 0)
    assert derived(world, keys.OWED) == whole


def test_what_history_does_not_know_is_told_and_stays(world: World) -> None:
    row = next(each for each in world.owed() if not each.made)
    strange = replace(row, generation=7)
    world.usual.tables.each([Insert(keys.owed(strange), rows.owed_row(strange))])
    done = rebuild(world)
    assert done is not None
    assert (done.unexplained, done.removed) == (1, 0)
    assert keys.owed(strange) in world.records.by_key


def test_a_dead_letter_past_its_time_does_not_come_back(world: World) -> None:
    dead = len(world.records_of(keys.DEAD_LETTERS))
    assert dead > 5
    lose(world, share=1.0)
    world.clock.advance(ms=DEAD_DAYS * DAY_MS)
    done = rebuild(world)
    assert done is not None
    assert done.dead_letters == 0


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_anywhere_it_is_run_again_and_goes_on(made: World, world: World, after: bool) -> None:  # noqa: FBT001 - a case
    lose(world)
    lost = world.records.copy()
    rebuild(world)
    whole = dict(world.records.by_key)
    for death in deaths(12, after=after):
        world.records = lost.copy()
        rebuild(world, death.process(world))
        assert rebuild(world) is not None
        assert world.records.by_key == whole
    assert made.records.by_key.keys() == whole.keys()


def test_what_was_rebuilt_keeps_its_promises(world: World) -> None:
    lose(world)
    rebuild(world)
    for record in world.records_of(keys.ENDPOINTS):
        if record["sk"].startswith("ep_") and record["state"] == DISABLED.value:
            of = world.usual.endpoints.get(TENANT, record["sk"])
            assert of is not None
            world.change(of, state=ENABLED)
    work_on(world)
    assert world.owed() == []
    check_slots(world)


def test_a_world_without_replays_keeps_all_invariants() -> None:
    world = World()
    world.sender.script = answer
    for kind in ("good", "flaky", "dead"):
        world.endpoint(kind)
        for _ in range(6):
            world.post(kind)
    world.work_off(for_ms=1_000)
    lose(world, share=0.5)
    rebuild(world)
    check(world)


def test_what_is_posted_after_a_gate_was_made_again_is_looked_at_too() -> None:
    world = World()
    world.endpoint()
    world.deliveries(1)
    world.work_off()
    lose(world)
    rebuild(world)
    (late,) = world.deliveries(1)
    world.purge()
    work_on(world)
    assert world.outcomes(late) == ["success"]
