"""What telling owners needs of the world: the marks, what was told, and the channel."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from chalicelib.application.ports.keeping import Page
from chalicelib.domain.notice import Letters, Notice, Sight, Told


@dataclass(frozen=True, slots=True)
class Alert:
    """A gate's mark that its endpoint has to be looked at: since, or from, when (Unix µs)."""

    tenant: str
    endpoint_id: str
    at_us: int


class Noticing(Protocol):
    """Where it stands what owners have to be told, and what they have been."""

    def alerts(self, now_us: int) -> Iterable[Alert]:
        """Walk the endpoints that have to be looked at by now."""
        ...

    def look(self, alert: Alert) -> Sight | None:
        """Read an endpoint, its gate and what was told of it, strongly consistent; None: there is none."""
        ...

    def letters(self, tenant: str, endpoint_id: str, limit: int) -> Letters:
        """Read an endpoint's dead letters, those of the newest events first."""
        ...

    def tell(
        self, alert: Alert, before: Told, told: Told, raised: Sequence[Notice], taken: Sequence[Notice]
    ) -> Told | None:
        """Write what is told, new notices and marks on those taken, all or nothing; None: another was first.

        `before` is what was read; the answer is what is there now. At most 99 notices.
        """
        ...

    def notices(self, tenant: str, notice_ids: Sequence[str]) -> list[Notice]:
        """Read notices by id, in the order asked; what is gone is left out."""
        ...

    def looked(self, alert: Alert, now_us: int, again_us: int | None) -> bool:
        """Take a mark away, or move it to when there is more to see; False when it was set anew."""
        ...

    def page(self, tenant: str, after: str, limit: int, now_ms: int) -> Page[Notice]:
        """List a tenant's notices, newest first."""
        ...


class Announcer(Protocol):
    """The channel by which owners are told; it does not depend on their endpoints."""

    def publish(self, notice: Notice) -> None:
        """Hand a notice to the channel; Unavailable when it was not, or not surely, taken."""
        ...
