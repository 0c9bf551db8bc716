"""A function's archive that depends on nothing but what is in it."""

from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

_LONG_AGO: Final = (1980, 1, 1, 0, 0, 0)
_READABLE: Final = 0o100644 << 16


def make_reproducible(path: Path) -> None:
    """Write a zip file again in one order, with one date and rights that Lambda can read."""
    tidy = path.with_suffix(".tidy")
    with ZipFile(path) as untidy, ZipFile(tidy, "w", ZIP_DEFLATED) as archive:
        for name in sorted(untidy.namelist()):
            entry = ZipInfo(name, _LONG_AGO)
            entry.compress_type = ZIP_DEFLATED
            entry.external_attr = _READABLE
            archive.writestr(entry, untidy.read(name))
    tidy.replace(path)
