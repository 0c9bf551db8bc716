"""Stock nginx in front of two nodes: one public port, and clients that know of no nodes."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from string import Template
from threading import Event

import pytest

from infra.local.emulator import free_port
from tests.node.conftest import ROOT, Running, StartNode, sharing
from tests.node.paseo import Peer, RefusedError, request, ws_path

NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
CONFIGURATION = ROOT / "infra" / "relay_node" / "nginx.conf.template"


@pytest.fixture(scope="module")
def nodes(start_node: StartNode, store: str) -> list[Running]:
    """Two nodes for all of these tests; the last one kills one of them."""
    start = sharing(start_node, store)
    return [start(f"127.0.0.1:{port}", port=port) for port in (free_port(), free_port())]


@pytest.fixture(scope="module")
def public(nodes: list[Running], tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Run nginx in front of the nodes, and give its port."""
    tmp_path = tmp_path_factory.mktemp("nginx")
    if not Path(NGINX).exists() and not os.environ.get("CI"):
        pytest.skip("nginx is not there: Debian's package `nginx-light` has it")
    port = free_port()
    servers = "\n".join(f"server 127.0.0.1:{each.port} max_fails=0;" for each in nodes)
    text = Template(CONFIGURATION.read_text(encoding="utf-8")).safe_substitute(
        LISTEN=f"127.0.0.1:{port}", SERVERS=servers, RUN=tmp_path
    )
    file = tmp_path / "nginx.conf"
    file.write_text(text, encoding="utf-8")
    command = [NGINX, "-p", str(tmp_path), "-c", str(file), "-g", "daemon off;"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as nginx:
        try:
            _wait_for(port, nginx)
            yield port
        finally:
            nginx.terminate()


@pytest.fixture
def ending() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_every_socket_of_a_session_gets_to_its_owner_whichever_node_is_asked_first(
    public: int, nodes: list[Running], ending: ExitStack
) -> None:
    for number in range(8):
        name = f"session-{number}"
        data = ending.enter_context(Peer.open(public, ws_path(name, "server", "2", "c")))
        clients = [
            ending.enter_context(Peer.open(public, ws_path(name, "client", "2", "c"))) for _ in range(2)
        ]
        for client in clients:
            client.send(f"to {name}")
            assert data.message().text == f"to {name}"
        data.send(b"\x00" * 300_000)
        assert all(client.message().data == b"\x00" * 300_000 for client in clients)
    open_at = [_open_at(each) for each in nodes]
    assert sum(open_at) == 8 * 3
    assert min(open_at) > 0


def test_what_a_node_refuses_is_refused_in_its_words(public: int) -> None:
    with pytest.raises(RefusedError) as refused:
        Peer.open(public, ws_path("s", "nobody"))
    assert refused.value.answer.body == "Missing or invalid role parameter"
    assert request(public, "/health").status == 200


def test_when_a_node_dies_its_sessions_go_on_at_the_other(
    public: int, nodes: list[Running], ending: ExitStack
) -> None:
    first = ending.enter_context(Peer.open(public, ws_path("moves", "client", "2", "c")))
    owner = next(each for each in nodes if _open_at(each))
    owner.process.kill()
    first.receive()
    for _ in range(200):
        try:
            ending.enter_context(Peer.open(public, ws_path("moves", "client", "2", "c")))
        except (RefusedError, OSError, AssertionError):
            Event().wait(0.05)
        else:
            return
    pytest.fail("nobody took the session over")


def _open_at(node: Running) -> int:
    (line,) = [
        each
        for each in request(node.port, "/metrics").body.splitlines()
        if each.startswith("paseo_relay_active_websockets ")
    ]
    return int(line.split()[1])


def _wait_for(port: int, nginx: subprocess.Popen[str]) -> None:
    for _ in range(200):
        try:
            request(port, "/health")
        except OSError:
            assert nginx.poll() is None, nginx.stderr.read() if nginx.stderr else ""
            Event().wait(0.05)
        else:
            return
    pytest.fail("nginx did not begin to listen")
