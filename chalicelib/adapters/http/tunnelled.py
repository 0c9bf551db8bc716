"""Sends through tunnels: a delivery is handed to a relay node, which has its listener try it.

What the listener's machine answers is the endpoint's answer. Where nobody listens, or no node can be reached,
nothing was tried.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from chalicelib.adapters.http.sender import (
    HEADER_MAX,
    HEADERS_KEPT,
    GuardedSender,
    LoopOutbox,
    SendLimits,
)
from chalicelib.domain import tunnel
from chalicelib.domain.outcome import Fault, Reply
from chalicelib.domain.request import Request
from chalicelib.domain.secret import Secret

FRAMES = "application/vnd.relay.frame"
_UNHEARD = frozenset(
    {Fault.CONNECT_FAILED, Fault.CONNECT_TIMEOUT, Fault.DNS_FAILED, Fault.TLS_FAILED, Fault.REFUSED}
)
_FAULTS_TOLD = frozenset({Fault.CONNECT_FAILED, Fault.TIMEOUT, Fault.NO_RESPONSE})
_STATUSES = range(200, 1_000)
_MS_MAX = 3_600_000
_HEAD_MAX = 65_536


class TunnelledSender:
    """A sender that sends some requests through tunnels, and the others as it always did."""

    def __init__(
        self, direct: GuardedSender, to_node: GuardedSender, node_url: str, ticket: Callable[[], Secret]
    ) -> None:
        """Send through the node at a URL, with this ticket; `to_node` is the one that reads whole frames."""
        self._direct = direct
        self._to_node = to_node
        self._node_url = node_url
        self._ticket = ticket

    def outbox(self) -> LoopOutbox:
        """Open a place for the sends of one invocation; the limit of sends at once is its own."""
        return self._direct.outbox(self.send)

    async def send(self, request: Request) -> Reply:
        """Send one request and give what came back; never raises for what a listener does."""
        if not request.tunnel:
            return await self._direct.send(request)
        ticket = await asyncio.to_thread(self._ticket)
        head = {"method": request.method, "headers": request.all_headers}
        frame = tunnel.framed(head, request.body)
        headers = (
            ("Authorization", f"Bearer {ticket.reveal()}"),
            ("Content-Type", FRAMES),
            ("Content-Length", str(len(frame))),
        )
        call = Request(f"{self._node_url}/tunnel/{request.tunnel}", headers, frame, signed_with=(ticket,))
        return _heard(await self._to_node.send(call), self._direct.limits.response_max)


def frame_limits(of: SendLimits) -> SendLimits:
    """Give the limits of a sender to a node: as those of others, but reading the whole frame of an answer."""
    return SendLimits(of.total_timeout_s, of.response_max + _HEAD_MAX, of.max_in_flight)


def _heard(reply: Reply, response_max: int) -> Reply:
    """Read the answer of a node: that of a listener, or that there is none."""
    if reply.status == HTTPStatus.OK:
        try:
            head, body = tunnel.unframed(reply.body)
            return _told(head, body, reply, response_max)
        except (tunnel.NotAFrameError, KeyError, TypeError, ValueError):
            return Reply(fault=Fault.PROTOCOL_ERROR, detail="the listener's answer cannot be read")
    # A proxy before the nodes says the same of a node that is away, which is nothing of the endpoint.
    if reply.status == HTTPStatus.BAD_GATEWAY and reply.body == tunnel.LOST:
        return Reply(fault=Fault.NO_RESPONSE, detail="the listener went before it answered")
    if reply.status is None and reply.fault not in _UNHEARD:
        return reply
    return Reply(unheard=True, unsent=True)


def _told(head: dict[str, Any], body: bytes, reply: Reply, response_max: int) -> Reply:
    """Read what a listener says of an answer; raises what reading strangers' JSON raises."""
    if "fault" in head:
        fault = Fault(head["fault"])
        if fault not in _FAULTS_TOLD:
            raise ValueError("a fault that is not the listener's to tell")
        return Reply(fault=fault, detail=_text(head.get("detail", "")), total_ms=reply.total_ms)
    headers: dict[str, str] = {}
    for name, value in head["headers"]:
        if str(name).lower() in HEADERS_KEPT:
            headers.setdefault(str(name).lower(), _text(value))
    return Reply(
        status=_STATUSES[_STATUSES.index(head["status"])],
        headers=tuple(headers.items()),
        body=body[:response_max],
        truncated=len(body) > response_max or bool(head.get("truncated")),
        first_byte_ms=_within(head.get("ms", 0)),
        total_ms=reply.total_ms,
    )


def _within(ms: Any) -> int:  # noqa: ANN401 - a stranger's JSON
    return int(min(max(ms, 0), _MS_MAX))


def _text(said: Any) -> str:  # noqa: ANN401 - a stranger's JSON
    """Give the start of a text as one that can be stored: half a character is none."""
    return str(said)[:HEADER_MAX].encode(errors="replace").decode()
