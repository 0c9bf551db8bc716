"""Spans to the X-Ray daemon: one datagram each, by its protocol; nobody waits, and nobody hears of a loss."""

import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

_HEADER = b'{"format":"json","version":1}\n'


class XrayDaemon:
    """Writes segment documents to a daemon, in Lambda beside the function."""

    def __init__(self, address: tuple[str, int]) -> None:
        """Write to a host and port by UDP."""
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._socket.settimeout(0)
        self._address = address

    def write(self, document: Mapping[str, Any]) -> None:
        """Send one document; a full buffer or an absent daemon loses it."""
        with suppress(OSError):
            self._socket.sendto(_HEADER + json.dumps(document, separators=(",", ":")).encode(), self._address)

    def close(self) -> None:
        """Let go of the socket."""
        self._socket.close()
