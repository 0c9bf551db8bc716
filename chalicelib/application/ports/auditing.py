"""What reading the audit needs of the world."""

from dataclasses import dataclass
from typing import Protocol

from chalicelib.application.ports.keeping import Page
from chalicelib.domain.audit import Action, Record


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
