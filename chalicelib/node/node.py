"""The node: answers requests, admits WebSockets, and lets go of everything when its time is over."""

import asyncio
import ctypes
import json
import os
import signal
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path

import uvloop
from websockets.http11 import Request, Response

from chalicelib.application.ports import Elsewhere, Owners, Unavailable
from chalicelib.node import door
from chalicelib.node.calls import CallLine
from chalicelib.node.door import Asked, Refusal
from chalicelib.node.metrics import CONTENT_TYPE, Metrics
from chalicelib.node.peer import LINGER_S, Peer
from chalicelib.node.relay import Relay
from chalicelib.node.sessions import RESTART
from chalicelib.node.settings import MESSAGE_MAX_BYTES, NodeSettings
from chalicelib.node.tenure import Tenure
from chalicelib.node.tunnels import Tickets, Tunnels, session_of

MOVED = "Session owner moved"
EXPIRED = "Session expired"
_TICK_S = 0.1
_M_MMAP_THRESHOLD, _MAPPED_FROM_BYTES = -3, 1 << 18
Admission = Callable[[Response], Coroutine[None, None, None]]


@dataclass(frozen=True, slots=True)
class World:
    """What a node needs beside its settings: the registry, the tickets of tunnels, and names for clients."""

    owners: Owners
    tickets: Tickets
    new_id: Callable[[], str]


class Node:
    """One process: a listener, a relay, and its tenure."""

    def __init__(self, settings: NodeSettings, world: World) -> None:
        """Prepare; `run` serves."""
        self.settings = settings
        self.metrics = Metrics()
        self.relay = Relay(settings, self.metrics, lambda: time.time_ns() // 1_000_000)
        self.draining = settings.drain
        self._tenure = Tenure(world.owners, settings, self._moved)
        self._tunnels = Tunnels(world.tickets, self._tenure.find, settings.reroute_header)
        self._new_id = world.new_id
        self._open: set[Peer] = set()
        self._empty = asyncio.Event()
        self._pressed = False
        self._admissions: set[asyncio.Task[None]] = set()

    async def run(self, listening: Callable[[int], None]) -> None:
        """Serve until SIGTERM or SIGINT, then let sessions end; `listening` is told the port."""
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(each, stop.set)
        await self._tenure.begin()
        server = await loop.create_server(
            lambda: Peer(self), self.settings.host, self.settings.port, backlog=4096
        )
        keeping = [asyncio.create_task(each) for each in (self._tenure.keep(), self._tick())]
        listening(server.sockets[0].getsockname()[1])
        await stop.wait()
        self.draining = True
        await self._emptied()
        server.close()
        for task in keeping:
            task.cancel()
        await self._tenure.end()

    def requested(self, peer: Peer, request: Request) -> None:
        """Answer a request, or see whether its WebSocket may open."""
        path = door.path_of(request.path)
        if path == "/ws" and self.settings.open:
            asked = door.asked_of(request.path)
            admission = asked if isinstance(asked, Refusal) else partial(self._admit, peer, asked)
            self._upgrade(peer, request, admission)
        elif path == "/tunnel":
            token = door.token_of(request.headers.get("Authorization"))
            self._upgrade(peer, request, partial(self._admit_listener, peer, token))
        else:
            page = self._page(peer, path)
            if request.method == "HEAD":
                page.body = b""
            peer.answer(page)

    def called(self, peer: Peer) -> Callable[[bytes], None]:
        """Give what takes the bytes of a peer that brings calls."""
        line = CallLine(peer.transport.write, peer.transport.close)

        def receive(data: bytes) -> None:
            call = line.receive(data)
            if line.incomplete:
                peer.expect_request()
            else:
                peer.begun()
            if call is not None:
                self._tenure.alive()
                peer.hold_back()
                self._tunnels.call(line, call, peer.read_on)

        return receive

    def arrived(self, peer: Peer) -> None:
        """Pass on what a peer sent, as long as its session is this node's."""
        if peer.tunnel:
            self._tunnels.arrived(peer)
        elif peer.asked is not None and self._tenure.alive():
            self.relay.arrived(peer)

    def drained(self, peer: Peer) -> None:
        """Go on where a write was outstanding."""
        self.relay.drained(peer)

    def lost(self, peer: Peer) -> None:
        """Forget a peer and give its place back."""
        self._open.discard(peer)
        if not self._open:
            self._empty.set()
        if peer.tunnel:
            self._tunnels.lost(peer)
            self._note_use(session_of(peer.tunnel))
            return
        self.relay.lost(peer)
        if peer.asked is not None:
            self._note_use(peer.asked.server_id)

    def _upgrade(self, peer: Peer, request: Request, admission: "Refusal | Admission") -> None:
        """See whether a WebSocket may open, if what is asked is a valid upgrade."""
        accepted = peer.wire.accept(request)
        if accepted.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            self._refuse(peer, door.NO_UPGRADE)
        elif isinstance(admission, Refusal):
            self._refuse(peer, admission)
        else:
            peer.hold_back()
            task = asyncio.ensure_future(admission(accepted))
            self._admissions.add(task)
            task.add_done_callback(self._admissions.discard)

    async def _admit(self, peer: Peer, asked: Asked, accepted: Response) -> None:
        if not await self._let_in(peer, asked.server_id, accepted):
            return
        if asked.version == 2 and asked.role is door.Role.CLIENT and not asked.connection_id:  # noqa: PLR2004 - the version
            asked = Asked(asked.server_id, asked.role, 2, self._new_id())
        peer.asked = asked
        self.relay.join(peer)
        peer.begin()

    async def _admit_listener(self, peer: Peer, token: str, accepted: Response) -> None:
        try:
            ticket = await self._tunnels.opened(token) if token else None
        except Unavailable:
            peer.read_on()
            self._refuse(peer, door.NO_OWNER)
            return
        if ticket is None or not ticket.endpoint_id:
            peer.read_on()
            self._refuse(peer, door.NO_TICKET)
        elif await self._let_in(peer, session_of(ticket.name), accepted):
            self._tunnels.join(peer, ticket)
            peer.begin()

    async def _let_in(self, peer: Peer, session: str, accepted: Response) -> bool:
        """Open a WebSocket if it may open; False when it is refused, or gone meanwhile."""
        refusal = await self._refusal(session)
        peer.read_on()
        if refusal is not None:
            self._refuse(peer, refusal)
            return False
        if peer.transport.is_closing():
            return False
        peer.answer(accepted)
        self._open.add(peer)
        self._empty.clear()
        self._tenure.used(session)
        return True

    async def _refusal(self, server_id: str) -> Refusal | None:
        """Say why a WebSocket may not open, if so; where it may, its session is this node's."""
        lacking = self._lacking(server_id)
        try:
            find = self._tenure.find if self._no_room() or lacking else self._tenure.claim
            found = await find(server_id)
        except (Unavailable, TimeoutError):
            return self._no_room() or lacking or door.NO_OWNER
        if isinstance(found, Elsewhere):
            self.metrics.count("reroute_responses_total")
            return door.owned_elsewhere(found.target, self.settings.reroute_header)
        if not (self._tenure.alive() and self._tenure.owns(server_id)):
            return self._no_room() or lacking or door.NO_OWNER
        return self._no_room() or lacking or self._lacking(server_id)

    def _no_room(self) -> Refusal | None:
        if len(self._open) >= self.settings.sockets_max:
            return door.FULL
        return door.UNDER_PRESSURE if self._pressed else None

    def _lacking(self, server_id: str) -> Refusal | None:
        """Say what keeps a session from being taken in: the node drains, or has too few others beside it."""
        if self.draining:
            return door.DRAINING
        few = self._tenure.nodes < self.settings.min_cluster_size
        return door.NO_CLUSTER if few and not self._tenure.owns(server_id) else None

    def _refuse(self, peer: Peer, refusal: Refusal) -> None:
        self.metrics.count("connection_rejections_total")
        response = peer.wire.reject(refusal.status, refusal.text)
        for name, value in (refusal.headers or {}).items():
            response.headers[name] = value
        peer.answer(response)

    def _page(self, peer: Peer, path: str) -> Response:
        match path:
            case "/health":
                return _status(peer, 200, "ok")
            case "/ready":
                ready = self._ready()
                return _status(peer, 200 if ready else 503, "ready" if ready else "unready")
            case "/metrics":
                return _typed(peer.wire.reject(200, self.metrics.text(self._gauges())), CONTENT_TYPE)
            case _:
                return peer.wire.reject(404, door.NOT_FOUND.text)

    def _ready(self) -> bool:
        full = len(self._open) >= self.settings.sockets_max
        enough = self._tenure.nodes >= self.settings.min_cluster_size
        return not (self.draining or full or self._pressed) and enough and self._tenure.answers

    def _gauges(self) -> dict[str, float]:
        known: dict[str, float] = {
            "ready": int(self._ready()),
            "draining": int(self.draining),
            "active_websockets": len(self._open),
            "active_sessions": len(self.relay.sessions),
            "ingress_reserved_bytes": self.relay.budget.used,
            "inflight_delivery_bytes": sum(each.parcel.size for each in self._open if each.parcel),
            "backpressured_sources": self.metrics.backpressured,
            "max_frame_bytes": MESSAGE_MAX_BYTES,
        }
        memory = resident_bytes()
        return known if memory is None else known | {"process_memory_bytes": memory}

    async def _tick(self) -> None:
        """Look after what time alone changes."""
        while True:
            await asyncio.sleep(_TICK_S)
            self._tenure.alive()
            self.relay.tick()
            self._tunnels.tick()
            self._watch_memory()

    def _watch_memory(self) -> None:
        """Above the watermark admit nobody and shed sockets, one a turn, until memory has fallen."""
        mark = self.settings.memory_watermark_bytes
        memory = resident_bytes() if mark else None
        if memory is None:
            return
        recovered = mark * self.settings.memory_recovery_percent // 100
        self._pressed = memory > (recovered if self._pressed else mark)
        if self._pressed:
            self.relay.shed_for_memory()

    def _note_use(self, server_id: str) -> None:
        listened = self._tunnels.has(server_id.removeprefix(session_of("")))
        if not listened and not any((version, server_id) in self.relay.sessions for version in (1, 2)):
            self._tenure.idle(server_id)

    def _moved(self) -> None:
        """Close everything at once: another node may own these sessions from now on."""
        self.relay.shut_all(RESTART, MOVED)
        self._tunnels.shut_all(RESTART, MOVED)

    async def _emptied(self) -> None:
        """Wait until nobody is left; at the deadline those who are, are closed."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._all_gone(), self.settings.drain_timeout_ms / 1000)
        self.relay.shut_all(RESTART, EXPIRED)
        self._tunnels.shut_all(RESTART, EXPIRED)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._all_gone(), LINGER_S)

    async def _all_gone(self) -> None:
        if self._open:
            self._empty.clear()
            await self._empty.wait()


def resident_bytes() -> int | None:
    """Read the process's resident memory; None where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def map_large_messages() -> None:
    """Have the C library give large messages' memory back as soon as they are gone, if it can.

    Left to itself glibc keeps it from the second one on, and sockets would be shed for memory that is free.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM_BYTES)


def serve(settings: NodeSettings, world: World, listening: Callable[[int], None]) -> None:
    """Run one node to its end; `listening` is told its port."""
    map_large_messages()
    uvloop.run(_serve(settings, world, listening))


async def _serve(settings: NodeSettings, world: World, listening: Callable[[int], None]) -> None:
    await Node(settings, world).run(listening)


def _status(peer: Peer, status: int, word: str) -> Response:
    text = json.dumps({"status": word}, separators=(",", ":"))
    return _typed(peer.wire.reject(status, text), "application/json")


def _typed(response: Response, content_type: str) -> Response:
    del response.headers["Content-Type"]
    response.headers["Content-Type"] = content_type
    return response
