"""Load: requests posted at a steady rate over a few kept connections, as cheaply as Python can."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

CONNECTIONS = 12


@dataclass(slots=True)
class Posted:
    """The answers' statuses and bodies in the order sent, and when posting began and ended (Unix s)."""

    began_s: float = 0.0
    ended_s: float = 0.0
    answers: list[tuple[int, bytes]] = field(default_factory=list)


async def post_all(port: int, path: str, bodies: Sequence[bytes], per_second: float) -> Posted:
    """Post each body at its moment; one that must wait for a connection is sent as soon as there is one."""
    posted = Posted(began_s=time.time(), answers=[(0, b"")] * len(bodies))
    idle: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        idle.put_nowait(await asyncio.open_connection("127.0.0.1", port))
    start = time.monotonic()

    async def post(place: int) -> None:
        delay = start + place / per_second - time.monotonic()
        if delay > 0:
            await asyncio.sleep(delay)
        connection = await idle.get()
        try:
            posted.answers[place] = await _exchange(*connection, path, bodies[place])
        finally:
            idle.put_nowait(connection)

    await asyncio.gather(*(post(place) for place in range(len(bodies))))
    posted.ended_s = time.time()
    while not idle.empty():
        idle.get_nowait()[1].close()
    return posted


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: bytes
) -> tuple[int, bytes]:
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: bench",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    writer.write("\r\n".join([*lines, "", ""]).encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    told = answer.lower().split(b"\r\n")
    length = next(int(line[15:]) for line in told if line.startswith(b"content-length:"))
    return int(answer[9:12]), await reader.readexactly(length)
