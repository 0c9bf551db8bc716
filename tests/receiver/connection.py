"""Bytes in, requests out, answers back: one TCP connection of the receiver."""

import asyncio
from typing import cast

from tests.receiver import routes
from tests.receiver.answer import Answer, plain
from tests.receiver.behaviours import Treatment
from tests.receiver.entry import Outcome
from tests.receiver.exchange import Exchange
from tests.receiver.request import BadQueryError, MalformedRequestError, Request, RequestReader
from tests.receiver.routes import Command, Delivery
from tests.receiver.site import Site
from tests.receiver.wire import Wire

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
READ_BUFFER = memoryview(bytearray(64 * 1024))


class Connection(asyncio.BufferedProtocol):
    """Answers the requests of one client in the order they come, never two at once."""

    def __init__(self, site: Site, number: int) -> None:
        """Wait for the transport; `number` tells connections apart in the log."""
        self._site = site
        self._number = number
        self._reader = RequestReader()
        self._wire: Wire | None = None
        self._exchange: Exchange | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to serve."""
        self._wire = Wire(cast("asyncio.Transport", transport))
        self._site.counts.open += 1

    def connection_lost(self, _error: Exception | None) -> None:
        """End what is going on; a delivery without its whole answer was left by the client."""
        self._site.counts.open -= 1
        self._site.log.leave(self._number)
        if self._exchange is not None:
            self._site.log.end(self._exchange.entry, Outcome.LEFT)
        if self._task is not None:
            self._task.cancel()
        self._wire = None

    def pause_writing(self) -> None:
        """Pass on that the socket takes no more."""
        if self._wire is not None:
            self._wire.pause()

    def resume_writing(self) -> None:
        """Pass on that the socket takes more."""
        if self._wire is not None:
            self._wire.resume()

    def get_buffer(self, _sizehint: int) -> memoryview:
        """Lend the buffer to read into; it is emptied before anybody else can ask for it."""
        return READ_BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes and serve what they complete."""
        self._reader.feed(READ_BUFFER[:nbytes])
        if self._task is None:
            self._serve()

    def drop(self) -> None:
        """End the connection now."""
        if self._wire is not None:
            self._wire.abort()

    def _serve(self) -> None:
        while self._task is None and (wire := self._wire) is not None and not wire.closing:
            try:
                request = self._reader.next()
            except MalformedRequestError as fault:
                wire.write(plain(fault.status, str(fault), close=True).data)
                wire.close()
                return
            if request is None:
                if self._reader.wants_continue:
                    wire.write(CONTINUE)
                return
            self._dispatch(request, wire)

    def _dispatch(self, request: Request, wire: Wire) -> None:
        route = routes.find(request.target)
        if isinstance(route, Delivery):
            self._deliver(route, request, wire)
            return
        answer = self._obey(route, request)
        wire.write(answer.data)
        if not request.keep_alive:
            wire.close()

    def _obey(self, route: Command | None, request: Request) -> Answer:
        if route is None:
            return plain(404, f"there is no route {request.target.path!r}; GET / lists them")
        try:
            return route.obey(self._site, request)
        except BadQueryError as wrong:
            return plain(400, str(wrong))

    def _deliver(self, route: Delivery, request: Request, wire: Wire) -> None:
        entry = self._site.arrive(request, self._number, verify=route.verify)
        exchange = Exchange(self._site, request, entry, wire)
        treatment = _treat(route, exchange)
        if isinstance(treatment, Answer):
            entry.status = treatment.status
            self._site.log.persist(entry)
            exchange.answer(treatment)
            if not request.keep_alive:
                wire.close()
            return
        self._site.log.persist(entry)
        self._exchange = exchange
        self._task = asyncio.get_running_loop().create_task(treatment)
        self._task.add_done_callback(self._played)

    def _played(self, task: asyncio.Task[None]) -> None:
        exchange, self._exchange, self._task = self._exchange, None, None
        if task.cancelled() or exchange is None or self._wire is None:
            return
        if (error := task.exception()) is not None:
            self._site.log.end(exchange.entry, Outcome.CUT)
            asyncio.get_running_loop().call_exception_handler(
                {"message": "a route failed", "exception": error}
            )
        if error is not None or not exchange.request.keep_alive:
            self._wire.close()
        self._serve()


def _treat(route: Delivery, exchange: Exchange) -> Treatment:
    try:
        return route.behave(exchange)
    except BadQueryError as wrong:
        return plain(400, str(wrong))
