"""Purging over the API: who may, what it answers, and that nothing of the tenant changes from then on."""

from dataclasses import replace
from typing import Any

import pytest

import app as lambdas
from chalicelib import bootstrap
from chalicelib.domain.api_key import Role
from chalicelib.wire.operations import OPERATIONS
from infra.local.invocation import LambdaContext
from tests.fakes.fixed_clock import FixedClock
from tests.handlers.conftest import Lines
from tests.handlers.relay import JSON, Answer, Relay, forget
from tests.handlers.test_tenants import admin_of, opened
from tests.receiver import Receiver

QUIET_MS = 150_000


def purge(relay: Relay, tenant_id: str, headers: dict[str, str] | None = None, etag: str = '"1"') -> Answer:
    return relay.call("DELETE", f"/v1/tenants/{tenant_id}", b"", {"If-Match": etag, **(headers or {})})


def worked_off(relay: Relay, rounds: int = 3) -> None:
    """Run the function as its schedule does, as long as a purge takes."""
    clock = FixedClock(bootstrap.clock().now_ms())
    for _ in range(rounds):
        replace(bootstrap.purge_all(), clock=clock).run(lambda: 60_000)
        clock.advance(ms=QUIET_MS)


def test_the_operator_purges_a_tenant_and_its_audit_stays(operator: Relay) -> None:
    shown = opened(operator)
    admin = admin_of(operator, shown)
    admin.endpoint()
    admin.event()
    answer = purge(operator, shown["id"])
    assert answer.status == 202
    assert (answer.json["id"], answer.json["state"]) == (shown["id"], "purging")
    worked_off(operator)
    assert operator.get(f"/v1/tenants/{shown['id']}").is_problem(404, "not_found", "id")
    left = [table for table in operator.made.tables if shown["id"] in repr(operator.rows(table))]
    assert left == ["audit"]
    told = [row["action"]["S"] for row in operator.rows("audit") if row["pk"]["S"] == shown["id"]]
    assert told.count("tenant.purged") == 2
    listed = operator.get(f"/v1/audit?tenant={shown['id']}&action=tenant.purged").json["items"]
    assert [each["actor"]["kind"] for each in listed] == ["relay", "operator"]


def test_an_admin_purges_its_own_tenant_with_the_second_factor_alone(operator: Relay) -> None:
    shown = opened(operator)
    admin = admin_of(operator, shown)
    assert purge(admin, shown["id"]).is_problem(403, "step_up_required", "Relay-Step-Up")
    assert operator.get(f"/v1/tenants/{shown['id']}").json["state"] == "active"
    assert purge(admin, shown["id"], admin.elevated()).status == 202


@pytest.mark.parametrize("role", [Role.VIEWER, Role.PRODUCER])
def test_nobody_else_does(operator: Relay, role: Role) -> None:
    shown = opened(operator)
    admin = admin_of(operator, shown)
    made = admin.post("/v1/keys", {"role": role.value}, admin.elevated()).json
    caller = Relay(operator.made, operator.clients, operator.counters, made["key"])
    assert purge(caller, shown["id"]).is_problem(403, "forbidden")
    other = opened(operator)
    assert purge(admin, other["id"], admin.elevated()).is_problem(404, "not_found", "id")


def test_a_purge_says_which_version_it_is_of(operator: Relay) -> None:
    shown = opened(operator)
    path = f"/v1/tenants/{shown['id']}"
    assert operator.call("DELETE", path).is_problem(428, "if_match_required", "If-Match")
    assert purge(operator, shown["id"], etag='"2"').is_problem(412, "version_stale", "If-Match")


def test_from_then_on_whatever_would_change_something_is_refused(operator: Relay) -> None:
    """By a process that reads the key from then on; others within what they may remember it for."""
    shown = opened(operator)
    admin = admin_of(operator, shown)
    made = admin.endpoint()
    purge(operator, shown["id"])
    forget()
    names = {"endpoint_id": made["id"], "tenant_id": shown["id"]}
    for each in OPERATIONS:
        if each.method == "GET" or each.roles is None or Role.ADMIN not in each.roles:
            continue
        path = each.path
        for name in ("endpoint_id", "tenant_id", "delivery_id", "replay_id", "key_id"):
            path = path.replace(f"{{{name}}}", names.get(name, "x"))
        answer = admin.call(each.method, path, b"{}", JSON)
        assert answer.is_problem(403, "tenant_purging"), each.id
    assert admin.get("/v1/endpoints").status == 200
    path = f"/v1/tenants/{shown['id']}"
    headers = {**JSON, "If-Match": '"2"'}
    assert operator.call("PATCH", path, b'{"name":"b"}', headers).is_problem(403, "tenant_purging")
    assert operator.call("POST", f"{path}/recover").is_problem(403, "tenant_purging")
    assert purge(operator, shown["id"], etag='"2"').json["state"] == "purging"


def died(relay: Relay, receiver: Receiver, count: int) -> Any:  # noqa: ANN401 - the answer's JSON
    """Let deliveries of an endpoint die, and give the endpoint."""
    made = relay.endpoint(url=receiver.url("/status/404"))
    for _ in range(count):
        relay.event()
    for _ in range(5):
        if len(relay.rows("dead-letters")) == count:
            return made
        relay.deliver_all()
    raise AssertionError("they do not die")


def test_dead_letters_are_purged_with_the_second_factor(
    relay: Relay, receiver: Receiver, lines: Lines
) -> None:
    made = died(relay, receiver, 2)
    path = f"/v1/endpoints/{made['id']}/dead-letters"
    assert relay.call("DELETE", path).is_problem(403, "step_up_required", "Relay-Step-Up")
    answer = relay.call("DELETE", path, b"", relay.elevated())
    assert answer.status == 202
    assert {name: answer.json[name] for name in ("endpoint_id", "dead_letters", "counted_exactly")} == {
        "endpoint_id": made["id"],
        "dead_letters": 2,
        "counted_exactly": True,
    }
    lambdas.purge(relay.sample("schedule"), LambdaContext("relay-purge"))
    assert lines.named("purges.worked_off")[-1]["dead_letters"] == 2
    assert relay.get(path).json["items"] == []
    shown = relay.get(f"/v1/endpoints/{made['id']}/deliveries").json["items"]
    assert [each["status"] for each in shown] == ["dead", "dead"]


def test_only_those_before_a_moment_are(relay: Relay, receiver: Receiver) -> None:
    made = died(relay, receiver, 1)
    path = f"/v1/endpoints/{made['id']}/dead-letters"
    asked = f"{path}?before={made['created_at'].replace('+', '%2B')}"
    assert relay.call("DELETE", asked, b"", relay.elevated()).json["dead_letters"] == 0
    for wrong in ("soon", "0001-01-01T00:00:00%2B01:00", "1969-12-31T23:59:59Z"):
        answer = relay.call("DELETE", f"{path}?before={wrong}", b"", relay.elevated())
        assert answer.is_problem(400, "field_invalid", "before")
    lambdas.purge(relay.sample("schedule"), LambdaContext("relay-purge"))
    assert len(relay.get(path).json["items"]) == 1


def test_of_an_endpoint_that_is_not_there_there_are_none(relay: Relay) -> None:
    answer = relay.call("DELETE", "/v1/endpoints/ep_1/dead-letters", b"", relay.elevated())
    assert answer.is_problem(404, "not_found", "id")
