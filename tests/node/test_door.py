"""What a request is answered before there is a WebSocket, from outside."""

import json
import socket
from itertools import count

import pytest

from tests.node.conftest import Running, StartNode
from tests.node.paseo import BINARY, CLOSE, PING, TEXT, Message, Peer, RefusedError, framed, request, ws_path

NAMES = count()
METRICS = {
    "gauge": "ready draining active_websockets active_sessions ingress_reserved_bytes inflight_delivery_bytes"
    " backpressured_sources max_frame_bytes process_memory_bytes",
    "counter": "reroute_responses_total connection_rejections_total frames_forwarded_total"
    " bytes_forwarded_total slow_consumer_disconnects_total delivery_timeouts_total"
    " memory_pressure_disconnects_total",
    "histogram": "delivery_wait_seconds frame_size_bytes",
}
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


@pytest.fixture(scope="module")
def hasty(start_node: StartNode) -> Running:
    return start_node(http_idle_timeout_ms=300)


def test_the_metrics_are_those_its_users_know(node: Running) -> None:
    lines = request(node.port, "/metrics").body.splitlines()
    told = {tuple(each.split()[2:]) for each in lines if each.startswith("# TYPE ")}
    assert told == {
        (f"paseo_relay_{name}", kind) for kind, names in METRICS.items() for name in names.split()
    }


def test_a_request_that_does_not_end_is_cut_off(hasty: Running) -> None:
    assert _raw(hasty, b"GET /ws HTTP/1.1\r\nHost: relay") == b""


@pytest.mark.parametrize(
    "started",
    [
        "POST /tunnel/x HTTP/1.1\r\nHost: relay",
        "POST /tunnel/x HTTP/1.1\r\nHost: r\r\nContent-Length: 9\r\n\r\n{",
    ],
)
def test_a_call_that_does_not_end_is_cut_off_too(hasty: Running, started: str) -> None:
    assert _raw(hasty, started.encode()) == b""


@pytest.mark.parametrize(
    "target, status, words",
    [
        ("POST /ws HTTP/1.1", 426, "Expected WebSocket upgrade"),
        ("PUT /ws HTTP/1.1", 426, "Expected WebSocket upgrade"),
        ("GET /ws HTTP/1.0", 426, "Expected WebSocket upgrade"),
        ("POST /health HTTP/1.1", 404, "not found"),
        ("PUT /elsewhere HTTP/1.1", 404, "not found"),
        ("GET //[ HTTP/1.1", 404, "not found"),
        ("GET http://relay.test/health HTTP/1.1", 200, '{"status":"ok"}'),
        ("GET /health HTTP/1.0", 200, '{"status":"ok"}'),
        ("HEAD /health HTTP/1.1", 200, ""),
    ],
)
def test_requests_of_all_kinds_have_the_same_answers(
    node: Running, target: str, status: int, words: str
) -> None:
    answer = _raw(node, f"{target}\r\nHost: r\r\nContent-Length: 0\r\n\r\n".encode())
    head, _, body = answer.decode().partition("\r\n\r\n")
    assert (int(head.split()[1]), body) == (status, words)


def test_of_requests_in_a_row_the_first_is_answered_and_the_connection_ends(node: Running) -> None:
    answer = _raw(node, b"GET /health HTTP/1.1\r\nHost: r\r\n\r\n" * 3)
    assert answer.count(b"HTTP/1.1 200") == answer.count(b'{"status":"ok"}') == 1


def test_a_call_is_known_as_one_however_its_bytes_come(node: Running) -> None:
    with socket.create_connection(("127.0.0.1", node.port), 5) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"POST /tunnel/x HTTP/1.1\r\nHost: r\r\nContent-Length: 0\r\n\r\n":
            sock.sendall(bytes([byte]))
        assert _to_the_end(sock).startswith(b"HTTP/1.1 401")


def test_an_upgrade_may_come_byte_by_byte(node: Running) -> None:
    with socket.create_connection(("127.0.0.1", node.port), 5) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in _upgrade("slowly"):
            sock.sendall(bytes([byte]))
        assert sock.recv(12) == b"HTTP/1.1 101"


def test_what_is_sent_with_the_upgrade_is_read_after_it(node: Running) -> None:
    early = framed(PING, b"p") + framed(CLOSE, b"\x03\xe8")
    with socket.create_connection(("127.0.0.1", node.port), 5) as sock:
        sock.sendall(_upgrade("early") + early)
        answer = _to_the_end(sock)
    head, _, frames = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101")
    order = [b'"sync"', b"\x8a\x01p", b"\x88\x02\x03\xe8"]
    assert sorted(order, key=frames.index) == order


def test_a_message_that_is_sent_with_the_upgrade_goes_on_like_any_other(node: Running) -> None:
    with (
        Peer.open(node.port, ws_path("early-message", "server", "2", "c")) as data,
        socket.create_connection(("127.0.0.1", node.port), 5) as sock,
    ):
        sock.sendall(_upgrade("early-message", "client") + framed(BINARY, b"early"))
        assert data.message() == Message(BINARY, b"early")


def test_a_control_may_not_say_too_much_with_its_upgrade_either(node: Running) -> None:
    with socket.create_connection(("127.0.0.1", node.port), 5) as sock:
        sock.sendall(_upgrade("early-control") + framed(TEXT, b"x" * 65_537))
        assert b"\x03\xf1" in _to_the_end(sock)


def _upgrade(server_id: str, role: str = "server") -> bytes:
    path = ws_path(server_id, role, "2", "c" if role == "client" else None)
    lines = [f"GET {path} HTTP/1.1", "Host: r", *(f"{name}: {value}" for name, value in UPGRADE.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _raw(node: Running, sent: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", node.port), 5) as sock:
        sock.sendall(sent)
        return _to_the_end(sock)


def _to_the_end(sock: socket.socket) -> bytes:
    found = b""
    while data := sock.recv(65_536):
        found += data
    return found


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
