"""Times a newcomer's first delivery: `python -m tests.e2e.newcomer` clones, and does what the README says.

Nothing of this checkout is used but what is committed; what pip installs is fetched anew.
"""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from infra.local.processes import ROOT
from tests.e2e.reading import START, Reader, blocks, walk
from tests.e2e.stack import Ports, until

WITHIN_S = 300.0
RECORD = ROOT / "build/newcomer.json"
_STOPPED_WITHIN_S = 60.0
_FRESH = {"PIP_NO_CACHE_DIR": "1"}


def clone(folder: Path) -> Path:
    """Clone what is committed here."""
    git = shutil.which("git") or "git"
    subprocess.run([git, "clone", "--quiet", str(ROOT), str(folder)], check=True, timeout=60)
    return folder


@contextmanager
def started(checkout: Path, ports: Ports, within_s: float, *made: str) -> Iterator[None]:
    """Type the README's first line in a checkout and wait until Relay serves; Ctrl-C at the end.

    What is `made` already, make leaves alone.
    """
    command = blocks(checkout / "README.md")[0].splitlines()[0].split()
    options = {"api": ports.api, "receiver": ports.receiver, "emulator": ports.emulator, "node": ports.node}
    named = " ".join(f"--{name}-port {port}" for name, port in options.items())
    left = [f"--old-file={each}" for each in made]
    making = subprocess.Popen(
        [*command, *left, f"ARGS={named} --stop-with-stdin"],
        cwd=checkout,
        env={**os.environ, **_FRESH},
        stdin=subprocess.PIPE,
        stdout=sys.stderr,
        start_new_session=True,
    )
    written = checkout / ".relay/dev.json"
    try:
        until(lambda: making.poll() is not None or written.exists(), within_s)
        assert making.poll() is None, f"`{' '.join(command)}` ended with {making.returncode}"
        yield
    finally:
        _press_ctrl_c(making)


def _press_ctrl_c(making: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(making.pid, signal.SIGINT)
    try:
        making.communicate(timeout=_STOPPED_WITHIN_S)
    except subprocess.TimeoutExpired:
        os.killpg(making.pid, signal.SIGKILL)
        making.communicate()


def first_delivery(folder: Path) -> dict[str, Any]:
    """Do all of it in an empty folder and give the seconds of each step."""
    at = [time.monotonic()]
    checkout = clone(folder / "relay")
    assert blocks(checkout / "README.md")[0] == START
    at.append(time.monotonic())
    ports = Ports()
    with started(checkout, ports, WITHIN_S):
        at.append(time.monotonic())
        shown = walk(Reader(ports, folder))
        at.append(time.monotonic())
    assert shown["received"][0]["verified"] is True
    steps = dict(zip(("clone_s", "start_s", "deliver_s"), map(_seconds, at, at[1:]), strict=False))
    return {
        "seconds": _seconds(at[0], at[-1]),
        **steps,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def _seconds(began: float, ended: float) -> float:
    return round(ended - began, 1)


def main() -> int:
    """Record it; 0 when it took less than five minutes."""
    with tempfile.TemporaryDirectory(prefix="relay-newcomer-") as folder:
        record = first_delivery(Path(folder))
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(f"{json.dumps(record)}\nA newcomer's first delivery took {record['seconds']} s.\n")
    return 0 if record["seconds"] < WITHIN_S else 1


if __name__ == "__main__":
    sys.exit(main())
