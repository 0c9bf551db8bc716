"""The load client against a node, bounded: nothing lost or out of order, everything opened and closed."""

import json
import subprocess
from typing import Any

import pytest

from tests.bench import relay_load
from tests.node.conftest import Running, StartNode

BOUNDED = {
    "sustained": ("--pairs", "25", "--servers", "5", "--rate", "50", "--duration", "4"),
    "reconnect": ("--pairs", "25", "--servers", "5", "--reconnects", "2"),
    "ownership": ("--servers", "200"),
    "idle": ("--pairs", "300", "--servers", "300", "--duration", "0.2"),
}
FRAMES = {"sustained": 25 * 2 * 50 * 4, "reconnect": 25 * 2}
SOCKETS = {"sustained": 55, "reconnect": 110, "ownership": 200, "idle": 300}


@pytest.fixture(scope="module")
def node(start_node: StartNode) -> Running:
    return start_node(data_attach_timeout_ms=15_000, sync_again_ms=10_000)


@pytest.mark.parametrize("scenario", BOUNDED)
def test_under_a_bounded_load_nothing_is_lost_or_out_of_order(node: Running, scenario: str) -> None:
    told = _load(node, scenario, *BOUNDED[scenario])
    assert told["connections_succeeded"] == told["requested_sockets"] == SOCKETS[scenario]
    assert told["frames_received"] == told["frames_sent"] == FRAMES.get(scenario, 0)
    for fault in ("connections_failed", "lost", "misordered", "cleanup_timeouts"):
        assert told[fault] == 0


def test_the_load_client_tells_of_what_failed(start_node: StartNode) -> None:
    full = start_node(acceptors=1, connections_per_acceptor=2)
    done = _run(full, "ownership", "--servers", "5", "--ramp", "50")
    assert done.returncode == 1
    assert json.loads(done.stdout)["connections_failed"] == 3


def _load(node: Running, scenario: str, *options: str) -> dict[str, Any]:
    done = _run(node, scenario, *options)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _run(node: Running, scenario: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = relay_load.command(scenario, node.port, node.process.pid, *options)
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
