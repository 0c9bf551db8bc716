"""What happens when somebody takes too little or sends too much, from outside."""

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import pytest

from tests.node.conftest import Running, StartNode
from tests.node.paseo import BINARY, CLOSE, PING, TEXT, Closed, Peer, RefusedError, framed, request, ws_path

LARGEST = 33_554_418
MIB = 1 << 20


@pytest.fixture(scope="module")
def node(start_node: StartNode) -> Running:
    return start_node(delivery_timeout_ms=1_500, transport_send_timeout_ms=3_000)


@pytest.fixture
def ending() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def _open(node: Running, ending: ExitStack, name: str, role: str, *, receive_buffer: int = 0) -> Peer:
    path = ws_path(name, role, "2", "c")
    return ending.enter_context(Peer.open(node.port, path, receive_buffer=receive_buffer))


def _open_control(node: Running, ending: ExitStack, name: str) -> Peer:
    control = ending.enter_context(Peer.open(node.port, ws_path(name, "server")))
    control.message()
    return control


def _in_background(send: Callable[[], None]) -> threading.Thread:
    def quietly() -> None:
        with suppress(OSError):
            send()

    thread = threading.Thread(target=quietly, daemon=True)
    thread.start()
    return thread


def _metric(node: Running, name: str) -> int:
    text = request(node.port, "/metrics").body
    (line,) = [each for each in text.splitlines() if each.startswith(f"paseo_relay_{name} ")]
    return int(line.rsplit(" ", 1)[1])


def _wait_until(true: Callable[[], bool], within_s: float = 10) -> None:
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)


def test_a_client_that_takes_nothing_is_shed_and_the_other_clients_go_on(
    node: Running, ending: ExitStack
) -> None:
    data = _open(node, ending, "shed", "server")
    stalled = _open(node, ending, "shed", "client", receive_buffer=4_096)
    healthy = _open(node, ending, "shed", "client")
    sending = _in_background(lambda: _send_all(data, [b"z" * (16 * MIB), "after"]))
    assert len(healthy.message().data) == 16 * MIB
    began = time.monotonic()
    assert healthy.message().text == "after"
    assert 1.0 < time.monotonic() - began < 4
    sending.join(10)
    end = stalled.receive(10)
    while not isinstance(end, Closed):
        end = stalled.receive(10)
    assert end in {Closed(1013, "Slow consumer"), Closed(0)}
    assert _metric(node, "slow_consumer_disconnects_total") >= 1


def test_one_that_reads_again_in_time_loses_nothing(node: Running, ending: ExitStack) -> None:
    data = _open(node, ending, "late", "server", receive_buffer=4_096)
    client = _open(node, ending, "late", "client")
    sending = _in_background(lambda: _send_all(client, [bytes([number]) * MIB for number in range(8)]))
    _wait_until(lambda: _metric(node, "backpressured_sources") >= 1)
    for number in range(8):
        assert data.message().data == bytes([number]) * MIB
    sending.join(10)


def test_a_source_whose_every_destination_failed_is_told_so(node: Running, ending: ExitStack) -> None:
    _open(node, ending, "undelivered", "server", receive_buffer=4_096)
    client = _open(node, ending, "undelivered", "client")
    client.send(b"z" * (8 * MIB))
    assert client.closed() == Closed(1013, "Delivery unavailable")


def test_clients_stay_when_a_data_socket_that_takes_nothing_is_replaced(
    start_node: StartNode, ending: ExitStack
) -> None:
    node = start_node()
    _open(node, ending, "replaced", "server", receive_buffer=4_096)
    first, second = (_open(node, ending, "replaced", "client") for _ in range(2))
    first.send(b"1" * (8 * MIB))
    _wait_until(lambda: _metric(node, "backpressured_sources") == 1)
    second.send(b"2" * 50_000)
    _wait_until(lambda: _metric(node, "backpressured_sources") == 2)
    newer = _open(node, ending, "replaced", "server")
    assert newer.message().data == b"2" * 50_000
    for each in (first, second):
        each.send("still here")
        assert newer.message().text == "still here"
    assert _metric(node, "backpressured_sources") == _metric(node, "ingress_reserved_bytes") == 0


def test_a_session_ends_with_a_control_that_is_shed_for_its_last_notice(
    start_node: StartNode, ending: ExitStack
) -> None:
    """A notice of an id's going is longer by three bytes than that of its coming."""
    node = start_node(control_queue_bytes=256)
    control = _open_control(node, ending, "last-notice")
    path = ws_path("last-notice", "client", "2", "i" * 214)
    client = ending.enter_context(Peer.open(node.port, path))
    assert '"connected"' in control.message().text
    client.close()
    assert control.closed() == Closed(1013, "Slow consumer")
    assert _metric(node, "active_sessions") == 0


def test_a_source_is_not_read_while_its_message_is_under_way(node: Running, ending: ExitStack) -> None:
    _open(node, ending, "unread", "server", receive_buffer=4_096)
    client = _open(node, ending, "unread", "client")
    client.send(b"z" * (8 * MIB))
    client.sock.settimeout(0)
    sent = 0
    with suppress(BlockingIOError):
        for _ in range(1_000):
            sent += client.sock.send(framed(BINARY, b"z" * 65_000))
    assert sent < 16 * MIB


def test_more_than_the_budget_on_its_way_closes_who_sends_it(
    start_node: StartNode, ending: ExitStack
) -> None:
    node = start_node(ingress_budget_bytes=LARGEST * 4)
    for number in range(2):
        _open(node, ending, f"budget-{number}", "server", receive_buffer=4_096)
    first, second = (_open(node, ending, f"budget-{number}", "client") for number in range(2))
    first.send(b"z" * (24 * MIB))
    _wait_until(lambda: _metric(node, "inflight_delivery_bytes") == 24 * MIB)
    _in_background(lambda: second.send(b"z" * (24 * MIB)))
    assert second.closed() == Closed(1013, "Relay ingress capacity")


def test_what_the_dead_held_is_given_back(node: Running, ending: ExitStack) -> None:
    stalled = _open(node, ending, "dead", "server", receive_buffer=4_096)
    client = _open(node, ending, "dead", "client")
    client.send(b"z" * (8 * MIB))
    _wait_until(lambda: _metric(node, "ingress_reserved_bytes") >= 8 * MIB * 4)
    for each in (client, stalled):
        each.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        each.sock.close()
    _wait_until(lambda: _metric(node, "ingress_reserved_bytes") == 0)
    _wait_until(lambda: _metric(node, "active_websockets") == 0)
    assert _metric(node, "backpressured_sources") == 0
    assert _metric(node, "active_sessions") == 0


def test_a_control_that_takes_nothing_is_shed(start_node: StartNode, ending: ExitStack) -> None:
    node = start_node(control_queue_bytes=65_536, transport_send_timeout_ms=30_500)
    path = ws_path("deaf", "server")
    control = ending.enter_context(Peer.open(node.port, path, receive_buffer=2_048))
    control.message()
    pings = framed(TEXT, b'{"type":"ping"}') * 10_000
    _in_background(lambda: _for_ever(control, pings))
    _wait_until(lambda: _metric(node, "slow_consumer_disconnects_total") == 1, 30)
    _wait_until(lambda: _metric(node, "active_websockets") == 0, 30)


def test_a_stalled_reader_with_ten_senders_stays_within_the_budgets_memory(
    start_node: StartNode, ending: ExitStack
) -> None:
    node = start_node()
    base = _peak_bytes(node)
    _open(node, ending, "stalled", "server", receive_buffer=4_096)
    clients = [_open(node, ending, "stalled", "client") for _ in range(10)]
    for each in clients:
        _in_background(partial(each.send, b"z" * LARGEST))
    _wait_until(lambda: _metric(node, "inflight_delivery_bytes") > 0, 20)
    _wait_until(lambda: _quiet(node), 20)
    assert _peak_bytes(node) < base + 536_870_912 // 4 + 64 * MIB


def test_pongs_that_nobody_takes_pile_up_no_more_than_one(start_node: StartNode, ending: ExitStack) -> None:
    node = start_node()
    client = _open(node, ending, "pings", "client", receive_buffer=4_096)
    base = _metric(node, "process_memory_bytes")
    for number in range(100):
        client.sock.sendall(framed(PING, b"p" * 125) * 1_000 + framed(PING, b"%d" % number))
    _wait_until(lambda: _quiet(node))
    assert _metric(node, "process_memory_bytes") < base + 6 * MIB
    client.frame(CLOSE, b"\x03\xe8")
    assert client.closed() == Closed(1000)
    assert client.pongs[-1] == b"99"


def test_what_has_gone_through_is_held_by_nobody(start_node: StartNode, ending: ExitStack) -> None:
    node = start_node()
    base = _metric(node, "process_memory_bytes")
    for number in range(6):
        data = _open(node, ending, f"through-{number}", "server")
        client = _open(node, ending, f"through-{number}", "client")
        sending = _in_background(partial(client.send, b"z" * (24 * MIB)))
        assert len(data.message().data) == 24 * MIB
        sending.join(10)
    _wait_until(lambda: _metric(node, "process_memory_bytes") < base + 48 * MIB)


def test_above_the_watermark_nobody_is_admitted_and_the_blocked_are_shed_first(
    start_node: StartNode, ending: ExitStack
) -> None:
    node = start_node(memory_watermark_bytes=120 * MIB)
    quiet = _open(node, ending, "quiet", "client")
    stalled = [_open(node, ending, f"full-{n}", "server", receive_buffer=4_096) for n in range(3)]
    clients = [_open(node, ending, f"full-{n}", "client") for n in range(3)]
    for each in clients:
        _in_background(partial(each.send, b"z" * LARGEST))
    _wait_until(lambda: _metric(node, "memory_pressure_disconnects_total") >= 1, 20)
    _wait_until(lambda: request(node.port, "/ready").status == 200, 20)
    assert quiet.silent(0.2)
    assert len(stalled) == 3


def test_under_pressure_a_request_is_told_so(start_node: StartNode) -> None:
    node = start_node(memory_watermark_bytes=MIB)
    _wait_until(lambda: request(node.port, "/ready").status == 503)
    with pytest.raises(RefusedError) as refused:
        Peer.open(node.port, ws_path("s", "server"))
    assert (refused.value.answer.status, refused.value.answer.body) == (503, "Relay memory pressure")


def _quiet(node: Running) -> bool:
    """Say whether nothing more comes in."""
    before = _metric(node, "ingress_reserved_bytes")
    threading.Event().wait(0.3)
    return _metric(node, "ingress_reserved_bytes") == before


def _send_all(peer: Peer, messages: Iterable[str | bytes]) -> None:
    for each in messages:
        peer.send(each)


def _for_ever(peer: Peer, data: bytes) -> None:
    while True:
        peer.sock.sendall(data)


def _peak_bytes(node: Running) -> int:
    status = Path(f"/proc/{node.process.pid}/status").read_text(encoding="ascii")
    (line,) = [each for each in status.splitlines() if each.startswith("VmHWM")]
    return int(line.split()[1]) * 1024
