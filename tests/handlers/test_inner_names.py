"""F079, F089: a name that leads inside may be registered; nothing is sent, nobody is told where it led."""

import json
from functools import cache
from typing import Any

import pytest

import app as lambdas
from chalicelib import bootstrap
from chalicelib.domain import metrics
from infra.local.invocation import LambdaContext
from tests.handlers.conftest import Lines
from tests.handlers.relay import Relay
from tests.packets import packets_leaving

INNER = ("127.0.0.1", "::1")
MORE_THAN_THE_BREAKER_TAKES = 22


@pytest.fixture(autouse=True)
def own_sender(guarded: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the policy of these tests make the sender: the tier shares one that may go anywhere."""
    monkeypatch.setattr(bootstrap, "sender", cache(bootstrap.sender.__wrapped__))


def refused(relay: Relay, times: int = 1) -> dict[str, Any]:
    """Post to an endpoint whose name leads to this machine, and let the deliveries be tried."""
    made: dict[str, Any] = relay.endpoint(url="https://localhost/in", rate_per_second=1_000, burst=1_000)
    for _ in range(times):
        relay.event()
        relay.deliver_all()
    return made


def test_f089_nobody_is_told_where_a_refused_name_led(guarded: Relay, lines: Lines) -> None:
    with packets_leaving() as left:
        path = f"/v1/endpoints/{refused(guarded)['id']}"
    assert [each for each in left if each.endswith("443)")] == []
    assert lambdas.notify(guarded.sample("schedule"), LambdaContext("relay-notify")) is None
    (letter,) = guarded.get(f"{path}/dead-letters").json["items"]
    assert letter["reason"] == "refused"
    (attempt,) = guarded.get(f"/v1/deliveries/{letter['delivery_id']}").json["attempts"]
    assert (attempt["fault"], attempt["detail"]) == (
        "refused",
        "the host leads to an address that is not public",
    )
    assert [each["kind"] for each in guarded.get("/v1/notices").json["items"]]
    paths = [path, f"{path}/deliveries", f"{path}/attempts", f"{path}/dead-letters", f"{path}/health",
             f"/v1/deliveries/{letter['delivery_id']}", "/v1/notices", "/v1/audit"]  # fmt: skip
    told = "".join(guarded.get(each).body.decode() for each in paths)
    attempted = json.dumps(lines.named("delivery.attempted"))
    assert [each for each in INNER if each in told + attempted] == []


def test_f079_refusals_say_nothing_to_the_breaker(guarded: Relay) -> None:
    made = refused(guarded, MORE_THAN_THE_BREAKER_TAKES)
    path = f"/v1/endpoints/{made['id']}"
    assert len(guarded.get(f"{path}/dead-letters").json["items"]) == MORE_THAN_THE_BREAKER_TAKES
    assert guarded.get(f"{path}/health").json["breaker"]["state"] == "closed"


def test_refusals_have_a_metric_of_their_own(guarded: Relay) -> None:
    refused(guarded, times=2)
    counted = bootstrap.counters().read()
    assert counted[metrics.REFUSED.name, ""] == 2
    assert counted[metrics.DEAD_LETTERS.name, "refused"] == 2
