"""Load: requests posted over a few kept connections, as fast as what they set off is done with."""

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

CONNECTIONS = 12
LOOK_EVERY_S = 0.02


@dataclass(slots=True)
class Posted:
    """The answers by the place of their request, and when posting began and ended (Unix s)."""

    began_s: float = 0.0
    ended_s: float = 0.0
    by_place: dict[int, tuple[int, bytes]] = field(default_factory=dict)

    @property
    def answers(self) -> list[tuple[int, bytes]]:
        """Give the answers in the order their requests were made."""
        return [self.by_place[place] for place in sorted(self.by_place)]


class Pace:
    """Lets events through so that no more than a number of them is accepted and not yet arrived."""

    def __init__(self, receiver_port: int, arrived_before: int, under_way: int) -> None:
        """Count arrivals at the receiver beyond those of before."""
        self._port = receiver_port
        self._before = arrived_before
        self._most = under_way
        self._let_through = 0
        self._arrived = 0
        self._moved = asyncio.Condition()

    async def enter(self, events: int) -> None:
        """Wait until so many more events fit."""
        async with self._moved:
            await self._moved.wait_for(lambda: self._let_through + events <= self._arrived + self._most)
            self._let_through += events

    async def watch(self) -> None:
        """Follow the receiver's count until cancelled."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        request = b"GET /received?count=1 HTTP/1.1\r\nHost: bench\r\n\r\n"
        try:
            while True:
                _, body = await _answer(reader, writer, request)
                async with self._moved:
                    self._arrived = json.loads(body)["count"] - self._before
                    self._moved.notify_all()
                await asyncio.sleep(LOOK_EVERY_S)
        finally:
            writer.close()


async def post_all(port: int, path: str, bodies: Sequence[tuple[bytes, int]], pace: Pace) -> Posted:
    """Post each body with its number of events as soon as the pace and a connection allow."""
    return await post_each(port, path, iter(bodies), pace)


async def post_each(port: int, path: str, bodies: Iterator[tuple[bytes, int]], pace: Pace) -> Posted:
    """Post bodies as they are made, each with its number of events, until there are no more."""
    posted = Posted()
    numbered = enumerate(bodies)
    connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CONNECTIONS)]

    async def work_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for place, (body, events) in numbered:
            await pace.enter(events)
            posted.by_place[place] = await exchange(reader, writer, path, body)
        writer.close()

    watching = asyncio.ensure_future(pace.watch())
    posted.began_s = time.time()
    await asyncio.gather(*(work_off(*each) for each in connections))
    posted.ended_s = time.time()
    watching.cancel()
    return posted


async def exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: bytes
) -> tuple[int, bytes]:
    """Post a body and give the answer's status and body."""
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: bench",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    return await _answer(reader, writer, "\r\n".join([*lines, "", ""]).encode() + body)


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> tuple[int, bytes]:
    writer.write(request)
    answer = await reader.readuntil(b"\r\n\r\n")
    told = answer.lower().split(b"\r\n")
    length = next(int(line[15:]) for line in told if line.startswith(b"content-length:"))
    return int(answer[9:12]), await reader.readexactly(length)
