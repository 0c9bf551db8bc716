"""A stopped stack whose derived rows are lost is rebuilt, and nobody who asks can tell the difference."""

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra.local.emulator import EmulatorName, running
from infra.local.processes import ROOT
from tests.e2e.customer import Customer, Record
from tests.e2e.faults import hide_for
from tests.e2e.stack import RelayStack

SETTINGS = {"RELAY_TOTAL_TIMEOUT_SECS": "2", "RELAY_LEASE_SECS": "5"}
EVERY_SECOND = ("--schedule-speed", "60")
LATER = {"status": 503, "headers": {"Retry-After": "3000"}}
MANY, FEW = 20, 15  # too few to open a breaker: that it is open is not in history
VISIBILITY_S = 8  # what a dead process held is seen again after it


@dataclass(slots=True)
class Case:
    """A stack as it was before it was stopped: its endpoints by kind, and all that its API answered."""

    stack: RelayStack
    hooks: dict[str, str]
    answers: Record


def answers(customer: Customer, hooks: dict[str, str]) -> Record:
    """Ask for all deliveries, with their attempts, and all dead letters of these endpoints."""
    told: Record = {}
    for kind, endpoint_id in hooks.items():
        listed = customer.deliveries(endpoint_id)
        told[f"{kind} deliveries"] = listed
        told |= {each["id"]: customer.delivery(each["id"]) for each in listed}
        dead = customer.api.get(f"/v1/endpoints/{endpoint_id}/dead-letters", params={"limit": 200})
        assert dead.status_code == 200, dead.text
        told[f"{kind} dead letters"] = dead.json()["items"]
    return told


def unlike(now: Record, before: Record) -> Record:
    """Give what differs, field by field."""
    assert now.keys() == before.keys()
    fields = {
        f"{asked} {field}": (value, now[asked][field])
        for asked, told in before.items()
        if isinstance(told, dict)
        for field, value in told.items()
        if now[asked][field] != value
    }
    lists = {asked: (told, now[asked]) for asked, told in before.items() if now[asked] != told}
    return fields or lists


def begun(customer: Customer) -> dict[str, str]:
    """Have deliveries of every status, none of them in flight or due soon."""
    good = customer.hook("/sink")
    dead = customer.hook("/status/404")
    later = customer.hook(customer.script(LATER), rate_per_second=1000, burst=1000)
    lost = customer.hook(customer.script({"status": 200, "delay_ms": 1_500}, {"status": 200}))
    line = customer.hook(customer.script({"status": 200}, LATER), ordering="endpoint")
    off = customer.hook("/gone")
    for hook in (good, dead, line, off):
        customer.post_many(hook.type, MANY)
    customer.post_many(later.type, FEW)
    again = [customer.post(hook.type).delivery_id for hook in (good, dead)]
    for endpoint_id in (good.id, dead.id):
        customer.all_ended(endpoint_id, MANY + 1, 60)
    for delivery_id in again:
        answer = customer.api.post(f"/v1/deliveries/{delivery_id}/replay")
        assert answer.status_code == 202, answer.text
        customer.ended(delivery_id, 30)
    customer.stack.until(lambda: len(tried(customer, later.id)) == FEW, 60)
    customer.stack.until(lambda: customer.endpoint(off.id).json()["state"] == "disabled", 30)
    customer.stack.until(lambda: len(tried(customer, line.id)) == 2, 30)
    unknown = customer.post(lost.type).delivery_id
    customer.stack.until(lambda: customer.count(delivery_id=unknown) == 1, 30)
    customer.stack.kill("workers")
    assert "unknown" in {each["outcome"] for each in customer.ended(unknown, 90)["attempts"]}
    named = {"good": good, "dead": dead, "later": later, "lost": lost, "line": line, "off": off}
    return {kind: hook.id for kind, hook in named.items()}


def tried(customer: Customer, endpoint_id: str) -> list[Record]:
    """List the deliveries of an endpoint that were tried and of which nothing is in flight."""
    listed = customer.deliveries(endpoint_id)
    return [each for each in listed if each["attempts"] and each["status"] != "inflight"]


@contextmanager
def stored(stack: RelayStack) -> Iterator[Any]:
    """Give the tables of a stopped stack."""
    with running(EmulatorName.MINISTACK, stack.state, stack.ports.emulator):
        yield stack.client("dynamodb")


def keys_of(tables: Any, table: str) -> list[dict[str, Any]]:  # noqa: ANN401 - boto3's client
    found = []
    for page in tables.get_paginator("scan").paginate(TableName=f"relay-{table}"):
        found += [{name: item[name] for name in ("pk", "sk") if name in item} for item in page["Items"]]
    return sorted(found, key=str)


def lose(tables: Any) -> dict[str, int]:  # noqa: ANN401 - boto3's client
    """Lose a tenth of the owed rows and of the dead letters, and all gates; how many of each."""
    lost = {"gates": keys_of(tables, "gates")}
    for table in ("owed", "dead-letters"):
        found = keys_of(tables, table)
        lost[table] = random.Random(7).sample(found, -(-len(found) // 10))
    for table, chosen in lost.items():
        for key in chosen:
            tables.delete_item(TableName=f"relay-{table}", Key=key)
    return {table: len(chosen) for table, chosen in lost.items()}


def make_rebuild(stack: RelayStack) -> "subprocess.CompletedProcess[str]":
    """Run what `make rebuild` runs, on the state of a stack."""
    options = ("--state-dir", str(stack.state), "--emulator-port", str(stack.ports.emulator))
    command = [sys.executable, "-m", "infra.local.rebuild", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    stack = RelayStack(tmp_path_factory.mktemp("rebuilt"), *EVERY_SECOND, settings=SETTINGS)
    with stack, Customer(stack) as customer:
        hide_for(stack, VISIBILITY_S)
        hooks = begun(customer)
        refused = make_rebuild(stack)
        assert refused.returncode == 1
        assert "runs here already" in refused.stderr
        told = answers(customer, hooks)
    return Case(stack, hooks, told)


def test_a_tenth_of_what_is_owed_and_all_gates_come_back_and_nothing_is_sent_twice(case: Case) -> None:
    statuses = {each["status"] for name, each in case.answers.items() if " " not in name}
    assert statuses == {"pending", "succeeded", "dead"}
    with stored(case.stack) as tables:
        lost = lose(tables)
    assert lost["owed"] >= 4
    done = make_rebuild(case.stack)
    assert done.returncode == 0, done.stderr
    assert f"Went through the history of {len(case.hooks)} endpoints." in done.stdout
    letters = f"{lost['dead-letters']} dead letter"
    assert f"Made again: {lost['gates']} gates, {lost['owed']} owed rows, {letters}" in done.stdout
    assert "Removed, as it had ended or moved on: 0 owed rows." in done.stdout
    again = make_rebuild(case.stack)
    assert "Made again: 0 gates, 0 owed rows, 0 dead letters." in again.stdout
    with case.stack, Customer(case.stack) as customer:
        assert unlike(answers(customer, case.hooks), case.answers) == {}
        _, delivery_id = customer.deliver("/sink")
        customer.ended(delivery_id)
        assert unlike(answers(customer, case.hooks), case.answers) == {}
        assert customer.count() == customer.count(delivery_id=delivery_id) == 1


def test_a_folder_without_state_is_told_in_a_sentence(tmp_path: Path) -> None:
    refused = make_rebuild(RelayStack(tmp_path))
    assert refused.returncode == 2
    assert refused.stderr.startswith("There is nothing to rebuild in ")
    assert refused.stderr.count("\n") == 1
