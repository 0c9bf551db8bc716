"""The workers process of the one-machine runtime: `python -m infra.local.workers`."""

import argparse
import logging
import os
import signal
import sys
import threading

from infra.local.event_sources import DEFAULT_PREFIX, LONG_POLLING, SHORT_POLLING, EventSources, SourceOptions
from infra.local.invocation import FUNCTION_TIMEOUT_S
from infra.local.loading import load_app
from infra.local.logs import log_line
from infra.local.queues import EmulatorQueues, QueueError
from infra.local.readiness import say_ready

# A delivery may take ten seconds to send, and a moment to settle.
_STOP_WITHIN_S = 20.0


def main() -> int:
    """Run event sources and schedules until SIGTERM or SIGINT; 1 when not all of it ended in time."""
    options = _options()
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    try:
        sources = EventSources(
            load_app(options.app),
            EmulatorQueues(os.environ["AWS_ENDPOINT_URL"]),
            _source_options(options),
        )
    except (QueueError, ValueError) as error:
        sys.stderr.write(f"The workers cannot start: {error}\n")
        return 1
    sources.start()
    say_ready(options.ready_fd)
    stopping.wait()
    abandoned = sources.stop(options.stop_within)
    if abandoned:
        log_line(logging.WARNING, "workers.abandoned", invocations=abandoned)
    _leave(int(bool(abandoned)))
    return 0


def _leave(code: int) -> None:
    """End without waiting for threads that did not end in time."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _source_options(options: argparse.Namespace) -> SourceOptions:
    return SourceOptions(
        slots=options.slots,
        prefix=os.environ.get("RELAY_RESOURCE_PREFIX", DEFAULT_PREFIX),
        timeout_s=float(os.environ.get("RELAY_FUNCTION_TIMEOUT_SECS", FUNCTION_TIMEOUT_S)),
        cap=options.cap,
        speed=options.schedule_speed,
        polling=SHORT_POLLING if options.short_polling else LONG_POLLING,
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m infra.local.workers", description=__doc__)
    parser.add_argument("--app", default="app:app", help="module:attribute of the Chalice app")
    parser.add_argument("--slots", type=int, default=64, help="invocations at once, beside one per queue")
    parser.add_argument("--cap", type=int, default=None, help="invocations at once of any one function")
    parser.add_argument(
        "--schedule-speed", type=float, default=1.0, help="how often schedules run, as a factor"
    )
    parser.add_argument("--short-polling", action="store_true", help="never wait inside the queue (moto)")
    parser.add_argument("--stop-within", type=float, default=_STOP_WITHIN_S, help="seconds to end what runs")
    parser.add_argument("--ready-fd", type=int, default=None, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
