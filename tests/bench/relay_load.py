"""A load client for a relay, from outside: `python -m tests.bench.relay_load --scenario sustained …`.

It knows the protocol and nothing of the node, and prints one JSON object. Its exit code is 1 when a
connection failed, a frame was lost or out of order, or a socket did not close in time.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import uvloop

from tests.bench.relay_link import Link, RefusedError, percentiles

FRAME_BYTES = 256
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Figures:
    """What a run came to."""

    succeeded: int = 0
    failed: int = 0
    sent: int = 0
    received: int = 0
    misordered: int = 0
    cleanup_timeouts: int = 0
    setup_s: float = 0.0
    steady_s: float = 0.0
    waits_ns: list[int] = field(default_factory=list)

    def told(self, asked: argparse.Namespace, sockets: int, relay: "Relay") -> dict[str, object]:
        """Write them as the one JSON object."""
        p50, p95, p99 = percentiles(self.waits_ns, 50, 95, 99)
        return {
            "scenario": asked.scenario,
            "requested_pairs": asked.pairs,
            "requested_sockets": sockets,
            "connections_succeeded": self.succeeded,
            "connections_failed": self.failed,
            "setup_s": round(self.setup_s, 3),
            "steady_s": round(self.steady_s, 3),
            "frames_sent": self.sent,
            "frames_received": self.received,
            "frames_per_s": round(self.received / self.steady_s, 1) if self.steady_s else 0.0,
            "lost": self.sent - self.received,
            "misordered": self.misordered,
            "p50_ms": p50,
            "p95_ms": p95,
            "p99_ms": p99,
            "cleanup_timeouts": self.cleanup_timeouts,
            "client_rss_bytes": _rss(os.getpid()),
            "client_cpu_s": round(time.process_time(), 3),
            **relay.told(),
        }


class Relay:
    """What the relay's process uses, if it is known which that is."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._rss = _rss(pid) if pid else 0
        self._cpu_s = _cpu_s(pid) if pid else 0.0
        self._held = 0

    def hold(self) -> None:
        """Note the memory of now, while everything is open."""
        self._held = _rss(self._pid) if self._pid else 0

    def told(self) -> dict[str, object]:
        """Give memory before, while everything was open and its CPU since the start; nothing when unknown."""
        if not self._pid:
            return {}
        used = _cpu_s(self._pid) - self._cpu_s
        return {
            "relay_rss_before_bytes": self._rss,
            "relay_rss_bytes": self._held or _rss(self._pid),
            "relay_cpu_s": round(used, 3),
        }


class Load:
    """One run of a scenario."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked
        self.figures = Figures()
        self.relay = Relay(asked.relay_pid)
        self.links: list[Link] = []

    async def run(self) -> dict[str, object]:
        """Run it, close everything and tell."""
        scenarios: dict[str, Callable[[], Awaitable[None]]] = {
            "idle": self._idle, "sustained": self._sustained, "reconnect": self._reconnect,
            "ownership": self._ownership, "echo": self._echo,
        }  # fmt: skip
        await scenarios[self.asked.scenario]()
        sockets = self.figures.succeeded + self.figures.failed
        await self._close_all()
        return self.figures.told(self.asked, sockets, self.relay)

    async def _idle(self) -> None:
        began = time.monotonic()
        await self._gently([self._client(number) for number in range(self.asked.pairs)])
        self.figures.setup_s = time.monotonic() - began
        await asyncio.sleep(self.asked.duration)
        self.figures.steady_s = self.asked.duration
        self.relay.hold()

    async def _sustained(self) -> None:
        began = time.monotonic()
        pairs = await self._pairs()
        self.figures.setup_s = time.monotonic() - began
        await self._exchange([(source, sink) for a, b in pairs for source, sink in ((a, b), (b, a))])

    async def _echo(self) -> None:
        links = [await self._open(self.asked.endpoint[0]) for _ in range(self.asked.pairs * 2)]
        await self._exchange([(link, link) for link in links if link is not None])

    async def _reconnect(self) -> None:
        began = time.monotonic()
        for _ in range(self.asked.reconnects):
            pairs = await self._pairs()
            await self._exchange([(client, data) for client, data in pairs], seconds=0.0)
            await self._close_all()
        self.figures.setup_s = time.monotonic() - began

    async def _ownership(self) -> None:
        began = time.monotonic()
        await self._gently([self._claim(number) for number in range(self.asked.servers)])
        self.figures.setup_s = time.monotonic() - began

    async def _claim(self, number: int) -> None:
        await self._open(self._url(self._server(number), "client", number))

    async def _client(self, number: int) -> None:
        await self._open(self._url(self._server(number), "client", number))

    async def _pairs(self) -> list[tuple[Link, Link]]:
        """Open a control a server, then a data socket and a client a pair."""
        if not self.asked.no_control:
            await self._gently([self._control(number) for number in range(self.asked.servers)])
        pairs: list[tuple[Link, Link]] = []

        async def pair(number: int) -> None:
            server = self._server(number)
            data = await self._open(self._url(server, "server", number))
            client = await self._open(self._url(server, "client", number))
            if data is not None and client is not None:
                pairs.append((client, data))

        await self._gently([pair(number) for number in range(self.asked.pairs)])
        return pairs

    async def _control(self, number: int) -> None:
        await self._open(self._url(self._server(number), "server", None))

    async def _exchange(self, ways: Sequence[tuple[Link, Link]], seconds: float | None = None) -> None:
        """Send over each way at the rate, and wait until what was sent has come."""
        of = self.asked
        seconds = of.duration if seconds is None else seconds
        for source, sink in ways:
            sink.expect(source)
        began = time.monotonic()
        interval = of.batch_size / of.rate
        rounds = max(1, round(seconds / interval))
        senders = [
            self._send(source, rounds, interval, began + place * interval / len(ways))
            for place, (source, _) in enumerate(ways)
        ]
        await asyncio.gather(*senders)
        self.figures.steady_s += time.monotonic() - began
        await self._arrived(ways)
        self.relay.hold()
        for _, sink in ways:
            self.figures.received += sink.received
            self.figures.misordered += sink.misordered
            self.figures.waits_ns += sink.waits_ns
            sink.forget()

    async def _send(self, source: Link, rounds: int, interval: float, begin: float) -> None:
        for number in range(rounds):
            wait = begin + number * interval - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            for _ in range(self.asked.batch_size):
                await source.send_numbered(FRAME_BYTES)
        self.figures.sent += rounds * self.asked.batch_size

    async def _arrived(self, ways: Sequence[tuple[Link, Link]]) -> None:
        deadline = time.monotonic() + self.asked.cleanup_grace
        while time.monotonic() < deadline:
            if all(sink.received >= source.sent for source, sink in ways):
                return
            await asyncio.sleep(0.05)

    async def _open(self, url: str) -> Link | None:
        try:
            link = await Link.open(url, keepalive_s=self.asked.keepalive)
        except (OSError, RefusedError, TimeoutError) as error:
            self.figures.failed += 1
            print(f"could not connect: {error!r}", file=sys.stderr)
            return None
        self.figures.succeeded += 1
        self.links.append(link)
        return link

    async def _gently(self, work: Sequence[Awaitable[None]]) -> None:
        """Begin so many a second."""

        async def one(place: int, each: Awaitable[None]) -> None:
            await asyncio.sleep(place / self.asked.ramp)
            await each

        await asyncio.gather(*(one(place, each) for place, each in enumerate(work)))

    async def _close_all(self) -> None:
        links, self.links = self.links, []
        closed = await asyncio.gather(*(each.close(self.asked.cleanup_grace) for each in links))
        self.figures.cleanup_timeouts += closed.count(False)

    def _server(self, number: int) -> str:
        return f"{self.asked.server_id}-{number % self.asked.servers}"

    def _url(self, server: str, role: str, number: int | None) -> str:
        endpoints = self.asked.endpoint
        query = {"serverId": server, "role": role, "v": "2"}
        if number is not None:
            query["connectionId"] = f"{self.asked.connection_prefix}{number}"
        base = endpoints[hash(server) % len(endpoints)] if len(endpoints) > 1 else endpoints[0]
        return f"{base}/ws?{urlencode(query)}"


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.relay_load", description=__doc__)
    parser.add_argument(
        "--scenario", choices=("idle", "sustained", "reconnect", "ownership", "echo"), required=True
    )
    parser.add_argument("--endpoint", action="append", required=True, help="ws://host:port, may be repeated")
    parser.add_argument("--pairs", type=int, default=25)
    parser.add_argument("--servers", type=int, default=1, help="how many server ids they are spread over")
    parser.add_argument("--rate", type=float, default=50.0, help="frames a second of each socket")
    parser.add_argument("--duration", type=float, default=10.0, help="seconds")
    parser.add_argument("--batch-size", type=int, default=1, help="frames sent together")
    parser.add_argument("--ramp", type=float, default=500.0, help="connections begun a second")
    parser.add_argument("--reconnects", type=int, default=2, help="waves")
    parser.add_argument("--cleanup-grace", type=float, default=10.0, help="seconds to arrive and to close")
    parser.add_argument("--keepalive", type=float, default=0.0, help="seconds between pings; 0: none")
    parser.add_argument("--no-control", action="store_true", help="open no control")
    parser.add_argument("--connection-prefix", default="c")
    parser.add_argument("--server-id", default="load")
    parser.add_argument("--relay-pid", type=int, default=0)
    return parser.parse_args(given)


def command(scenario: str, port: int, pid: int, *options: str) -> list[str]:
    """Give what runs a scenario against a relay on this machine, as a process of its own."""
    module = [sys.executable, "-m", "tests.bench.relay_load", "--scenario", scenario]
    return [*module, "--relay-pid", str(pid), "--endpoint", f"ws://127.0.0.1:{port}", *options]


def main() -> int:
    """Run it."""
    asked = arguments()
    told = uvloop.run(_main(asked))
    print(json.dumps(told))
    faults = ("connections_failed", "lost", "misordered", "cleanup_timeouts")
    return int(any(told[name] for name in faults))


async def _main(asked: argparse.Namespace) -> dict[str, object]:
    return await Load(asked).run()


def _rss(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


if __name__ == "__main__":
    raise SystemExit(main())
