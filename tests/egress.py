"""Watches every connection of a process: each leads to the AWS endpoint, or the guard has dialled it."""

import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from urllib.parse import urlsplit

from botocore import httpsession

from chalicelib.adapters import aws_json
from chalicelib.adapters.http import dial

VARIABLE = "RELAYTEST_EGRESS"
"""Names the file that a watched process writes a line into for each connection that is neither."""
_DIALLING = dial.dial.__code__
_CALLING_AWS = {aws_json.__file__, httpsession.__file__}
"""Who connects to AWS, or to the emulator that a test has given them: never to an endpoint."""


def watch(tell: Callable[[str], None], is_ours: Callable[[CodeType], bool]) -> None:
    """Tell of each connection from now on that some code of ours made, and that went past the guard.

    For as long as the process lives: Python has no way to take an audit hook away.
    """

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "socket.connect":
            address = arguments[1]
            if not _is_aws(address) and _went_past(is_ours):
                tell(f"a connection to {address} went past the guard")

    sys.addaudithook(hook)


def watch_all(path: str) -> None:
    """Watch whatever this process connects to, and write what went past the guard into a file."""

    def tell(line: str) -> None:
        with open(path, "a", encoding="utf-8") as file:  # noqa: PTH123 - a hook should do as little as it can
            file.write(line + "\n")

    watch(tell, lambda _: True)


def _went_past(is_ours: Callable[[CodeType], bool]) -> bool:
    """Look through the callers: somebody of ours, and nobody who dials for the guard or calls AWS."""
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - the one way to see who calls
    ours = False
    while frame is not None:
        if frame.f_code is _DIALLING or frame.f_code.co_filename in _CALLING_AWS:
            return False
        ours = ours or is_ours(frame.f_code)
        frame = frame.f_back
    return ours


def _is_aws(address: object) -> bool:
    """Say whether an address is the emulator's; local sockets of the machine are nobody's business."""
    if not isinstance(address, tuple):
        return True
    endpoint = urlsplit(os.environ.get("AWS_ENDPOINT_URL", ""))
    return bool(address[0] in {endpoint.hostname, "127.0.0.1"} and address[1] == endpoint.port)
