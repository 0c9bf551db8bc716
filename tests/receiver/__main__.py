"""The receiver as a program: `python -m tests.receiver`."""

import argparse
import asyncio
import errno
import os
import signal
import ssl
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.receiver.log import DEFAULT_CAPACITY
from tests.receiver.server import Options, Server

DEFAULT_PORT = 9099


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until interrupted; 1 and one sentence when it cannot start."""
    given = _parser().parse_args(arguments)
    try:
        asyncio.run(_serve(_options(given)))
    except OSError as wrong:
        sys.stderr.write(f"The receiver cannot start on {given.host}:{given.port}: {_why(wrong)}.\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.receiver", description="A webhook receiver that misbehaves."
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", type=int, default=DEFAULT_PORT, help="port, 0 for a free one (default: %(default)s)"
    )
    parser.add_argument(
        "--log", type=Path, metavar="FILE", help="append one JSON line per delivery to this file"
    )
    parser.add_argument("--seed", type=int, default=0, help="decides which deliveries /flaky fails")
    parser.add_argument("--capacity", type=int, default=DEFAULT_CAPACITY, help="deliveries kept in memory")
    parser.add_argument(
        "--cert", type=Path, metavar="FILE", help="serve TLS with this certificate chain (PEM)"
    )
    parser.add_argument("--key", type=Path, metavar="FILE", help="private key of the certificate (PEM)")
    return parser


def _options(given: argparse.Namespace) -> Options:
    context = None
    if given.cert is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(given.cert, given.key)
    return Options(given.host, given.port, context, given.seed, given.capacity, given.log)


async def _serve(options: Options) -> None:
    server = Server(options)
    await server.start()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    scheme = "http" if options.ssl_context is None else "https"
    sys.stdout.write(f"Receiver on {scheme}://{options.host}:{server.port} (GET / lists what it can do)\n")
    sys.stdout.flush()
    await stop.wait()
    await server.stop()


def _why(wrong: OSError) -> str:
    if wrong.errno == errno.EADDRINUSE:
        return "the port is taken"
    return os.strerror(wrong.errno) if wrong.errno else str(wrong)


if __name__ == "__main__":
    sys.exit(main())
