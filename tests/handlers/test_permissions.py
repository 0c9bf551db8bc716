"""What each function asks of AWS, gone through as it runs, is what its policy allows: no emulator says no."""

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyotp
import pytest

import app as lambdas
from chalicelib import bootstrap
from chalicelib.application.ingest import Post
from chalicelib.domain.api_key import ApiKey, Role, digest
from chalicelib.domain.delivery import Status
from chalicelib.domain.endpoint import Endpoint, EndpointState
from chalicelib.domain.gate import Queue
from chalicelib.domain.retention import DAY_MS
from chalicelib.domain.tenant import Quotas, Tenant
from chalicelib.wire import bell as bells
from infra.local.invocation import LambdaContext
from infra.local.sqs_event import event_of
from tests.fakes.fixed_clock import BusyPatience, FixedClock
from tests.handlers.conftest import OPERATOR_KEY, MakeRelay
from tests.handlers.permitted import SERVICES, Watch
from tests.handlers.relay import BY, JSON, URL, forget, message, typed
from tests.receiver import Receiver

TENANT = "default"
BIG = random.Random(3).randbytes(9_000)


@pytest.fixture
def watch(make_relay: MakeRelay) -> Watch:
    relay = make_relay(
        RELAY_SHARD_COUNT="1",
        RELAY_ALLOW_KEYLESS="true",
        RELAY_ALLOW_PRIVATE_ENDPOINTS="true",
        RELAY_NODE_URL="http://127.0.0.1:9",
    )
    return Watch(relay, {name: bootstrap.client(name) for name in SERVICES})


def switch(of: Mapping[str, Any], state: EndpointState) -> None:
    manage = bootstrap.manage_endpoints()
    old = manage.get(TENANT, of["id"])
    manage.change(old, replace(old, state=state), BY)


def test_what_is_watched_is_all_that_is_asked(watch: Watch) -> None:
    with watch.running("api_handler") as asked:
        watch.relay.endpoint()
    assert {action.partition(":")[0] for _, _, action in asked} == {"dynamodb", "kms"}
    with pytest.raises(AssertionError), watch.running("delayed_bells"):
        watch.relay.endpoint()


def test_the_api_accepts_events(watch: Watch) -> None:
    relay = watch.relay
    with watch.running("api_handler") as asked:
        relay.endpoint()
        relay.endpoint(ordering="endpoint")
        for _ in range(2):
            relay.event(headers={"Idempotency-Key": "twice"})
            relay.event(BIG, typed("t", "image/png"))
        relay.batch({"type": "a", "payload": "{}", "idempotency_key": "k"}, {"type": "b", "payload": "{}"})
    assert {("GatesTable", "", "dynamodb:BatchGetItem"), ("PayloadsBucket", "/*", "s3:PutObject")} <= asked


def test_the_api_leaves_a_large_fan_out_to_be_done_later(make_relay: MakeRelay, watch: Watch) -> None:
    relay = make_relay(
        RELAY_INLINE_FANOUT_MAX="0", RELAY_ALLOW_KEYLESS="true", RELAY_ALLOW_PRIVATE_ENDPOINTS="true"
    )
    with replace(watch, relay=relay).running("api_handler") as asked:
        relay.endpoint()
        assert relay.event()["fan_out"] == "later"
    assert ("FanOutQueue", "", "sqs:SendMessage") in asked


def test_the_api_changes_endpoints_and_rings_those_that_may_take_more(watch: Watch) -> None:
    relay = watch.relay
    with watch.running("api_handler") as asked:
        made = relay.endpoint(event_types=["a", "b"])
        made = relay.patch(made, {"max_concurrency": 40, "event_types": ["b", "c"]}).json
        made = relay.patch(made, {"max_concurrency": 2, "url": URL + "/new"}).json
        switch(made, EndpointState.DISABLED)
        switch(made, EndpointState.ENABLED)
        relay.delete(relay.get(f"/v1/endpoints/{made['id']}").json)
        relay.delete(relay.endpoint(ordering="endpoint"))
    assert ("DelayedQueue", "", "sqs:SendMessage") in asked
    assert ("HistoryTable", "", "dynamodb:PutItem") in asked


def test_the_api_opens_tenants_steps_up_and_makes_and_revokes_keys(
    make_relay: MakeRelay, watch: Watch
) -> None:
    made = make_relay(RELAY_OPERATOR_KEY_SHA256=digest(OPERATOR_KEY))
    operator = replace(made, key=OPERATOR_KEY)
    with replace(watch, relay=operator).running("api_handler") as asked:
        opened = operator.post("/v1/tenants", {"name": "Acme"}).json
        path = f"/v1/tenants/{opened['id']}"
        named = {**JSON, "If-Match": '"1"'}
        assert operator.call("PATCH", path, b'{"name": "Acme Ltd"}', named).status == 200
        assert operator.get("/v1/tenants").status == 200
        admin = replace(made, key=opened["admin_key"]["key"])
        code = pyotp.TOTP(opened["second_factor"]["secret"]).now()
        proof = admin.post("/v1/step-up", {"code": code, "actions": ["key_creation"]}).json["assertion"]
        key = admin.post("/v1/keys", {"role": "producer"}, {"Relay-Step-Up": proof}).json
        assert admin.get("/v1/keys").status == 200
        assert admin.call("DELETE", f"/v1/keys/{key['id']}").status == 204
    assert {
        ("TenantsTable", "", "dynamodb:DeleteItem"),
        ("TenantsTable", "", "dynamodb:PartiQLUpdate"),
        ("SecretsKey", "", "kms:Encrypt"),
    } <= asked


def test_the_api_answers_every_question(watch: Watch) -> None:
    relay = watch.relay
    made = relay.endpoint()
    said = relay.event(BIG, typed("t", "image/png"))
    (delivery_id,) = said["delivery_ids"]
    event, endpoint = f"/v1/events/{said['event_id']}", f"/v1/endpoints/{made['id']}"
    paths = ["/v1/events", event, f"{event}/payload", f"{event}/deliveries", f"/v1/deliveries/{delivery_id}"]
    paths += [f"/v1/deliveries/{delivery_id}/request"]
    paths += ["/v1/endpoints", endpoint, f"{endpoint}/health", f"{endpoint}/stats", f"{endpoint}/deliveries"]
    paths += [f"{endpoint}/attempts", *(f"{endpoint}/deliveries?status={each.value}" for each in Status)]
    with watch.running("api_handler"):
        for path in [*paths, "/metrics"]:
            assert relay.get(path).status == 200


def test_the_api_replays_what_has_ended(watch: Watch, receiver: Receiver) -> None:
    relay = watch.relay
    made = relay.endpoint(url=receiver.url("/status/404"))
    (delivery_id,) = relay.event(BIG, typed("t", "image/png"))["delivery_ids"]
    watch.deliver()
    (event,) = [row for row in relay.rows("events") if row["sk"]["S"].startswith("evt_")]
    with watch.running("api_handler") as asked:
        assert relay.call("POST", f"/v1/deliveries/{delivery_id}/replay").status == 202
        assert relay.get(f"/v1/endpoints/{made['id']}/dead-letters").status == 200
    assert ("ReplayQueue", "", "sqs:SendMessage") in asked
    assert event["payload_key"]["S"]
    watch.deliver("replay")


def test_the_api_tries_an_endpoint(watch: Watch, receiver: Receiver) -> None:
    relay = watch.relay
    made = relay.endpoint(url=receiver.url("/status/404"))
    use = replace(bootstrap.try_endpoint(), patience=BusyPatience(FixedClock()))
    with watch.running("api_handler") as asked:
        assert use.run(TENANT, made["id"]).waits
    assert {("ReplayQueue", "", "sqs:SendMessage"), ("OwedTable", "", "dynamodb:PutItem")} <= asked
    watch.deliver("replay")
    assert relay.get(f"/v1/endpoints/{made['id']}/deliveries").json["items"][0]["status"] == "dead"


def test_bulk_replays_are_begun_worked_off_and_called_for(watch: Watch, receiver: Receiver) -> None:
    relay = watch.relay
    made = relay.endpoint(url=receiver.url("/status/404"))
    relay.event()
    watch.deliver()
    path = f"/v1/endpoints/{made['id']}/replay"
    with watch.running("api_handler") as asked:
        begun = relay.post(path, {"since": "2020-01-01T00:00:00Z"}).json
        for turn in ("pause", "resume"):
            assert relay.call("POST", f"/v1/replays/{begun['id']}/{turn}").status == 200
        assert relay.get(f"/v1/replays/{begun['id']}").status == 200
    assert ("ReplaysQueue", "", "sqs:SendMessage") in asked
    forget()
    with watch.running("call_replays") as asked:
        lambdas.call_replays(relay.sample("schedule"), LambdaContext("relay-call-replays"))
    assert ("ReplaysTable", "/index/running", "dynamodb:Query") in asked
    calls = relay.messages("replays")
    with watch.running("replay_many") as asked:
        assert relay.run(lambdas.replay_many, event_of(calls, relay.arn("replays"))) == []
    assert {("ReplayQueue", "", "sqs:SendMessage"), ("OwedTable", "", "dynamodb:PutItem")} <= asked
    assert relay.get(f"/v1/replays/{begun['id']}").json["state"] == "done"


def test_deliver_sends_retries_ends_and_disables(watch: Watch, receiver: Receiver) -> None:
    relay = watch.relay
    for path in ("/sink", "/always500", "/status/404", "/gone", "/429?retry_after=30"):
        relay.endpoint(url=receiver.url(path))
    relay.event(BIG, typed("t", "image/png"))
    asked = watch.deliver()
    assert {
        ("DelayedQueue", "", "sqs:SendMessage"),
        ("DeadLettersTable", "", "dynamodb:PutItem"),
        ("EndpointsTable", "", "dynamodb:PutItem"),
        ("PayloadsBucket", "/*", "s3:GetObject"),
    } <= asked


def test_deliver_holds_and_notes_when_a_hold_is_over(watch: Watch, receiver: Receiver) -> None:
    relay = watch.relay
    busy = {"status": 429, "headers": {"Retry-After": "30"}}
    relay.endpoint(url=receiver.script("busy", busy, {"status": 200}))
    relay.event()
    watch.deliver()
    relay.event()
    assert ("Shard0Queue", "", "sqs:ChangeMessageVisibility") in watch.deliver()
    (gate,) = relay.rows("gates")
    relay.change("gates", gate, hold_until={"N": "0"})
    lane = f"{gate['pk']['S']}#0"
    with watch.running("deliver_shard_0") as asked:
        relay.deliver("shard-0", [message(json.dumps({"lane": lane, "rung_ms": 1, "hints": []}))])
    assert ("HistoryTable", "", "dynamodb:PartiQLInsert") in asked


def test_tickets_of_tunnels_are_made_and_not_read(watch: Watch) -> None:
    relay = watch.relay
    with watch.running("api_handler") as asked:
        made = relay.endpoint(url="tunnel:", transport="tunnel")
        assert relay.post(f"/v1/endpoints/{made['id']}/tunnel-token", {}).status == 201
    assert {action for table, _, action in asked if table == "RegistryTable"} == {"dynamodb:PutItem"}
    relay.event()
    assert ("RegistryTable", "", "dynamodb:PartiQLInsert") in watch.deliver()


def test_deliver_to_aws_opens_no_secret_and_lanes_of_its_own_are_passed_on_to_it(watch: Watch) -> None:
    relay = watch.relay
    account = relay.arn("cloud").split(":")[4]
    url = relay.aws("sqs").create_queue(QueueName=f"{relay.made.prefix}theirs")["QueueUrl"]
    arn = f"arn:aws:sqs:us-east-1:{account}:{relay.made.prefix}theirs"
    role = f"arn:aws:iam::{account}:role/relay-deliver-x"
    relay.endpoint(url=arn, role=role, transport="sqs")
    relay.event()
    assert ("CloudQueue", "", "sqs:SendMessage") in watch.deliver("shard-0")
    asked = watch.deliver("cloud")
    assert not {action for _, _, action in asked if action.startswith("kms:")}
    assert len(relay.aws("sqs").receive_message(QueueUrl=url)["Messages"]) == 1


def test_deliver_hands_on_an_hour_and_disables_what_has_failed_for_days(
    watch: Watch, receiver: Receiver
) -> None:
    relay = watch.relay
    relay.endpoint(url=receiver.url("/status/404"))
    (gate,) = relay.rows("gates")
    past = {"L": [{"N": "495000"}, {"N": "1"}, {"N": "0"}, {"N": "0"}]}
    relay.change("gates", gate, hour_past=past, bad={"N": "20"}, bad_from={"N": "1"})
    relay.event()
    asked = watch.deliver()
    assert {
        ("StatsTable", "", "dynamodb:PartiQLInsert"),
        ("EndingsTable", "", "dynamodb:PutItem"),
        ("EndpointsTable", "", "dynamodb:PutItem"),
    } <= asked


def test_the_api_disables_enables_and_counts_a_backlog(watch: Watch) -> None:
    relay = watch.relay
    with watch.running("api_handler") as asked:
        path = f"/v1/endpoints/{relay.endpoint()['id']}"
        assert relay.call("POST", f"{path}/disable").status == 200
        relay.event()
        assert relay.get(f"{path}/backlog").json["size"] == 1
        assert relay.post(f"{path}/enable", {"backlog": "skip"}).status == 200
    assert {("EndingsTable", "", "dynamodb:PutItem"), ("EndingsQueue", "", "sqs:SendMessage")} <= asked


def test_what_is_to_be_ended_is_called_for_and_ended(watch: Watch) -> None:
    relay = watch.relay
    made = relay.endpoint()
    relay.event()
    relay.delete(made)
    gate = next(each for each in relay.rows("gates") if each["pk"]["S"].endswith(made["id"]))
    (row,) = relay.rows("owed")
    position, delivery, generation = row["sk"]["S"].split("#")
    key = f"{position}#{delivery}#{generation}#0001"
    dead = {"h": {"S": "dead"}, "u": {"N": "1"}, "n": {"N": "1"}, "k": {"L": [{"S": key}]}, "e": {"N": "0"}}
    relay.change("gates", gate, L0={"M": dead}, slots={"N": "7"})
    forget()
    with watch.running("call_endings"):
        lambdas.call_endings(relay.sample("schedule"), LambdaContext("relay-call-endings"))
    calls = relay.messages("endings")
    forget()
    with watch.running("end_owed") as asked:
        assert relay.run(lambdas.end_owed, event_of(calls, relay.arn("endings"))) == []
    assert relay.rows("owed") == []
    assert {
        ("EndingsTable", "", "dynamodb:DeleteItem"),
        ("GatesTable", "", "dynamodb:PartiQLUpdate"),
    } <= asked
    assert ("EndpointsTable", "", "dynamodb:ConditionCheckItem") in asked


def test_a_delayed_bell_rings_wherever_an_endpoint_may_ring(watch: Watch) -> None:
    relay = watch.relay
    made = relay.endpoint()
    bodies = [bells.dump_delayed(bells.lane_of(f"{TENANT}#{made['id']}#0"), queue) for queue in Queue]
    messages = [message(body, number) for number, body in enumerate(bodies)]
    forget()
    with watch.running("delayed_bells"):
        assert relay.run(lambdas.delayed_bells, event_of(messages, relay.arn("delayed"))) == []


def test_a_later_fan_out_does_its_part_again_and_again_in_one_process(
    make_relay: MakeRelay, watch: Watch
) -> None:
    relay = make_relay(
        RELAY_INLINE_FANOUT_MAX="0", RELAY_ALLOW_KEYLESS="true", RELAY_ALLOW_PRIVATE_ENDPOINTS="true"
    )
    later = replace(watch, relay=relay)
    relay.endpoint(filter={"noise": [{"exists": True}]})
    large = json.dumps({"noise": BIG.hex()}).encode()
    for _ in range(3):
        relay.event(large, typed("order.paid"))
    calls = relay.messages("fan-out")
    forget()
    with later.running("fan_out") as asked:
        for each in calls[:2]:
            assert relay.run(lambdas.fan_out, event_of([each], relay.arn("fan-out"))) == []
    assert ("PayloadsBucket", "/*", "s3:GetObject") in asked
    forget()
    with later.running("reconcile"):
        bootstrap.fan_out().run_waiting(bootstrap.clock().now_ms() + 1)
    assert len(relay.rows("owed")) == 3
    assert relay.rows("fanouts") == []


def test_notify_reads_what_is_marked_and_publishes(watch: Watch, receiver: Receiver) -> None:
    relay = watch.relay
    relay.endpoint(url=receiver.url("/status/404"))
    relay.event()
    watch.deliver()
    forget()
    with watch.running("notify") as asked:
        lambdas.notify(relay.sample("schedule"), LambdaContext("relay-notify"))
    assert {
        ("GatesTable", "/index/alert", "dynamodb:Query"),
        ("GatesTable", "", "dynamodb:PartiQLUpdate"),
        ("DeadLettersTable", "", "dynamodb:Query"),
        ("NoticesTable", "", "dynamodb:PutItem"),
        ("NoticesTable", "", "dynamodb:UpdateItem"),
        ("NoticesTopic", "", "sns:Publish"),
    } <= asked
    with watch.running("api_handler") as asked:
        assert relay.get("/v1/notices").status == 200
    assert ("NoticesTable", "", "dynamodb:Query") in asked


def test_reconcile_rings_releases_and_disarms(watch: Watch) -> None:
    relay = watch.relay
    relay.endpoint()
    relay.event()
    (row,) = relay.rows("owed")
    ready_ms, _, rest = row["sk"]["S"].partition("#")
    for shift_ms in (-600_000, 14 * 60_000 + 30_000):
        relay.change("owed", row, sk={"S": f"{int(ready_ms) + shift_ms:015d}#{rest}"})
    relay.aws("dynamodb").delete_item(
        TableName=relay.made.tables["owed"], Key={name: row[name] for name in ("pk", "sk")}
    )
    done = relay.endpoint(event_types=["none"])
    (gate,) = [each for each in relay.rows("gates") if each["pk"]["S"].endswith(done["id"])]
    dead = {"h": {"S": "dead"}, "u": {"N": "1"}, "n": {"N": "1"}, "k": {"L": []}, "e": {"N": "0"}}
    relay.change("gates", gate, armed_shard={"S": "0"}, armed_until={"N": "1"}, L0={"M": dead})
    forget()
    with watch.running("reconcile") as asked:
        lambdas.reconcile(relay.sample("schedule"), LambdaContext("relay-reconcile"))
    assert {
        ("Shard0Queue", "", "sqs:SendMessage"),
        ("DelayedQueue", "", "sqs:SendMessage"),
        ("GatesTable", "", "dynamodb:PartiQLUpdate"),
        ("GatesTable", "/index/armed", "dynamodb:Query"),
    } <= asked


def test_measure_walks_what_is_armed_and_rings_canaries_that_deliver_notes(watch: Watch) -> None:
    relay = watch.relay
    relay.endpoint()
    for _ in range(30):
        relay.event()
    forget()
    for _ in range(2):
        with watch.running("measure") as asked:
            lambdas.measure(relay.sample("schedule"), LambdaContext("relay-measure"))
        assert {
            ("GatesTable", "/index/armed", "dynamodb:Query"),
            ("OwedTable", "", "dynamodb:Query"),
            ("MetricsTable", "", "dynamodb:PartiQLUpdate"),
            ("Shard0Queue", "", "sqs:SendMessage"),
            ("ReplayQueue", "", "sqs:GetQueueAttributes"),
        } <= asked
    for _ in range(2):
        with watch.running("deliver_shard_0") as asked:
            relay.deliver("shard-0", [message(bells.dump_canary(1_700_000_000_000))])
        assert ("MetricsTable", "", "dynamodb:PartiQLUpdate") in asked
    with watch.running("api_handler") as asked:
        assert relay.get("/readyz").json["failing"] == ["canary"]
    assert ("MetricsTable", "", "dynamodb:BatchGetItem") in asked


def test_a_purge_removes_from_every_table(watch: Watch, receiver: Receiver) -> None:
    relay = watch.relay
    bootstrap.seed_development()
    made = relay.endpoint(url=receiver.url("/status/404"), event_types=["a"])
    relay.endpoint(ordering="endpoint", event_types=["a"])
    relay.event(BIG, {**typed("a", "image/png"), "Idempotency-Key": "k"})
    watch.deliver()
    relay.call("POST", f"/v1/endpoints/{made['id']}/disable")
    with watch.running("api_handler") as asked:
        path = f"/v1/endpoints/{made['id']}"
        assert relay.call("DELETE", f"{path}/dead-letters", b"", relay.elevated()).status == 202
        headers = {"If-Match": '"1"', **relay.elevated()}
        assert relay.call("DELETE", f"/v1/tenants/{TENANT}", b"", headers).status == 202
    assert ("PurgesTable", "", "dynamodb:PutItem") in asked
    clock = FixedClock(bootstrap.clock().now_ms())
    forget()
    with watch.running("purge") as asked:
        lambdas.purge(relay.sample("schedule"), LambdaContext("relay-purge"))
        for _ in range(3):
            clock.advance(ms=200_000)
            replace(bootstrap.purge_all(), clock=clock).run(lambda: 60_000)
    left = [table for table in relay.made.tables if relay.rows(table)]
    assert set(left) <= {"audit", "fanouts", "metrics"}
    assert relay.stored_payloads() == []
    assert {
        ("HistoryTable", "", "dynamodb:PartiQLDelete"),
        ("DeadLettersTable", "", "dynamodb:PartiQLDelete"),
        ("EventsTable", "", "dynamodb:PartiQLDelete"),
        ("IdempotencyTable", "", "dynamodb:PartiQLDelete"),
        ("SubsTable", "", "dynamodb:Scan"),
        ("AuditTable", "", "dynamodb:PutItem"),
        ("PayloadsBucket", "/*", "s3:DeleteObject"),
        ("TenantsTable", "", "dynamodb:DeleteItem"),
    } <= asked


def test_the_audit_is_exported(watch: Watch) -> None:
    relay = watch.relay
    past = FixedClock(bootstrap.clock().now_ms() - DAY_MS // 2)
    manage = replace(bootstrap.manage_endpoints(), clock=past)
    made = manage.register(Endpoint(TENANT, "", URL, ("none",), 0), BY).endpoint
    forget()
    with watch.running("export_audit") as asked:
        lambdas.export_audit(relay.sample("schedule"), LambdaContext("relay-export-audit"))
    assert {
        ("AuditTable", "/index/export", "dynamodb:Query"),
        ("AuditTable", "", "dynamodb:Query"),
        ("AuditBucket", "/*", "s3:PutObject"),
        ("FanoutsTable", "", "dynamodb:PutItem"),
    } <= asked
    (listed,) = relay.aws("s3").list_objects_v2(Bucket=relay.made.audit_bucket)["Contents"]
    body = relay.aws("s3").get_object(Bucket=relay.made.audit_bucket, Key=listed["Key"])["Body"].read()
    assert made.id in body.decode()


def test_retention_keeps_and_removes(watch: Watch, receiver: Receiver) -> None:
    """As on AWS, where rows that are past their time go by themselves."""
    relay = watch.relay
    relay.endpoint(url=receiver.url("/status/404"), event_types=["dead"])
    relay.event(BIG, typed("dead", "image/png"))
    watch.deliver()
    past = FixedClock(bootstrap.clock().now_ms() - 30 * DAY_MS)
    manage = replace(bootstrap.manage_endpoints(), clock=past)
    ingest = replace(bootstrap.ingest(), clock=past)
    owing = manage.register(Endpoint(TENANT, "", URL, ("owed",), 0), BY).endpoint
    for event_type in ("owed", "unheard"):
        ingest.one(Post(TENANT, BIG, "image/png", event_type))
        past.advance(ms=-10 * DAY_MS)
    gone = manage.register(Endpoint(TENANT, "", URL, ("none",), 0), BY).endpoint
    manage.change(gone, replace(gone, state=EndpointState.DELETED), BY)
    forget()
    with watch.running("retention") as asked:
        lambdas.retention(relay.sample("schedule"), LambdaContext("relay-retention"))
    assert {each["sk"]["S"] for each in relay.rows("endpoints")} & {owing.id, gone.id} == {owing.id}
    assert len(relay.stored_payloads()) == 2
    assert {
        ("EventsTable", "", "dynamodb:PartiQLUpdate"),
        ("HistoryTable", "", "dynamodb:PartiQLUpdate"),
        ("DeadLettersTable", "", "dynamodb:PartiQLUpdate"),
        ("EndpointsTable", "", "dynamodb:DeleteItem"),
        ("GatesTable", "", "dynamodb:DeleteItem"),
        ("OwedTable", "", "dynamodb:Scan"),
        ("PayloadsBucket", "", "s3:ListBucket"),
        ("PayloadsBucket", "/*", "s3:DeleteObject"),
    } <= asked


def test_what_is_counted_is_counted_by_the_api_and_by_who_fans_out(watch: Watch) -> None:
    relay = watch.relay
    key = "relay_counted.key1.secret"
    made = ApiKey("counted", "key1", digest(key), Role.ADMIN)
    bootstrap.seed(Tenant("counted", quotas=Quotas(fan_out_per_second=1)), made)
    counted = replace(watch, relay=replace(relay, key=key))
    with counted.running("api_handler") as asked:
        counted.relay.endpoint()
        counted.relay.endpoint()
        for _ in range(2):
            assert counted.relay.event()["fan_out"] == "later"
    assert ("AllowancesTable", "", "dynamodb:PartiQLInsert") in asked
    forget()
    with counted.running("fan_out") as asked:
        calls = relay.messages("fan-out")
        assert relay.run(lambdas.fan_out, event_of(calls, relay.arn("fan-out"))) == []
    assert ("AllowancesTable", "", "dynamodb:PartiQLUpdate") in asked
    assert ("FanOutQueue", "", "sqs:SendMessage") in asked
    forget()
    with counted.running("reconcile"):
        bootstrap.fan_out().run_waiting(bootstrap.clock().now_ms() + DAY_MS)
