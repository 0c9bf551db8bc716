"""Calls: what functions send through tunnels, as HTTP requests to the node. Bytes to requests by h11, no I/O.

A connection may bring one call after the other; the answer of each goes back before the next is looked at.
"""

from collections.abc import Callable
from dataclasses import dataclass

import h11

from chalicelib.node.door import NO_UPGRADE, NOT_FOUND, path_of

PATH = "/tunnel/"
BODY_MAX = 2 << 20
CLOSING = (("Connection", "close"),)
"""Who has no ticket gets an answer, and no connection that is kept."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call: which tunnel, who says so, and the frame of a delivery."""

    name: str
    token: str
    frame: bytes


class CallLine:
    """The HTTP side of a connection that brings calls."""

    def __init__(self, write: Callable[[bytes], None], close: Callable[[], None]) -> None:
        """Answer by these."""
        self._write = write
        self._close = close
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=65_536)
        self._request: h11.Request | None = None
        self._body = bytearray()

    @property
    def incomplete(self) -> bool:
        """Say whether a request has begun whose end is still to come."""
        state = self._http.their_state
        return state is h11.SEND_BODY or (state is h11.IDLE and bool(self._http.trailing_data[0]))

    def receive(self, data: bytes) -> Call | None:
        """Take bytes, and give the call that they complete; what is none is answered, or ends it all."""
        try:
            self._http.receive_data(data)
            return self._next()
        except h11.RemoteProtocolError:
            self._close()
            return None

    def answer(self, status: int, body: bytes, headers: tuple[tuple[str, str], ...] = ()) -> Call | None:
        """Answer the call, and give the next if it is there already."""
        try:
            named = [("Content-Length", str(len(body))), *headers]
            self._write(self._http.send(h11.Response(status_code=status, headers=named)) or b"")
            self._write(self._http.send(h11.Data(data=body)) or b"")
            self._write(self._http.send(h11.EndOfMessage()) or b"")
            if self._http.our_state is h11.MUST_CLOSE:
                self._close()
                return None
            self._http.start_next_cycle()
            return self._next()
        except h11.ProtocolError:
            self._close()
            return None

    def _next(self) -> Call | None:
        while True:
            event = self._http.next_event()
            match event:
                case h11.Request():
                    self._request, self._body = event, bytearray()
                case h11.Data():
                    self._body += event.data
                    if len(self._body) > BODY_MAX:
                        self._close()
                        return None
                case h11.EndOfMessage():
                    return self._whole()
                case h11.ConnectionClosed():
                    self._close()
                    return None
                case _:
                    return None

    def _whole(self) -> Call | None:
        request = self._request
        target = request.target.decode("ascii", "replace") if request else ""
        if path_of(target) == "/ws":
            return self.answer(NO_UPGRADE.status, NO_UPGRADE.text.encode(), CLOSING)
        if request is None or request.method != b"POST" or not target.startswith(PATH):
            return self.answer(NOT_FOUND.status, NOT_FOUND.text.encode(), CLOSING)
        given = dict(request.headers)
        scheme, _, token = given.get(b"authorization", b"").decode("latin-1").partition(" ")
        return Call(target.removeprefix(PATH), token if scheme == "Bearer" else "", bytes(self._body))
