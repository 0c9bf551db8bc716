"""What reading the audit needs of the world."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from chalicelib.application.ports.keeping import Page
from chalicelib.domain.audit import Action, Record
from chalicelib.domain.audit_export import Exported


@dataclass(frozen=True, slots=True)
class Asking:
    """Which records: of one action or of one subject if so asked, made in a time (Unix ms, end excluded)."""

    action: Action | None = None
    subject: str = ""
    since_ms: int = 0
    until_ms: int | None = None

    def fits(self, record: Record) -> bool:
        """Say whether a record is of the action and the subject that were asked for."""
        return self.action in {None, record.action} and self.subject in {"", record.subject}


class Auditing(Protocol):
    """Where the audit is read; its records are written by the stores of what they tell of."""

    def page(self, tenant: str, asking: Asking, after: str, limit: int, now_ms: int) -> Page[Record]:
        """List a tenant's records, newest first, looking at a bounded number of them.

        So a page may be shorter than its limit, or empty, and still have another behind it.
        """
        ...


class ExportingAudit(Protocol):
    """What the export of the audit reads, and where it notes how far it has come."""

    def exported(self) -> Exported | None:
        """Read how far the export has come; None: it never ran."""
        ...

    def move(self, old: Exported | None, new: Exported) -> bool:
        """Note how far it has come since it was read; False when another run has come further."""
        ...

    def tenants(self, hour: int) -> list[str]:
        """List the tenants that have records of an hour (since the epoch), in order; a moment late."""
        ...

    def records(self, tenant: str, hour: int, after: str, limit: int) -> list[Record]:
        """Read a tenant's records of an hour behind an id, oldest first, strongly consistent."""
        ...


class Exports(Protocol):
    """Where exports are written."""

    def write(self, name: str, records: Sequence[Record]) -> None:
        """Write records as an object, over one of the same name."""
        ...
