"""Pacing: a tenant's fan-outs keep to its budget of deliveries a second, and none is ever dropped.

What cannot be paid for at once is reserved: its tokens come in at a known moment, which is when it goes. So
fan-outs go in the order in which they came, nobody waits at a closed door, and nobody has to ask again.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from chalicelib.application.limiter import Limiter, Need
from chalicelib.application.ports import Allowance, Clock, Subscriber, Tenants
from chalicelib.application.remembered import Remembered
from chalicelib.domain import allowance
from chalicelib.domain.allowance import Pace
from chalicelib.domain.tenant import QUOTAS_MAX, Quotas

FAN_OUT = "fan-out"


@dataclass(frozen=True, slots=True)
class Wanted:
    """How many deliveries an event would owe: to ordered endpoints, which never wait, and to others."""

    ordered: int = 0
    others: int = 0

    @classmethod
    def of(cls, subscribers: Collection[Subscriber]) -> "Wanted":
        """Count what an event owes to these."""
        ordered = sum(each.ordered for each in subscribers)
        return cls(ordered, len(subscribers) - ordered)


class KnownQuotas:
    """Tenants' quotas as they were a moment ago; of a tenant that is not there nothing is counted."""

    def __init__(self, tenants: Tenants, clock: Clock, keep_ms: int) -> None:
        """Know nothing yet, and nothing for longer than this."""
        self._tenants = tenants
        self._clock = clock
        self._known = Remembered[str, Quotas](keep_ms)

    def fan_out_per_second(self, tenant: str) -> int:
        """Give a tenant's budget of deliveries a second."""
        quotas = self._known.get(tenant, self._clock.now_ms(), self._read) or QUOTAS_MAX
        return quotas.fan_out_per_second

    def _read(self, tenant: str) -> Quotas:
        found = self._tenants.get(tenant)
        return found.quotas if found else QUOTAS_MAX


@dataclass(frozen=True, slots=True)
class Pacing:
    """Pays for deliveries; `per_second` tells a tenant's budget."""

    limiter: Limiter
    clock: Clock
    per_second: Callable[[str], int]

    def admit(self, tenant: str, per_second: int, events: Sequence[Wanted]) -> list[Pace | None]:
        """Pay for what events owe, in turn; None for one that may go at once, else when its first part may.

        What ordered endpoints are owed is paid for too, and owed to the budget when it is not there.
        """
        most = allowance.capacity(allowance.bucket_of(per_second))
        parts = [each.ordered + min(each.others, most) for each in events]
        if not any(parts):
            return [None] * len(events)
        need = Need(Allowance(tenant, FAN_OUT), per_second, sum(parts))
        there = self.limiter.take(need).count
        lacking = list(_lacking(parts, there))
        paces = self._reserved(tenant, per_second, lacking)
        return [
            None if not each.others or not (short or each.others > most) else pace.of(part - each.ordered)
            for each, part, short, pace in zip(events, parts, lacking, paces, strict=True)
        ]

    def go_on(self, tenant: str, pace: Pace, left: Callable[[], int]) -> Pace:
        """Say when the next part of a fan-out may go as the budget is now; one not paid for yet is."""
        per_second = self.per_second(tenant)
        bucket = allowance.bucket_of(per_second)
        if pace.paid:
            return pace.under(bucket, self.clock.now_us())
        part = min(left(), allowance.capacity(bucket))
        return self._reserved(tenant, per_second, [part])[0] if part else pace

    def moved(self, tenant: str, pace: Pace) -> bool:
        """Say whether what waits goes at another moment now, as the budget has changed."""
        bucket = allowance.bucket_of(self.per_second(tenant))
        return pace.under(bucket, self.clock.now_us()) != pace

    def _reserved(self, tenant: str, per_second: int, counts: Sequence[int]) -> list[Pace]:
        need = Need(Allowance(tenant, FAN_OUT), per_second, sum(counts))
        tat = self.limiter.reserve(need) if need.count else 0
        return list(allowance.paces(need.bucket, tat, counts))


def _lacking(parts: Sequence[int], there: int) -> Iterator[int]:
    """Say how much of each is not there, in turn."""
    for part in parts:
        had = min(part, there)
        there -= had
        yield part - had
