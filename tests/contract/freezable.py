"""A sender in a process of its own, which a test may freeze: `python -m tests.contract.freezable URL REST_S`.

For each line it reads it sends one request, over its loop as a function does, and writes what came of it.
"""

import json
import sys

from chalicelib.adapters.http.loop import BackgroundLoop
from chalicelib.adapters.http.sender import GuardedSender, SendLimits
from chalicelib.adapters.http.transport import GuardedTransport, Timeouts
from chalicelib.domain.request import Request
from chalicelib.domain.target import Policy

OPEN = Policy(require_https=False, allow_private=True, allowed_ports=None)
PATIENCE_S = 20


def main(url: str, rest_s: float) -> None:
    """Send whenever asked to, until there is nobody to ask."""
    transport = GuardedTransport(OPEN, Timeouts(rest_s=rest_s))
    sender = GuardedSender(transport, SendLimits(), BackgroundLoop())
    while sys.stdin.readline():
        with sender.outbox() as outbox:
            outbox.start("one", Request(url, (("Content-Length", "2"),), b"{}"))
            (ended,) = outbox.finished(PATIENCE_S)
        told = {"status": ended.reply.status, "fault": ended.reply.fault, "detail": ended.reply.detail}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
