"""What docs/operations.md says of the log: which lines there are, and which keys each has."""

import re
from typing import Final

from infra.package import ROOT

_PAGE = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
_SECTION = _PAGE.partition("## The log\n")[2].partition("\n## ")[0]
_KEYS, _LINES = (part.partition("|---|")[2] for part in _SECTION.split("and those of its message:"))
_CODE = re.compile(r"`([a-z_]+(?:\.[a-z_]+)?)`")


def _rows(table: str) -> list[list[str]]:
    return [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| ")]


ALWAYS: Final = frozenset(key for row in _rows(_KEYS) for key in _CODE.findall(row[0]))
"""The keys that any line may have."""
LINES: Final = {
    message: frozenset(_CODE.findall(row[2])) for row in _rows(_LINES) for message in _CODE.findall(row[0])
}
"""The keys of each message besides."""
