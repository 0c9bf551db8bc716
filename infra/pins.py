"""Says where the pinned requirements have drifted from what was asked for; offline, installs nothing.

Each `.in` file asks for exact versions of what Relay uses by name; the `.txt` made from it by `make lock`
adds what those need, and the hashes.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ASKED_AND_PINNED: Final[Mapping[str, str]] = {
    "requirements/runtime.in": "requirements.txt",
    "requirements/chaos.in": "requirements/chaos.txt",
    "requirements/dev.in": "requirements/dev.txt",
    "requirements/emulator.in": "requirements/emulator.txt",
    "requirements/installer.in": "requirements/installer.txt",
    "requirements/lint.in": "requirements/lint.txt",
    "requirements/lock.in": "requirements/lock.txt",
    "requirements/node.in": "requirements/node.txt",
    "requirements/openapi.in": "requirements/openapi.txt",
}
# Environments that share packages: what the first pins, the second must pin the same.
SHARED: Final = (
    ("requirements.txt", "requirements/dev.txt"),
    ("requirements/installer.txt", "requirements/dev.txt"),
    ("requirements/node.txt", "requirements/dev.txt"),
)

_ASKED: Final = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[^\]]*\])?==(?P<version>\S+)$")
_PIN: Final = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;]+)")


@dataclass(frozen=True, slots=True)
class Pin:
    """One package as a `.txt` file holds it."""

    name: str
    version: str
    hashed: bool
    asked_by: frozenset[str]
    """The `.in` files that name it, as the lock wrote them."""


def drifts(root: Path) -> Iterator[str]:
    """Give one sentence for each way in which the files below root are out of step."""
    pins = {txt: tuple(_pins(root / txt)) for txt in ASKED_AND_PINNED.values()}
    for asked, txt in ASKED_AND_PINNED.items():
        yield from _unlike_asked(root, asked, txt, pins[txt])
        yield from _unsafe(root / txt, pins[txt])
    for first, second in SHARED:
        yield from _unlike_shared(first, _versions(pins[first]), second, _versions(pins[second]))


def _pins(txt: Path) -> Iterator[Pin]:
    for block in re.split(r"(?m)^(?=[A-Za-z0-9])", txt.read_text(encoding="utf-8")):
        if found := _PIN.match(block):
            asked_by = frozenset(re.findall(r"-r (\S+)", block))
            yield Pin(found["name"], found["version"], "--hash=sha256:" in block, asked_by)


def _asked(root: Path, asked: str) -> Iterator[str]:
    """Give the lines of an `.in` file that ask for a package."""
    for line in (root / asked).read_text(encoding="utf-8").splitlines():
        bare = line.partition("#")[0].strip()
        if bare and not bare.startswith("-"):
            yield bare


def _unlike_asked(root: Path, asked: str, txt: str, pins: tuple[Pin, ...]) -> Iterator[str]:
    versions = _versions(pins)
    names = set()
    for line in _asked(root, asked):
        wanted = _ASKED.match(line)
        if wanted is None:
            yield f"{asked} must name an exact version (name==version), not {line!r}"
            continue
        names.add(wanted["name"])
        if versions.get(wanted["name"]) != {wanted["version"]}:
            package = f"{wanted['name']} {wanted['version']}"
            yield f"{asked} asks for {package}, but {txt} does not have it: run `make lock`"
    for pin in pins:
        if asked in pin.asked_by and pin.name not in names:
            yield f"{txt} has {pin.name} for {asked}, which no longer asks for it: run `make lock`"


def _unsafe(txt: Path, pins: tuple[Pin, ...]) -> Iterator[str]:
    for pin in pins:
        if not pin.hashed:
            yield f"{txt.name} has {pin.name} without a hash: run `make lock`"
    if re.search(r"://|-index-url|--find-links", txt.read_text(encoding="utf-8")):
        yield f"{txt.name} names an address to install from; that belongs into pip's own configuration"


def _unlike_shared(
    first: str, firsts: Mapping[str, set[str]], second: str, seconds: Mapping[str, set[str]]
) -> Iterator[str]:
    for name, versions in firsts.items():
        if seconds.get(name) != versions:
            yield f"{first} and {second} have different versions of {name}: run `make lock`"


def _versions(pins: tuple[Pin, ...]) -> Mapping[str, set[str]]:
    """Give the versions by name; a package may have one for each kind of machine."""
    versions: dict[str, set[str]] = {}
    for pin in pins:
        versions.setdefault(pin.name, set()).add(pin.version)
    return versions


def main() -> int:
    """Print what is out of step; 0 when nothing is."""
    found = list(drifts(Path()))
    print("\n".join(found) or "requirements: in step")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
