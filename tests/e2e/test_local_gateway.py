"""The API's server over real sockets: exact bytes, every header, no stalls, and a stop that drops nothing."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from chalice.app import Chalice, Response

from infra.local.gateway import BODY_LIMIT, Gateway
from infra.local.wsgi_server import Server

EVERY_BYTE = bytes(range(256)) * 5


class Api:
    """An app that echoes, behind a gateway on a port of its own."""

    def __init__(self) -> None:
        self.app = Chalice(app_name="stub", configure_logs=False)
        self.app.api.binary_types = ["*/*"]
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.app.route("/echo", methods=["POST", "GET"], content_types=["*/*"])(self.echo)
        self.app.route("/event", methods=["GET", "POST"], content_types=["*/*"])(self.event)
        self.app.route("/slow", methods=["GET"])(self.slow)
        self.server = Server(Gateway(self.app), port=0, threads=4)
        self.thread = threading.Thread(target=self.server.run)

    def echo(self) -> Response:
        request: Any = self.app.current_request
        return Response(request.raw_body, headers={"Content-Type": "application/octet-stream"})

    def event(self) -> object:
        request: Any = self.app.current_request
        return request.to_original_event()

    def slow(self) -> Response:
        self.begun.set()
        self.go_on.wait(10)
        return Response(EVERY_BYTE, headers={"Content-Type": "application/octet-stream"})

    @contextmanager
    def running(self) -> Iterator["Api"]:
        self.thread.start()
        try:
            yield self
        finally:
            self.go_on.set()
            self.server.stop()
            self.thread.join(15)

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=10)

    def raw(self, sent: bytes) -> bytes:
        """Send bytes and read until the other side closes."""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=10) as peer:
            peer.sendall(sent)
            parts = []
            while part := peer.recv(65536):
                parts.append(part)
            return b"".join(parts)


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with Api().running() as running:
        yield running


def test_bytes_come_back_as_they_were_sent(api: Api) -> None:
    connection = api.connect()
    for body in (EVERY_BYTE, b"", b"\xff" * 1_000_000):
        connection.request("POST", "/echo", body=body, headers={"Accept": "*/*"})
        assert connection.getresponse().read() == body
    connection.close()


def test_a_chunked_body_is_one_body(api: Api) -> None:
    connection = api.connect()
    parts = iter([b"one", b"", b"\x00two", EVERY_BYTE])
    connection.request("POST", "/echo", body=parts, headers={"Accept": "*/*"}, encode_chunked=True)
    assert connection.getresponse().read() == b"one\x00two" + EVERY_BYTE
    connection.close()


def test_headers_keep_their_case_and_repeat(api: Api) -> None:
    answer = api.raw(
        b"GET /event?a=%2F HTTP/1.1\r\nHost: x\r\nAccept: */*\r\nX-CaSe: 1\r\nX-Twice: a\r\nX-Twice: b, c\r\n"
        b"Connection: close\r\n\r\n"
    )
    event = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert event["multiValueHeaders"]["X-Twice"] == ["a", "b, c"]
    assert event["headers"]["X-CaSe"] == "1"
    assert event["queryStringParameters"] == {"a": "/"}


def test_an_absolute_target_is_a_path(api: Api) -> None:
    answer = api.raw(
        b"GET http://elsewhere/event?x=1 HTTP/1.1\r\nHost: x\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    )
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["path"] == "/event"


def test_requests_on_one_connection_do_not_stall(api: Api) -> None:
    connection = api.connect()
    began = time.monotonic()
    for _ in range(50):
        connection.request("POST", "/echo", body=b"x" * 100, headers={"Accept": "*/*"})
        connection.getresponse().read()
    assert time.monotonic() - began < 50 * 0.04
    connection.close()


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_the_limit_is_a_413_that_arrives(api: Api, *, chunked: bool) -> None:
    connection = api.connect()
    body: Any = iter([bytes(1_000_000)] * 11) if chunked else bytes(BODY_LIMIT + 1)
    connection.request("POST", "/echo", body=body, headers={"Accept": "*/*"}, encode_chunked=chunked)
    response = connection.getresponse()
    assert response.status == 413
    assert json.loads(response.read())["code"] == "body_too_large"
    connection.close()


@pytest.mark.parametrize(
    "sent, status",
    [
        pytest.param(b"GET /echo HTTP/1.1\r\nno colon here\r\n\r\n", 400, id="header without colon"),
        pytest.param(b"POST /echo HTTP/1.1\r\nContent-Length: many\r\n\r\n", 400, id="length that is none"),
        pytest.param(b"POST /echo HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501, id="unknown coding"),
        pytest.param(
            b"GET /echo HTTP/1.1\r\nConnection: close\r\nX: " + b"x" * 20_000 + b"\r\n\r\n",
            431,
            id="long header",
        ),
    ],
)
def test_what_is_no_request_gets_a_problem(api: Api, sent: bytes, status: int) -> None:
    head, _, body = api.raw(sent).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.")
    assert b" %d " % status in head.split(b"\r\n")[0]
    assert b"application/problem+json" in head
    assert json.loads(body)["status"] == status


def test_a_head_request_is_answered_without_a_body(api: Api) -> None:
    answer = api.raw(b"HEAD /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert (head.split(b"\r\n")[0], body) == (b"HTTP/1.1 405 Method Not Allowed", b"")


def test_stopping_answers_what_was_begun_and_takes_nothing_more() -> None:
    with Api().running() as api:
        connection = api.connect()
        connection.request("GET", "/slow", headers={"Accept": "*/*"})
        assert api.begun.wait(5)
        api.server.stop()
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            with socket.socket() as late:
                if late.connect_ex(("127.0.0.1", api.server.port)) != 0:
                    break
        else:
            pytest.fail("it still takes connections")
        api.go_on.set()
        assert connection.getresponse().read() == EVERY_BYTE
        api.thread.join(5)
        assert not api.thread.is_alive()
        connection.close()
