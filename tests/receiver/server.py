"""The receiver as a whole: listening, in a loop of its own thread or in somebody else's."""

import asyncio
import ssl
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self, TypeVar, Unpack

from tests.receiver.connection import Connection
from tests.receiver.control import switched
from tests.receiver.entry import Record
from tests.receiver.log import DEFAULT_CAPACITY, DeliveryLog, Where
from tests.receiver.script import parse_script
from tests.receiver.site import UP, Site

BACKLOG = 1024
THREAD_DEADLINE_S = 30
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Options:
    """How a receiver is set up: `port` 0 takes a free one, `seed` decides the dice of `/flaky`."""

    host: str = "127.0.0.1"
    port: int = 0
    ssl_context: ssl.SSLContext | None = None
    seed: int = 0
    capacity: int = DEFAULT_CAPACITY
    log_file: Path | None = None


class Server:
    """The listening half. Belongs to the loop it was started in."""

    def __init__(self, options: Options) -> None:
        """Prepare; nothing is opened before `start`."""
        self._options = options
        self._file: BinaryIO | None = None
        self._listener: asyncio.Server | None = None
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._accepted = 0
        write = None if options.log_file is None else self._append
        self.site = Site(DeliveryLog(options.capacity, write), options.seed)
        self.port = options.port

    async def start(self) -> None:
        """Listen; OSError when the port cannot be had or the log file cannot be opened."""
        options = self._options
        if options.log_file is not None:
            self._file = options.log_file.open("ab", buffering=0)
        self._listener = await asyncio.get_running_loop().create_server(
            self._connect, options.host, options.port, backlog=BACKLOG, ssl=options.ssl_context
        )
        self.port = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening and drop every connection."""
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._connections):
            connection.drop()
        await asyncio.sleep(0)
        if self._file is not None:
            self._file.close()

    def _connect(self) -> Connection:
        self._accepted += 1
        self.site.counts.accepts += 1
        connection = Connection(self.site, self._accepted)
        self._connections.add(connection)
        return connection

    def _append(self, line: bytes) -> None:
        if self._file is not None:
            self._file.write(line)


class Receiver:
    """A receiver in a thread of its own, for tests: start it with `with` and ask it from any thread."""

    def __init__(
        self,
        *,
        port: int = 0,
        ssl_context: ssl.SSLContext | None = None,
        seed: int = 0,
        log_file: Path | None = None,
    ) -> None:
        """Prepare; nothing is opened before the `with` block. Port 0 is a free one."""
        self._options = Options(port=port, ssl_context=ssl_context, seed=seed, log_file=log_file)
        self._server = Server(self._options)
        self._listening: Future[asyncio.AbstractEventLoop] = Future()
        self._leave = asyncio.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name="receiver", daemon=True
        )

    def __enter__(self) -> Self:
        """Listen before the block begins; OSError when that fails."""
        self._thread.start()
        self._loop = self._listening.result(THREAD_DEADLINE_S)
        return self

    def __exit__(self, *_error: object) -> None:
        """Drop every connection and end the thread."""
        self._loop.call_soon_threadsafe(self._leave.set)
        self._thread.join(THREAD_DEADLINE_S)

    @property
    def port(self) -> int:
        """Give the port it listens on."""
        return self._server.port

    def url(self, target: str = "/") -> str:
        """Give the whole address of a route."""
        scheme = "http" if self._options.ssl_context is None else "https"
        return f"{scheme}://{self._options.host}:{self.port}{target}"

    def add_secret(self, secret: str, endpoint: str | None = None) -> None:
        """Register a secret, as `POST /secret` does."""
        self._ask(lambda: self._server.site.secrets.add(secret, endpoint))

    def script(self, key: str, *answers: Record) -> str:
        """Write the answers of a path, as `POST /script` does, and give its whole address."""
        script = parse_script(list(answers))
        self._ask(lambda: self._server.site.scripts.__setitem__(key, script))
        return self.url(f"/script/{key}")

    def toggle(self, to: str, key: str = "") -> None:
        """Switch `/toggle[/<key>]`, as `POST /toggle?to=` does."""
        toggles = self._server.site.toggles
        self._ask(lambda: toggles.__setitem__(key, switched(to, toggles.get(key, UP))))

    def received(self, **where: Unpack[Where]) -> list[Record]:
        """List what arrived, oldest first, as `GET /received` does."""
        return self._ask(lambda: [entry.full() for entry in self._server.site.log.find(where)])

    def wait_for(self, count: int = 1, *, timeout_s: float = 10, **where: Unpack[Where]) -> list[Record]:
        """Give what matches as soon as there are `count` of it; TimeoutError says how many came."""
        log = self._server.site.log
        waiting = asyncio.run_coroutine_threadsafe(log.wait(where, count, timeout_s), self._loop)
        try:
            entries = waiting.result(timeout_s + THREAD_DEADLINE_S)
        except TimeoutError:
            came = self._ask(lambda: log.count(where))
            raise TimeoutError(
                f"{came} of {count} deliveries with {dict(where)} came within {timeout_s} s"
            ) from None
        return self._ask(lambda: [entry.full() for entry in entries])

    def stats(self) -> Record:
        """Give the counts, as `GET /stats` does."""
        return self._ask(self._server.site.stats)

    def reset(self, *, keep_secrets: bool = False) -> None:
        """Forget everything, as `POST /reset` does."""
        self._ask(lambda: self._server.site.reset(keep_secrets=keep_secrets))

    def _ask(self, function: Callable[[], Result]) -> Result:
        answer: Future[Result] = Future()

        def run() -> None:
            try:
                answer.set_result(function())
            except Exception as error:  # noqa: BLE001 - carried to the asking thread
                answer.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return answer.result(THREAD_DEADLINE_S)

    async def _serve(self) -> None:
        try:
            await self._server.start()
        except OSError as wrong:
            self._listening.set_exception(wrong)
            return
        self._listening.set_result(asyncio.get_running_loop())
        await self._leave.wait()
        await self._server.stop()
