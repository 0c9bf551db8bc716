"""Version 2 of the protocol, row by row, from outside."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import count

import pytest

from tests.node.conftest import Running
from tests.node.paseo import BINARY, CLOSE, PING, TEXT, Closed, Message, Peer, framed, ws_path

LARGEST = 33_554_418
_NAMES = count()


class World:
    """One serverId of a node, and the sockets opened on it."""

    def __init__(self, node: Running, ending: ExitStack) -> None:
        self.server_id = f"world-{next(_NAMES)}"
        self._node = node
        self._ending = ending

    def open(self, role: str, connection_id: str | None = None, *, receive_buffer: int = 0) -> Peer:
        path = ws_path(self.server_id, role, "2", connection_id)
        return self._ending.enter_context(Peer.open(self._node.port, path, receive_buffer=receive_buffer))

    def control(self) -> tuple[Peer, list[str]]:
        """Open a control, and give the ids that its first message lists."""
        control = self.open("server")
        said = json.loads(control.message().text)
        assert said.keys() == {"type", "connectionIds"}
        assert said["type"] == "sync"
        return control, said["connectionIds"]

    def pair(self, connection_id: str = "c") -> tuple[Peer, Peer]:
        """Open a data socket and a client of it."""
        return self.open("server", connection_id), self.open("client", connection_id)


@pytest.fixture
def world(node: Running) -> Iterator[World]:
    with ExitStack() as ending:
        yield World(node, ending)


def _said(peer: Peer, within_s: float = 10) -> dict[str, object]:
    said: dict[str, object] = json.loads(peer.message(within_s).text)
    return said


def test_a_control_is_told_at_once_which_ids_have_a_client(world: World) -> None:
    world.open("client", "b")
    world.open("client", "a")
    world.open("server", "only-data")
    assert sorted(world.control()[1]) == ["a", "b"]


def test_a_newer_control_replaces_the_older(world: World) -> None:
    older, _ = world.control()
    newer, _ = world.control()
    assert older.closed() == Closed(1008, "Replaced by new connection")
    newer.send('{"type":"ping"}')
    assert _said(newer)["type"] == "pong"


def test_the_control_is_told_of_every_client_also_of_a_second_on_one_id(world: World) -> None:
    control, _ = world.control()
    for _ in range(2):
        world.open("client", "c")
        assert _said(control) == {"type": "connected", "connectionId": "c"}


def test_a_client_without_an_id_gets_one(world: World) -> None:
    control, _ = world.control()
    client = world.open("client")
    connection_id = str(_said(control)["connectionId"])
    name, _, digits = connection_id.partition("_")
    assert name == "conn"
    assert len(digits) == 16
    assert set(digits) <= set("0123456789abcdef")
    data = world.open("server", connection_id)
    client.send("hello")
    assert data.message().text == "hello"


def test_a_control_that_pings_gets_the_time(world: World) -> None:
    control, _ = world.control()
    before = time.time_ns() // 1_000_000
    control.send('{"type":"ping"}')
    said = _said(control)
    assert said["type"] == "pong"
    assert before - 5 <= int(str(said["ts"])) <= time.time_ns() // 1_000_000 + 5


@pytest.mark.parametrize(
    "ignored",
    [
        "",
        "ping",
        "[]",
        "1",
        "null",
        '{"type":"pong"}',
        '{"type":["ping"]}',
        b'{"type":',
        b"\xff\x00",
        "[" * 60_000,
    ],
)
def test_what_else_a_control_says_is_ignored(world: World, ignored: str | bytes) -> None:
    control, _ = world.control()
    control.send(ignored)
    control.send('{"type":"ping"}')
    assert _said(control)["type"] == "pong"


@pytest.mark.parametrize("which", ["control", "data", "client"])
def test_websocket_pings_are_answered_on_every_socket(world: World, which: str) -> None:
    control, _ = world.control()
    data, client = world.pair()
    peer = {"control": control, "data": data, "client": client}[which]
    peer.frame(PING, b"are you there")
    peer.frame(CLOSE, b"")
    while isinstance(peer.receive(), Message):
        pass
    assert peer.pongs == [b"are you there"]


@pytest.mark.parametrize(
    "message",
    ["text \u00e4\u2713", b"\x00\xff binary", "", b""],
    ids=["text", "binary", "empty-text", "empty-binary"],
)
def test_messages_keep_opcode_bytes_and_order_both_ways(world: World, message: str | bytes) -> None:
    data, client = world.pair()
    wanted = Message(TEXT, message.encode()) if isinstance(message, str) else Message(BINARY, message)
    for source, destination in ((client, data), (data, client)):
        for number in range(50):
            source.send(message)
            source.send(str(number))
        for number in range(50):
            assert destination.message() == wanted
            assert destination.message().text == str(number)


def test_fragments_arrive_as_the_message_they_make_with_pings_between(world: World) -> None:
    data, client = world.pair()
    client.frame(TEXT, "gr\u00fc".encode()[:3], last=False)
    client.frame(PING, b"x")
    client.frame(0, "gr\u00fc".encode()[3:], last=False)
    client.frame(0, b"", last=False)
    client.frame(0, b"n")
    assert data.message() == Message(TEXT, "gr\u00fcn".encode())


def test_text_that_is_none_closes_its_sender(world: World) -> None:
    data, client = world.pair()
    client.frame(TEXT, b"\xc3\x28")
    assert client.closed().code == 1007
    assert data.closed() == Closed(1001, "Client disconnected")


def test_data_goes_to_every_client_of_its_id_and_nowhere_without_one(world: World) -> None:
    data = world.open("server", "c")
    data.send("nobody hears this")
    clients = [world.open("client", "c") for _ in range(3)]
    other = world.open("client", "d")
    data.send("all of you")
    assert [each.message().text for each in clients] == ["all of you"] * 3
    assert other.silent(0.2)


def test_what_came_before_the_data_socket_is_sent_in_order_when_it_opens(world: World) -> None:
    first, second = world.open("client", "c"), world.open("client", "c")
    for number in range(20):
        first.send(f"first {number}")
        second.send(f"second {number}")
    data = world.open("server", "c")
    came = [data.message().text for _ in range(40)]
    for name in ("first", "second"):
        assert [each for each in came if each.startswith(name)] == [f"{name} {n}" for n in range(20)]


def test_a_client_whose_message_finds_no_data_socket_is_told_so(world: World) -> None:
    client = world.open("client", "c")
    client.send("anybody?")
    began = time.monotonic()
    assert client.closed() == Closed(1013, "Data route unavailable")
    assert 0.6 < time.monotonic() - began < 3


def test_a_newer_data_socket_replaces_the_older_and_the_clients_stay(world: World) -> None:
    older, client = world.pair()
    newer = world.open("server", "c")
    assert older.closed().code == 1008
    client.send("still here")
    assert newer.message().text == "still here"
    newer.send("and here")
    assert client.message().text == "and here"


def test_when_the_data_socket_goes_its_clients_go_and_the_control_hears_it(world: World) -> None:
    control, _ = world.control()
    data, client = world.pair()
    other = world.open("client", "c")
    _said(control), _said(control)
    data.close()
    for each in (client, other):
        assert each.closed() == Closed(1012, "Server disconnected")
    assert _said(control) == {"type": "disconnected", "connectionId": "c"}


def test_when_the_last_client_goes_its_data_socket_goes_and_the_control_hears_it(world: World) -> None:
    control, _ = world.control()
    data, first = world.pair()
    second = world.open("client", "c")
    _said(control), _said(control)
    first.close()
    assert control.silent(0.2)
    assert data.silent(0.1)
    second.close()
    assert data.closed() == Closed(1001, "Client disconnected")
    assert _said(control) == {"type": "disconnected", "connectionId": "c"}


def test_a_client_that_just_disappears_is_gone_all_the_same(world: World) -> None:
    control, _ = world.control()
    data, client = world.pair()
    _said(control)
    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    client.sock.close()
    assert data.closed() == Closed(1001, "Client disconnected")
    assert _said(control) == {"type": "disconnected", "connectionId": "c"}


def test_without_its_control_the_rest_goes_on_and_the_next_is_told_of_it(world: World) -> None:
    control, _ = world.control()
    data, client = world.pair()
    control.close()
    client.send("on and on")
    assert data.message().text == "on and on"
    assert world.control()[1] == ["c"]


def test_a_client_that_waits_long_is_told_again_and_then_its_control_closes(world: World) -> None:
    control, _ = world.control()
    world.open("client", "c")
    assert _said(control)["type"] == "connected"
    began = time.monotonic()
    assert _said(control) == {"type": "sync", "connectionIds": ["c"]}
    assert 0.4 < time.monotonic() - began < 1.1
    assert control.closed() == Closed(1011, "Control unresponsive")
    assert 0.65 < time.monotonic() - began < 1.7


def test_a_control_that_opens_the_data_socket_in_time_stays(world: World) -> None:
    control, _ = world.control()
    world.open("client", "c")
    _said(control)
    assert _said(control)["type"] == "sync"
    world.open("server", "c")
    assert control.silent(0.6)


@pytest.mark.parametrize("code, reason", [(1000, ""), (1001, "away"), (3000, "own"), (4999, "\u00e4" * 61)])
def test_a_close_is_echoed_with_its_code(world: World, code: int, reason: str) -> None:
    for peer in world.pair():
        if not peer.received:
            assert peer.close(code, reason).code == code
            return


@pytest.mark.parametrize("pieces", [1, 7])
def test_the_largest_message_goes_through_whole(world: World, pieces: int) -> None:
    data, client = world.pair()
    largest = bytes(range(256)) * (LARGEST // 256) + b"\x00" * (LARGEST % 256)
    sending = threading.Thread(target=client.send, args=(largest,), kwargs={"pieces": pieces})
    sending.start()
    assert data.message(60).data == largest
    sending.join(10)


@pytest.mark.parametrize("pieces", [1, 7])
def test_a_message_that_is_larger_by_a_byte_closes_its_sender(world: World, pieces: int) -> None:
    data, client = world.pair()
    sending = threading.Thread(target=_send_in_vain, args=(client, b"z" * (LARGEST + 1), pieces))
    sending.start()
    assert client.closed(60).code == 1009
    sending.join(60)
    assert data.closed() == Closed(1001, "Client disconnected")


def test_one_byte_too_many_is_told_as_1009(world: World) -> None:
    _, client = world.pair()
    client.sock.sendall(framed(BINARY, b"")[:1] + b"\xff" + (LARGEST + 1).to_bytes(8, "big") + b"\x00" * 4)
    assert client.closed().code == 1009


def test_a_control_may_say_65536_bytes_and_no_more(world: World) -> None:
    control, _ = world.control()
    control.send("x" * 65_536)
    control.send('{"type":"ping"}')
    assert _said(control)["type"] == "pong"
    control.send("x" * 65_537)
    assert control.closed().code == 1009


def test_two_that_send_the_largest_message_to_each_other_both_get_it(world: World) -> None:
    data, client = world.pair()
    largest = b"z" * LARGEST
    senders = [threading.Thread(target=each.send, args=(largest,)) for each in (data, client)]
    for each in senders:
        each.start()
    for each in senders:
        each.join(60)
    assert [len(each.message(60).data) for each in (data, client)] == [LARGEST, LARGEST]


def _send_in_vain(peer: Peer, message: bytes, pieces: int) -> None:
    with suppress(OSError):
        peer.send(message, pieces=pieces)
