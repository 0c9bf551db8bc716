"""A stand-in for the X-Ray daemon: what arrives by UDP on loopback."""

import json
import socket
from typing import Any, Self

HEADER = b'{"format":"json","version":1}'
LARGEST = 64_000


class Collector:
    """Listens on a port of its own until it is left."""

    def __enter__(self) -> Self:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(10)
        return self

    def __exit__(self, *exc: object) -> None:
        self._socket.close()

    @property
    def address(self) -> str:
        host, port = self._socket.getsockname()
        return f"{host}:{port}"

    def next(self) -> dict[str, Any]:
        """Give the next document."""
        header, _, body = self._socket.recv(LARGEST).partition(b"\n")
        assert header == HEADER
        document: dict[str, Any] = json.loads(body)
        return document

    def nothing_more(self) -> bool:
        """Say whether all that arrived has been taken: datagrams on loopback are there once they are sent."""
        self._socket.settimeout(0)
        try:
            self._socket.recv(LARGEST)
        except BlockingIOError:
            return True
        return False
