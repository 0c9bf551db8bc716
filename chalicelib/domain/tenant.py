"""A tenant: an account with its contacts, its quotas and what it calls sensitive.

Accounting, not isolation: the unit of isolation is the endpoint.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum

DEFAULT_TENANT = "default"
NAME_MAX = 200
CONTACTS_MAX = 10
CONTACT_MAX = 254


class TenantState(StrEnum):
    """Whether a tenant is served, or all that is its own is being removed."""

    ACTIVE = "active"
    PURGING = "purging"


@dataclass(frozen=True, slots=True)
class Quotas:
    """What a tenant may have and do: endpoints, events and deliveries a second, and requests a second a key.

    A fan-out above its budget is paced, never dropped.
    """

    endpoints: int = 1_000
    events_per_second: int = 200
    fan_out_per_second: int = 1_000
    requests_per_second: int = 100


QUOTAS_MAX = Quotas(5_000, 100_000, 1_000_000, 100_000)
"""The most that an operator may grant of each; one is the least.

Endpoints: should all subscribe to one pattern, they stand in one row, which DynamoDB bounds at 400 KB.
"""


@dataclass(frozen=True, slots=True)
class Tenant:
    """One account. `version` counts changes; times are Unix epoch milliseconds.

    `contacts` are the addresses its owner is told at; what lies at `sensitive_paths` of a payload is shown
    redacted.
    """

    id: str
    name: str = ""
    state: TenantState = TenantState.ACTIVE
    contacts: tuple[str, ...] = field(default=(), repr=False)
    quotas: Quotas = Quotas()
    sensitive_paths: tuple[str, ...] = ()
    version: int = 1
    created_ms: int = 0

    def next_to(self, old: "Tenant") -> "Tenant":
        """Give this tenant as the version after an old one."""
        return replace(self, version=old.version + 1)


NOBODY = Tenant("")
"""Whose nothing is."""


def development_tenant(now_ms: int = 0) -> Tenant:
    """Give the tenant of one's own machine, which nothing but the machine slows down."""
    return Tenant(DEFAULT_TENANT, "Development", quotas=QUOTAS_MAX, created_ms=now_ms)
