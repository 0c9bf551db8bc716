"""A request as a line for a shell: what a developer runs to have it once more, at an address of theirs.

Whatever the bytes, the shell and curl take them as they are: all is quoted, and what a terminal would not
carry goes through base64.
"""

import base64
import shlex
from collections.abc import Iterable

FILE = "payload.bin"
INLINE_MAX = 65_536
"""How long a body may be, in bytes, that stands in the line: a shell bounds an argument at 128 KiB."""
_BY_CURL = frozenset({"host", "content-length", "accept"})
_BASE = "curl --globoff --request POST"


def line(url: str, headers: Iterable[tuple[str, str]], body: bytes | None) -> str:
    """Write the command; without a body it reads the bytes from the file `payload.bin`.

    curl itself writes the Host header, the length, and that any answer is accepted.
    """
    named = [f"{name}: {value}" for name, value in headers if name.lower() not in _BY_CURL]
    given = " ".join(f"--header {shlex.quote(each)}" for each in (*named, "Expect:"))
    command = f"{_BASE} {shlex.quote(url)} {given} --data-binary"
    if body is None:
        return f"{command} @{FILE}"
    text = _as_argument(body)
    if text is not None:
        return f"{command} {shlex.quote(text)}"
    coded = base64.b64encode(body).decode("ascii")
    return f"printf %s {shlex.quote(coded)} | base64 -d | {command} @-"


def _as_argument(body: bytes) -> str | None:
    """Give a body as text that a terminal carries as it is, or None; curl reads a file after an @."""
    if body.startswith(b"@"):
        return None
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    return text if all(part.isprintable() for part in text.split("\n")) else None
