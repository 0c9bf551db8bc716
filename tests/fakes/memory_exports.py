"""Exports of the audit in a dictionary."""

from collections.abc import Sequence

from chalicelib.domain.audit import Record
from tests.fakes.faults import Faults, Step


class MemoryExports:
    """Implements `Exports`; `written` may be shared by processes, `writes` counts those of this one."""

    def __init__(self, written: dict[str, tuple[Record, ...]] | None = None) -> None:
        """Start with what others have written."""
        self.written = {} if written is None else written
        self.faults = Faults()

    def write(self, name: str, records: Sequence[Record]) -> None:
        """Write records as an object, over one of the same name."""
        with self.faults.around(Step("export", (name,))), self.faults.write():
            self.written[name] = tuple(records)
