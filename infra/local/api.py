"""The API process of the one-machine runtime: `python -m infra.local.api`."""

import argparse
import signal
import sys

from infra.local.gateway import Gateway
from infra.local.loading import load_app
from infra.local.readiness import say_ready
from infra.local.wsgi_server import Server

# Requests wait on the store most of their time, so threads cost little and let a burst in.
_THREADS = 32


def main() -> int:
    """Serve the app until SIGTERM or SIGINT; the exit code says whether it could."""
    options = _options()
    app = load_app(options.app)
    try:
        server = Server(Gateway(app), options.port, options.threads)
    except OSError as error:
        sys.stderr.write(f"The API cannot listen on port {options.port}: {error.strerror}.\n")
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.stop())
    say_ready(options.ready_fd)
    server.run()
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m infra.local.api", description=__doc__)
    parser.add_argument("--app", default="app:app", help="module:attribute of the Chalice app")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--threads", type=int, default=_THREADS)
    parser.add_argument("--ready-fd", type=int, default=None, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
