"""Load on a schedule: each request leaves at its moment, whatever has become of those before."""

import asyncio
import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.bench.load import exchange

CONNECTIONS = 32


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request to come: when (seconds from the start), to which path, what, and of whose load it is part."""

    at_s: float
    path: str
    body: bytes
    of: str


@dataclass(frozen=True, slots=True)
class Answered:
    """A request that was made: its answer, when that came (Unix ms), and how late it was made."""

    arrival: Arrival
    status: int
    body: bytes
    answered_ms: float
    late_ms: float


def spread(per_s: float, for_s: float, dice: random.Random) -> Iterator[float]:
    """Give the moments of a steady load: one in each period, anywhere within it."""
    for turn in range(math.ceil(for_s * per_s)):
        at_s = (turn + dice.random()) / per_s
        if at_s < for_s:
            yield at_s


async def post_steadily(port: int, arrivals: Sequence[Arrival]) -> list[Answered]:
    """Post each at its moment, over connections that are kept."""
    connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CONNECTIONS)]
    waiting = iter(sorted(arrivals, key=lambda each: each.at_s))
    answered: list[Answered] = []
    began_s = time.monotonic()

    async def work_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for arrival in waiting:
            await asyncio.sleep(max(0.0, began_s + arrival.at_s - time.monotonic()))
            late_ms = (time.monotonic() - began_s - arrival.at_s) * 1000
            status, body = await exchange(reader, writer, arrival.path, arrival.body)
            answered.append(Answered(arrival, status, body, time.time() * 1000, late_ms))
        writer.close()

    await asyncio.gather(*(work_off(*each) for each in connections))
    return answered
