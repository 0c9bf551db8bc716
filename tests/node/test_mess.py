"""Sockets of many sessions do whatever they like; when all are gone, nothing of them is left in the node."""

import random
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.node.conftest import Running, StartNode
from tests.node.paseo import BINARY, CLOSE, PING, TEXT, Peer, RefusedError, framed, request, ws_path

STEPS = 400
SOCKETS = 14
KINDS = (
    ("server", "1", None),
    ("client", "1", None),
    ("server", "2", None),
    ("server", "2", "a"),
    ("client", "2", "a"),
    ("client", "2", "a"),
    ("client", "2", "b"),
    ("client", "2", None),
)
GAUGES = (
    "active_websockets",
    "active_sessions",
    "backpressured_sources",
    "inflight_delivery_bytes",
    "ingress_reserved_bytes",
)
RESET = b"\x01\x00\x00\x00\x00\x00\x00\x00"


class Mess:
    """Some sockets, and a die that says what happens next."""

    def __init__(self, node: Running, seed: int) -> None:
        self._node = node
        self._dice = random.Random(seed)
        self._peers: list[Peer] = []

    def step(self) -> None:
        """Do one thing; that a socket is closed already is a thing that happens."""
        if len(self._peers) < SOCKETS and self._dice.random() < 0.4:
            self._open()
            return
        if self._peers:
            peer = self._dice.choice(self._peers)
            with suppress(OSError):
                self._dice.choice(
                    (self._small, self._small, self._large, self._parts, self._half, self._read, self._end)
                )(peer)

    def end(self) -> None:
        """Let all sockets go."""
        for each in self._peers:
            each.sock.close()

    def _open(self) -> None:
        role, version, connection_id = self._dice.choice(KINDS)
        path = ws_path(f"mess-{self._dice.randrange(2)}", role, version, connection_id)
        buffer = self._dice.choice((0, 4_096))
        with suppress(RefusedError, OSError):
            peer = Peer.open(self._node.port, path, receive_buffer=buffer)
            peer.sock.setblocking(False)  # noqa: FBT003 - the standard library's own form
            self._peers.append(peer)

    def _small(self, peer: Peer) -> None:
        kind = self._dice.choice((TEXT, BINARY, PING))
        peer.sock.send(framed(kind, b"s" * self._dice.randrange(100)) * self._dice.randrange(1, 20))

    def _large(self, peer: Peer) -> None:
        peer.sock.setblocking(True)  # noqa: FBT003 - the standard library's own form
        peer.sock.settimeout(0.02)
        peer.frame(BINARY, b"l" * self._dice.choice((70_000, 900_000, 3_000_000)))

    def _parts(self, peer: Peer) -> None:
        for part in (framed(TEXT, b"", last=False), framed(PING, b""), framed(0, b"part", last=False)):
            peer.sock.send(part)
        if self._dice.random() < 0.7:
            peer.sock.send(framed(0, b""))

    def _half(self, peer: Peer) -> None:
        whole = framed(BINARY, b"h" * 300)
        peer.sock.send(whole[: self._dice.randrange(1, len(whole))])

    def _read(self, peer: Peer) -> None:
        peer.sock.settimeout(0.01)
        for _ in range(20):
            if not peer.sock.recv(1 << 20):
                return

    def _end(self, peer: Peer) -> None:
        self._peers.remove(peer)
        with peer.sock:
            match self._dice.randrange(4):
                case 0:
                    peer.sock.send(
                        framed(CLOSE, self._dice.choice((b"", b"\x03\xe8", b"\x03", b"\x0f\xa0bye")))
                    )
                case 1:
                    peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                case 2:
                    peer.sock.shutdown(socket.SHUT_WR)
                    peer.sock.settimeout(0.05)
                    peer.sock.recv(1 << 20)


@pytest.fixture(scope="module")
def node(start_node: StartNode) -> Running:
    return start_node(
        delivery_timeout_ms=400,
        transport_send_timeout_ms=800,
        data_attach_timeout_ms=300,
        sync_again_ms=200,
        control_unresponsive_ms=200,
        control_queue_bytes=4_096,
    )


@pytest.mark.parametrize("seed", range(4))
def test_after_any_mess_nothing_is_left_of_it(node: Running, seed: int) -> None:
    mess = Mess(node, seed)
    for _ in range(STEPS):
        mess.step()
    mess.end()
    _wait_until(lambda: _left(node) == dict.fromkeys(GAUGES, 0))
    with (
        Peer.open(node.port, ws_path("mess-0", "server", "2", "a")) as data,
        Peer.open(node.port, ws_path("mess-0", "client", "2", "a")) as client,
    ):
        client.send("after all that")
        assert data.message().text == "after all that"


def _left(node: Running) -> dict[str, int]:
    lines = [each.split() for each in request(node.port, "/metrics").body.splitlines()]
    told = {each[0].removeprefix("paseo_relay_"): each[1] for each in lines if len(each) == 2}
    return {name: int(told[name]) for name in GAUGES}


def _wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not true():
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)
