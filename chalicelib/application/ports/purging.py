"""What purging needs of the world."""

from collections.abc import Iterable
from typing import Protocol

from chalicelib.domain.audit import Record
from chalicelib.domain.purge import LetterPurge, Purge, Swept
from chalicelib.domain.tenant import Tenant


class Purging(Protocol):
    """Where purges are kept, and what they remove."""

    def begin(self, old: Tenant, new: Tenant, purge: Purge, record: Record) -> bool:
        """Write a tenant that is being purged, and its purge, together; False when it changed meanwhile."""
        ...

    def waiting(self) -> Iterable[Purge]:
        """Walk the purges of tenants, due or not."""
        ...

    def note(self, old: Purge, new: Purge) -> bool:
        """Write how far one has come since it was read; False when another run has come further."""
        ...

    def sweep(self, purge: Purge, limit: int) -> Swept:
        """Remove about so many rows, at most, of the stage a purge is at, from where it was left."""
        ...

    def finish(self, purge: Purge, record: Record) -> bool:
        """Remove the tenant's row and its purge, and write the audit's record, together."""
        ...

    def letters(self, tenant: str, endpoint_id: str) -> LetterPurge | None:
        """Read an endpoint's purge of dead letters, one that is done too."""
        ...

    def count_letters(self, tenant: str, endpoint_id: str, before_ms: int, limit: int) -> tuple[int, bool]:
        """Count dead letters given up on before a moment, and say whether so many were looked at at most."""
        ...

    def begin_letters(self, old: LetterPurge | None, new: LetterPurge, record: Record) -> bool:
        """Write a purge of dead letters over the one that was read; False when another was begun."""
        ...

    def letters_waiting(self) -> Iterable[LetterPurge]:
        """Walk the purges of dead letters that are not done."""
        ...

    def sweep_letters(self, purge: LetterPurge, limit: int) -> Swept:
        """Remove what is to go of about so many dead letters, from where it was left."""
        ...

    def note_letters(self, old: LetterPurge, new: LetterPurge) -> bool:
        """Write how far one has come since it was read; False when another run has come further."""
        ...
