"""Relay deployed as on AWS, from nothing, by `make deploy`: into an emulator that enforces roles.

Each test leaves the first release running, and its data there.
"""

import json
from collections.abc import Iterator

import pytest

from chalicelib.domain.gate import Queue
from infra.deploying.stack import StackError
from infra.deploying.verification import NotVerifiedError
from infra.local.emulator import EmulatorName, free_port, running
from infra.package import Package
from tests.e2e.deployed import OPERATOR_KEY, Deployed
from tests.receiver.server import Receiver

ARRIVED = "A test event has arrived"
RANGES = "chalicelib/egress_ranges.json"


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    state = tmp_path_factory.mktemp("emulator")
    with running(EmulatorName.MINISTACK, state, free_port(), enforcing=True) as url, Receiver() as receiver:
        relay = Deployed(url, receiver, tmp_path_factory.mktemp("packages"))
        first = relay.command("infra.deploy")
        assert (first.returncode, first.stderr) == (0, "")
        relay.said.extend(first.stdout.splitlines())
        yield relay


@pytest.fixture(scope="module")
def admin_key(deployed: Deployed) -> str:
    with deployed.api(OPERATOR_KEY) as operator:
        opened = operator.post("/v1/tenants", json={"name": "Acme"})
        assert opened.status_code == 201, opened.text
        return str(opened.json()["admin_key"]["key"])


@pytest.fixture
def afterwards(deployed: Deployed) -> Iterator[None]:
    """Deploy the first release again when a test has deployed another."""
    before = deployed.release
    yield
    deployed.deployment.deploy_again(before)
    assert deployed.release == before


def send(deployed: Deployed, key: str, event_type: str) -> str:
    """Post an event and give its delivery's id."""
    with deployed.api(key) as api:
        accepted = api.post("/v1/events", json={"type": event_type})
        assert accepted.status_code == 202, accepted.text
        (delivery_id,) = accepted.json()["delivery_ids"]
        return str(delivery_id)


@pytest.fixture(scope="module")
def endpoint_id(deployed: Deployed, admin_key: str) -> str:
    """An endpoint at the receiver that takes `order.paid`."""
    with deployed.api(admin_key) as api:
        about = {"url": deployed.receiver.url("/verify"), "event_types": ["order.paid"]}
        made = api.post("/v1/endpoints", json=about)
        assert made.status_code == 201, made.text
        deployed.receiver.add_secret(made.json()["secret"])
        return str(made.json()["id"])


def test_an_account_with_nothing_becomes_a_relay_that_delivers(deployed: Deployed) -> None:
    assert any(line.startswith(ARRIVED) for line in deployed.said)


def test_an_event_reaches_its_endpoint_signed(deployed: Deployed, admin_key: str, endpoint_id: str) -> None:
    delivery_id = send(deployed, admin_key, "order.paid")
    (arrived,) = deployed.receiver.wait_for(delivery_id=delivery_id, timeout_s=60)
    assert arrived["verified"] is True
    with deployed.api(admin_key) as api:
        deployed.until(lambda: api.get(f"/v1/deliveries/{delivery_id}").json()["status"] == "succeeded")


def test_deploying_what_runs_already_is_success(deployed: Deployed) -> None:
    again = deployed.command("infra.deploy")
    assert again.returncode == 0, again.stderr
    assert f"Release {deployed.release} was deployed already." in again.stdout
    assert ARRIVED in again.stdout


def test_a_right_that_lacks_fails_the_deployment(deployed: Deployed, afterwards: None) -> None:
    deployed.deployment.deploy(deployed.without(("DeliverShard", "dynamodb:PartiQLInsert", "HistoryTable")))
    with pytest.raises(NotVerifiedError, match=r"is (pending|inflight), not succeeded"):
        deployed.deployment.verify(within_s=10)
    assert any("PartiQLInsert" in line for n in range(4) for line in deployed.logged(f"deliver-shard-{n}"))


def test_of_a_batch_only_what_failed_stays(deployed: Deployed, afterwards: None, endpoint_id: str) -> None:
    """One of ten delayed bells cannot be rung, since the right to its queue was taken away."""
    deployed.deployment.deploy(deployed.without(("DelayedBells", "sqs:SendMessage", "SlowQueue")))
    queue = deployed.client("sqs").get_queue_url(QueueName="relay-delayed")["QueueUrl"]
    bell = {"lane": f"tn_{'0' * 8}#{endpoint_id}#0"}
    bodies = [{**bell, "queue": Queue.SLOW.value} if place == 5 else bell for place in range(10)]
    entries = [{"Id": str(place), "MessageBody": json.dumps(body)} for place, body in enumerate(bodies)]
    deployed.client("sqs").send_message_batch(QueueUrl=queue, Entries=entries)
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]

    def left() -> list[str]:
        found = deployed.client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=names)
        return [found["Attributes"][name] for name in names]

    deployed.until(lambda: left() == ["0", "1"])


def test_a_changed_function_runs_and_the_release_before_can_be_had_again(
    deployed: Deployed, afterwards: None
) -> None:
    before = deployed.release
    changed = deployed.changed(RANGES, lambda old: old.replace(b"203.0.113.0/28", b"203.0.113.32/28"))
    assert deployed.deployment.deploy(changed) is True
    assert deployed.release != before
    assert f"to go back: make deploy STAGE=emulator RELEASE={before}" in "\n".join(deployed.said)
    with deployed.api(OPERATOR_KEY) as api:
        assert "203.0.113.32/28" in api.get("/v1/egress-ranges").text
        back = deployed.command("infra.deploy", "--release", before, "--no-verify")
        assert (back.returncode, back.stderr) == (0, "")
        assert "203.0.113.32/28" not in api.get("/v1/egress-ranges").text


def test_a_deployment_that_fails_halfway_leaves_what_ran_before(
    deployed: Deployed, tmp_path_factory: pytest.TempPathFactory
) -> None:
    before = deployed.release
    template = json.loads(deployed.package.template.read_text(encoding="utf-8"))
    template["Resources"]["SlowQueue"]["Properties"]["VisibilityTimeout"] = 50_000
    path = tmp_path_factory.mktemp("broken") / "sam.json"
    path.write_text(json.dumps(template), encoding="utf-8")
    with pytest.raises(StackError, match=r"(?s)What ran before runs on.*SlowQueue: .*VisibilityTimeout"):
        deployed.deployment.deploy(Package(path, deployed.package.archive))
    assert deployed.release == before
    with deployed.api(OPERATOR_KEY) as api:
        assert api.get("/v1/tenants").status_code == 200


def test_the_schedules_run_and_their_canaries_come_through_every_queue(deployed: Deployed) -> None:
    deployed.until(lambda: any("reconcile.swept" in line for line in deployed.logged("reconcile")))
    with deployed.api(OPERATOR_KEY) as api:
        deployed.until(lambda: "canary" not in api.get("/readyz").json()["failing"], within_s=240)


def restore(deployed: Deployed, table: str) -> None:
    """Bring a table back as docs/deployment.md says: by another name, from whose backup under its own."""
    dynamodb = deployed.client("dynamodb")
    dynamodb.restore_table_to_point_in_time(
        SourceTableName=table, TargetTableName=f"{table}-restored", UseLatestRestorableTime=True
    )
    dynamodb.get_waiter("table_exists").wait(TableName=f"{table}-restored")
    backup = dynamodb.create_backup(TableName=f"{table}-restored", BackupName="before")["BackupDetails"]
    dynamodb.delete_table(TableName=table)
    dynamodb.get_waiter("table_not_exists").wait(TableName=table)
    dynamodb.restore_table_from_backup(TargetTableName=table, BackupArn=backup["BackupArn"])
    dynamodb.get_waiter("table_exists").wait(TableName=table)


def test_a_relay_that_was_removed_comes_back_with_its_data_and_a_restored_table(
    deployed: Deployed, admin_key: str, endpoint_id: str
) -> None:
    earlier = send(deployed, admin_key, "order.paid")
    deployed.receiver.wait_for(delivery_id=earlier, timeout_s=60)
    removed = deployed.command("infra.destroy")
    assert removed.returncode == 0, removed.stderr
    assert not deployed.client("lambda").list_functions()["Functions"]
    restore(deployed, "relay-history")
    again = deployed.command("infra.deploy")
    assert (again.returncode, ARRIVED in again.stdout) == (0, True), again.stdout + again.stderr
    with deployed.api(admin_key) as api:
        assert api.get(f"/v1/deliveries/{earlier}").json()["event_type"] == "order.paid"
    later = send(deployed, admin_key, "order.paid")
    (arrived,) = deployed.receiver.wait_for(delivery_id=later, timeout_s=60)
    assert arrived["verified"] is True


def test_a_release_that_was_never_deployed_is_told(deployed: Deployed) -> None:
    refused = deployed.command("infra.deploy", "--release", "0123456789ab")
    assert refused.returncode == 1
    assert refused.stderr == "There is no release 0123456789ab of the stage emulator.\n"
