"""Version 1 of the protocol, from outside."""

from itertools import count

import pytest

from tests.node.conftest import Running
from tests.node.paseo import Closed, Peer, ws_path

_NAMES = count()


@pytest.fixture
def name() -> str:
    return f"first-version-{next(_NAMES)}"


def test_messages_go_to_the_other_role_or_nowhere(node: Running, name: str) -> None:
    with Peer.open(node.port, ws_path(name, "server", "1")) as server:
        server.send("nobody hears this")
        with Peer.open(node.port, ws_path(name, "client", None)) as client:
            client.send("to the server")
            assert server.message().text == "to the server"
            server.send(b"to the client")
            assert client.message().data == b"to the client"


@pytest.mark.parametrize("role", ["server", "client"])
def test_a_newcomer_replaces_the_older_of_its_role(node: Running, name: str, role: str) -> None:
    other = "client" if role == "server" else "server"
    with (
        Peer.open(node.port, ws_path(name, other, "1")) as stays,
        Peer.open(node.port, ws_path(name, role, "1")) as older,
        Peer.open(node.port, ws_path(name, role, "1")) as newer,
    ):
        assert older.closed() == Closed(1008, "Replaced by new connection")
        stays.send("who is it?")
        assert newer.message().text == "who is it?"


def test_nobody_goes_because_another_went(node: Running, name: str) -> None:
    with (
        Peer.open(node.port, ws_path(name, "server", "1")) as server,
        Peer.open(node.port, ws_path(name, "client", "1")) as client,
    ):
        client.close()
        assert server.silent(0.3)
        with Peer.open(node.port, ws_path(name, "client", "1")) as next_client:
            next_client.send("next")
            assert server.message().text == "next"


def test_nothing_is_said_on_opening(node: Running, name: str) -> None:
    with (
        Peer.open(node.port, ws_path(name, "server", "1")) as server,
        Peer.open(node.port, ws_path(name, "client", "1")),
    ):
        assert server.silent(0.3)


def test_its_state_is_apart_from_that_of_version_2(node: Running, name: str) -> None:
    with (
        Peer.open(node.port, ws_path(name, "server", "1")) as first,
        Peer.open(node.port, ws_path(name, "server", "2")) as second,
        Peer.open(node.port, ws_path(name, "client", "2", "c")),
    ):
        second.message()
        assert '"connected"' in second.message().text
        assert first.silent(0.3)
