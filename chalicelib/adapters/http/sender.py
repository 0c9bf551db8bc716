"""The sender: requests side by side, each under one total deadline, judged by what came back."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from http import HTTPStatus
from queue import Empty, SimpleQueue
from typing import Self

import h11

from chalicelib.adapters.http.fault import TransportFault
from chalicelib.adapters.http.loop import BackgroundLoop
from chalicelib.adapters.http.redirect import REDIRECTS_MAX, next_hop, told
from chalicelib.adapters.http.tokens import Tokens
from chalicelib.adapters.http.transport import Answer, GuardedTransport
from chalicelib.application.ports import Finished
from chalicelib.domain.auth import Auth, OAuth2
from chalicelib.domain.oauth2 import Token, bearing
from chalicelib.domain.outcome import Fault, Reply
from chalicelib.domain.request import Request, without_echo
from chalicelib.domain.secret import Secret
from chalicelib.domain.target import URL_MAX

HEADER_MAX = 256
_UNWRITABLE = (h11.LocalProtocolError, UnicodeEncodeError)
_CANNOT_BE_WRITTEN = "the request cannot be written as HTTP"
_NOT_TAKEN = "a kept access token was answered 401"
_AGAIN = f"sent again with a new access token: {_NOT_TAKEN}"
HEADERS_KEPT = {
    "retry-after": HEADER_MAX,
    "content-type": HEADER_MAX,
    "location": URL_MAX + 1,  # a longer one is refused, never followed in part
    "server": HEADER_MAX,
    "date": HEADER_MAX,
}


Send = Callable[[Request], Coroutine[None, None, Reply]]


@dataclass(frozen=True, slots=True)
class SendLimits:
    """How long and how much: timeouts in seconds, the response cap in bytes, sends at once per outbox."""

    total_timeout_s: float = 10.0
    response_max: int = 2_048
    max_in_flight: int = 64


class GuardedSender:
    """Sends requests under the address policy; redirects 307 and 308 are checked and signed hop by hop."""

    def __init__(
        self,
        transport: GuardedTransport,
        limits: SendLimits,
        loop: BackgroundLoop,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        """Send through a transport on a background loop; hops are signed by this clock or the machine's."""
        self._transport = transport
        self.limits = limits
        self._loop = loop
        self._now_ms = now_ms or _now_ms
        self._tokens = Tokens(transport, limits.total_timeout_s, self._now_ms)

    def limited(self, limits: SendLimits) -> "GuardedSender":
        """Give a sender over the same connections with other limits."""
        return GuardedSender(self._transport, limits, self._loop, self._now_ms)

    def outbox(self, send: "Send | None" = None) -> "LoopOutbox":
        """Open a place for the sends of one invocation, perhaps by way of another; the limit is its own."""
        return LoopOutbox(self._loop.get(), send or self.send, self.limits.max_in_flight)

    async def send(self, request: Request) -> Reply:
        """Send one request and give what came back; never raises for what an endpoint does."""
        began = time.monotonic()
        deadline = asyncio.get_running_loop().time() + self.limits.total_timeout_s
        try:
            reply = await self._authenticated(request, deadline)
        except TimeoutError:
            reply = Reply(fault=Fault.TIMEOUT, detail="no answer within the total timeout")
        except TransportFault as error:
            reply = Reply(fault=error.fault, detail=error.detail, unsent=not error.left)
        except _UNWRITABLE:
            reply = Reply(fault=Fault.BAD_URL, detail=_CANNOT_BE_WRITTEN, unsent=True)
        return replace(reply, total_ms=_since(began))

    async def _authenticated(self, request: Request, deadline: float) -> Reply:
        """Send with an access token where one is needed; a kept one that is not taken is got anew, once."""
        auth = request.auth
        if auth is None or auth.oauth2 is None:
            return await self._follow(request, deadline)
        token, fresh = await self._token(auth, auth.oauth2, deadline)
        reply = await self._bearing(request, token, deadline)
        if reply.status != HTTPStatus.UNAUTHORIZED:
            return reply
        self._tokens.drop(auth, auth.oauth2, token)
        if fresh:
            return reply
        try:
            another, _ = await self._token(auth, auth.oauth2, deadline)
            again = await self._bearing(request, another, deadline)
        except TransportFault as error:
            raise TransportFault(error.fault, f"{_NOT_TAKEN}; {error.detail}", left=True) from error
        words = f"{_AGAIN}; {again.detail}" if again.detail else _AGAIN
        return without_echo(replace(again, detail=words), bearing(request, token))

    async def _token(self, auth: Auth[Secret], of: OAuth2[Secret], deadline: float) -> tuple[Token, bool]:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._tokens.get(auth, of)
        except TimeoutError as error:
            words = "no access token could be got within the total timeout"
            raise TransportFault(Fault.TOKEN_FAILED, words) from error

    async def _bearing(self, request: Request, token: Token, deadline: float) -> Reply:
        """Send with a token; nobody else knows it."""
        with_token = bearing(request, token)
        return await _masking(with_token, self._follow(with_token, deadline))

    async def _follow(self, request: Request, deadline: float) -> Reply:
        """Send, and follow redirects; nobody else knows what those are signed with."""
        reply = await self._once(request, deadline)
        try:
            for _ in range(REDIRECTS_MAX):
                following = next_hop(request, reply, self._now_ms() // 1000)
                if following is None:
                    break
                request = following
                reply = await _masking(request, self._once(request, deadline))
        except TransportFault as error:
            raise TransportFault(error.fault, error.detail, left=True) from error
        except _UNWRITABLE as error:
            raise TransportFault(Fault.BAD_URL, _CANNOT_BE_WRITTEN, left=True) from error
        return told(request, reply)

    async def _once(self, request: Request, deadline: float) -> Reply:
        began = time.monotonic()
        async with asyncio.timeout_at(deadline):
            answer = await self._transport.send(request)
        first_byte_ms = _since(began)
        body, truncated = await self._start_of_body(answer, deadline)
        headers = tuple(
            (name, value[: HEADERS_KEPT[name]]) for name, value in answer.headers if name in HEADERS_KEPT
        )
        return Reply(
            status=answer.status,
            detail=answer.detail,
            headers=headers,
            body=body,
            truncated=truncated,
            connect_ms=answer.connect_ms,
            tls_ms=answer.tls_ms,
            first_byte_ms=first_byte_ms,
        )

    async def _start_of_body(self, answer: Answer, deadline: float) -> tuple[bytes, bool]:
        """Read up to the cap; the status has decided, so a body that breaks off or drips is only cut."""
        if answer.body is None:
            return b"", False
        start = bytearray()
        cut = True
        try:
            async with asyncio.timeout_at(deadline):
                async for piece in answer.body.pieces():
                    start += piece
                    if len(start) > self.limits.response_max:
                        break
                else:
                    cut = False
        except (TransportFault, TimeoutError):
            cut = True
        finally:
            answer.body.close()
        return bytes(start[: self.limits.response_max]), cut


class LoopOutbox:
    """Sends running on the background loop, their results handed back through a queue."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        send: "Send",
        max_in_flight: int,
    ) -> None:
        """Run sends on a loop, at most so many at once."""
        self._loop = loop
        self._send = send
        self._results: SimpleQueue[Finished | BaseException] = SimpleQueue()
        self._running: set[Future[None]] = set()
        self._slots = asyncio.Semaphore(max_in_flight)

    def start(self, key: str, request: Request, after_s: float = 0.0, within_s: float = math.inf) -> None:
        """Begin a send after so many seconds, as soon as there is room for it then."""
        now = self._loop.time()
        run = self._run(key, request, now + after_s, now + within_s)
        running = asyncio.run_coroutine_threadsafe(run, self._loop)
        self._running.add(running)
        running.add_done_callback(self._running.discard)

    def finished(self, timeout_s: float) -> list[Finished]:
        """Wait at most so long for one send to end and give all that have ended."""
        ended: list[Finished] = []
        try:
            ended.append(_ended(self._results.get(timeout=timeout_s)))
            while True:
                ended.append(_ended(self._results.get_nowait()))
        except Empty:
            return ended

    def __enter__(self) -> Self:
        """Open the outbox."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Cancel what runs and wait until it has stopped."""
        running = list(self._running)
        for each in running:
            each.cancel()
        wait(running)

    async def _run(self, key: str, request: Request, begins: float, latest: float) -> None:
        try:
            ended = await self._in_its_turn(key, request, begins, latest)
        except Exception as error:  # noqa: BLE001 - handed to the thread that waits for this send
            self._results.put(error)
        else:
            self._results.put(ended)

    async def _in_its_turn(self, key: str, request: Request, begins: float, latest: float) -> Finished:
        """Wait for a send's moment, then for a slot; neither is part of its timeouts."""
        wait_s = begins - self._loop.time()
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        if not await self._slot(latest):
            given_up_ms = _now_ms()
            return Finished(key, Reply(), given_up_ms, given_up_ms, begun=False)
        try:
            began_ms = _now_ms()
            return Finished(key, await self._send(request), began_ms, _now_ms())
        finally:
            self._slots.release()

    async def _slot(self, latest: float) -> bool:
        if self._loop.time() > latest:
            return False
        if not self._slots.locked():
            return await self._slots.acquire()
        try:
            async with asyncio.timeout_at(latest):
                return await self._slots.acquire()
        except TimeoutError:
            return False


async def _masking(request: Request, reply: Awaitable[Reply]) -> Reply:
    """Wait for a reply, or what stood in its way, and mask what it echoes of its request."""
    try:
        return without_echo(await reply, request)
    except TransportFault as error:
        words = without_echo(Reply(detail=error.detail), request).detail
        raise TransportFault(error.fault, words, left=error.left) from error


def _ended(result: Finished | BaseException) -> Finished:
    if isinstance(result, BaseException):
        raise result
    return result


def _since(began: float) -> int:
    return int((time.monotonic() - began) * 1000)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
