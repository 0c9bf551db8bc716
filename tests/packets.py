"""Notes whatever this process looks up, connects to or sends to, so that a test can say: nothing left."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_EVENTS = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
}
"""What the interpreter tells of, and which of its arguments says whereto."""
_WATCHERS: list[list[str]] = []
_HOOKED: list[bool] = []


@contextmanager
def packets_leaving() -> Iterator[list[str]]:
    """Give what leaves while the block runs, as `event whereto`. Of any thread, through whatever code."""
    if not _HOOKED:
        _HOOKED.append(True)
        sys.addaudithook(_hook)
    noted: list[str] = []
    _WATCHERS.append(noted)
    try:
        yield noted
    finally:
        _WATCHERS.remove(noted)


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    """Note an event for whoever watches; an audit hook stays for as long as its process lives."""
    if _WATCHERS and event in _EVENTS:
        for each in _WATCHERS:
            each.append(f"{event} {arguments[_EVENTS[event]]}")
