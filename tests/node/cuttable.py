"""A way to the store that a test can cut: a TCP forwarder of one node's own."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Cuttable:
    """Forwards connections to a port of this machine until it is cut."""

    def __init__(self, to_port: int) -> None:
        self._to_port = to_port
        self._open = True
        self._delay_s = 0.0
        self._sockets: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Let nothing through any more."""
        self._open = False
        for each in list(self._sockets):
            _end(each)

    def mend(self) -> None:
        """Let new connections through."""
        self._open = True

    def slow(self, delay_s: float) -> None:
        """Let everything through so much later from now on."""
        self._delay_s = delay_s

    def stop(self) -> None:
        """End for good."""
        self.cut()
        _end(self._server)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            if not self._open:
                _end(near)
                continue
            far = socket.create_connection(("127.0.0.1", self._to_port), 5)
            self._sockets += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pour, args=(source, sink), daemon=True).start()

    def _pour(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                threading.Event().wait(self._delay_s)
                sink.sendall(data)
        _end(source)
        _end(sink)


@contextmanager
def cuttable(to_port: int) -> Iterator[Cuttable]:
    """Run one for a while."""
    made = Cuttable(to_port)
    try:
        yield made
    finally:
        made.stop()


def _end(sock: socket.socket) -> None:
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()
