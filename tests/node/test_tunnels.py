"""Tunnels at the node, from outside: listeners that die, lie and hang, tickets of others, and many calls."""

import asyncio
import json
import socket
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from typing import Any

import pytest

from chalicelib.adapters.http.loop import BackgroundLoop
from chalicelib.adapters.http.sender import GuardedSender, SendLimits
from chalicelib.adapters.http.transport import GuardedTransport, Timeouts
from chalicelib.adapters.http.tunnelled import TunnelledSender, frame_limits
from chalicelib.domain.outcome import Fault, Reply
from chalicelib.domain.request import Request
from chalicelib.domain.secret import Secret
from chalicelib.domain.target import Policy
from tests.node.conftest import Running, StartNode
from tests.node.paseo import Closed, Peer, RefusedError, ws_path

NAME = "tenant/ep_1"
OPEN = Policy(require_https=False, allow_private=True, allowed_ports=None)
TOTAL_S = 1.0
ANSWERED = {"status": 200, "headers": []}


@pytest.fixture(scope="module")
def node(start_node: StartNode) -> Running:
    return start_node(module="tests.node.ticketed", open="true")


@pytest.fixture
def ending() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def calling() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(100) as pool:
        yield pool


@pytest.fixture
def listener(node: Running, ending: ExitStack) -> Peer:
    return _listen(node, ending)


def _listen(node: Running, ending: ExitStack, token: str = "tt_one") -> Peer:
    return ending.enter_context(Peer.open(node.port, "/tunnel", headers={"Authorization": f"Bearer {token}"}))


def _frame(head: object, body: bytes = b"") -> bytes:
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return struct.pack("!I", len(text)) + text + body


def _unframed(data: bytes) -> tuple[dict[str, Any], bytes]:
    (size,) = struct.unpack_from("!I", data)
    return json.loads(data[4 : 4 + size]), data[4 + size :]


def _call(
    node: Running, token: str = "tt_function", body: bytes = b"", name: str = NAME
) -> tuple[int, bytes]:
    with closing(HTTPConnection("127.0.0.1", node.port, timeout=10)) as http:
        http.request("POST", f"/tunnel/{name}", _frame({}, body), {"Authorization": f"Bearer {token}"})
        answer = http.getresponse()
        return answer.status, answer.read()


def _given(listener: Peer) -> tuple[int, bytes]:
    head, body = _unframed(listener.message().data)
    return head["id"], body


@pytest.mark.parametrize(
    "token",
    ["", "tt_nonsense", "tt_function", "tt_one\u00e4", "tt_one tt_one"],
    ids=lambda each: each or "none",
)
def test_without_a_listeners_ticket_nobody_listens(node: Running, token: str) -> None:
    with pytest.raises(RefusedError) as refused:
        Peer.open(node.port, "/tunnel", headers={"Authorization": f"Bearer {token}"})
    assert (refused.value.answer.status, refused.value.answer.body) == (401, "no ticket")


@pytest.mark.parametrize("token", ["", "tt_nonsense", "tt_one", "tt_other"])
@pytest.mark.usefixtures("listener")
def test_without_a_functions_ticket_nobody_calls(node: Running, token: str) -> None:
    assert _call(node, token) == (401, b"no ticket")


def test_a_ticket_opens_the_tunnel_it_names_and_no_other(node: Running, ending: ExitStack) -> None:
    _listen(node, ending, "tt_other")
    assert _call(node) == (503, b"no listener")


def test_a_tunnel_is_no_session_of_the_same_name(node: Running, ending: ExitStack, listener: Peer) -> None:
    path = ws_path(f"tunnel:{NAME}", "client", "1")
    ending.enter_context(Peer.open(node.port, path)).send("to whom?")
    assert listener.silent(0.2)


def test_a_call_gets_the_answer_of_its_number_and_nothing_else(
    node: Running, listener: Peer, calling: ThreadPoolExecutor
) -> None:
    first = calling.submit(_call, node, body=b"first")
    number, body = _given(listener)
    assert body == b"first"
    listener.send("text")
    for wrong in (b"", b"\xff\xff\xff\xff{}", _frame(b"nonsense"), _frame([]), _frame({})):
        listener.send(wrong)
    for nobody in (number + 1, -1, str(number), None, [number], 1e308):
        listener.send(_frame({"id": nobody}, b"of nobody"))
    right = _frame({"id": number, **ANSWERED}, b"right")
    listener.send(right)
    listener.send(_frame({"id": number, **ANSWERED}, b"twice"))
    assert first.result(10) == (200, right)
    second = calling.submit(_call, node, body=b"second")
    number, _ = _given(listener)
    listener.send(_frame({"id": number}))
    assert second.result(10) == (200, _frame({"id": number}))


def test_a_hundred_calls_at_once_are_answered_in_whatever_order(
    node: Running, listener: Peer, calling: ThreadPoolExecutor
) -> None:
    calls = {str(number).encode(): calling.submit(_call, node, body=b"%d" % number) for number in range(100)}
    given = [_given(listener) for _ in calls]
    for number, body in reversed(given):
        listener.send(_frame({"id": number}, body))
    for body, call in calls.items():
        status, answer = call.result(10)
        assert (status, _unframed(answer)[1]) == (200, body)


@pytest.mark.parametrize("how", ["closes", "dies", "is replaced", "says too much"])
def test_a_listener_that_goes_in_the_middle_is_told_as_lost(
    node: Running, ending: ExitStack, listener: Peer, calling: ThreadPoolExecutor, how: str
) -> None:
    call = calling.submit(_call, node)
    _given(listener)
    match how:
        case "closes":
            listener.close()
        case "dies":
            listener.sock.close()
        case "is replaced":
            _listen(node, ending, "tt_again")
            assert listener.closed() == Closed(1008, "Another listener has taken over this tunnel")
        case _:
            listener.send(bytes((2 << 20) + 1))
            assert listener.closed().code == 1009
    assert call.result(10) == (502, b"listener lost")


def test_a_call_that_is_too_large_ends_its_connection_alone(
    node: Running, listener: Peer, calling: ThreadPoolExecutor
) -> None:
    with pytest.raises(OSError):  # noqa: PT011 - reset, closed or refused to be written: whichever comes first
        _call(node, body=bytes((2 << 20) + 1))
    largest = calling.submit(_call, node, body=bytes((2 << 20) - 100))
    number, body = _given(listener)
    assert len(body) == (2 << 20) - 100
    listener.send(_frame({"id": number}))
    assert largest.result(10)[0] == 200


def test_a_listener_that_takes_nothing_is_called_no_more_for_now(
    node: Running, ending: ExitStack, calling: ThreadPoolExecutor
) -> None:
    headers = {"Authorization": "Bearer tt_one"}
    deaf = ending.enter_context(Peer.open(node.port, "/tunnel", headers=headers, receive_buffer=4_096))
    calls = [calling.submit(_call, node, body=bytes(1 << 20)) for _ in range(20)]
    first = next(as_completed(calls, timeout=10))
    assert first.result() == (503, b"listener busy")
    deaf.sock.close()
    assert {each.result(10)[0] for each in calls} == {502, 503}


def test_whoever_calls_and_goes_harms_nobody(
    node: Running, listener: Peer, calling: ThreadPoolExecutor
) -> None:
    frame = _frame({})
    head = f"POST /tunnel/{NAME} HTTP/1.1\r\nHost: r\r\nAuthorization: Bearer tt_function\r\n"
    with socket.create_connection(("127.0.0.1", node.port), 10) as sock:
        sock.sendall(f"{head}Content-Length: {len(frame)}\r\n\r\n".encode() + frame)
        gone, _ = _given(listener)
    next_call = calling.submit(_call, node, body=b"next")
    number, _ = _given(listener)
    listener.send(_frame({"id": gone}))
    listener.send(_frame({"id": number}, b"here"))
    assert next_call.result(10) == (200, _frame({"id": number}, b"here"))


def test_calls_in_a_row_are_answered_one_after_the_other(node: Running, listener: Peer) -> None:
    frame = _frame({})
    head = f"POST /tunnel/{NAME} HTTP/1.1\r\nHost: r\r\nAuthorization: Bearer tt_function\r\n"
    one = f"{head}Content-Length: {len(frame)}\r\n\r\n".encode() + frame
    with socket.create_connection(("127.0.0.1", node.port), 10) as sock:
        sock.sendall(one * 3)
        for _ in range(3):
            number, _ = _given(listener)
            assert listener.silent(0.1)
            listener.send(_frame({"id": number}))
        found = b""
        while found.count(b"HTTP/1.1 200") < 3:
            found += sock.recv(65_536)


@pytest.mark.parametrize(
    "head, outcome",
    [
        (ANSWERED, 200),
        ({**ANSWERED, "ms": 10**50}, 200),
        (b'{"status":200,"headers":[],"ms":1e999}', 200),
        ({**ANSWERED, "headers": [["server", "\ud800"]] * 3_000}, 200),
        ({"fault": "timeout", "detail": "\ud800" * 9_999}, Fault.TIMEOUT),
        ({"fault": "connect_failed"}, Fault.CONNECT_FAILED),
        *(
            (head, Fault.PROTOCOL_ERROR)
            for head in (
                {**ANSWERED, "status": 99_999},
                {**ANSWERED, "status": 10**40},
                {**ANSWERED, "status": 101},
                {**ANSWERED, "status": "200"},
                {**ANSWERED, "ms": "soon"},
                b'{"status":1e999,"headers":[]}',
                b'{"status":200,"headers":[],"ms":NaN}',
                {"status": 200},
                {"status": 200, "headers": {"a": "b"}},
                {"status": 200, "headers": 7},
                {"fault": "token_failed"},
                {"fault": "refused"},
                {"fault": ["timeout"]},
                {"fault": None},
                b"{" * 9_999,
            )
        ),
    ],
)
def test_whatever_a_listener_answers_is_an_outcome_that_can_be_stored(
    node: Running,
    listener: Peer,
    calling: ThreadPoolExecutor,
    head: object,
    outcome: int | Fault,
) -> None:
    sent = calling.submit(_sent, node.port)
    number, _ = _given(listener)
    if isinstance(head, dict):
        head = {"id": number, **head}
    elif isinstance(head, bytes) and head.startswith(b'{"'):
        head = b'{"id":%d,' % number + head[1:]
    else:
        listener.send(_frame(head))
        head = {"id": number}
    listener.send(_frame(head))
    reply = sent.result(10)
    assert not reply.unheard
    assert (reply.status or reply.fault) == outcome
    assert 0 <= reply.first_byte_ms <= 3_600_000
    assert len(reply.headers) <= 5
    json.dumps([reply.headers, reply.detail], ensure_ascii=False).encode()


def test_a_listener_that_never_answers_is_a_timeout(
    node: Running, listener: Peer, calling: ThreadPoolExecutor
) -> None:
    sent = calling.submit(_sent, node.port)
    _given(listener)
    assert sent.result(10).fault is Fault.TIMEOUT


def test_where_nobody_listens_or_the_ticket_is_not_taken_nothing_was_tried(node: Running) -> None:
    for reply in (_sent(node.port), _sent(node.port, ticket="tt_nonsense")):
        assert (reply.unheard, reply.unsent, reply.status, reply.fault) == (True, True, None, None)


def test_what_a_proxy_says_of_a_node_that_is_away_is_nothing_of_the_endpoint(
    calling: ThreadPoolExecutor,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        sent = calling.submit(_sent, proxy.getsockname()[1])
        near, _ = proxy.accept()
        with near:
            near.recv(65_536)
            near.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 11\r\n\r\nBad Gateway")
            assert sent.result(10).unheard


def test_a_listener_that_goes_is_no_answer_of_the_endpoint(
    node: Running, listener: Peer, calling: ThreadPoolExecutor
) -> None:
    sent = calling.submit(_sent, node.port)
    _given(listener)
    listener.sock.close()
    reply = sent.result(10)
    assert (reply.unheard, reply.status, reply.fault) == (False, None, Fault.NO_RESPONSE)


def test_a_node_that_is_killed_in_the_middle_leaves_an_attempt_that_may_have_arrived(
    start_node: StartNode, ending: ExitStack, calling: ThreadPoolExecutor
) -> None:
    node = start_node(module="tests.node.ticketed")
    listener = _listen(node, ending)
    sent = calling.submit(_sent, node.port)
    _given(listener)
    node.process.kill()
    reply = sent.result(10)
    assert (reply.unheard, reply.status, reply.fault) == (False, None, Fault.NO_RESPONSE)
    assert _sent(node.port).unheard


def _sent(port: int, ticket: str = "tt_function") -> Reply:
    """Send a request as functions do."""

    async def run() -> Reply:
        transport = GuardedTransport(OPEN, Timeouts())
        limits = SendLimits(total_timeout_s=TOTAL_S)
        direct = GuardedSender(transport, limits, BackgroundLoop())
        url = f"http://127.0.0.1:{port}"
        sender = TunnelledSender(direct, direct.limited(frame_limits(limits)), url, lambda: Secret(ticket))
        try:
            return await sender.send(Request("tunnel:", (("webhook-id", "d"),), b"{}", tunnel=NAME))
        finally:
            await transport.aclose()

    return asyncio.run(run())
