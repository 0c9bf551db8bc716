"""Somebody who reads the documents and types what they say, as it stands but for the ports."""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.local.processes import ROOT
from tests.e2e.stack import Ports, until

README = ROOT / "README.md"
START = "make dev\nmake test\n"
"""The README's first block: the first line starts everything and stays."""
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# An answer that is an error ends the block, which curl by itself would only do with an option.
HONEST = f"""set -euo pipefail
curl() {{ command curl --fail-with-body "$@"; }}
make() {{ command make --no-print-directory -C {ROOT} "$@"; }}
"""


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody with a Relay at these ports, who types in a folder of their own."""

    ports: Ports
    folder: Path

    def types(self, block: str) -> str:
        """Run a block but for its `make` lines and give what was shown."""
        commands = "".join(line for line in block.splitlines(keepends=True) if not line.startswith("make "))
        here = commands.replace(":8080", f":{self.ports.api}").replace(":9099", f":{self.ports.receiver}")
        bash = shutil.which("bash") or "bash"
        typed = subprocess.run(
            [bash, "-c", HONEST + here],
            cwd=self.folder, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert typed.returncode == 0, f"{here}\nended with {typed.returncode}: {typed.stdout}{typed.stderr}"
        return typed.stdout

    def repeats(self, block: str, word: str) -> Any:  # noqa: ANN401 - whatever JSON is shown
        """Type a block again and again until a word is in what it shows."""
        shown = ""

        def has_come() -> bool:
            nonlocal shown
            shown = self.types(block)
            return word in shown

        until(has_come, within_s=30)
        return json.loads(shown)


def blocks(page: Path) -> list[str]:
    """Give what a page has to be typed, block by block."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def walk(reader: Reader) -> dict[str, Any]:
    """Walk the README from the started Relay to the delivery, and give what each step showed."""
    start, *steps = blocks(README)
    assert start == START
    register, hand_over, post, received, ask = steps
    return {
        "endpoint": json.loads(reader.types(register)),
        "secrets": json.loads(reader.types(hand_over)),
        "accepted": json.loads(reader.types(post)),
        "received": reader.repeats(received, "delivery_id"),
        "delivery": reader.repeats(ask, "succeeded"),
    }
