"""A loopback HTTP server for a WSGI application: waitress, with what the gateway needs and it lacks.

Keeps every request header as sent, answers malformed requests with problem documents, and stops without
dropping a request it has begun.
"""

import logging
import time
from contextlib import suppress
from typing import Any
from wsgiref.types import WSGIApplication

from waitress import wasyncore  # type: ignore[import-untyped]
from waitress.channel import HTTPChannel  # type: ignore[import-untyped]
from waitress.parser import HTTPRequestParser  # type: ignore[import-untyped]
from waitress.server import create_server  # type: ignore[import-untyped]
from waitress.task import ErrorTask, WSGITask  # type: ignore[import-untyped]

from infra.local.gateway import BODY_LIMIT, RAW_HEADERS, problem, too_large

HOST = "127.0.0.1"
STOP_WITHIN_S = 10.0

# More than the limit is read before it is refused, so that the answer reaches a client still sending.
_READ_LIMIT = 4 * BODY_LIMIT
_READ_HEADERS = 64 * 1024


class _Parser(HTTPRequestParser):  # type: ignore[misc] # waitress has no types
    """Remembers the headers as they were sent: waitress joins repeated ones and forgets their case."""

    raw_headers: tuple[tuple[str, str], ...] = ()

    def parse_header(self, header_plus: bytes) -> None:
        super().parse_header(header_plus)
        lines = header_plus.decode("latin-1").split("\r\n")[1:]
        pairs = (line.partition(":") for line in lines if ":" in line)
        self.raw_headers = tuple((name, value.strip(" \t")) for name, _, value in pairs)


class _Task(WSGITask):  # type: ignore[misc] # waitress has no types
    wrote_header: bool
    content_bytes_written: int

    def get_environment(self) -> dict[str, Any]:
        environ: dict[str, Any] = super().get_environment()
        environ[RAW_HEADERS] = self.request.raw_headers
        return environ

    def write(self, data: bytes) -> None:
        """Send headers and a whole body at once: waitress takes two system calls and often two segments."""
        if self.wrote_header or self.content_length != len(data) or not self.has_body:
            super().write(data)
            return
        self.wrote_header = True
        self.content_bytes_written = len(data)
        self.channel.write_soon(self.build_response_header() + data)


class _ProblemTask(ErrorTask):  # type: ignore[misc] # waitress has no types
    """Says in a problem document what waitress would say in plain text."""

    def execute(self) -> None:
        error = self.request.error
        response = too_large() if error.code == 413 else problem(error.code, "bad_request", f"{error.body}.")  # noqa: PLR2004
        self.status = f"{error.code} {error.reason}"
        self.response_headers.extend(response.headers)
        self.set_close_on_finish()
        self.content_length = len(response.body)
        self.write(response.body)


class _Channel(HTTPChannel):  # type: ignore[misc] # waitress has no types
    parser_class = _Parser
    task_class = _Task
    error_task_class = _ProblemTask


class Server:
    """One listening socket on loopback and a pool of threads; `run` serves until `stop` is called."""

    def __init__(self, application: WSGIApplication, port: int, threads: int) -> None:
        """Bind the port (0: any free one); OSError when it is taken."""
        logging.getLogger("waitress").setLevel(logging.ERROR)
        self._server = create_server(
            application,
            host=HOST,
            port=port,
            threads=threads,
            ident=None,
            connection_limit=1000,
            max_request_body_size=_READ_LIMIT,
            max_request_header_size=_READ_HEADERS,
            clear_untrusted_proxy_headers=False,
        )
        self._server.channel_class = _Channel
        self._stopping = False

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.effective_port)

    def stop(self) -> None:
        """Take no more connections; `run` returns once what was begun is answered. A signal may call it."""
        self._stopping = True
        with suppress(OSError):  # It has ended already.
            self._server.pull_trigger()

    def run(self) -> None:
        """Serve until stopped."""
        while not self._stopping:
            self._turn()
        self._server.accepting = False
        self._server.del_channel()
        self._server.socket.close()
        deadline = time.monotonic() + STOP_WITHIN_S
        while self._busy() and time.monotonic() < deadline:
            self._turn()
        wasyncore.close_all(self._server._map)  # noqa: SLF001 - as its own close() does
        self._server.task_dispatcher.shutdown(timeout=0.5)

    def _turn(self) -> None:
        wasyncore.loop(timeout=1, map=self._server._map, use_poll=True, count=1)  # noqa: SLF001 - as its own run() does

    def _busy(self) -> bool:
        channels = list(self._server.active_channels.values())
        return any(channel.requests or channel.total_outbufs_len for channel in channels)
