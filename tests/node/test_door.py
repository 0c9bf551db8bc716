"""What a request is answered before there is a WebSocket, from outside."""

import json
import socket
from itertools import count

import pytest

from tests.node.conftest import Running, StartNode
from tests.node.paseo import Peer, RefusedError, request, ws_path

NAMES = count()
UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": "13",
}


def _refused(node: Running, path: str) -> tuple[int, str]:
    with pytest.raises(RefusedError) as refused:
        Peer.open(node.port, path)
    return refused.value.answer.status, refused.value.answer.body


@pytest.mark.parametrize("missing", sorted(UPGRADE))
def test_what_is_no_valid_upgrade_is_told_before_anything_else(node: Running, missing: str) -> None:
    headers = {name: value for name, value in UPGRADE.items() if name != missing}
    answer = request(node.port, "/ws", headers)
    assert (answer.status, answer.body) == (426, "Expected WebSocket upgrade")


@pytest.mark.parametrize(
    "path, status, words",
    [
        ("/ws", 400, "Missing or invalid role parameter"),
        ("/ws?role=Server&serverId=s", 400, "Missing or invalid role parameter"),
        ("/ws?role=%20server&serverId=s", 400, "Missing or invalid role parameter"),
        ("/ws?role=&v=9", 400, "Missing or invalid role parameter"),
        ("/ws?role=server&v=9", 400, "Missing serverId parameter"),
        ("/ws?role=server&serverId=&v=9", 400, "Missing serverId parameter"),
        ("/ws?role=server&v=9&serverId=" + "s" * 257, 400, "serverId is too long"),
        ("/ws?role=server&v=9&serverId=" + "%C3%A4" * 129, 400, "serverId is too long"),
        ("/ws?role=server&serverId=s&v=0", 400, "Invalid v parameter (expected 1 or 2)"),
        ("/ws?role=server&serverId=s&v=v2", 400, "Invalid v parameter (expected 1 or 2)"),
        (
            "/ws?role=server&serverId=s&v=3&connectionId=" + "c" * 257,
            400,
            "Invalid v parameter (expected 1 or 2)",
        ),
        ("/ws?role=client&serverId=s&v=2&connectionId=" + "c" * 257, 400, "connectionId is too long"),
    ],
)
def test_parameters_are_checked_in_the_order_of_the_specification(
    node: Running, path: str, status: int, words: str
) -> None:
    assert _refused(node, path) == (status, words)


@pytest.mark.parametrize(
    "path",
    [
        ws_path("s" * 256, "server"),
        ws_path("  padded  ", "server"),
        ws_path("trimmed-version", "server", " 2 "),
        ws_path("first-version", "server", None),
        ws_path("empty-version", "server", ""),
        ws_path("long-connection-is-ignored", "server", "1", "c" * 999),
        ws_path("long-connection", "client", "2", "c" * 256),
        ws_path("trimmed-connection", "client", "2", " " * 300 + "c"),
    ],
)
def test_what_the_specification_allows_opens(node: Running, path: str) -> None:
    with Peer.open(node.port, path) as peer:
        assert peer.close(1000).code == 1000


def test_a_server_id_is_not_trimmed(node: Running) -> None:
    with (
        Peer.open(node.port, ws_path("untrimmed", "server")) as control,
        Peer.open(node.port, ws_path("untrimmed ", "client", "2", "c")),
    ):
        control.message()
        assert control.silent(0.3)


def test_health_and_readiness_are_told_as_json(node: Running) -> None:
    for path, word in (("/health", "ok"), ("/ready", "ready")):
        answer = request(node.port, path)
        assert (answer.status, json.loads(answer.body)) == (200, {"status": word})


@pytest.mark.parametrize("path", ["/", "/wss", "/ws/", "/metrics/x"])
def test_anything_else_is_not_found(node: Running, path: str) -> None:
    answer = request(node.port, path)
    assert (answer.status, answer.body) == (404, "not found")


def test_metrics_are_prometheus_text(node: Running) -> None:
    answer = request(node.port, "/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4"
    assert "paseo_relay_max_frame_bytes 33554418\n" in answer.body


def test_a_request_that_does_not_end_is_cut_off(start_node: StartNode) -> None:
    node = start_node(http_idle_timeout_ms=500)
    with socket.create_connection(("127.0.0.1", node.port), 5) as sock:
        sock.sendall(b"GET /ws HTTP/1.1\r\nHost: relay")
        assert sock.recv(1) == b""


def test_a_full_node_says_so(start_node: StartNode) -> None:
    node = start_node(acceptors=1, connections_per_acceptor=2)
    with (
        Peer.open(node.port, ws_path("full", "server")),
        Peer.open(node.port, ws_path("full", "client", "2", "c")) as client,
    ):
        assert _refused(node, ws_path("full", "client")) == (503, "Relay connection capacity")
        assert request(node.port, "/ready").status == 503
        client.close()
        with Peer.open(node.port, ws_path("full", "client")):
            pass


def test_a_draining_node_is_alive_but_not_ready_and_takes_nobody(start_node: StartNode) -> None:
    node = start_node(drain="true")
    assert request(node.port, "/health").status == 200
    assert request(node.port, "/ready").status == 503
    assert _refused(node, ws_path("s", "server")) == (503, "draining")


def test_a_node_below_the_floor_of_its_cluster_takes_no_new_session(start_node: StartNode) -> None:
    node = start_node(min_cluster_size=2)
    assert _refused(node, ws_path("s", "server")) == (503, "cluster")
    assert request(node.port, "/ready").status == 503
