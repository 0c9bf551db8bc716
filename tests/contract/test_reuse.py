"""Connections are used again while they last, and replaced at no cost when a function was frozen."""

import asyncio
import json
import os
import signal
import socket
import ssl
import struct
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import trustme

from chalicelib.adapters.http.loop import BackgroundLoop
from chalicelib.adapters.http.sender import GuardedSender, SendLimits
from chalicelib.adapters.http.transport import GuardedTransport, Timeouts
from chalicelib.domain.request import Request
from chalicelib.domain.target import Policy
from tests.receiver.entry import Record
from tests.receiver.server import Receiver

OPEN = Policy(require_https=False, allow_private=True, allowed_ports=None)
HERE = "127.0.0.1"
ENDPOINTS, POSTS, AT_ONCE = 10, 2_000, 8
REUSED_AT_LEAST = 0.95
PATIENCE_S = 20
SHORT_S, LONG_S = 0.3, 600.0


def serving(authority: trustme.CA, *hosts: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*hosts).configure_cert(context)
    return context


async def here(_: str) -> list[str]:
    return [HERE]


def test_a_warm_function_uses_its_connections_again(authority: trustme.CA) -> None:
    hosts = [f"e{number}.example" for number in range(ENDPOINTS)]
    with Receiver(ssl_context=serving(authority, *hosts)) as receiver:
        loop, transport = BackgroundLoop(), GuardedTransport(OPEN, Timeouts(), here)
        sender = GuardedSender(transport, SendLimits(), loop)
        urls = [f"https://{host}:{receiver.port}/sink" for host in hosts]
        statuses: Counter[int | None] = Counter()
        per_visit = ENDPOINTS * AT_ONCE
        for _ in range(POSTS // per_visit):
            with sender.outbox() as outbox:
                for number in range(per_visit):
                    url = urls[number % ENDPOINTS]
                    outbox.start(f"{number}", Request(url, (("Content-Length", "2"),), b"{}"))
                ended = 0
                while ended < per_visit:
                    batch = outbox.finished(PATIENCE_S)
                    assert batch
                    ended += len(batch)
                    statuses.update(each.reply.status for each in batch)
        asyncio.run_coroutine_threadsafe(transport.aclose(), loop.get()).result(PATIENCE_S)
        accepts = receiver.stats()["accepts"]
    assert statuses == {200: POSTS}
    assert 1 - accepts / POSTS > REUSED_AT_LEAST


class Peer:
    """Answers every request, until it is told to do something to the connections it has."""

    def __init__(self) -> None:
        self.requests = 0
        self.writers: list[asyncio.StreamWriter] = []
        self._forgotten: set[asyncio.StreamWriter] = set()

    async def met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(2)
                if writer not in self._forgotten:
                    self.requests += 1
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def close(self) -> None:
        for each in self.writers:
            each.close()

    def reset(self) -> None:
        for each in self.writers:
            linger = struct.pack("ii", 1, 0)
            each.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            each.transport.abort()

    def forget(self) -> None:
        """Go silent on these connections, as a NAT gateway does that has forgotten them."""
        self._forgotten.update(self.writers)


class Worker:
    """A process that sends when asked to."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def ask(self) -> None:
        assert self._process.stdin
        self._process.stdin.write(b"\n")

    async def told(self) -> Record:
        assert self._process.stdout
        line: Record = json.loads(await asyncio.wait_for(self._process.stdout.readline(), PATIENCE_S))
        return line

    def freeze(self) -> None:
        """Stop the process, and wait until it has stopped."""
        os.kill(self._process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)

    def thaw(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)


@asynccontextmanager
async def working(context: ssl.SSLContext, rest_s: float) -> AsyncIterator[tuple[Worker, Peer]]:
    peer = Peer()
    async with await asyncio.start_server(peer.met, HERE, 0, ssl=context) as server:
        url = f"https://{HERE}:{server.sockets[0].getsockname()[1]}/hook"
        pipe = asyncio.subprocess.PIPE
        command = (sys.executable, "-m", "tests.contract.freezable", url, str(rest_s))
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        try:
            yield Worker(process), peer
        finally:
            process.kill()
            await process.wait()
            peer.close()


@pytest.mark.parametrize("meanwhile", [Peer.close, Peer.reset])
def test_a_connection_that_was_closed_while_the_function_was_frozen_costs_no_attempt(
    meanwhile: Callable[[Peer], None], authority: trustme.CA
) -> None:
    async def run() -> None:
        async with working(serving(authority, HERE), LONG_S) as (worker, peer):
            worker.ask()
            assert (await worker.told())["status"] == 200
            worker.freeze()
            meanwhile(peer)
            await asyncio.sleep(SHORT_S)  # what is tested: that time passes while nobody looks
            await thawed(worker, peer)

    asyncio.run(run())


def test_a_connection_that_was_forgotten_while_the_function_was_frozen_costs_no_attempt(
    authority: trustme.CA,
) -> None:
    async def run() -> None:
        async with working(serving(authority, HERE), SHORT_S) as (worker, peer):
            worker.ask()
            assert (await worker.told())["status"] == 200
            worker.freeze()
            peer.forget()
            await asyncio.sleep(SHORT_S)  # what is tested: that time passes while nobody looks
            await thawed(worker, peer)

    asyncio.run(run())


async def thawed(worker: Worker, peer: Peer) -> None:
    """Let the worker send at once as it thaws: over a new connection, one request, nothing to tell."""
    worker.ask()
    worker.thaw()
    assert await worker.told() == {"status": 200, "fault": None, "detail": ""}
    assert (len(peer.writers), peer.requests) == (2, 2)
