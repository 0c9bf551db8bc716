"""What becomes of the connections to the store that rested too long."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Barrier, Thread

import boto3
import pytest

from chalicelib.adapters.aws_json import TRIES, JsonService

AT_ONCE = 3 * TRIES


class Store(ThreadingHTTPServer):
    """Answers `{}` to calls once so many are there, and hangs up on everybody when asked to."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.together = Barrier(AT_ONCE)
        self.callers: list[socket.socket] = []

    def hang_up(self) -> None:
        self.together = Barrier(1)
        for each in self.callers:
            each.shutdown(socket.SHUT_RDWR)


class Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Store

    def setup(self) -> None:
        super().setup()
        self.server.callers.append(self.connection)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.together.wait(10)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Say nothing."""


@pytest.fixture
def store() -> Iterator[Store]:
    with Store() as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


def test_a_store_that_hung_up_on_many_resting_connections_is_asked_over_a_new_one(store: Store) -> None:
    client = boto3.client(
        "dynamodb",
        endpoint_url=f"http://127.0.0.1:{store.server_port}",
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    service = JsonService(client)
    with ThreadPoolExecutor(AT_ONCE) as callers:
        list(callers.map(lambda _: service.call("ListTables"), range(AT_ONCE)))
    assert len(store.callers) == AT_ONCE
    store.hang_up()
    assert service.call("ListTables") == {}
    assert len(store.callers) == AT_ONCE + 1
    service.close()
