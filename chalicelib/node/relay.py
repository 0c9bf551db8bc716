"""The relay: sessions and their sockets, and how messages get from one to the other.

One loop, no locks: everything here runs between two turns of the event loop. What would have to wait, waits
as a parcel, with its source unread.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from websockets.frames import Opcode

from chalicelib.node.budget import Budget
from chalicelib.node.door import Asked, Role
from chalicelib.node.metrics import Metrics
from chalicelib.node.parcel import Parcel
from chalicelib.node.peer import Peer, framed
from chalicelib.node.sessions import (
    POLICY,
    REPLACED,
    TRY_AGAIN,
    Attached,
    Close,
    Effect,
    Replace,
    Session,
    SessionV1,
    SessionV2,
    Tell,
    pong_to,
)
from chalicelib.node.settings import CONTROL_MAX_BYTES, NodeSettings

NO_ROUTE = "Data route unavailable"
NO_BUDGET = "Relay ingress capacity"
SLOW = "Slow consumer"
UNDELIVERED = "Delivery unavailable"
PRESSED = "Relay memory pressure"
_LARGE_BYTES = 65_536

Key = tuple[int, str]


class Relay:
    """All sessions of one node."""

    def __init__(self, settings: NodeSettings, metrics: Metrics, now_ms: Callable[[], int]) -> None:
        """Have no session."""
        self.settings = settings
        self.metrics = metrics
        self.budget = Budget(settings.ingress_budget_bytes, settings.ingress_weight)
        self.sessions: dict[Key, Session[Peer]] = {}
        self._now_ms = now_ms
        self._loop = asyncio.get_running_loop()
        self._unrouted: set[Peer] = set()

    def join(self, peer: Peer) -> None:
        """Take in a peer whose WebSocket has just opened."""
        asked = _asked(peer)
        key = (asked.version, asked.server_id)
        session = self.sessions.get(key)
        if session is None:
            session = self.sessions[key] = SessionV1() if asked.version == 1 else SessionV2()
        if _is_control(asked):
            peer.wire.max_message_size = CONTROL_MAX_BYTES
        self._act(session, session.join(peer, asked, self._loop.time()))

    def arrived(self, peer: Peer) -> None:
        """Send on what stands in a peer's inbox, as far as that goes now."""
        while peer.inbox and peer.parcel is None and not peer.left:
            item = peer.inbox.popleft()
            if item is None:
                self.leave(peer)
            elif _is_control(_asked(peer)):
                self._answer_control(peer, item[1])
            else:
                self._send_on(peer, *item)
        self._account(peer)

    def drained(self, peer: Peer) -> None:
        """Go on with what waits for a peer that has no outstanding write any more."""
        parcel, peer.writing = peer.writing, None
        if parcel is not None:
            parcel.done(peer)
        while peer.outgoing and not peer.blocked:
            parcel = peer.outgoing.popleft()
            parcel.write_to(peer)
            parcel.check()
        _wake(peer)

    def lost(self, peer: Peer) -> None:
        """Let a peer go whose connection is gone, after what it had sent before, if that has a way."""
        if peer in self._unrouted:
            peer.inbox.clear()
        self._give_up_on(peer)
        if peer.asked is not None and not peer.left:
            peer.end()
            self.arrived(peer)

    def leave(self, peer: Peer) -> None:
        """Take a peer out of its session; what depends on it goes too."""
        if peer.left:
            return
        peer.left = True
        peer.inbox.clear()
        self._account(peer)
        asked = _asked(peer)
        key = (asked.version, asked.server_id)
        session = self.sessions[key]
        self._act(session, session.leave(peer, asked))
        if session.empty and self.sessions.get(key) is session:
            del self.sessions[key]

    def shut(self, peer: Peer, code: int, reason: str) -> None:
        """Close a socket and take it out of its session."""
        self.leave(peer)
        self._close(peer, code, reason)

    def shut_all(self, code: int, reason: str) -> None:
        """Close every socket and forget every session, for one reason."""
        everybody = list(self.peers())
        self.sessions.clear()
        for peer in everybody:
            peer.left = True
        for peer in everybody:
            self._close(peer, code, reason)

    def tick(self) -> None:
        """Look after the timers of sessions."""
        again_s = self.settings.sync_again_ms / 1000
        unresponsive_s = self.settings.control_unresponsive_ms / 1000
        for session in list(self.sessions.values()):
            self._act(session, session.tick(self._loop.time(), again_s, unresponsive_s))

    def peers(self) -> Iterator[Peer]:
        """Give every socket that is in a session."""
        for session in list(self.sessions.values()):
            yield from list(session.peers())

    def shed_for_memory(self) -> None:
        """Close the socket whose going frees most, if there is any: blocked deliveries first."""
        worst = max(
            self.peers(), key=lambda each: (each.blocked, each.charged, bool(each.outgoing)), default=None
        )
        if worst is None:
            return
        self.metrics.count("memory_pressure_disconnects_total")
        self.shut(worst, TRY_AGAIN, PRESSED)
        worst.transport.abort()

    def _act(self, session: Session[Peer], effects: Sequence[Effect[Peer]]) -> None:
        for effect in effects:
            match effect:
                case Tell(to=peer, text=text):
                    self._tell(peer, text)
                case Close(of=peer, code=code, reason=reason):
                    self._close(peer, code, reason)
                case Replace(of=peer, by=newer):
                    _hand_over(peer, newer)
                    self._close(peer, POLICY, REPLACED)
                case Attached(connection_id=connection_id):
                    self._attach(session, connection_id)

    def _close(self, peer: Peer, code: int, reason: str) -> None:
        peer.left = True
        peer.inbox.clear()
        self._give_up_on(peer)
        of = self.settings
        cut_off_s = (of.transport_send_timeout_ms - of.delivery_timeout_ms) / 1000
        peer.close(code, reason, within_s=cut_off_s)
        self._account(peer)

    def _give_up_on(self, peer: Peer) -> None:
        """Let nobody wait for a peer that takes no more."""
        if peer in self._unrouted and peer.parcel is not None:
            self._unrouted.discard(peer)
            peer.parcel.delivered = 1
            self._ended(peer.parcel)
        parcels = [*([peer.writing] if peer.writing else []), *peer.outgoing]
        peer.writing = None
        peer.outgoing.clear()
        for parcel in parcels:
            parcel.failed(peer)
        _wake(peer)

    def _tell(self, peer: Peer, text: str) -> None:
        """Send a notice to a control; one that lets too many pile up is a slow consumer."""
        raw = framed(Opcode.TEXT, text.encode())
        if peer.transport.get_write_buffer_size() + len(raw) > self.settings.control_queue_bytes:
            self.metrics.count("slow_consumer_disconnects_total")
            self.shut(peer, TRY_AGAIN, SLOW)
            return
        peer.write(raw)

    def _answer_control(self, peer: Peer, text: bytes) -> None:
        pong = pong_to(text, self._now_ms())
        if pong is not None:
            self._tell(peer, pong)

    def _send_on(self, source: Peer, opcode: Opcode, data: bytes) -> None:
        asked = _asked(source)
        session = self.sessions[asked.version, asked.server_id]
        to = session.route(asked)
        raw = framed(opcode, data)
        if to is None:
            parcel = self._under_way(source, raw, len(data))
            self._unrouted.add(source)
            wait_s = self.settings.data_attach_timeout_ms / 1000
            parcel.timer = self._loop.call_later(wait_s, self.shut, source, TRY_AGAIN, NO_ROUTE)
            return
        self.metrics.frame(len(data), len(to))
        if not any(each.blocked or each.outgoing for each in to):
            for each in to:
                each.write(raw)
            slow = [each for each in to if each.blocked]
            if not slow:
                return
            parcel = self._under_way(source, b"", len(data))
            parcel.delivered = len(to) - len(slow)
            parcel.waiting.update(slow)
            for each in slow:
                each.writing = parcel
        else:
            parcel = self._under_way(source, raw, len(data))
            parcel.hand_out(to)
        self._wait_for(parcel)

    def _under_way(self, source: Peer, raw: bytes, size: int) -> Parcel:
        parcel = Parcel(source, raw, size, self._loop.time(), self._ended)
        source.parcel = parcel
        source.hold_back()
        self.metrics.backpressured += 1
        return parcel

    def _wait_for(self, parcel: Parcel) -> None:
        """Wait until everybody has it, or its deadline has come."""
        if not parcel.waiting:
            self._ended(parcel)
            return
        deadline = parcel.began + self.settings.delivery_timeout_ms / 1000
        parcel.timer = self._loop.call_at(deadline, self._too_late, parcel)

    def _too_late(self, parcel: Parcel) -> None:
        self.metrics.count("delivery_timeouts_total")
        for peer in list(parcel.waiting):
            self.metrics.count("slow_consumer_disconnects_total")
            parcel.failed(peer)
            self.shut(peer, TRY_AGAIN, SLOW)

    def _ended(self, parcel: Parcel) -> None:
        source = parcel.source
        if source.parcel is not parcel:
            return
        source.parcel = None
        self.metrics.backpressured -= 1
        self.metrics.waited(self._loop.time() - parcel.began)
        if parcel.timer is not None:
            parcel.timer.cancel()
        if not parcel.delivered and not source.left:
            self.shut(source, TRY_AGAIN, UNDELIVERED)
        self.arrived(source)
        if source.parcel is None:
            source.read_on()

    def _attach(self, session: Session[Peer], connection_id: str) -> None:
        """Send what waited for a data socket, in the order in which it came."""
        there = sorted(
            self._of(session, connection_id), key=lambda each: each.parcel.began if each.parcel else 0
        )
        for source in there:
            parcel = source.parcel
            to = session.route(_asked(source))
            if parcel is None or to is None:
                continue
            self._unrouted.discard(source)
            if parcel.timer is not None:
                parcel.timer.cancel()
            self.metrics.frame(parcel.size, len(to))
            parcel.hand_out(to)
            self._wait_for(parcel)

    def _of(self, session: Session[Peer], connection_id: str) -> Iterable[Peer]:
        mine = set(session.peers())
        return [
            each for each in self._unrouted if each in mine and _asked(each).connection_id == connection_id
        ]

    def _account(self, peer: Peer) -> None:
        """Charge for what a peer has in the node, and stop reading while its way is blocked."""
        held = peer.held_bytes if not peer.left else peer.parcel.size if peer.parcel else 0
        if held * self.budget.weight == peer.charged:
            return
        charged = self.budget.change(held, peer.charged)
        if charged is None:
            if not peer.left:
                self.shut(peer, TRY_AGAIN, NO_BUDGET)
            return
        peer.charged = charged
        if held > _LARGE_BYTES and peer.parcel is None and not peer.left:
            self._wait_for_the_way(peer)

    def _wait_for_the_way(self, source: Peer) -> None:
        """Read no more of a large message while somebody else's is being written where it will go."""
        asked = _asked(source)
        to = self.sessions[asked.version, asked.server_id].route(asked) or ()
        blocked = next((each for each in to if each.blocked), None)
        if blocked is not None:
            source.hold_back()
            blocked.waiters.append(source)


def _wake(peer: Peer) -> None:
    """Read on from those who waited for the way to a peer."""
    waiters, peer.waiters = peer.waiters, []
    for each in waiters:
        if each.parcel is None and not each.left:
            each.read_on()


def _hand_over(older: Peer, newer: Peer) -> None:
    """Give to a newer socket what stands behind the older's outstanding write, which stays the older's."""
    parcels, older.outgoing = older.outgoing, deque()
    for parcel in parcels:
        parcel.waiting.discard(older)
        parcel.hand_out([newer])
        parcel.check()
    if older.writing is not None:
        older.writing.done(older)
        older.writing = None


def _asked(peer: Peer) -> Asked:
    if peer.asked is None:
        raise RuntimeError("a peer without a WebSocket is in no session")
    return peer.asked


def _is_control(asked: Asked) -> bool:
    return asked.version == 2 and asked.role is Role.SERVER and not asked.connection_id  # noqa: PLR2004 - the version
