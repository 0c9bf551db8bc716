"""Every action that a policy allows is asked by its function in a scenario here, or listed with a reason.

What test_permissions.py does not make a function ask is asked here: rings on every queue, second runs, and
what is there only after days. The last test reads what was recorded.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

import app as lambdas
from chalicelib import bootstrap
from chalicelib.domain import ids
from chalicelib.domain.api_key import ApiKey, Role, digest
from chalicelib.domain.gate import Queue
from chalicelib.domain.retention import DAY_MS
from chalicelib.domain.tenant import Quotas, Tenant
from chalicelib.wire import bell as bells
from infra.functions import FUNCTIONS, UNRECORDED, Function
from infra.local.invocation import LambdaContext
from infra.local.sqs_event import event_of
from tests.fakes.fixed_clock import FixedClock
from tests.fakes.scripted_sender import ScriptedSender, in_turn, status
from tests.handlers import test_permissions
from tests.handlers.conftest import MakeRelay
from tests.handlers.permitted import GRANTED, RECORDED, SERVICES, Watch
from tests.handlers.relay import SHARDS, message, typed
from tests.handlers.test_permissions import BIG, TENANT

SENDING = [each for each in FUNCTIONS if each.sends]
IN_A_HURRY_S = 10.0
"""Time enough for a request and no more, so that a function leaves the rest of its work to another run."""
MINUTE_MS = 60_000
CODES = (200, 500, 429, 404, 410)
ROLE = "arn:aws:iam::000000000000:role/relay-deliver-x"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FixedClock:
    """Give the time, which moves with what is sent and is moved by tests."""
    stopped = FixedClock(bootstrap.clock().now_ms())
    monkeypatch.setattr(bootstrap, "clock", lambda: stopped)
    return stopped


@pytest.fixture
def sender(clock: FixedClock, monkeypatch: pytest.MonkeyPatch) -> ScriptedSender:
    scripted = ScriptedSender(clock)
    monkeypatch.setattr(bootstrap, "sender", lambda: scripted)
    monkeypatch.setattr(bootstrap, "cloud_sender", lambda: scripted)
    return scripted


@pytest.fixture
def watch(make_relay: MakeRelay) -> Watch:
    relay = make_relay(RELAY_ALLOW_KEYLESS="true", RELAY_ALLOW_PRIVATE_ENDPOINTS="true")
    return Watch(relay, {name: bootstrap.client(name) for name in SERVICES})


@pytest.fixture
def later(make_relay: MakeRelay, watch: Watch) -> Watch:
    """Give a Relay in which every fan-out is done later."""
    settings = {"RELAY_INLINE_FANOUT_MAX": "0", "RELAY_ALLOW_KEYLESS": "true"}
    return replace(watch, relay=make_relay(**settings, RELAY_ALLOW_PRIVATE_ENDPOINTS="true"))


def in_aws(watch: Watch, **fields: object) -> Any:  # noqa: ANN401 - JSON
    arn = "arn:aws:sqs:us-east-1:000000000000:theirs"
    return watch.relay.endpoint(url=arn, role=ROLE, transport="sqs", **fields)


def move(watch: Watch, made: Mapping[str, Any], **sets: object) -> None:
    """Change an endpoint's gate."""
    (gate,) = [each for each in watch.relay.rows("gates") if each["pk"]["S"].endswith(made["id"])]
    watch.relay.change("gates", gate, **sets)


def everywhere(watch: Watch) -> list[str]:
    """Register endpoints until one rings on each queue; the names of their lanes."""
    made = [in_aws(watch), watch.relay.endpoint(), watch.relay.endpoint()]
    for queue, each in zip((Queue.SLOW, Queue.HOT), made[1:], strict=True):
        busy = {"per_s": {"N": "300"}, "minute_from": {"N": str(bootstrap.clock().now_us())}}
        move(watch, each, queue={"S": queue.value}, **busy)
    shards: dict[int, Any] = {}
    while len(shards) < SHARDS:
        one = watch.relay.endpoint(max_concurrency=1)
        if shards.setdefault(int(ids.endpoint_tag(one["id"]), 16) % SHARDS, one) is not one:
            watch.relay.delete(one)
    return [f"{TENANT}#{each['id']}#0" for each in (*made, *shards.values())]


def bells_of(lanes: Iterable[str]) -> list[dict[str, Any]]:
    bodies = [json.dumps({"lane": lane, "rung_ms": 1, "hints": []}) for lane in lanes]
    return [message(body, number) for number, body in enumerate(bodies)]


def rung_of(function: Function) -> str:
    """Name the queue that a function is fed from, as the code says it."""
    return function.deployed_name.removeprefix("deliver-")


def deliver(watch: Watch, function: Function, lanes: Iterable[str], seconds: float = 60.0) -> None:
    event = event_of(bells_of(lanes), watch.relay.arn(rung_of(function)))
    with watch.a_process(function.name):
        getattr(lambdas, function.name)(event, LambdaContext("relay-worker", seconds))


@pytest.mark.parametrize("function", SENDING, ids=lambda each: each.name)
def test_a_sending_function_sends_retries_ends_holds_and_disables(
    watch: Watch, sender: ScriptedSender, clock: FixedClock, function: Function
) -> None:
    relay = watch.relay
    cloud = function.name == "deliver_cloud"
    for code in CODES:
        made = in_aws(watch) if cloud else relay.endpoint()
        relay.event(BIG, typed("t", "image/png"))
        lane = f"{TENANT}#{made['id']}#0"
        sender.script = in_turn([status(code, headers=(("retry-after", "30"),))])
        deliver(watch, function, [lane])
        relay.event(BIG, typed("t", "image/png"))
        deliver(watch, function, [lane])
        relay.delete(relay.get(f"/v1/endpoints/{made['id']}").json)
    made = in_aws(watch) if cloud else relay.endpoint()
    past = {"L": [{"N": "495000"}, {"N": "1"}, {"N": "0"}, {"N": "0"}]}
    dead = {"h": {"S": "dead"}, "u": {"N": "1"}, "n": {"N": "1"}, "k": {"L": []}, "e": {"N": "0"}}
    move(watch, made, hour_past=past, bad={"N": "20"}, bad_from={"N": "1"}, L0={"M": dead}, slots={"N": "7"})
    relay.event(BIG, typed("t", "image/png"))
    sender.script = in_turn([status(500)])
    deliver(watch, function, [f"{TENANT}#{made['id']}#0"])


@pytest.mark.parametrize("function", SENDING, ids=lambda each: each.name)
def test_a_sending_function_rings_again_wherever_an_endpoint_rings(
    watch: Watch, sender: ScriptedSender, clock: FixedClock, function: Function
) -> None:
    relay = watch.relay
    lanes = [replayed(watch, sender), *everywhere(watch)]
    lanes.append(f"{TENANT}#{relay.endpoint(event_types=['none'])['id']}#0")
    for _ in range(3):
        relay.event()
    deliver(watch, function, lanes, IN_A_HURRY_S)


def replayed(watch: Watch, sender: ScriptedSender) -> str:
    """Begin two replays of an endpoint that takes one request at a time; the name of their lane."""
    relay = watch.relay
    made = relay.endpoint(event_types=["dead"], max_concurrency=1)
    ids_of = [relay.event(b"{}", typed("dead"))["delivery_ids"] for _ in range(2)]
    sender.script = in_turn([status(404)])
    rung = bells_of([f"{TENANT}#{made['id']}#0"])
    relay.run(lambdas.deliver_shard_0, event_of(rung, relay.arn("shard-0")))
    for (delivery_id,) in ids_of:
        assert relay.call("POST", f"/v1/deliveries/{delivery_id}/replay").status == 202
    sender.script = in_turn([status(200)])
    return f"{TENANT}#{made['id']}#r0"


def test_the_api_rings_wherever_an_endpoint_rings_and_reads_the_audit(watch: Watch) -> None:
    relay = watch.relay
    everywhere(watch)
    with watch.a_process("api_handler"):
        for _ in range(2):
            assert len(relay.event()["delivery_ids"]) == 3 + SHARDS
        assert relay.get("/v1/audit").status == 200


def test_the_api_makes_a_lost_counter_of_an_ordered_endpoint_anew(watch: Watch) -> None:
    relay = watch.relay
    relay.endpoint(ordering="endpoint")
    for row in relay.rows("endpoints"):
        if "taken" in row:
            at = {name: row[name] for name in ("pk", "sk")}
            relay.aws("dynamodb").delete_item(TableName=relay.made.tables["endpoints"], Key=at)
    with watch.a_process("api_handler") as asked:
        relay.event()
    assert ("EndpointsTable", "", "dynamodb:PartiQLInsert") in asked


def test_a_later_fan_out_rings_wherever_an_endpoint_rings(later: Watch, clock: FixedClock) -> None:
    relay = later.relay
    everywhere(later)
    for _ in range(2):
        relay.event(BIG, typed("order.paid", "image/png"))
    calls = relay.messages("fan-out")
    with later.a_process("fan_out"):
        assert relay.run(lambdas.fan_out, event_of(calls, relay.arn("fan-out"))) == []


@pytest.mark.parametrize("function", ["fan_out", "reconcile"])
def test_a_fan_out_takes_of_its_tenants_budget_from_the_first_on(
    later: Watch, clock: FixedClock, function: str
) -> None:
    """The budget's row is made by whoever takes of it first."""
    relay = later.relay
    key = "relay_counted.key1.secret"
    made = ApiKey("counted", "key1", digest(key), Role.ADMIN)
    bootstrap.seed(Tenant("counted", quotas=Quotas(fan_out_per_second=1)), made)
    counted = replace(relay, key=key)
    for _ in range(4):
        counted.endpoint(filter={"type": [{"exists": True}]})
    for _ in range(2):
        counted.event()
    calls = relay.messages("fan-out")
    clear(later, "allowances")
    clock.advance(ms=2 * MINUTE_MS)
    with later.a_process(function):
        if function == "fan_out":
            assert relay.run(lambdas.fan_out, event_of(calls, relay.arn("fan-out"))) == []
        else:
            lambdas.reconcile(relay.sample("schedule"), LambdaContext("relay-reconcile"))


def clear(watch: Watch, table: str) -> None:
    for row in watch.relay.rows(table):
        at = {name: row[name] for name in ("pk", "sk") if name in row}
        watch.relay.aws("dynamodb").delete_item(TableName=watch.relay.made.tables[table], Key=at)


def test_reconcile_rings_wherever_an_endpoint_rings(
    watch: Watch, sender: ScriptedSender, clock: FixedClock
) -> None:
    relay = watch.relay
    replayed(watch, sender)
    everywhere(watch)
    relay.event()
    clock.advance(ms=2 * MINUTE_MS)
    with watch.a_process("reconcile"):
        lambdas.reconcile(relay.sample("schedule"), LambdaContext("relay-reconcile"))


def test_reconcile_does_fan_outs_that_nobody_did(later: Watch, clock: FixedClock) -> None:
    relay = later.relay
    relay.endpoint(filter={"noise": [{"exists": True}]})
    relay.event(json.dumps({"noise": BIG.hex()}).encode(), typed("order.paid"))
    clock.advance(ms=2 * MINUTE_MS)
    with later.a_process("reconcile"):
        lambdas.reconcile(relay.sample("schedule"), LambdaContext("relay-reconcile"))
    assert len(relay.rows("owed")) == 1


def test_a_delayed_bell_rings_on_every_shard_and_for_replays(watch: Watch) -> None:
    lanes = everywhere(watch)
    bodies = [json.dumps({"lane": each}) for each in (*lanes, lanes[0][:-1] + "r0")]
    messages = [message(body, number) for number, body in enumerate(bodies)]
    with watch.a_process("delayed_bells"):
        assert watch.relay.run(lambdas.delayed_bells, event_of(messages, watch.relay.arn("delayed"))) == []


def test_ends_go_on_in_another_run_and_stop_when_they_concern_nothing(watch: Watch) -> None:
    relay = watch.relay
    made = relay.endpoint()
    relay.event()
    relay.delete(made)
    calls = relay.messages("endings")
    for seconds in (IN_A_HURRY_S - 1, 60.0):
        with watch.a_process("end_owed"):
            lambdas.end_owed(event_of(calls, relay.arn("endings")), LambdaContext("x", seconds))


def test_what_arrived_before_its_end_is_finished(
    watch: Watch, sender: ScriptedSender, clock: FixedClock
) -> None:
    relay = watch.relay
    made = relay.endpoint()
    relay.event()
    (owed,) = relay.rows("owed")
    rung = bells_of([f"{TENANT}#{made['id']}#0"])
    relay.run(lambdas.deliver_shard_0, event_of(rung, relay.arn("shard-0")))
    relay.change("owed", owed)
    relay.delete(made)
    calls = relay.messages("endings")
    with watch.a_process("end_owed"):
        assert relay.run(lambdas.end_owed, event_of(calls, relay.arn("endings"))) == []
    assert relay.rows("owed") == []


def test_bulk_replays_go_on_in_another_run_wherever_they_ring_and_keep_their_payloads(
    watch: Watch, sender: ScriptedSender, clock: FixedClock
) -> None:
    relay = watch.relay
    for made, queue in ((relay.endpoint(), "shard-0"), (in_aws(watch), "cloud")):
        relay.event(BIG, typed("t", "image/png"))
        function = getattr(lambdas, f"deliver_{queue.replace('-', '_')}")
        relay.run(function, event_of(bells_of([f"{TENANT}#{made['id']}#0"]), relay.arn(queue)))
        clock.advance(ms=30 * DAY_MS)
        wanted = {"since": "2020-01-01T00:00:00Z", "status": "succeeded"}
        assert relay.post(f"/v1/endpoints/{made['id']}/replay", wanted).status == 202
        calls = relay.messages("replays")
        for seconds in (1.0, 60.0):
            with watch.a_process("replay_many"):
                lambdas.replay_many(event_of(calls, relay.arn("replays")), LambdaContext("x", seconds))
            clock.advance(ms=MINUTE_MS)


def test_a_purge_removes_what_only_some_tenants_have(watch: Watch, clock: FixedClock) -> None:
    relay = watch.relay
    bootstrap.seed_development()
    made = relay.endpoint()
    of_its_own = {"pk": {"S": TENANT}, "sk": {"S": "x"}}
    of_an_endpoint = {"pk": {"S": f"{TENANT}#{made['id']}"}, "sk": {"S": "x"}}
    kept = dict.fromkeys(("notices", "replays", "fanouts"), of_its_own)
    for table, row in {**kept, "stats": of_an_endpoint, "allowances": {"pk": {"S": f"{TENANT}#x"}}}.items():
        relay.aws("dynamodb").put_item(TableName=relay.made.tables[table], Item=row)
    headers = {"If-Match": '"1"', **relay.elevated()}
    assert relay.call("DELETE", f"/v1/tenants/{TENANT}", b"", headers).status == 202
    with watch.a_process("purge"):
        for _ in range(4):
            lambdas.purge(relay.sample("schedule"), LambdaContext("relay-purge"))
            clock.advance(ms=4 * MINUTE_MS)
    assert {table for table in relay.made.tables if relay.rows(table)} <= {"audit", "fanouts"}


@pytest.mark.parametrize("function", SENDING, ids=lambda each: each.name)
def test_a_sending_function_notes_its_first_canary_and_those_that_follow(
    watch: Watch, function: Function
) -> None:
    for rung_ms in (1, 2):
        event = event_of([message(bells.dump_canary(rung_ms))], watch.relay.arn(rung_of(function)))
        with watch.a_process(function.name):
            assert watch.relay.run(getattr(lambdas, function.name), event) == []


@pytest.mark.parametrize(
    "function", [each for each in SENDING if each.name != "deliver_cloud"], ids=lambda each: each.name
)
def test_a_sending_function_makes_the_ticket_that_lets_it_into_tunnels(
    make_relay: MakeRelay, watch: Watch, function: Function
) -> None:
    settings = {"RELAY_NODE_URL": "http://127.0.0.1:9", "RELAY_ALLOW_KEYLESS": "true"}
    through = replace(watch, relay=make_relay(**settings, RELAY_ALLOW_PRIVATE_ENDPOINTS="true"))
    made = through.relay.endpoint(url="tunnel:", transport="tunnel")
    through.relay.event()
    deliver(through, function, [f"{TENANT}#{made['id']}#0"])


@pytest.mark.parametrize("name", ["measure", "reconcile", "notify", "retention", "export_audit"])
def test_a_scheduled_function_notes_its_first_run_and_those_that_follow(watch: Watch, name: str) -> None:
    watch.relay.endpoint()
    watch.relay.event()
    for _ in range(2):
        with watch.a_process(name):
            getattr(lambdas, name)(watch.relay.sample("schedule"), LambdaContext(f"relay-{name}"))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.name)
def test_every_action_of_a_policy_is_used_or_has_a_reason(
    request: pytest.FixtureRequest, function: Function
) -> None:
    ran = {each.originalname for each in request.session.items if isinstance(each, pytest.Function)}
    there = {name for name in (*vars(test_permissions), *globals()) if name.startswith("test_")}
    if not there - {"test_permissions"} <= ran:
        pytest.skip("what is asked is only known when both modules have run from their first test on")
    unused = GRANTED[function.name] - RECORDED[function.name]
    assert {each for each in unused if each[2] not in UNRECORDED} == set()


def test_every_reason_is_needed() -> None:
    unused = {each for name, granted in GRANTED.items() for each in granted - RECORDED[name]}
    assert {action for _, _, action in unused} >= UNRECORDED.keys()
