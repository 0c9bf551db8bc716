"""`python -m tests.bench.sender`: the CPU of one POST over TLS, sent by the guarded sender and by others.

The server is another process; what is told is the CPU time of the sending process alone, by turns in one
run. Compare within a run only.
"""

import asyncio
import json
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import trustme

from chalicelib.adapters.http import tls
from chalicelib.adapters.http.guarded_httpx import GuardedHttpx
from chalicelib.adapters.http.loop import BackgroundLoop
from chalicelib.adapters.http.sender import GuardedSender, SendLimits
from chalicelib.adapters.http.transport import GuardedTransport, Timeouts
from chalicelib.domain.request import Request
from chalicelib.domain.target import Policy

TARGET = Path("build/bench/sender.json")
POSTS, FRESH, TURNS, WARM_UP = 600, 60, 7, 50
BODY = b'{"type":"order.paid","padding":"' + b"x" * 2_014 + b'"}'
RATIO_AT_MOST = 0.4
HOST = "localhost"
HEADERS = (
    ("Content-Type", "application/json"),
    ("Content-Length", str(len(BODY))),
    ("User-Agent", "Relay/bench"),
    ("Relay-Delivery-Id", "01a22a7c-5366-79c3-90eb-70e6bdfad2fa"),
    ("Relay-Event-Id", "evt_01a22a7c-5366-79c3-90eb-70e6bdfad2fa"),
    ("Relay-Event-Type", "order.paid"),
    ("Relay-Event-Time", "2026-11-30T18:00:00.000Z"),
    ("Relay-Attempt", "1"),
    ("Relay-Generation", "0"),
    ("Relay-Timestamp", "1796061600"),
    ("Relay-Signature", "v1=" + "0" * 64),
)


@dataclass(frozen=True, slots=True)
class Way:
    """One way to send: how a number of POSTs goes out, and how many of them a turn has."""

    send: Callable[[int], Awaitable[None]]
    posts: int


def main() -> int:
    """Measure; the exit code is 1 when the guarded sender costs too large a share of httpx as shipped."""
    with tempfile.TemporaryDirectory(prefix="relaybench-") as folder, _server(Path(folder)) as port:
        authority = Path(folder, "ca.pem")
        figures = asyncio.run(_measured(port, authority))
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures))
    print(f"written to {TARGET}")
    return int(figures["ratio"] > RATIO_AT_MOST)


async def _measured(port: int, authority: Path) -> dict[str, Any]:
    context = ssl.create_default_context(cafile=str(authority))
    tls.tls_context().load_verify_locations(cafile=str(authority))
    ways = {
        "keepalive_tls": Way(_guarded(port, fresh=False), POSTS),
        "fresh_tls": Way(_guarded(port, fresh=True), FRESH),
        "guarded_httpx": Way(_httpx(port, GuardedHttpx(_transport())), POSTS),
        "default_httpx": Way(_httpx(port, httpx.AsyncHTTPTransport(verify=context)), POSTS),
        "raw_asyncio": Way(_raw(port, context), POSTS),
    }
    for way in ways.values():
        await way.send(WARM_UP)
    used: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(TURNS):
        for name, way in ways.items():
            began = time.process_time()
            await way.send(way.posts)
            used[name].append((time.process_time() - began) / way.posts * 1e6)
    return _figures({name: statistics.median(each) for name, each in used.items()})


def _figures(cpu_us: Mapping[str, float]) -> dict[str, Any]:
    return {
        "cpu_us_keepalive_tls": round(cpu_us["keepalive_tls"]),
        "cpu_us_fresh_tls": round(cpu_us["fresh_tls"]),
        "httpx_over_the_guard_cpu_us_keepalive_tls": round(cpu_us["guarded_httpx"]),
        "default_httpx_cpu_us_keepalive_tls": round(cpu_us["default_httpx"]),
        "raw_asyncio_cpu_us": round(cpu_us["raw_asyncio"]),
        "ratio": round(cpu_us["keepalive_tls"] / cpu_us["default_httpx"], 3),
        "tls_context_ms": round(_context_ms(), 2),
        "plan": {
            "body_bytes": len(BODY),
            "posts_a_turn": POSTS,
            "turns": TURNS,
            "told": "the median turn's CPU time of the sending process, one send at a time",
        },
        "cores": os.cpu_count(),
    }


def _context_ms() -> float:
    times = []
    for _ in range(TURNS):
        tls.tls_context.cache_clear()
        began = time.perf_counter()
        tls.tls_context()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def _guarded(port: int, *, fresh: bool) -> Callable[[int], Awaitable[None]]:
    transport = _transport()
    sender = GuardedSender(transport, SendLimits(), BackgroundLoop())
    request = Request(f"https://{HOST}:{port}/hook", HEADERS, BODY)

    async def send(posts: int) -> None:
        for _ in range(posts):
            reply = await sender.send(request)
            if reply.status != httpx.codes.OK:
                raise RuntimeError(f"the guarded sender had {reply}")
            if fresh:
                await transport.aclose()

    return send


def _transport() -> GuardedTransport:
    return GuardedTransport(Policy(require_https=True, allow_private=True, allowed_ports=None), Timeouts())


def _httpx(port: int, transport: httpx.AsyncBaseTransport) -> Callable[[int], Awaitable[None]]:
    client = httpx.AsyncClient(transport=transport)

    async def send(posts: int) -> None:
        for _ in range(posts):
            answer = await client.post(f"https://{HOST}:{port}/hook", content=BODY, headers=HEADERS)
            answer.raise_for_status()

    return send


def _raw(port: int, context: ssl.SSLContext) -> Callable[[int], Awaitable[None]]:
    lines = [f"{name}: {value}" for name, value in (("Host", f"{HOST}:{port}"), *HEADERS)]
    message = "\r\n".join(["POST /hook HTTP/1.1", *lines, "", ""]).encode() + BODY
    opened: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def send(posts: int) -> None:
        if not opened:
            opened.append(await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=HOST))
        reader, writer = opened[0]
        for _ in range(posts):
            writer.write(message)
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(2)

    return send


@contextmanager
def _server(folder: Path) -> Iterator[int]:
    """Run the server in a process of its own; its port."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    authority.issue_cert(HOST).private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
    command = [sys.executable, "-m", "tests.bench.sender_server", str(folder / "server.pem")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            if process.stdout is None:
                raise RuntimeError("the server has no output")
            yield int(process.stdout.readline())
        finally:
            process.terminate()


if __name__ == "__main__":
    sys.exit(main())
