"""`python -m tests.bench.sender_server FILE`: the cheapest HTTPS server that answers every POST with 200."""

import asyncio
import re
import ssl
import sys
from contextlib import suppress

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer what comes over one connection."""
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            if length:
                await reader.readexactly(int(length[1]))
            writer.write(ANSWER)
    writer.close()


async def main(certificate: str) -> None:
    """Print the port and serve until the process ends."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
