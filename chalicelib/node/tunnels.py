"""Tunnels at the node: listeners on WebSockets, calls over HTTP, and each call's answer brought back.

A tunnel has one listener; a newer one takes over. Tickets are looked at once and remembered until they end.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

from websockets.frames import Opcode

from chalicelib.application.ports import Elsewhere, Unavailable
from chalicelib.domain import tunnel
from chalicelib.domain.tunnel import Ticket
from chalicelib.node.calls import CLOSING, Call, CallLine
from chalicelib.node.peer import Peer, framed
from chalicelib.node.sessions import POLICY

TAKEN_OVER = "Another listener has taken over this tunnel"
ANSWER_WITHIN_S = 60.0
PING_EVERY_S = 15.0
SILENT_S = 40.0
NO_LISTENER, BUSY = b"no listener", b"listener busy"
_QUEUED_MAX_BYTES = 8 << 20
_KNOWN_MAX = 10_000


class Tickets(Protocol):
    """What the node asks of the application about tunnels; calls block."""

    def opened(self, text: str) -> Ticket | None:
        """Give what a ticket opens."""

    def came(self, ticket: Ticket) -> None:
        """Set going what waited for a listener."""


@dataclass(slots=True)
class _Listener:
    peer: Peer
    heard: float
    pinged: float
    waiting: dict[int, asyncio.Future[bytes]] = field(default_factory=dict)


class Tunnels:
    """All tunnels of one node."""

    def __init__(
        self, tickets: Tickets, find: Callable[[str], Awaitable[Elsewhere | None]], header: str
    ) -> None:
        """Look at tickets there, find other owners by this, and name them in this header."""
        self._tickets = tickets
        self._find = find
        self._header = header
        self._listeners: dict[str, _Listener] = {}
        self._known: dict[str, Ticket] = {}
        self._numbers = count(1)
        self._tasks: set[asyncio.Task[None]] = set()

    async def opened(self, token: str) -> Ticket | None:
        """Give what a ticket opens, asking the store once for each until it ends; raises Unavailable."""
        known = self._known.get(token)
        if known is not None and known.until_ms > time.time_ns() // 1_000_000:
            return known
        # This machine's clock may be wrong: that a ticket has ended the store's time says.
        found = await asyncio.to_thread(self._tickets.opened, token)
        if found is None:
            self._known.pop(token, None)
            return None
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        self._known[token] = found
        return found

    def has(self, name: str) -> bool:
        """Say whether somebody listens at a tunnel here."""
        return name in self._listeners

    def join(self, peer: Peer, ticket: Ticket) -> None:
        """Take a listener in, in place of the one before, and set going what waited."""
        older = self._listeners.get(ticket.name)
        now = time.monotonic()
        self._listeners[ticket.name] = _Listener(peer, now, now)
        peer.tunnel = ticket.name
        peer.wire.max_message_size = tunnel.FRAME_MAX
        if older is not None:
            self._lose(older)
            older.peer.left = True
            older.peer.close(POLICY, TAKEN_OVER)
        self._start(self._tell(ticket))

    def arrived(self, peer: Peer) -> None:
        """Bring answers to whom they are for."""
        listener = self._listeners.get(peer.tunnel)
        if listener is not None and listener.peer is peer:
            listener.heard = time.monotonic()
        while peer.inbox:
            item = peer.inbox.popleft()
            if item is None:
                self.lost(peer)
                return
            if listener is not None and listener.peer is peer and item[0] is Opcode.BINARY:
                _answered(listener, item[1])

    def lost(self, peer: Peer) -> None:
        """Let a listener go; what it had not answered is lost."""
        peer.left = True
        listener = self._listeners.get(peer.tunnel)
        if listener is not None and listener.peer is peer:
            del self._listeners[peer.tunnel]
            self._lose(listener)

    def tick(self) -> None:
        """Ask listeners whether they are there; one that has long said nothing is gone."""
        now = time.monotonic()
        for listener in list(self._listeners.values()):
            if now > listener.heard + SILENT_S:
                self.lost(listener.peer)
                listener.peer.transport.abort()
            elif now > listener.pinged + PING_EVERY_S:
                listener.pinged = now
                listener.peer.ping()

    def shut_all(self, code: int, reason: str) -> None:
        """Close every listener, for one reason."""
        for listener in list(self._listeners.values()):
            self.lost(listener.peer)
            listener.peer.close(code, reason)

    def call(self, line: CallLine, call: Call, answered: Callable[[], None]) -> None:
        """Answer a call as soon as its listener has, and those that came behind it; then say so."""
        self._start(self._answer(line, call, answered))

    async def _answer(self, line: CallLine, call: Call, answered: Callable[[], None]) -> None:
        following: Call | None = call
        while following is not None:
            status, body, headers = await self._asked(following)
            following = line.answer(status, body, headers)
        answered()

    async def _asked(self, call: Call) -> tuple[int, bytes, tuple[tuple[str, str], ...]]:
        try:
            ticket = await self.opened(call.token)
            if ticket is None or ticket.endpoint_id:
                return 401, b"no ticket", CLOSING
            listener = self._listeners.get(call.name)
            if listener is None:
                return await self._elsewhere(call.name)
            head, body = tunnel.unframed(call.frame)
        except (Unavailable, TimeoutError):
            return 503, NO_LISTENER, ()
        except tunnel.NotAFrameError:
            return 400, b"not a frame", ()
        return *await self._through(listener, head, body), ()

    async def _elsewhere(self, name: str) -> tuple[int, bytes, tuple[tuple[str, str], ...]]:
        found = await self._find(session_of(name))
        return (409, b"", ((self._header, found.target),)) if found else (503, NO_LISTENER, ())

    async def _through(self, listener: _Listener, head: dict[str, object], body: bytes) -> tuple[int, bytes]:
        raw = framed(Opcode.BINARY, tunnel.framed({**head, "id": (number := next(self._numbers))}, body))
        if listener.peer.transport.get_write_buffer_size() + len(raw) > _QUEUED_MAX_BYTES:
            return 503, BUSY
        waiting = listener.waiting[number] = asyncio.get_running_loop().create_future()
        listener.peer.write(raw)
        try:
            return 200, await asyncio.wait_for(waiting, ANSWER_WITHIN_S)
        except (TimeoutError, asyncio.CancelledError):
            return 502, tunnel.LOST
        finally:
            listener.waiting.pop(number, None)

    def _lose(self, listener: _Listener) -> None:
        for waiting in listener.waiting.values():
            waiting.cancel()

    async def _tell(self, ticket: Ticket) -> None:
        """Say that somebody listens; what is not heard is noticed a minute later."""
        try:
            await asyncio.to_thread(self._tickets.came, ticket)
        except Unavailable:
            return

    def _start(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def session_of(name: str) -> str:
    """Name a tunnel's session in the registry; a `serverId` of that name changes who owns it, no more."""
    return f"tunnel:{name}"


def _answered(listener: _Listener, frame: bytes) -> None:
    try:
        head, _ = tunnel.unframed(frame)
    except tunnel.NotAFrameError:
        return
    number = head.get("id")
    waiting = listener.waiting.get(number) if isinstance(number, int) else None
    if waiting is not None and not waiting.done():
        waiting.set_result(frame)
