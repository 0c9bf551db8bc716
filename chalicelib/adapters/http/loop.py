"""One event loop per process, in a thread of its own, for everything that is sent.

Connections outlive an invocation there; a handler hands work in and waits for its results.
"""

import asyncio
import threading


class BackgroundLoop:
    """An asyncio loop that runs in a daemon thread from the first time it is asked for."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def get(self) -> asyncio.AbstractEventLoop:
        """Give the running loop."""
        loop = self._loop
        if loop is None:
            with self._lock:
                loop = self._loop or self._start()
        return loop

    def _start(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, name="relay-sender", daemon=True).start()
        self._loop = loop
        return loop
