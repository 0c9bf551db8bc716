"""The guard under the httpx API: for whoever speaks httpx, by the same checks and connections.

The sender itself calls the transport below it: docs/decisions/0020 has the figures.
"""

from collections.abc import AsyncIterator

import httpx

from chalicelib.adapters.http.fault import TransportFault
from chalicelib.adapters.http.transport import Body, GuardedTransport
from chalicelib.domain.outcome import Fault
from chalicelib.domain.request import Request

_AS_HTTPX: dict[Fault, type[httpx.TransportError]] = {
    Fault.REFUSED: httpx.UnsupportedProtocol,
    Fault.BAD_URL: httpx.UnsupportedProtocol,
    Fault.CONNECT_TIMEOUT: httpx.ConnectTimeout,
    Fault.TIMEOUT: httpx.ReadTimeout,
    Fault.NO_RESPONSE: httpx.ReadError,
    Fault.PROTOCOL_ERROR: httpx.RemoteProtocolError,
}


class GuardedHttpx(httpx.AsyncBaseTransport):
    """An httpx transport that sends where the address policy allows, and nowhere else.

    Its caller's deadline is the one around the call; httpx's own timeouts do not count here.
    """

    def __init__(self, transport: GuardedTransport) -> None:
        """Send through a guarded transport, which stays its owner's."""
        self._transport = transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and read the head of its answer; raises httpx.TransportError."""
        headers = tuple(
            (name.decode("ascii"), value.decode("latin-1")) for name, value in request.headers.raw
        )
        asked = Request(str(request.url), headers, await request.aread(), method=request.method)
        try:
            answer = await self._transport.send(asked)
        except TransportFault as fault:
            raise _AS_HTTPX.get(fault.fault, httpx.ConnectError)(fault.detail, request=request) from fault
        stream = Answered(answer.body) if answer.body else None
        return httpx.Response(answer.status, headers=answer.headers, stream=stream, request=request)


class Answered(httpx.AsyncByteStream):
    """An answer's body as httpx reads it; closing it early drops the connection."""

    def __init__(self, body: Body) -> None:
        """Read a body of the transport's."""
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Read piece by piece; raises httpx.ReadError when it breaks off."""
        try:
            async for piece in self._body.pieces():
                yield piece
        except TransportFault as fault:
            raise httpx.ReadError(fault.detail) from fault

    async def aclose(self) -> None:
        """Keep the connection if all was read, else drop it."""
        self._body.close()
