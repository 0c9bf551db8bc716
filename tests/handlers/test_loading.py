"""What the process of each kind of function has loaded once it has worked: what it needs, and no more."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from chalicelib.domain.delivery import Lane
from chalicelib.domain.gate import Queue
from chalicelib.wire import bell as bells
from infra.local.sqs_event import event_of
from infra.package import ROOT
from tests.handlers.conftest import MakeRelay
from tests.handlers.relay import JSON, Relay, message, proxy_event
from tests.receiver import Receiver

WORK = """
import json, sys
asked = json.load(sys.stdin)
import app
started = sorted(sys.modules)
from infra.local.invocation import LambdaContext
function = getattr(app, asked["function"], None)
answer = function and function(asked["event"], LambdaContext("relay"))
print(json.dumps({"answer": answer, "started": started, "worked": sorted(sys.modules)}))
"""
CONTROL_PLANE = {
    "chalicelib.application.endpoints",
    "chalicelib.application.ingest",
    "chalicelib.application.tenants",
    "chalicelib.handlers.endpoints",
    "chalicelib.handlers.events",
    "chalicelib.handlers.http",
    "chalicelib.handlers.tenants",
    "chalicelib.wire.answers",
    "chalicelib.wire.bodies",
    "chalicelib.wire.openapi",
    "chalicelib.wire.operations",
    "pyotp",
}
SENDER = {
    "asyncio",
    "chalicelib.adapters.http.sender",
    "chalicelib.application.batch",
    "chalicelib.handlers.deliver",
    "h11",
}
RARE = {
    "chalicelib.application.rebuild",
    "chalicelib.application.retention",
    "chalicelib.wire.openapi",
    "nacl",
    "pyotp",
}


def work(function: str, event: Mapping[str, Any], **environment: str) -> Any:  # noqa: ANN401 - JSON
    """Start a process for one function, or for none, and give it an event: its answer, what was loaded."""
    done = subprocess.run(
        [sys.executable, "-c", WORK],
        cwd=ROOT,
        env={**os.environ, "RELAY_STRICT_AWS": "false", **environment},
        input=json.dumps({"function": function, "event": event}),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def batch(relay: Relay) -> tuple[str, dict[str, Any]]:
    """Post an event and receive its bell: whose it is, and the event that it makes."""
    relay.event()
    ((queue, messages),) = relay.rung().items()
    return f"deliver_{queue.replace('-', '_')}", event_of(messages, relay.arn(queue))


def test_the_deliver_function_loads_nothing_of_the_control_plane(relay: Relay, receiver: Receiver) -> None:
    relay.endpoint(url=receiver.url("/verify"))
    function, event = batch(relay)
    did = work(function, event)
    assert did["answer"] == {"batchItemFailures": []}
    assert len(receiver.received()) == 1
    loaded = set(did["worked"])
    assert SENDER - loaded == set()
    assert (CONTROL_PLANE | RARE) & loaded == set()


def test_the_api_loads_nothing_that_sends(relay: Relay, receiver: Receiver) -> None:
    relay.endpoint(url=receiver.url("/verify"))
    did = work("app", proxy_event("POST", "/v1/events", b'{"type":"order.paid"}', JSON))
    assert did["answer"]["statusCode"] == 202
    loaded = set(did["worked"])
    assert "chalicelib.application.ingest" in loaded
    assert (SENDER | RARE | {"chalicelib.handlers.endpoints"}) & loaded == set()


@pytest.mark.parametrize("function", ["call_replays", "notify", "reconcile"])
def test_a_scheduled_function_loads_neither_the_api_nor_what_sends(relay: Relay, function: str) -> None:
    event = json.loads((ROOT / "events/schedule.json").read_text(encoding="utf-8"))
    loaded = set(work(function, event)["worked"])
    assert "boto3" in loaded
    assert {"chalicelib.handlers.http", "chalicelib.wire.bodies", *SENDER} & loaded == set()


def test_the_function_of_delayed_bells_loads_what_rings_alone(relay: Relay) -> None:
    lane = Lane("default", "ep_01a22a7c-5366-79c3-90eb-70e6bdfad2fa", "0")
    event = event_of([message(bells.dump_delayed(lane, Queue.SHARD))], relay.arn("delayed"))
    did = work("delayed_bells", event)
    assert did["answer"] == {"batchItemFailures": []}
    assert (CONTROL_PLANE | SENDER | RARE | {"chalicelib.adapters.dynamodb.tables"}) & set(
        did["worked"]
    ) == set()


@pytest.mark.parametrize(
    "function, made",
    [
        ("app", {"boto3", "chalicelib.handlers.events", "chalicelib.application.ingest"}),
        ("deliver_shard_0", SENDER | {"boto3"}),
        ("deliver_cloud", {"boto3", "chalicelib.adapters.cloud", "chalicelib.handlers.deliver"}),
        ("reconcile", set()),
    ],
)
def test_what_somebody_waits_for_is_made_while_the_process_starts(
    make_relay: MakeRelay, function: str, made: set[str]
) -> None:
    """And no call is made meanwhile: there is nothing at that address."""
    make_relay()
    did = work("", {}, _HANDLER=f"app.{function}", AWS_ENDPOINT_URL="http://127.0.0.1:9")
    started = set(did["started"])
    assert made - started == set()
    assert bool(made) == ("boto3" in started)
