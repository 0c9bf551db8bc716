"""Sessions: which sockets belong together, where a message goes, and what coming and going means. No I/O.

Sockets are opaque here; what is to be done is returned as values, in order. Moments are monotonic seconds.
"""

import json
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from chalicelib.node.door import Asked, Role

P = TypeVar("P", bound=Hashable)

POLICY = 1008
GOING_AWAY = 1001
INTERNAL = 1011
RESTART = 1012
TRY_AGAIN = 1013

REPLACED = "Replaced by new connection"
SERVER_GONE = "Server disconnected"
CLIENT_GONE = "Client disconnected"
UNRESPONSIVE = "Control unresponsive"


@dataclass(frozen=True, slots=True)
class Tell(Generic[P]):
    """Send a notice to a control."""

    to: P
    text: str


@dataclass(frozen=True, slots=True)
class Close(Generic[P]):
    """Close a socket, which has left its session already."""

    of: P
    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class Replace(Generic[P]):
    """Close a socket whose place another has taken; what has not begun to be written to it goes there."""

    of: P
    by: P


@dataclass(frozen=True, slots=True)
class Attached:
    """A data socket is there now: what waited for it may go."""

    connection_id: str


Effect = Tell[P] | Close[P] | Replace[P] | Attached


class SessionV1(Generic[P]):
    """Version 1: one socket a role; messages go to the other role, or nowhere."""

    def __init__(self) -> None:
        """Have nobody."""
        self._of: dict[Role, P] = {}

    @property
    def empty(self) -> bool:
        """Say whether nobody is left."""
        return not self._of

    def join(self, peer: P, asked: Asked, _now: float) -> list[Effect[P]]:
        """Take a socket in; the one it replaces closes."""
        older = self._of.get(asked.role)
        self._of[asked.role] = peer
        return [] if older is None else [Replace(older, peer)]

    def leave(self, peer: P, asked: Asked) -> list[Effect[P]]:
        """Let a socket go."""
        if self._of.get(asked.role) == peer:
            del self._of[asked.role]
        return []

    def route(self, asked: Asked) -> tuple[P, ...]:
        """Say to whom a message of a socket goes."""
        other = Role.CLIENT if asked.role is Role.SERVER else Role.SERVER
        return (self._of[other],) if other in self._of else ()

    def tick(self, _now: float, _again_s: float, _unresponsive_s: float) -> list[Effect[P]]:
        """Do nothing: version 1 has no timers."""
        return []

    def peers(self) -> Iterator[P]:
        """Give everybody."""
        yield from self._of.values()


@dataclass(slots=True)
class _Waiting(Generic[P]):
    """A connection id that has clients and no data socket, since when, and which control was told again."""

    since: float
    told: P | None = None


@dataclass(slots=True)
class _Line(Generic[P]):
    """One connection id: its data socket and its clients, in the order they came."""

    data: P | None = None
    clients: dict[P, None] = field(default_factory=dict)


class SessionV2(Generic[P]):
    """Version 2: one control, and for each connection id one data socket and any number of clients."""

    def __init__(self) -> None:
        """Have nobody."""
        self._control: P | None = None
        self._lines: dict[str, _Line[P]] = {}
        self._waiting: dict[str, _Waiting[P]] = {}

    @property
    def empty(self) -> bool:
        """Say whether nobody is left."""
        return self._control is None and not self._lines

    def join(self, peer: P, asked: Asked, now: float) -> list[Effect[P]]:
        """Take a socket in, replace the one whose place it takes, and tell the control."""
        if asked.role is Role.CLIENT:
            return self._client_joins(peer, asked.connection_id, now)
        if asked.connection_id:
            return self._data_joins(peer, asked.connection_id)
        return self._control_joins(peer, now)

    def leave(self, peer: P, asked: Asked) -> list[Effect[P]]:
        """Let a socket go, and close those that are nothing without it; twice is once."""
        if asked.role is Role.SERVER and not asked.connection_id:
            if self._control == peer:
                self._control = None
            return []
        line = self._lines.get(asked.connection_id)
        if line is None:
            return []
        if asked.role is Role.CLIENT:
            return self._client_leaves(peer, asked.connection_id, line)
        return self._data_leaves(peer, asked.connection_id, line)

    def route(self, asked: Asked) -> tuple[P, ...] | None:
        """Say to whom a message of a socket goes; None: it has to wait for its data socket."""
        line = self._lines.get(asked.connection_id)
        if asked.role is Role.SERVER:
            return tuple(line.clients) if line else ()
        return None if line is None or line.data is None else (line.data,)

    def tick(self, now: float, again_s: float, unresponsive_s: float) -> list[Effect[P]]:
        """Tell the control again of clients that wait long, and close one that does nothing about it."""
        effects: list[Effect[P]] = []
        for waiting in self._waiting.values():
            control = self._control
            if control is None or now < waiting.since + again_s:
                continue
            if waiting.told != control:
                effects += [] if effects else [self._sync(control)]
                waiting.since, waiting.told = now - again_s, control
            elif now >= waiting.since + again_s + unresponsive_s:
                self._control = None
                return [Close(control, INTERNAL, UNRESPONSIVE)]
        return effects

    def peers(self) -> Iterator[P]:
        """Give everybody."""
        if self._control is not None:
            yield self._control
        for line in self._lines.values():
            if line.data is not None:
                yield line.data
            yield from line.clients

    def _control_joins(self, peer: P, now: float) -> list[Effect[P]]:
        older, self._control = self._control, peer
        for waiting in self._waiting.values():
            waiting.since, waiting.told = now, None
        effects: list[Effect[P]] = [] if older is None else [Replace(older, peer)]
        return [*effects, self._sync(peer)]

    def _data_joins(self, peer: P, connection_id: str) -> list[Effect[P]]:
        line = self._lines.setdefault(connection_id, _Line())
        older, line.data = line.data, peer
        self._waiting.pop(connection_id, None)
        effects: list[Effect[P]] = [] if older is None else [Replace(older, peer)]
        return [*effects, Attached(connection_id)]

    def _client_joins(self, peer: P, connection_id: str, now: float) -> list[Effect[P]]:
        line = self._lines.setdefault(connection_id, _Line())
        line.clients[peer] = None
        if line.data is None:
            self._waiting.setdefault(connection_id, _Waiting(now))
        return self._notice("connected", connection_id)

    def _client_leaves(self, peer: P, connection_id: str, line: _Line[P]) -> list[Effect[P]]:
        if peer not in line.clients:
            return []
        del line.clients[peer]
        if line.clients:
            return []
        self._lines.pop(connection_id)
        self._waiting.pop(connection_id, None)
        effects: list[Effect[P]] = [] if line.data is None else [Close(line.data, GOING_AWAY, CLIENT_GONE)]
        return [*effects, *self._notice("disconnected", connection_id)]

    def _data_leaves(self, peer: P, connection_id: str, line: _Line[P]) -> list[Effect[P]]:
        if line.data != peer:
            return []
        self._lines.pop(connection_id)
        effects: list[Effect[P]] = [Close(each, RESTART, SERVER_GONE) for each in line.clients]
        return [*effects, *(self._notice("disconnected", connection_id) if line.clients else [])]

    def _sync(self, control: P) -> Tell[P]:
        ids = [name for name, line in self._lines.items() if line.clients]
        return Tell(control, _notice("sync", connectionIds=ids))

    def _notice(self, kind: str, connection_id: str) -> list[Effect[P]]:
        if self._control is None:
            return []
        return [Tell(self._control, _notice(kind, connectionId=connection_id))]


Session = SessionV1[P] | SessionV2[P]


def pong_to(text: bytes, now_ms: int) -> str | None:
    """Answer what a control says; only a ping has an answer."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return None
    pinged = isinstance(said, dict) and said.get("type") == "ping"
    return _notice("pong", ts=now_ms) if pinged else None


def _notice(kind: str, **about: object) -> str:
    return json.dumps({"type": kind, **about}, separators=(",", ":"), ensure_ascii=False)
