"""Listening: a connection to the relay node that is kept, its deliveries tried at the local server."""

import asyncio
import random
from contextlib import suppress
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from chalicelib.cli.api import Api, AwayError, Entry, Found
from chalicelib.cli.local import Answer, Local
from chalicelib.cli.telling import Telling
from chalicelib.domain import tunnel

WAIT_MAX_S = 30.0
_TAKEN_OVER = 1008
_OPEN_WITHIN_S = 15.0


class TakenOverError(Exception):
    """A newer listener has the tunnel now."""


class Listener:
    """One listener at one tunnel."""

    def __init__(self, api: Api, local: Local, telling: Telling) -> None:
        """Listen by this API for that server."""
        self._api = api
        self._local = local
        self._telling = telling
        self._failures = 0
        self._forwarding: set[asyncio.Task[None]] = set()

    async def run(self, endpoint_id: str, event_types: list[str]) -> None:
        """Listen for ever; raises ApiError for what will not mend, TakenOverError when somebody else does."""
        found = await self._patiently_found(endpoint_id, event_types)
        if found.secret is not None:
            self._telling.say(
                f"Made the tunnel {found.endpoint_id}. Its secret, shown this once: {found.secret.reveal()}",
                endpoint_id=found.endpoint_id,
                secret=found.secret.reveal(),
            )
        while True:
            with suppress(AwayError, OSError, TimeoutError, InvalidHandshake, ConnectionClosed):
                await self._listen(found.endpoint_id)
            await self._wait(found.endpoint_id)

    async def _patiently_found(self, endpoint_id: str, event_types: list[str]) -> Found:
        while True:
            try:
                return await asyncio.to_thread(self._api.tunnel, endpoint_id, event_types)
            except AwayError:
                await self._wait("the API")

    async def _listen(self, endpoint_id: str) -> None:
        """Connect and forward until the connection ends."""
        entry = await asyncio.to_thread(self._api.entry, endpoint_id)
        async with await self._connected(entry) as socket:
            self._failures = 0
            self._telling.say(
                f"Listening at {endpoint_id}; deliveries go to {self._local.url}. Ctrl-C ends it.",
                endpoint_id=endpoint_id,
            )
            try:
                while True:
                    self._start(socket, await socket.recv(decode=False))
            except ConnectionClosed as closed:
                if closed.rcvd is not None and closed.rcvd.code == _TAKEN_OVER:
                    raise TakenOverError(f"{closed.rcvd.reason}: this one ends.") from closed
                raise

    async def _connected(self, entry: Entry) -> ClientConnection:
        headers = {"Authorization": f"Bearer {entry.token.reveal()}"}
        return await connect(
            entry.url,
            additional_headers=headers,
            compression=None,
            max_size=tunnel.FRAME_MAX,
            open_timeout=_OPEN_WITHIN_S,
            proxy=None,
        )

    def _start(self, socket: ClientConnection, frame: bytes) -> None:
        task = asyncio.ensure_future(self._forward(socket, frame))
        self._forwarding.add(task)
        task.add_done_callback(self._forwarding.discard)

    async def _forward(self, socket: ClientConnection, frame: bytes) -> None:
        try:
            head, body = tunnel.unframed(frame)
            headers = [(str(name), str(value)) for name, value in head["headers"]]
            method, number = str(head["method"]), int(head["id"])
        except (tunnel.NotAFrameError, KeyError, TypeError, ValueError):
            self._telling.say("The node sent something that is no delivery; it was left alone.")
            return
        answer = await self._local.post(method, headers, body)
        self._telling.delivered({name.lower(): value for name, value in headers}, answer)
        with suppress(ConnectionClosed):
            await socket.send(_framed(number, answer))

    async def _wait(self, whom: str) -> None:
        """Wait a random time, longer each time in vain."""
        most = min(WAIT_MAX_S, 0.5 * 2**self._failures)
        self._failures += 1
        wait_s = random.uniform(most / 2, most)  # noqa: S311 - spreads reconnections, guards nothing
        self._telling.say(f"No connection for {whom}; trying again in {wait_s:.1f} s.")
        await asyncio.sleep(wait_s)


def _framed(number: int, answer: Answer) -> bytes:
    if answer.fault is not None:
        told = {"id": number, "fault": answer.fault.value, "detail": answer.detail, "ms": answer.ms}
        return tunnel.framed(told)
    heard: dict[str, Any] = {
        "id": number,
        "status": answer.status,
        "headers": answer.headers,
        "ms": answer.ms,
        "truncated": answer.truncated,
    }
    return tunnel.framed(heard, answer.body)
