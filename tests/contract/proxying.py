"""An outbound proxy on this machine, which may lead to one place whatever address it is asked for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from chalicelib.adapters.http.dial import Proxy

HERE = "127.0.0.1"
PATIENCE_S = 5.0


@asynccontextmanager
async def proxying(refuses: str = "", leads_to: int = 0) -> AsyncIterator[tuple[Proxy, list[str]]]:
    """Run an outbound proxy; which tunnels it was asked for. It refuses those to an address.

    With `leads_to` every tunnel ends at that port of this machine: the proxy is all of the internet then.
    """
    asked: list[str] = []
    tunnels: list[asyncio.Task[None]] = []

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        host, _, port = head.split()[1].rpartition(":")
        asked.append(head)
        if host == refuses:
            writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
            writer.close()
            await writer.wait_closed()
            return
        where = (HERE, leads_to) if leads_to else (host.strip("[]"), int(port))
        there, back = await asyncio.open_connection(*where)
        writer.write(b"HTTP/1.1 200 Connection established\r\nVia: here\r\n\r\n")
        await asyncio.gather(_pour(reader, back), _pour(there, writer))

    def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tunnels.append(asyncio.create_task(tunnel(reader, writer)))

    server = await asyncio.start_server(met, HERE, 0)
    async with server:
        yield Proxy(HERE, server.sockets[0].getsockname()[1]), asked
        await asyncio.wait_for(asyncio.gather(*tunnels), PATIENCE_S)


async def _pour(source: asyncio.StreamReader, into: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while piece := await source.read(65_536):
            into.write(piece)
        into.close()
        await into.wait_closed()
